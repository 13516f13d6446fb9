// What the browser keeps for us. Where storage is forbidden or full, nothing is kept and nothing breaks.

/** What begins so is not kept at the moment: whoever has signed out leaves nothing behind. */
let sealed = "";

/** Somebody is signed in: all is kept again. */
export const unseal = () => void (sealed = "");

/**
 * @param {string} key
 * @returns {any} what was kept under it, or undefined
 */
export function recall(key) {
  try {
    const text = localStorage.getItem(`nudge.${key}`);
    return text === null ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * @param {string} key
 * @param {unknown} value undefined: nothing is kept any longer
 * @returns {boolean} false where the browser keeps nothing
 */
export function keep(key, value) {
  if (sealed && key.startsWith(sealed)) return true;
  try {
    if (value === undefined) localStorage.removeItem(`nudge.${key}`);
    else localStorage.setItem(`nudge.${key}`, JSON.stringify(value));
    return true;
  } catch {
    return false;
  }
}

/**
 * Forgets all whose key begins so, and keeps no more of it until `unseal`.
 * @param {string} prefix
 */
export function forget(prefix) {
  sealed = prefix;
  try {
    for (const key of Object.keys(localStorage)) {
      if (key.startsWith(`nudge.${prefix}`)) localStorage.removeItem(key);
    }
  } catch {
    // Storage is forbidden here: there is nothing to forget.
  }
}
