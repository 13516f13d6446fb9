// What somebody writes is kept in the browser until it is saved: a reload, a crash or a session's end loses nothing.
import { complain } from "./notice.js";
import { useCallback, useEffect, useRef, useState } from "./preact.js";
import { app, session } from "./session.js";
import { hold, keep, recall } from "./storage.js";

/** @typedef {{ part: string, text: string, of: string | undefined }} Unread a text that is no JSON yet: in which part of the draft, and in place of which value */

/**
 * @template T
 * @typedef {object} Draft
 * @property {T} value
 * @property {T} base what was saved when it was begun: the change is `difference(base, value)`
 * @property {number | undefined} version the version that the draft is based on: send it as `If-Match`
 * @property {(value: T | ((before: T) => T)) => void} set
 * @property {boolean} changed it differs from what is saved
 * @property {boolean} restored it comes from an earlier visit: say so (`RestoredDraft`)
 * @property {() => void} discard back to what is saved
 * @property {() => boolean} here whether it is shown still: whoever has left it is led nowhere
 * @property {Map<string, Unread>} texts of its fields that are no JSON yet, while the fields are away (`DraftFields`)
 * @property {(value: T, version?: number, sent?: T) => void} saved what the server has now; what was written after `sent` stays
 */

/** The draft that is edited: what can't be shown because of it can be forgotten. */
export const current = { key: "" };
let told = false;

const text = (/** @type {any} */ { value, base, version }) => JSON.stringify({ value, base, version });
const same = (/** @type {unknown} */ one, /** @type {unknown} */ other) => JSON.stringify(one) === JSON.stringify(other);

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
  current.key = key;
  const [state, setState] = useState(() => begin(key, base, version));
  const timer = useRef(0);
  const latest = useRef(state);
  const gone = useRef(false);
  const [texts] = useState(() => hold(key));
  // Another tab may have a draft of the same thing: only what is of this tab is removed.
  const [own] = useState(() => ({ current: state.restored && text(recall(key)) }));

  const write = useCallback(() => {
    clearTimeout(timer.current);
    const { value, base, version } = latest.current;
    if (same(value, base)) {
      if (own.current && text(recall(key) ?? {}) === own.current) keep(key, undefined);
      return;
    }
    own.current = text(latest.current);
    if (keep(key, { value, base, version }) || told) return;
    told = true;
    complain("This browser keeps no drafts. Save before you leave the page.");
  }, [key]);
  useEffect(() => {
    timer.current = window.setTimeout(write, 200);
  }, [state.value, state.base, write]);
  useEffect(() => {
    gone.current = false;
    addEventListener("pagehide", write);
    return () => {
      gone.current = true;
      removeEventListener("pagehide", write);
      write();
    };
  }, [write]);

  /** At once: the page may be left before it is drawn again. @param {typeof state} next */
  const begun = (next) => {
    latest.current = next;
    setState(next);
    // What was saved after the page was left is no draft any longer.
    if (gone.current) write();
  };
  return {
    value: state.value,
    base: state.base,
    version: state.version,
    changed: !same(state.value, state.base),
    restored: state.restored,
    here: () => !gone.current,
    set: (next) => begun({ ...latest.current, value: typeof next == "function" ? /** @type {(before: T) => T} */ (next)(latest.current.value) : next }),
    texts,
    discard: () => {
      texts.clear();
      begun({ value: base, base, version, restored: false });
    },
    saved: (value, version, sent = latest.current.value) => begun({ value: same(latest.current.value, sent) ? value : latest.current.value, base: value, version, restored: false }),
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
  if (!kept) return { value: base, base, version, restored: false };
  // Where only the status was changed meanwhile, the draft is of the new version.
  return { ...kept, version: same(kept.base, base) ? version : kept.version, restored: true };
}
