// Fields of forms: a label, a hint, and what the server says is wrong, found by its JSON pointer.
import { ApiError } from "../lib/api.js";
import { createContext, html, useContext, useEffect, useId, useLayoutEffect, useRef, useState } from "../lib/preact.js";
import { Button, refocus } from "./button.js";
import { ErrorView } from "./error.js";

/** @typedef {import("../lib/api.js").FieldError} FieldError */

/** The errors of the form around. Fields say which pointers they show; the rest is shown above the buttons. */
const Errors = createContext({ all: /** @type {FieldError[]} */ ([]), pointers: /** @type {Map<string, number>} */ (new Map()), redraw: () => {} });

/** Whether a field shows an error. @param {string} at @param {FieldError} error */
const covers = (at, { pointer }) => pointer == at || (at.endsWith("/") && `${pointer}/`.startsWith(at));

/**
 * Throws while a field of a form has a text that is no JSON: the value of before would be sent.
 * @param {Element | null} form
 * @param {import("../lib/draft.js").Draft<any>} [draft] what the form is about, of which fields may be in a tab that is not shown
 */
export function checkJson(form, draft) {
  if (form?.querySelector("[data-bad]")) throw Error("A field is no JSON. Correct what is marked at it, then save again.");
  if (draft?.texts.size) throw Error("A field of another part is no JSON. Correct it there, or discard the changes.");
}

/**
 * A form. `onSubmit` does it; what it throws is shown: at the fields by their pointers, the rest above the buttons.
 * @param {{ onSubmit: () => unknown, children: any, submit?: string, actions?: any, disabled?: boolean, label?: string, draft?: import("../lib/draft.js").Draft<any>, failed?: Error }} props draft: what is sent, where its fields are in several tabs; failed: what another button threw, which the page says: it is shown at the fields
 */
export function Form({ onSubmit, children, submit = "Save", actions, disabled, label, draft, failed }) {
  const [error, setError] = useState(/** @type {Error | undefined} */ (undefined));
  const [pending, setPending] = useState(false);
  const form = useRef(/** @type {HTMLFormElement | null} */ (null));
  const [pointers] = useState(() => new Map());
  const latest = useRef(onSubmit);
  latest.current = onSubmit;
  const [, draw] = useState(0);
  const shown = failed ?? error;
  const all = shown instanceof ApiError ? shown.errors : [];
  useEffect(() => {
    if (!shown) return;
    const first = /** @type {HTMLElement | null | undefined} */ (form.current?.querySelector("[aria-invalid=true]"));
    // What is folded up can't be focused.
    for (let fold = first?.closest("details"); fold; fold = fold.parentElement?.closest("details")) fold.open = true;
    first?.focus();
  }, [shown]);
  // Another button has saved it, or it is as it was.
  useEffect(() => void (disabled && setError(undefined)), [disabled]);
  const run = async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (pending) return;
    setError(undefined);
    setPending(true);
    try {
      checkJson(form.current, draft);
      // A field that tells its value when it is left, by Enter too, has told it: the page takes it as it is drawn again.
      await new Promise((done) => setTimeout(done));
      await latest.current();
    } catch (thrown) {
      setError(/** @type {Error} */ (thrown));
    } finally {
      setPending(false);
      refocus();
    }
  };
  return html`<form ref=${form} class="form" aria-label=${label} noValidate onSubmit=${run}>
    <${Errors.Provider} value=${{ all, pointers, redraw: () => draw((times) => times + 1) }}>${children}<//>
    ${error && !failed && html`<${ErrorView} error=${error} errors=${all.filter((error) => ![...pointers.keys()].some((at) => covers(at, error)))} />`}
    <div class="actions"><${Button} type="submit" kind="primary" pending=${pending} disabled=${disabled}>${submit}<//>${actions}</div>
  </form>`;
}

/**
 * What is around a control. `children` is a function of the attributes that the control takes.
 * @param {{ label: string, hint?: any, error?: string, at?: string, inline?: boolean, children: (attributes: Record<string, any>) => any }} props at: the JSON pointer of the value in the request's body; with a slash at its end also of all that is in it
 */
