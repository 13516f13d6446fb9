// The one door to what is vendored: pages and components import from here.
import { h } from "../../vendor/preact.js";
import htm from "../../vendor/htm.js";

export { createContext, h, render } from "../../vendor/preact.js";
export { useCallback, useContext, useEffect, useErrorBoundary, useId, useLayoutEffect, useMemo, useRef, useState } from "../../vendor/hooks.js";
export { batch, computed, effect, signal } from "../../vendor/signals.js";

/**
 * Markup as a tagged template.
 * @type {(strings: TemplateStringsArray, ...values: any[]) => any}
 */
export const html = htm.bind(/** @type {any} */ (h));
