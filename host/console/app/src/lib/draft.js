// What somebody writes is kept in the browser until it is saved: a reload, a crash or a session's end loses nothing.
import { useCallback, useEffect, useRef, useState } from "./preact.js";
import { app, session } from "./session.js";
import { keep, recall } from "./storage.js";

/**
 * @template T
 * @typedef {object} Draft
 * @property {T} value
 * @property {T} base what was saved when it was begun: the change is `difference(base, value)`
 * @property {number | undefined} version the version that the draft is based on: send it as `If-Match`
 * @property {(value: T | ((before: T) => T)) => void} set
 * @property {boolean} changed it differs from what is saved
 * @property {boolean} restored it comes from an earlier visit: say so (`RestoredDraft`)
 * @property {(base: T, version?: number) => void} rebase the server has another base now; what was written stays
 * @property {() => void} discard back to what is saved
 * @property {(value: T, version?: number) => void} saved what the server has now
 */

/**
 * A value that is edited. The draft belongs to the person and the app; another person at this browser does not see it.
 * @template T
 * @param {string} name of what is edited: `survey.<id>`, `survey.new`
 * @param {T} base what is saved
 * @param {number} [version] its version
 * @returns {Draft<T>}
 */
export function useDraft(name, base, version) {
  const key = `draft.${session.peek()?.subject ?? ""}.${app.peek()?.id ?? ""}.${name}`;
  const [state, setState] = useState(() => begin(key, base, version));
  const timer = useRef(0);
  const latest = useRef(state);
  latest.current = state;

  const write = useCallback(() => {
    clearTimeout(timer.current);
    const { value, base, version } = latest.current;
    const changed = JSON.stringify(value) !== JSON.stringify(base);
    keep(key, changed ? { value, base, version } : undefined);
  }, [key]);
  useEffect(() => {
    timer.current = window.setTimeout(write, 200);
  }, [state.value, state.base, write]);
  useEffect(() => {
    addEventListener("pagehide", write);
    return () => {
      removeEventListener("pagehide", write);
      write();
    };
  }, [write]);

  /** At once: the page may be left before it is drawn again. @param {typeof state} next */
  const begun = (next) => {
    latest.current = next;
    setState(next);
  };
  return {
    value: state.value,
    base: state.base,
    version: state.version,
    changed: JSON.stringify(state.value) !== JSON.stringify(state.base),
    restored: state.restored,
    set: (next) => setState((before) => ({ ...before, value: typeof next == "function" ? /** @type {(before: T) => T} */ (next)(before.value) : next })),
    rebase: (base, version) => setState((before) => ({ ...before, base, version })),
    discard: () => begun({ value: base, base, version, restored: false }),
    saved: (value, version) => begun({ value, base: value, version, restored: false }),
  };
}

/**
 * @template T
 * @param {string} key
 * @param {T} base
 * @param {number | undefined} version
 * @returns {{ value: T, base: T, version: number | undefined, restored: boolean }}
 */
function begin(key, base, version) {
  const kept = recall(key);
  return kept ? { ...kept, restored: true } : { value: base, base, version, restored: false };
}
