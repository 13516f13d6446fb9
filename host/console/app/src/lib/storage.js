// What the browser keeps for us. Where storage is forbidden or full, nothing is kept and nothing breaks.

/** What begins so is not kept at the moment: whoever has signed out leaves nothing behind. */
let sealed = "";

/** What is held until the window is closed, by its key. @type {Record<string, Map<string, any>>} */
let held = {};

/** Somebody is signed in: all is kept again. */
export const unseal = () => void (sealed = "");

/** What is held under a key until the window is closed, or something is forgotten. @param {string} key */
export const hold = (key) => (held[key] ??= new Map());

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
 * What is kept whose key begins so.
 * @param {string} prefix
 * @returns {string[]} as the browser has the keys
 */
export function kept(prefix) {
  try {
    return Object.keys(localStorage).filter((key) => key.startsWith(`nudge.${prefix}`));
  } catch {
    // Storage is forbidden here: nothing is kept.
    return [];
  }
}

/**
 * Forgets all whose key begins so, and keeps no more of it until `unseal`.
 * @param {string} prefix
 */
export function forget(prefix) {
  sealed = prefix;
  for (const key of kept(prefix)) localStorage.removeItem(key);
  held = {};
}
