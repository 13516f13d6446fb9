// JSON as it is, and a field in which it is written.
import { html, useEffect, useState } from "../lib/preact.js";
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
 * A field with JSON. `onChange` is told the value whenever the text is one, and undefined while it is not.
 * @param {{ label: string, value: unknown, onChange: (value: any) => void, hint?: any, at?: string, rows?: number }} props
 */
export function JsonField({ value, onChange, rows = 12, ...field }) {
  const [text, setText] = useState(pretty(value));
  const { error, value: parsed } = parse(text);
  useEffect(() => {
    // Set from outside: a discarded draft, what somebody else saved.
    if (value !== undefined && JSON.stringify(value) !== JSON.stringify(parsed)) setText(pretty(value));
  }, [JSON.stringify(value)]);
  const type = (/** @type {string} */ next) => {
    setText(next);
    onChange(parse(next).value);
  };
  return html`<${TextArea} ...${field} rows=${rows} value=${text} onInput=${type} error=${error} rest=${{ spellcheck: false, class: "code" }} />`;
}
