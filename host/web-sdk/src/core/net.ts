/** What the server answered. */
export interface Answer {
  /** The status; 0 where there was no answer. */
  status: number;
  data?: any;
  code: string;
  message: string;
  /** Where in the request's body faults are. */
  errors?: any[];
  /** Milliseconds that the server asks to wait. */
  retryAfter: number;
}

/** Who asks. */
export interface Credentials {
  baseUrl: string;
  writeKey: string;
}

/** After so many tries in a row what something between the page and the server answers is meant for the request. */
const MOST_TRIES = 9;

/** The longest that a request may take, milliseconds: polls are kept for less. */
const LIMIT = 60_000;
/** The longest that the server's word keeps the SDK from asking, in milliseconds: a day. Timers know no month. */
const MOST_AFTER = 86_400_000;

/** Whether an answer is of something between the page and the server: it has no code. */
const isOfOthers = ({ status, code }: Answer): boolean => status > 399 && code.startsWith("http_");

/** Whether the same request may be answered otherwise later. `tries`: how often it was in a row. */
export const isTemporary = (answer: Answer, tries = 0): boolean => {
  const { status } = answer;
  return !status || [408, 425, 429].includes(status) || status > 499 || (status != 413 && tries < MOST_TRIES && isOfOthers(answer));
};

/** Whether a part of the request may be what is refused. */
export const isSpoiled = (answer: Answer): boolean => [400, 413, 422].includes(answer.status) || isOfOthers(answer);

/** Asks the server. Never throws. Nobody else listens to the signal meanwhile. */
export async function ask(
  { baseUrl, writeKey }: Credentials,
  method: string,
  path: string,
  body?: unknown,
  token?: string,
  signal?: AbortSignal,
): Promise<Answer> {
  const headers: Record<string, string> = { authorization: `Bearer ${writeKey}` };
  if (token) headers["x-service-subject-token"] = token;
  const text: string | undefined = JSON.stringify(body);
  if (text) headers["content-type"] = "application/json";
  const control = new AbortController();
  const timer = setTimeout(() => control.abort(), LIMIT);
  if (signal) signal.onabort = () => control.abort();
  try {
    const response = await fetch(baseUrl + path, {
      method,
      headers,
      body: text,
      signal: control.signal,
      credentials: "omit",
      cache: "no-store",
      // A page that goes away leaves the request behind, unless it is larger than browsers let it be.
      keepalive: text?.length! < 20_000,
    });
    const { status } = response;
    const after = response.headers.get("retry-after")!;
    // Of an answer that breaks off nothing is known: the request is sent again.
    const json = await response.json().catch((error) => (status == 204 || status > 399 ? {} : Promise.reject(error)));
    const code = json.code ?? `http_${status}`;
    return {
      status,
      data: json.data,
      code,
      message: json.detail ?? json.title ?? code,
      errors: json.errors,
      retryAfter: Math.min(MOST_AFTER, 1000 * +after || Date.parse(after) - Date.now() || 0),
    };
  } catch {
    return { status: 0, code: "network", message: "the server can't be reached", retryAfter: 0 };
  } finally {
    clearTimeout(timer);
  }
}

/** Sends events of a page that goes away, without headers that browsers would ask the server for first. */
export function beacon({ baseUrl, writeKey }: Credentials, subjectToken: string, body: unknown): void {
  const text = `${JSON.stringify({ writeKey, subjectToken })}\n${JSON.stringify(body)}`;
  fetch(`${baseUrl}/v1/sdk/beacon`, { method: "POST", body: text, credentials: "omit", keepalive: true }).catch(() => {});
}
