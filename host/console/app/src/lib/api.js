// The one place that asks the server. What comes back is `data`; what is refused is thrown.

/** @typedef {{ pointer: string, code: string, detail: string }} FieldError */
/** @typedef {Record<string, string | number | boolean | null | undefined>} Query */
/**
 * @template T
 * @typedef {{ items: T[], nextCursor: string | null, total?: number, totalIsEstimate?: boolean }} Page
 */
/**
 * @typedef {object} Options
 * @property {Query} [query]
 * @property {unknown} [body] sent as JSON, but for a Blob, which is sent as it is
 * @property {number} [version] sent as `If-Match`: the change is refused if somebody else made one meanwhile
 * @property {AbortSignal} [signal]
 * @property {Record<string, string>} [headers]
 */

/** What the server refused (RFC 9457), or why it was not reached: status 0, code `unreachable`. */
export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {{ code?: string, title?: string, detail?: string, requestId?: string, errors?: FieldError[] }} problem
   * @param {number} [retryAfter] seconds after which it may be tried again
   */
  constructor(status, problem, retryAfter) {
    super(problem.detail || problem.title || `The server answered ${status}.`);
    this.name = "ApiError";
    this.status = status;
    this.code = problem.code ?? "unknown";
    this.requestId = problem.requestId;
    this.errors = problem.errors ?? [];
    this.retryAfter = retryAfter;
    /** The whole answer, for what a page knows more about. */
    this.problem = /** @type {Record<string, any>} */ (problem);
  }
}

/** Somebody else changed it meanwhile: what was to be changed, and what is there now. */
export class Conflict extends Error {
  /**
   * @param {Record<string, any>} mine the merge patch that was refused
   * @param {Record<string, any>} theirs the resource as it is now, with its `version`
   */
  constructor(mine, theirs) {
    super("Somebody else changed this meanwhile.");
    this.name = "Conflict";
    this.mine = mine;
    this.theirs = theirs;
  }
}

/** What to do when nobody is signed in (any longer), which `session.js` sets, and when something was changed meanwhile, which `load.js` sets. */
export const hooks = { unauthorized: () => {}, stale: async () => {} };

/**
 * The address of a route with its query, without members that are empty.
 * @param {string} path
 * @param {Query} [query]
 */
export function address(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text ? `${path}?${text}` : path;
}

/**
 * Seconds of `Retry-After`, which is a number or a date.
 * @param {string | null} text
 */
function seconds(text) {
  if (!text) return undefined;
  const number = Number(text);
  return Number.isFinite(number) ? number : Math.max(0, Math.ceil((Date.parse(text) - Date.now()) / 1000)) || undefined;
}

/**
 * Sends a request, and answers whatever comes back; throws where nothing does.
 * @param {string} address
 * @param {RequestInit} options
 * @returns {Promise<Response>}
 */
export async function exchange(address, options) {
  try {
    return await fetch(address, { ...options, credentials: "same-origin" });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new ApiError(0, { code: "unreachable", detail: "The server can't be reached. Check the connection, then try again." });
  }
}

/**
 * Asks, and answers the response if it is a success.
 * @param {string} method
 * @param {string} path
 * @param {Options} [options]
 * @returns {Promise<Response>}
 */
export async function send(method, path, { query, body, version, signal, headers = {} } = {}) {
  /** @type {Record<string, string>} */
  const all = { accept: "application/json", ...headers };
  const raw = body instanceof Blob;
  if (body !== undefined && !raw) all["content-type"] = "application/json";
  if (version !== undefined) all["if-match"] = `"${version}"`;
  const content = body === undefined ? undefined : raw ? body : JSON.stringify(body);
  const response = await exchange(address(path, query), { method, headers: all, body: content, signal });
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  problem.requestId ??= response.headers.get("x-request-id") ?? undefined;
  const error = new ApiError(response.status, problem, seconds(response.headers.get("retry-after")));
  if (error.status == 401 && !path.startsWith("/console/")) hooks.unauthorized();
  if (error.status == 412) await hooks.stale();
  throw error;
}

/**
 * Asks, and answers `data`.
 * @param {string} method
 * @param {string} path
 * @param {Options} [options]
 * @returns {Promise<any>}
 */
export async function request(method, path, options) {
  const response = await send(method, path, options);
  if (response.status == 204) return undefined;
  const text = await response.text();
  if (!text) return undefined;
  const answer = JSON.parse(text);
  return answer && typeof answer == "object" && "data" in answer ? answer.data : answer;
}

/** @param {string} path @param {Query} [query] @param {AbortSignal} [signal] */
export const get = (path, query, signal) => request("GET", path, { query, signal });

/** @param {string} path @param {unknown} [body] @param {Options} [options] */
export const post = (path, body = {}, options) => request("POST", path, { ...options, body });

/** @param {string} path @param {unknown} body @param {Options} [options] */
export const put = (path, body, options) => request("PUT", path, { ...options, body });

/**
 * Deletes something. With a version it is refused where somebody else changed the thing meanwhile; the options then have
 * the version that there is now, for whoever wants it gone nevertheless.
 * @param {string} path
 * @param {Options} [options]
 */
export async function del(path, options) {
  try {
    return await request("DELETE", path, options);
  } catch (error) {
    if (options && error instanceof ApiError && error.status == 412) options.version = (await get(path)).version;
    throw error;
  }
}

/**
 * Changes a resource by a merge patch. With the version that was read, a change that somebody else made meanwhile
 * is a `Conflict`.
 * @param {string} path
 * @param {Record<string, any>} body
 * @param {number} [version]
 */
export async function patch(path, body, version) {
  try {
    return await request("PATCH", path, { body, version });
  } catch (error) {
    if (error instanceof ApiError && error.status == 412) throw new Conflict(body, await get(path));
    throw error;
  }
}

/**
 * A page of a list, whichever of its three shapes the route has: items with a cursor, an array, or numbered pages.
 * @param {string} path
 * @param {Query} [query]
 * @param {AbortSignal} [signal]
 * @returns {Promise<Page<any>>}
 */
export async function list(path, query, signal) {
  const data = await get(path, query, signal);
  if (Array.isArray(data)) return { items: data, nextCursor: null, total: data.length };
  return { ...data, items: data.items ?? [], nextCursor: data.nextCursor ?? null };
}

/** @param {unknown} value */
const isObject = (value) => value && typeof value == "object" && !Array.isArray(value);

/**
 * The merge patch (RFC 7396) that makes `after` of `before`. Arrays are replaced whole.
 * @param {Record<string, any>} before
 * @param {Record<string, any>} after
 */
export function difference(before, after) {
  /** @type {Record<string, any>} */
  const found = {};
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const [old, now] = [before[name], after[name]];
    if (JSON.stringify(old) === JSON.stringify(now)) continue;
    // Null removes: a trigger has another word for a value that is missing.
    if (now === null && after.kind == "property_changed" && /^(from|to)$/.test(name)) found[`${name}Missing`] = true;
    else found[name] = now === undefined ? null : isObject(now) ? difference(isObject(old) ? old : {}, now) : now;
  }
  return found;
}
