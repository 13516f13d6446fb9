// Fields that editors of campaigns share: numbers, lists of words, spans of time, and lists of things in an order.
import { html, useRef, useState } from "../lib/preact.js";
import { Button, refocus } from "./button.js";
import { Field, Input, Select, useText } from "./form.js";

/** @typedef {import("./form.js").Common} Common */

/**
 * The object with another value of a member; undefined takes the member out.
 * @template {Record<string, any>} T
 * @param {T} object
 * @param {string} name
 * @param {any} value
 * @returns {T}
 */
export function put(object, name, value) {
  const { [name]: _, ...rest } = object ?? {};
  return /** @type {T} */ (value === undefined ? rest : { ...object, [name]: value });
}

/** Whether an object says nothing. @param {any} value */
export const isBlank = (value) => !value || !Object.keys(value).length;

/** A text that may be missing. @param {Common & { value?: string, onChange: (value: string | undefined) => void, type?: string }} props */
export const Text = ({ value = "", onChange, ...field }) => html`<${Input} ...${field} value=${value ?? ""} onInput=${(/** @type {string} */ text) => onChange(text || undefined)} />`;

/** A number that may be missing. @param {Common & { presses?: boolean, value?: number, onChange: (value: number | undefined) => void, min?: number, max?: number, step?: number | "any" }} props */
export function NumberInput({ value, onChange, min, max, step, rest = {}, ...field }) {
  // What is typed, as long as it is the number. What is emptied stays so until it is left, whatever stands for no number.
  const [text, setText] = useState(/** @type {string | undefined} */ (undefined));
  const type = (/** @type {string} */ next) => {
    setText(next);
    onChange(next ? Number(next) : undefined);
  };
  const onBlur = () => setText(text || undefined);
  return html`<${Input} ...${field} type="number" rest=${{ min, max, step, class: "number", ...rest, onBlur }} value=${text === "" || Number(text) === value ? text : String(value ?? "")} onInput=${type} />`;
}

