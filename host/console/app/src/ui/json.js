// JSON as it is, and a field in which it is written.
import { html, useLayoutEffect, useRef, useState } from "../lib/preact.js";
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

/**
 * A field with JSON. `onChange` is told the value whenever the text is one. While it is none, its form sends nothing
 * (`checkJson`); a field with a `check` says undefined then, too.
 * @param {{ label: string, value: unknown, onChange: (value: any) => void, hint?: any, at?: string, rows?: number, check?: (value: any) => string | undefined, kept?: { text?: string, of?: string } }} props check: what is wrong with a value; kept: where a text that is no value yet stays while the field is away
 */
export function JsonField({ value, onChange, rows = 12, check, kept = {}, ...field }) {
  const now = JSON.stringify(value);
  const [text, setText] = useState((kept.of === now && kept.text) || pretty(value));
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
  const type = (/** @type {string} */ next) => {
    const { error, value } = read(next);
    setText(next);
    Object.assign(kept, { text: error && next, of: now });
    if (check || value !== undefined) onChange(value);
  };
  return html`<${TextArea} ...${field} rows=${rows} value=${text} onInput=${type} error=${error} rest=${{ spellcheck: false, class: "code", "data-bad": error }} />`;
}
