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

const COLOURS = ["background", "text", "primary", "onPrimary"] as const;

/** The colours of a theme that are colours. */
function known(colours: Colours | null | undefined): Colours {
  const found: Colours = {};
  for (const name of COLOURS) {
    const colour = colours?.[name];
    if (typeof colour === "string" && /^#[0-9a-f]{6}$/i.test(colour)) found[name] = colour;
  }
  return found;
}

const rules = (scheme: "light" | "dark", colours: Colours): string =>
  `.root{color-scheme:${scheme};${COLOURS.map((name) => `--${name}:${colours[name]}`).join(";")}}`;

/**
 * The rules of a theme. Colours that are given without any for the dark hold in the dark too: they were chosen for each
 * other. A primary colour alone keeps its partner.
 */
export function themeRules(theme: Theme | null | undefined): string {
  const given = known(theme?.dark);
  const own = known(theme);
  const light = { ...LIGHT, ...own };
  const { primary, onPrimary } = light;
  const pair = own.primary && own.onPrimary ? { primary, onPrimary } : {};
  const keepsOwn = !theme?.dark && (own.background || own.text);
  const dark = keepsOwn ? light : { ...DARK, ...pair, ...given };
  const mode = theme?.mode;
  const { radius, font } = theme ?? {};
  const round = typeof radius === "number" ? Math.min(Math.max(radius, 0), 24) : 12;
  const shape = `.root{--radius:${round}px;font-family:${FONTS[font ?? "system"] ?? FONTS.system}}`;
  if (mode === "dark") return shape + rules("dark", dark);
  if (mode === "light") return shape + rules("light", light);
  return `${shape}${rules("light", light)}@media (prefers-color-scheme:dark){${rules(keepsOwn ? "light" : "dark", dark)}}`;
}