/** Words with commas between them; in quotation marks if they have a comma, a quotation mark or blanks around. @param {string[]} words */
export const joined = (words) => words.map((word) => (/^$|[,"]|^\s|\s$/.test(word) ? `"${word.replaceAll('"', '""')}"` : word)).join(", ");

/** A word in quotation marks, of which the last may not be typed yet; or one without. */
const WORD = /\s*(?:"((?:[^"]|"")*)(?:"\s*(?:,|$)|$)|([^,]*)(?:,|$))/g;

/** The words of what {@link joined} makes, and of what people type. @param {string} text */
export const split = (text) => [...text.matchAll(WORD)].map(([, marked, plain = ""]) => marked?.replaceAll('""', '"') ?? (plain.trim() || undefined)).filter((word) => word !== undefined);

/** What is said of words that may be any text. */
export const MARKED = "With commas between them; one that has a comma stands in quotation marks.";

/** A word without what a line can't hold. @param {string} word */
const flat = (word) => String(word).replace(/[\r\n]/g, "");

/** Words with commas between them. @param {Common & { value?: string[], onChange: (value: string[]) => void }} props */
export function Words({ value = [], onChange, ...field }) {
  const [text, setText] = useText(joined(value.map(flat)), (text) => joined(split(text)));
  const type = (/** @type {string} */ next) => {
    setText(next);
    onChange(split(next).map((word) => value.find((one) => flat(one) == word) ?? word));
  };
  return html`<${Input} ...${field} value=${text} onInput=${type} />`;
}

/** @type {[string, number][]} */
const UNITS = [["days", 86_400], ["hours", 3600], ["minutes", 60], ["seconds", 1]];

/** A span in seconds. Its unit is one that suits it, and stays while it is typed. @param {Common & { value?: number, onChange: (seconds: number | undefined) => void, max?: number }} props */
export function Span({ value, onChange, label, max, ...field }) {
  const read = () => {
    const [, size] = UNITS.find(([, size]) => value && value % size == 0) ?? ["", 60];
    return { size, amount: value && value / size, of: value };
  };
  const [typed, setTyped] = useState(read);
  const { size, amount } = typed.of === value ? typed : read();
  const set = (/** @type {number | undefined} */ amount, factor = size) => {
    const of = amount && Math.round(amount * factor);
    setTyped({ size: factor, amount, of });
    onChange(of);
  };
  return html`<div class="row">
    <${NumberInput} ...${field} label=${label} min=${0} max=${max && max / size} step="any" value=${amount} onChange=${set} />
    <${Select} label=${`Unit of: ${label}`} value=${String(size)} options=${UNITS.map(([name, size]) => [String(size), name])} onChange=${(/** @type {string} */ next) => set(amount, Number(next))} />
  </div>`;
}

/**
 * An id that others name: it is another once the field is left, and only one that nothing else has.
 * @param {Common & { value: string, taken: string[], onChange: (id: string) => void }} props
 */
export function Id({ value, taken, onChange, rest, ...field }) {
  const [text, setText] = useText(value, String);
  const error = text != value && taken.includes(text) ? "It is taken." : undefined;
  return html`<${Input} ...${field} error=${error} value=${text} onInput=${setText} rest=${{ ...rest, onChange: () => error || onChange(text) }} />`;
}

/**
 * Local time in a form that fields of time take. While a year is typed it is long past, when zones differed from UTC by seconds too: the
 * offset, which has whole minutes, would lead to another minute.
 * @param {string | undefined} at
 */
export function localOf(at) {
  const date = new Date(at ?? "");
  if (Number.isNaN(+date)) return "";
  const two = (/** @type {number} */ number) => String(number).padStart(2, "0");
  return `${String(date.getFullYear()).padStart(4, "0")}-${two(date.getMonth() + 1)}-${two(date.getDate())}T${two(date.getHours())}:${two(date.getMinutes())}`;
}

/** An instant, written in local time. @param {Common & { value?: string, onChange: (at: string | undefined) => void }} props */
export const Instant = ({ value, onChange, hint, ...field }) =>
  html`<${Input} ...${field} type="datetime-local" hint=${value ? `${value} (UTC)` : hint ?? "Your local time."} value=${localOf(value)} onInput=${(/** @type {string} */ text) => onChange(text ? new Date(text).toISOString() : undefined)} />`;

/**
 * Things in an order: each can be moved, doubled and taken out by buttons.
 * @param {object} props
 * @param {any[]} props.items
 * @param {(items: any[]) => void} props.onChange
 * @param {(item: any, index: number, set: (item: any) => void) => any} props.render
 * @param {(item: any, index: number) => string} props.name what a thing is called, for its buttons
 * @param {() => any} props.blank what is added
 * @param {string} props.add the name of the button
 * @param {(item: any) => any} [props.copy] makes the double; without it nothing is doubled
 * @param {number} [props.least]
 * @param {number} [props.most]
 * @param {boolean} [props.tight] the buttons stand beside the fields
 */
export function Ordered({ items, onChange, render, name, blank, add, copy, least = 0, most = 100, tight }) {
  const replaced = (/** @type {number} */ index, /** @type {any[]} */ ...instead) => items.toSpliced(index, 1, ...instead);
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  /** Who has moved a thing goes on with that thing. @param {number} place @param {number} button */
  const focus = (place, button) =>
    requestAnimationFrame(() => {
      const buttons = /** @type {HTMLButtonElement[]} */ ([...(list.current?.children[place]?.querySelectorAll(":scope > .actions > button") ?? [])]);
      (buttons[button]?.disabled ? buttons.find(({ disabled }) => !disabled) : buttons[button])?.focus();
    });
  const move = (/** @type {number} */ from, /** @type {number} */ to) => {
    const next = [...items];
    next.splice(to, 0, ...next.splice(from, 1));
    onChange(next);
    focus(to, to < from ? 0 : 1);
  };
  const remove = (/** @type {number} */ index) => {
    onChange(replaced(index));
    focus(Math.min(index, items.length - 2), copy ? 3 : 2);
    refocus(() => list.current?.nextElementSibling?.querySelector("button"));
  };
  return html`<ol ref=${list} class=${tight ? "ordered tight" : "ordered"}>
    ${items.map((item, index) => html`<li key=${index}>
      <div class="what">${render(item, index, (next) => onChange(replaced(index, next)))}</div>
      <div class="actions" role="group" aria-label=${name(item, index)}>
        <${Button} kind="plain" disabled=${index == 0} label=${`Move ${name(item, index)} up`} onClick=${() => move(index, index - 1)}>↑<//>
        <${Button} kind="plain" disabled=${index == items.length - 1} label=${`Move ${name(item, index)} down`} onClick=${() => move(index, index + 1)}>↓<//>
        ${copy && html`<${Button} kind="plain" disabled=${items.length >= most} label=${`Duplicate ${name(item, index)}`} onClick=${() => onChange(replaced(index, item, copy(item)))}>Duplicate<//>`}
        <${Button} kind="plain" disabled=${items.length <= least} label=${`Delete ${name(item, index)}`} onClick=${() => remove(index)}>Delete<//>
      </div>
    </li>`)}
  </ol>
  <p><${Button} disabled=${items.length >= most} onClick=${() => onChange([...items, blank()])}>${add}<//></p>`;
}

/** Some of many, by their boxes. @param {{ label: string, options: [string, string][], value: string[], onChange: (value: string[]) => void, hint?: any }} props */
export const PickSome = ({ label, options, value, onChange, hint }) => html`<fieldset class="picks"><legend>${label}</legend>
  ${hint && html`<p class="hint">${hint}</p>`}
  ${options.map(([key, text]) => html`<label class="pick"><input type="checkbox" checked=${value.includes(key)} onChange=${(/** @type {any} */ event) => onChange(event.currentTarget.checked ? [...value, key] : value.filter((one) => one != key))} /> ${text}</label>`)}
  ${value.filter((key) => !options.some(([known]) => known == key)).map((key) => html`<label class="pick"><input type="checkbox" checked onChange=${() => onChange(value.filter((one) => one != key))} /> <code>${key}</code></label>`)}
</fieldset>`;

/** A colour as #rrggbb, by the browser's picker or as text; none: the default. @param {Common & { value?: string, fallback: string, onChange: (value: string | undefined) => void }} props */
export const Colour = ({ value, fallback, onChange, ...field }) =>
  html`<${Field} ...${field}>${(/** @type {any} */ attributes) => html`<span class="colour">
    <input type="color" aria-label=${`${field.label}: pick`} value=${/^#[0-9a-f]{6}$/i.test(value ?? "") ? value : fallback} onInput=${(/** @type {any} */ event) => onChange(event.currentTarget.value)} />
    <input ...${attributes} type="text" placeholder=${fallback} value=${value ?? ""} onInput=${(/** @type {any} */ event) => onChange(event.currentTarget.value || undefined)} />
  </span>`}<//>`;
