// JSON as it is, and a field in which it is written.
import { createContext, html, useContext, useLayoutEffect, useRef, useState } from "../lib/preact.js";
import { CopyButton } from "./copy.js";
import { TextArea } from "./form.js";

const pretty = (/** @type {unknown} */ value) => JSON.stringify(value, null, 2) ?? "";

/** @param {{ value: unknown, label?: string }} props */
export function Json({ value, label = "JSON" }) {
  const text = pretty(value);
  return html`<div class="json"><pre tabindex="0" role="region" aria-label=${label}>${text}</pre><${CopyButton} text=${text} label=${`Copy ${label}`} /></div>`;
}

/**
 * What is wrong with a text, with its line.
 * @param {string} text
 * @returns {{ value?: any, error?: string }}
 */
export function parse(text) {
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    const message = /** @type {Error} */ (error).message;
    const place = /position (\d+)/.exec(message)?.[1];
    const line = /line (\d+)/.exec(message)?.[1] ?? (place ? text.slice(0, Number(place)).split("\n").length : text.split("\n").length);
    return { error: `Line ${line}: ${message}` };
  }
}

/** @typedef {import("../lib/draft.js").Unread} Unread */

/** Where texts stay that are no JSON yet, while their fields are away; none: they go with the fields. */
const Place = createContext(/** @type {{ texts: Map<string, Unread>, part: string, isLeft: boolean } | undefined} */ (undefined));

/**
 * Fields of a draft. A text of theirs that is no JSON yet stays with the draft while another tab is shown, and nothing is saved meanwhile (`checkJson`).
 * @param {{ draft: Pick<import("../lib/draft.js").Draft<any>, "texts">, part?: string, children: any }} props part: which fields they are, where a draft's are in several tabs
 */
export function DraftFields({ draft: { texts }, part = "", children }) {
  const [place] = useState({ texts, part, isLeft: false });
  useLayoutEffect(() => {
    // Each field has its text again. What is left is of fields that are no more.
    for (const [name, one] of texts) if (one.part == part) texts.delete(name);
    // This comes before the fields are told the same. A field that goes alone was taken out, and its text goes with it.
    return () => void (place.isLeft = true);
  }, []);
  return html`<${Place.Provider} value=${place}>${children}<//>`;
}

/**
 * A field with JSON. `onChange` is told the value whenever the text is one. While it is none, its form sends nothing
 * (`checkJson`); a field with a `check` says undefined then, too.
 * @param {{ label: string, value: unknown, onChange: (value: any) => void, hint?: any, at?: string, rows?: number, check?: (value: any) => string | undefined }} props check: what is wrong with a value
 */
export function JsonField({ value, onChange, rows = 12, check, ...field }) {
  const now = JSON.stringify(value);
  const place = useContext(Place);
  const name = field.at ?? field.label;
  const [text, setText] = useState(() => {
    const left = place?.texts.get(name);
    return left && left.of === now ? left.text : pretty(value);
  });
  const read = (/** @type {string} */ text) => {
    const { error, value } = parse(text);
    const fault = error ?? check?.(value);
    return { error: fault, value: fault ? undefined : value };
  };
  const { error, value: parsed } = read(text);
  const seen = useRef(now);
  useLayoutEffect(() => {
    // Set from outside: a discarded draft, what somebody else saved.
    if (seen.current !== now && value !== undefined && now !== JSON.stringify(parsed)) setText(pretty(value));
    seen.current = now;
  }, [now]);
  useLayoutEffect(() => () => {
    if (place?.isLeft && error) place.texts.set(name, { part: place.part, text, of: now });
  });
  const type = (/** @type {string} */ next) => {
    const { value } = read(next);
    setText(next);
    if (check || value !== undefined) onChange(value);
  };
  return html`<${TextArea} ...${field} rows=${rows} value=${text} onInput=${type} error=${error} rest=${{ spellcheck: false, class: "code", "data-bad": error }} />`;
}