export function Field({ label, hint, error, at, inline, children }) {
  const id = useId();
  const { all, pointers, redraw } = useContext(Errors);
  // Before the form is drawn with the next error, which may have opened this field's tab.
  useLayoutEffect(() => {
    if (at === undefined) return;
    pointers.set(at, (pointers.get(at) ?? 0) + 1);
    // A tab that is opened because of an error shows it: it is not said above the buttons too.
    if (all.length) redraw();
    return () => {
      const left = (pointers.get(at) ?? 0) - 1;
      if (left > 0) pointers.set(at, left);
      else pointers.delete(at);
    };
  }, [at, pointers]);
  const refused = all.filter((error) => at !== undefined && covers(at, error));
  const said = ({ pointer = "", detail = "" }) => {
    const item = pointer.split(`${at}`)[1];
    return item ? `${Number(item) + 1}. ${detail}` : detail;
  };
  const found = error || refused.map(said).join(" ");
  const described = [hint && `${id}-hint`, found && `${id}-error`].filter(Boolean).join(" ");
  const attributes = { id, "aria-describedby": described || undefined, "aria-invalid": found ? "true" : undefined };
  const control = children(attributes);
  return html`<div class=${inline ? "field inline" : "field"}>
    ${inline && control}<label for=${id}>${label}</label>${!inline && control}
    ${hint && html`<p class="hint" id=${`${id}-hint`}>${hint}</p>`}
    ${found && html`<p class="bad" id=${`${id}-error`}>${found}</p>`}
  </div>`;
}

/** @typedef {{ label: string, hint?: any, error?: string, at?: string, rest?: Record<string, any> }} Common */

/**
 * The text of a field as it is typed. A value that is set from outside takes its place where it says something else.
 * @param {string} whole the value as a text
 * @param {(text: string) => string} said the same of what is typed
 * @returns {[string, (text: string) => void]}
 */
export function useText(whole, said) {
  const [text, setText] = useState(whole);
  useLayoutEffect(() => {
    if (said(text) != whole) setText(whole);
  }, [whole]);
  return [text, setText];
}

/** Presses the button beside a field, or that of its dialog, instead of sending the form. @param {any} event */
function press(event) {
  if (event.key != "Enter") return;
  event.preventDefault();
  const input = event.currentTarget;
  (input.closest(".field").nextElementSibling?.querySelector("button") ?? input.closest("dialog")?.querySelector("footer > :last-child"))?.click();
}

/** A line of text. @param {Common & { value: string, onInput: (value: string) => void, type?: string, presses?: boolean }} props presses: Enter does what the button beside it does */
export const Input = ({ value, onInput, type = "text", presses, rest = {}, ...field }) =>
  html`<${Field} ...${field}>${(/** @type {any} */ attributes) => html`<input ...${attributes} ...${rest} onKeyDown=${presses && press} type=${type} value=${value} onInput=${(/** @type {any} */ event) => onInput(event.currentTarget.value)} />`}<//>`;

/** Lines of text. @param {Common & { value: string, onInput: (value: string) => void, rows?: number }} props */
export const TextArea = ({ value, onInput, rows = 4, rest = {}, ...field }) =>
  html`<${Field} ...${field}>${(/** @type {any} */ attributes) => html`<textarea ...${attributes} ...${rest} rows=${rows} value=${value} onInput=${(/** @type {any} */ event) => onInput(event.currentTarget.value)}></textarea>`}<//>`;

/** One of some. @param {Common & { value: string, options: (string | [string, string])[], onChange: (value: string) => void }} props */
export const Select = ({ value, options, onChange, rest = {}, ...field }) =>
  html`<${Field} ...${field}>${(/** @type {any} */ attributes) => html`<select ...${attributes} ...${rest} value=${value} onChange=${(/** @type {any} */ event) => onChange(event.currentTarget.value)}>
    ${options.map((one) => (typeof one == "string" ? [one, one.replaceAll("_", " ")] : one)).map(([key, text]) => html`<option value=${key} selected=${key === value}>${text}</option>`)}
  </select>`}<//>`;

/** Yes or no. @param {Common & { checked: boolean, onChange: (checked: boolean) => void }} props */
export const Checkbox = ({ checked, onChange, rest = {}, ...field }) =>
  html`<${Field} ...${field} inline>${(/** @type {any} */ attributes) => html`<input ...${attributes} ...${rest} type="checkbox" checked=${checked} onChange=${(/** @type {any} */ event) => onChange(event.currentTarget.checked)} />`}<//>`;

/** A day to filter by. While a year is typed it is long past: nothing is asked with one below 1970. @param {Common & { value?: string, onInput: (value: string) => void }} props */
export const Day = ({ value = "", onInput, ...field }) => html`<${Search} ...${field} type="date" value=${value} onInput=${(/** @type {string} */ text) => (!text || text >= "1970") && onInput(text)} />`;

/**
 * A line of text that asks when somebody has stopped typing: filters.
 * @param {Common & { value: string, onInput: (value: string) => void, type?: string }} props
 */
export function Search({ value, onInput, ...props }) {
  const [text, setText] = useState(value);
  const timer = useRef(0);
  // What somebody types on is newer than the value that their typing led to.
  const asked = useRef(value);
  useLayoutEffect(() => {
    if (value !== asked.current) setText(value);
    asked.current = value;
  }, [value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const type = (/** @type {string} */ next) => {
    setText(next);
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => onInput((asked.current = next)), 300);
  };
  return html`<${Input} type="search" ...${props} value=${text} onInput=${type} />`;
}
