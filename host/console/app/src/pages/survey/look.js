// How a survey looks and behaves: colours with their contrast, shape, place. Messages have the same theme.
import { html } from "../../lib/index.js";
import { Badge, Checkbox, Colour, isBlank, NumberInput, put, Select } from "../../ui/index.js";

/** What the SDK has where nothing is said. @type {Record<string, Record<string, string>>} */
const DEFAULTS = {
  light: { background: "#ffffff", text: "#1b1f24", primary: "#1d4fd8", onPrimary: "#ffffff" },
  dark: { background: "#1b1f24", text: "#f2f4f7", primary: "#8ab4ff", onPrimary: "#10131a" },
};
const NAMES = /** @type {Record<string, string>} */ ({ background: "Background", text: "Text", primary: "Buttons", onPrimary: "Text on buttons" });
const PAIRS = /** @type {const} */ ([["text", "background"], ["onPrimary", "primary"]]);
const LEAST = 4.5;

/** The relative luminance of a colour (WCAG 2.2). @param {string} colour */
function luminance(colour) {
  const part = (/** @type {number} */ place) => {
    const value = parseInt(colour.slice(place, place + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
}

/** The contrast of two colours, 1 to 21; undefined: one is none. @param {string} one @param {string} other */
export function contrast(one, other) {
  if (![one, other].every((colour) => /^#[0-9a-f]{6}$/i.test(colour))) return undefined;
  const [less, more] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return ((more ?? 0) + 0.05) / ((less ?? 0) + 0.05);
}

/** Colours of a scheme, each pair with its contrast. @param {{ value: any, onChange: (value: any) => void, at: string, scheme: "light" | "dark" }} props */
function Colours({ value = {}, onChange, at, scheme }) {
  const fallback = DEFAULTS[scheme] ?? {};
  return html`<fieldset><legend>${scheme == "light" ? "Colours" : "Colours in the dark"}</legend>${PAIRS.map(([front, ground]) => {
    const given = value[front] || value[ground];
    // Of a colour alone, the SDK chooses the other.
    const ratio = value[front] && value[ground] ? contrast(value[front], value[ground]) : undefined;
    const shown = ratio === undefined ? undefined : Math.floor(ratio * 100) / 100;
    return html`<div class="row">
      ${[ground, front].map((name) => html`<${Colour} label=${`${NAMES[name]}${scheme == "dark" ? ", dark" : ""}`} at=${`${at}/${name}`} fallback=${fallback[name]} value=${value[name]} onChange=${(/** @type {any} */ colour) => onChange(put(value, name, colour))} />`)}
      <p class="ratio" role="status">${shown !== undefined
        ? html`<${Badge} kind=${shown < LEAST ? "bad" : "good"}>${shown.toFixed(2)}:1<//> ${shown < LEAST ? `too little: text needs ${LEAST}:1` : "enough contrast"}`
        : html`<span class="hint">${given ? "The SDK chooses the other one so that it can be read." : "The SDK's own colours."}</span>`}</p>
    </div>`;
  })}</fieldset>`;
}

/**
 * What a theme has: colours, shape and font.
 * @param {{ value: any, onChange: (value: any) => void }} props onChange: undefined where nothing is said
 */
export function Theme({ value: theme = {}, onChange }) {
  const change = (/** @type {any} */ next) => onChange(isBlank(next) ? undefined : next);
  const look = (/** @type {string} */ name) => (/** @type {any} */ next) => change(put(theme, name, next));
  return html`<div class="row">
      <${Select} label="Light or dark" at="/theme/mode" value=${theme.mode ?? "auto"} options=${[["auto", "as the person's system"], ["light", "light"], ["dark", "dark"]]} onChange=${look("mode")} />
      <${Select} label="Font" at="/theme/font" value=${theme.font ?? "system"} options=${[["system", "the system's"], ["serif", "serif"], ["mono", "monospace"], ["inherit", "the page's"]]} onChange=${look("font")} />
      <${NumberInput} label="Rounded corners, in pixels" at="/theme/radius" min=${0} max=${24} value=${theme.radius} onChange=${look("radius")} />
    </div>
    <${Colours} value=${theme} at="/theme" scheme="light" onChange=${change} />
    <${Colours} value=${theme.dark} at="/theme/dark" scheme="dark" onChange=${(/** @type {any} */ dark) => look("dark")(isBlank(dark) ? undefined : dark)} />
    <${Checkbox} label="Save it even where the contrast is too little" hint="People who see less can't read it then." checked=${Boolean(theme.allowLowContrast)} onChange=${(/** @type {boolean} */ on) => look("allowLowContrast")(on || undefined)} />`;
}

/** @param {{ value: any, onChange: (value: any) => void }} props value: the survey */
export function Look({ value, onChange }) {
  const { theme, settings = {} } = value;
  const part = (/** @type {"theme" | "settings"} */ name) => (/** @type {any} */ next) => onChange(put(value, name, isBlank(next) ? undefined : next));
  const behave = (/** @type {string} */ name) => (/** @type {any} */ next) => part("settings")(put(settings, name, next));
  const placed = (settings.presentation ?? "popover") == "popover" || settings.presentation == "feedback_button";
  return html`<h2>How it behaves</h2>
    <div class="row">
      <${Select} label="It comes as" at="/settings/presentation" value=${settings.presentation ?? "popover"} options=${[["popover", "a box over the page"], ["modal", "a dialog that asks to be answered first"], ["inline", "a part of the page"], ["feedback_button", "a button that opens it"]]} onChange=${behave("presentation")} />
      ${placed && html`<${Select} label="Where" at="/settings/position" value=${settings.position ?? "bottom_right"} options=${["bottom_right", "bottom_left", "top_right", "top_left", "center"]} onChange=${behave("position")} />`}
      <${NumberInput} label="Seconds until it shows" at="/settings/delaySeconds" min=${0} max=${600} value=${settings.delaySeconds} onChange=${behave("delaySeconds")} />
    </div>
    <${Checkbox} label="People can close it" checked=${settings.closeable !== false} onChange=${(/** @type {boolean} */ on) => behave("closeable")(on ? undefined : false)} />
    <${Checkbox} label="Not offered again once it is completed" hint="Of a feedback button: the button goes." checked=${Boolean(settings.once)} onChange=${(/** @type {boolean} */ on) => behave("once")(on || undefined)} />
    <${Checkbox} label="It comes with an attempt, so that the first answer needs no other request" checked=${Boolean(settings.coordinated)} onChange=${(/** @type {boolean} */ on) => behave("coordinated")(on || undefined)} />
    <h2>How it looks</h2>
    <${Theme} value=${theme} onChange=${part("theme")} />`;
}
