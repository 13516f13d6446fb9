// What a page shows of the server: asked for when the address changes, cancelled when the page goes.
import { ApiError, get, hooks, list } from "./api.js";
import { useCallback, useEffect, useRef, useState } from "./preact.js";

/** What reloads all that is shown. @type {Set<() => Promise<void>>} */
const shown = new Set();

// Somebody else changed something meanwhile: whoever tries again has to do with what there is now.
hooks.stale = async () => void (await Promise.all([...shown].map((reload) => reload())));

/**
 * @template T
 * @typedef {object} Loaded
 * @property {T | undefined} data stays while it is asked for anew
 * @property {Error | undefined} error
 * @property {boolean} loading
 * @property {() => Promise<void>} reload
 * @property {(data: T) => void} set what a change has answered: no need to ask again
 */

/**
 * Runs something that asks, whenever the key changes; a null key asks nothing.
 * @template T
 * @param {string | null} key
 * @param {(signal: AbortSignal) => Promise<T>} ask
 * @returns {Loaded<T>}
 */
export function useLoaded(key, ask) {
  const [state, setState] = useState(/** @type {{ key: string | null, data?: T, error?: Error, loading: boolean }} */ ({ key, loading: key !== null }));
  const latest = useRef(ask);
  latest.current = ask;
  const running = useRef(/** @type {AbortController | undefined} */ (undefined));
  const reload = useCallback(async () => {
    running.current?.abort();
    if (key === null) return setState({ key, loading: false });
    const controller = (running.current = new AbortController());
    setState((before) => ({ key, data: before.key === key ? before.data : undefined, loading: true }));
    try {
      const data = await latest.current(controller.signal);
      if (!controller.signal.aborted) setState({ key, data, loading: false });
    } catch (error) {
      if (controller.signal.aborted) return;
      setState((before) => ({ key, data: before.data, error: /** @type {Error} */ (error), loading: false }));
    }
  }, [key]);
  useEffect(() => {
    void reload();
    shown.add(reload);
    return () => {
      shown.delete(reload);
      running.current?.abort();
    };
  }, [reload]);
  const set = useCallback((/** @type {T} */ data) => {
    // What is asked already may be answered as it was before. Another address may be shown by now.
    if (!shown.has(reload)) return;
    running.current?.abort();
    setState({ key, data, loading: false });
  }, [reload]);
  const fresh = state.key === key;
  return { data: fresh ? state.data : undefined, error: fresh ? state.error : undefined, loading: !fresh || state.loading, reload, set };
}

/**
 * One resource.
 * @param {string | null} path null: nothing is asked yet
 * @param {import("./api.js").Query} [query]
 * @returns {Loaded<any>}
 */
export const useResource = (path, query = {}) => useLoaded(path && path + JSON.stringify(query), (signal) => get(path ?? "", query, signal));

/**
 * A page of a list.
 * @param {string | null} path
 * @param {import("./api.js").Query} [query]
 * @returns {Loaded<import("./api.js").Page<any>>}
 */
export function useList(path, query = {}) {
  const found = useLoaded(path && path + JSON.stringify(query), (signal) => list(path ?? "", query, signal));
  // A cursor lasts a day: whoever comes back later gets the first page.
  const stale = found.error instanceof ApiError && found.error.code == "invalid_cursor" && query.cursor;
  const first = useLoaded(stale ? `${path}${JSON.stringify({ ...query, cursor: "" })}` : null, (signal) => list(path ?? "", { ...query, cursor: undefined }, signal));
  return stale ? first : found;
}

/**
 * Asks again every so often while the page is seen, and once it is seen again where a turn was left out. A turn that comes
 * before the answer to the one before asks nothing: answers may take longer than the turns are apart.
 * @param {() => unknown} ask
 * @param {number | null} milliseconds null: not at the moment
 */
export function usePolling(ask, milliseconds) {
  const latest = useRef(ask);
  latest.current = ask;
  useEffect(() => {
    if (milliseconds === null) return;
    let due = false, asks = false;
    const turn = async () => {
      due = document.hidden;
      if (due || asks) return;
      asks = true;
      await latest.current();
      asks = false;
    };
    const seen = () => due && turn();
    const timer = setInterval(turn, milliseconds);
    document.addEventListener("visibilitychange", seen);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [milliseconds]);
}

/**
 * A list that is here as a whole, for `Table`.
 * @param {any[]} items
 * @returns {Loaded<import("./api.js").Page<any>>}
 */
export const whole = (items) => ({ data: { items, nextCursor: null }, error: undefined, loading: false, reload: async () => {}, set: () => {} });
