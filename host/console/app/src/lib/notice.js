// Short messages that come and go; `ui/notice.js` shows them.
import { signal } from "./preact.js";

/** @typedef {{ id: number, kind: "good" | "bad", text: string, error?: Error }} Toast */

export const toasts = signal(/** @type {Toast[]} */ ([]));
let next = 1;

/** @param {number} id */
export const dismiss = (id) => (toasts.value = toasts.value.filter((toast) => toast.id !== id));

/** Says that something was done. It goes by itself. @param {string} text */
export function say(text) {
  const id = next++;
  toasts.value = [...toasts.value, { id, kind: "good", text }];
  setTimeout(() => dismiss(id), 6000);
}

/** Says how far something is. @returns {(text: string) => void} takes the newest; empty: it is done */
export function follow() {
  const id = next++;
  return (text) => (toasts.value = [...toasts.value.filter((toast) => toast.id !== id), ...(text ? [{ id, kind: /** @type {const} */ ("good"), text }] : [])]);
}

/** Says that something failed. It stays until it is closed. @param {unknown} error */
export function complain(error) {
  const cause = error instanceof Error ? error : new Error(String(error));
  toasts.value = [...toasts.value, { id: next++, kind: "bad", text: cause.message, error: cause }];
}
