/** Themes, as style sheets of custom properties. Nothing of a theme gets into one that is not of its form. */

import type { Colours, Theme } from "./host.js";

const LIGHT: Required<Colours> = { background: "#ffffff", text: "#1b1f24", primary: "#1d4fd8", onPrimary: "#ffffff" };
const DARK: Required<Colours> = { background: "#1b1f24", text: "#f2f4f7", primary: "#8ab4ff", onPrimary: "#10131a" };

const FONTS: Record<NonNullable<Theme["font"]>, string> = {
  system: "system-ui,sans-serif",
  serif: "ui-serif,Georgia,serif",
  mono: "ui-monospace,monospace",
  inherit: "inherit",
};

const COLOURS = Object.keys(LIGHT) as (keyof Colours)[];

/** Black or white, whichever is better read on a colour, or below it. */
function partner(colour: string): string {
  const part = (at: number): number => (parseInt(colour.slice(at, at + 2), 16) / 255) ** 2.2;
  return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5) > 0.18 ? "#000000" : "#ffffff";
}

/** The colours of a theme that are colours, in pairs: the server has looked at those alone that are given both. */
function known(colours: Colours | null | undefined): Colours {
  const found: Colours = {};
  for (const name of COLOURS) {
    const colour = colours?.[name];
    if (/^#[0-9a-f]{6}$/i.test(`${colour}`)) found[name] = colour;
  }
  COLOURS.forEach((name, place) => {
    const other = COLOURS[place ^ 1] ?? name;
    const colour = found[name];
    if (colour) found[other] ??= partner(colour);
  });
  return found;
}

const rules = (scheme: string, colours: Colours): string =>
  `.root{color-scheme:${scheme};${COLOURS.map((name) => `--${name}:${colours[name]}`).join(";")}}`;

/**
 * The rules of a theme. Colours that are given without any for the dark hold in the dark too: they were chosen for each
 * other.
 */
export function themeRules(theme: Theme | null | undefined): string {
  const { mode, radius, font, dark } = theme ?? {};
  const { primary, onPrimary, ...rest } = known(theme);
  const pair = primary ? { primary, onPrimary } : {};
  const light = rules("light", { ...LIGHT, ...pair, ...rest });
  const night = !dark && rest.text ? light : rules("dark", { ...DARK, ...pair, ...known(dark) });
  const round = typeof radius === "number" ? Math.min(Math.max(radius, 0), 24) : 12;
  const shape = `.root{--radius:${round}px;font-family:${FONTS[font!] ?? FONTS.system}}`;
  if (mode === "dark") return shape + night;
  return shape + light + (mode === "light" ? "" : `@media (prefers-color-scheme:dark){${night}}`);
}
