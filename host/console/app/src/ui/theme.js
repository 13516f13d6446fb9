// The choice of colours.
import { html } from "../lib/preact.js";
import { theme } from "../lib/theme.js";

export const ThemeSelect = () => html`<label>Colours <select value=${theme.value} onChange=${(/** @type {any} */ event) => (theme.value = event.currentTarget.value)}>
  ${["system", "light", "dark"].map((one) => html`<option value=${one} selected=${one == theme.value}>${one}</option>`)}
</select></label>`;
