// What is known of one thing, by name; and what is shown while it is asked for.
import { html } from "../lib/preact.js";
import { ErrorView } from "./error.js";

/** @param {{ facts: [string, any][] }} props those that are undefined are left out */
export const Facts = ({ facts }) =>
  html`<dl class="facts">${facts.filter(([, value]) => value !== undefined).map(([name, value]) => html`<div><dt>${name}</dt><dd>${value ?? "–"}</dd></div>`)}</dl>`;

export const Loading = () => html`<p role="status" class="loading">Loading…</p>`;

/**
 * What a hook of `lib/load.js` has found, or why it has not.
 * @param {{ of: import("../lib/load.js").Loaded<any>, children: (data: any) => any }} props
 */
export function Loaded({ of: { data, error, reload }, children }) {
  if (data === undefined) return error ? html`<${ErrorView} error=${error} retry=${reload} />` : html`<${Loading} />`;
  return html`${error && html`<${ErrorView} error=${error} retry=${reload} />`}${children(data)}`;
}
