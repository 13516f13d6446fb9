/** Elements without markup: nothing here takes HTML, so that pages with Trusted Types need no policy for it. */

import type { Json } from "./host.js";

type Child = Node | string | false | null | undefined;

/** Attributes by name; a function listens to the event of its name; false, null and undefined are left out. */
export type Attributes = Record<string, string | number | boolean | null | undefined | ((event: never) => void)>;

/** Appends what there is. */
export const append = (element: Element, ...children: Child[]): void =>
  element.append(...(children.filter(Boolean) as (Node | string)[]));

/** What a value has by name, where it is such a value. */
export const membersOf = (value: Json | undefined): { [key: string]: Json } =>
  value && typeof value === "object" && !Array.isArray(value) ? value : {};

/** Makes an element. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value as EventListener);
    else if (value != null && value !== false) element.setAttribute(name, value === true ? "" : `${value}`);
  }
  append(element, ...children);
  return element;
}

/** A sign that is seen and not read out: what it means is said beside it. */
export const glyph = (sign: string): HTMLElement => h("span", { "aria-hidden": "true" }, sign);

let made = 0;

/** An id that nothing else of ours has. */
export const newId = (): string => `n${++made}`;

/** Schemes whose addresses are programs or contents of their own, or lead into the device. */
const PROGRAMS = /^(javascript|data|vbscript|blob|file|filesystem):$/;

/** An address that may be opened, or nothing. The server refuses others too. */
export function safeUrl(address: string | null | undefined): string | undefined {
  try {
    const url = new URL(address ?? "");
    return PROGRAMS.test(url.protocol) ? undefined : url.href;
  } catch {
    return undefined;
  }
}

/** Whether an address is one of the web. */
export const isWeb = (address: string | undefined): address is string => /^https?:/i.test(address ?? "");

/** What has the focus, in whichever shadow root it is. */
export function focused(): HTMLElement | null {
  let element = document.activeElement;
  while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
  return element instanceof HTMLElement ? element : null;
}
