// The choice of colours, and of the zone of times.
import { setZone, zone } from "../lib/format.js";
import { html } from "../lib/preact.js";
import { theme } from "../lib/theme.js";

export const ThemeSelect = () => html`<label>Colours <select value=${theme.value} onChange=${(/** @type {any} */ event) => (theme.value = event.currentTarget.value)}>
  ${["system", "light", "dark"].map((one) => html`<option value=${one} selected=${one == theme.value}>${one}</option>`)}
</select></label>`;

export const TimesSelect = () => html`<label>Times <select value=${zone.value} onChange=${(/** @type {any} */ event) => setZone(event.currentTarget.value)}>
  ${["", "UTC"].map((one) => html`<option value=${one} selected=${one == zone.value}>${one || "local"}</option>`)}
</select></label>`;
