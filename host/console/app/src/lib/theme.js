// Light, dark, or what the system has. `theme.js` beside `index.html` does the same before anything is drawn.
import { effect, signal } from "./preact.js";

/** @typedef {"system" | "light" | "dark"} Theme */

/** @returns {Theme} */
function kept() {
  const { theme } = document.documentElement.dataset;
  return theme == "light" || theme == "dark" ? theme : "system";
}

/** What somebody chose. */
export const theme = signal(kept());

effect(() => {
  const { value } = theme;
  if (value == "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = value;
  try {
    if (value == "system") localStorage.removeItem("nudge.theme");
    else localStorage.setItem("nudge.theme", value);
  } catch {
    // Storage is forbidden here: the choice lasts until the page is left.
  }
});
