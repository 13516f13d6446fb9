// Where somebody is: `#/apps/<appId>/surveys?sort=name&cursor=…`. The state of each page is there, so that a reload, a
// new tab, the back button and a link sent to somebody else show the same.
import { computed, signal } from "./preact.js";

/** @typedef {Record<string, string>} Values */
/**
 * @typedef {object} PageEntry a line of `pages/index.js`
 * @property {string} path with `:name` where a value stands
 * @property {string} title
 * @property {() => Promise<{ default: any }>} load
 * @property {"viewer" | "editor" | "admin" | "operator"} [role] who may see it; nobody in particular: viewer
 * @property {string} [group] the heading of the navigation that it stands under; without one it is in no navigation
 * @property {boolean} [open] needs no session
 */

/** The address after `#`, always with a leading slash. */
const here = signal(read());

function read() {
  const text = location.hash.slice(1);
  return text.startsWith("/") ? text : "/";
}

addEventListener("hashchange", () => (here.value = read()));

/** @type {PageEntry[]} */
let table = [];

/** @param {PageEntry[]} pages the table of pages, set once at the start */
export const useTable = (pages) => (table = pages);

/**
 * The values in a path, or undefined where it is another page's.
 * @param {string} pattern
 * @param {string} path
 * @returns {Values | undefined}
 */
export function match(pattern, path) {
  const [wanted, given] = [pattern.split("/"), path.split("/")];
  if (wanted.length != given.length) return undefined;
  /** @type {Values} */
  const values = {};
  for (const [index, part] of wanted.entries()) {
    const value = given[index] ?? "";
    if (part.startsWith(":") && value) {
      try {
        values[part.slice(1)] = decodeURIComponent(value);
      } catch {
        return undefined;
      }
    } else if (part !== value) return undefined;
  }
  return values;
}

/** The page that the address names, with the values of its path and its query. */
export const route = computed(() => {
  const [path = "/", search = ""] = here.value.split(/\?(.*)/s);
  const query = /** @type {Values} */ (Object.fromEntries(new URLSearchParams(search)));
  for (const page of table) {
    const params = match(page.path, path);
    if (params) return { path, page, params, query };
  }
  return { path, page: undefined, params: /** @type {Values} */ ({}), query };
});

/**
 * The address of a page, for `href`.
 * @param {string} path with `:name` where a value of `params` goes
 * @param {Record<string, string>} [params]
 * @param {import("./api.js").Query} [query]
 */
export function link(path, params = {}, query = {}) {
  const filled = path.replace(/:(\w+)/g, (_, name) => encodeURIComponent(params[name] ?? ""));
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return `#${filled}${text ? `?${text}` : ""}`;
}

/**
 * Goes to an address that `link` made.
 * @param {string} target
 * @param {{ replace?: boolean }} [options] replace: the back button does not lead here again
 */
export function go(target, { replace = false } = {}) {
  if (replace) {
    history.replaceState(null, "", target);
    here.value = read();
  } else {
    location.hash = target;
  }
}

/**
 * Changes the page's query and leaves the rest; an empty value goes. What is filtered or sorted anew begins at the first
 * page: unless the change names a cursor, the cursor goes.
 * @param {Record<string, string | number | null | undefined>} changes
 * @param {{ replace?: boolean }} [options]
 */
export function setQuery(changes, options) {
  const { path, query } = route.value;
  const { cursor: _, ...rest } = query;
  go(link(path, {}, { ...rest, ...changes }), options);
}
