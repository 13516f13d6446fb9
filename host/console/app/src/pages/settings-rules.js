// The app's settings as a form: what is taken, kept and shown, and how often.
import { difference, html, inApp, useDraft, useResource } from "../lib/index.js";
import { Checkbox, Discard, Form, Input, Loaded, NumberInput, put, RestoredDraft, Select, Span, TextArea, useSaving, useText } from "../ui/index.js";

const PATH = "/settings";

/** @param {Record<string, any>} settings */
const written = ({ version: _, ...settings }) => settings;

/** The value at a path of members. @param {any} value @param {string} path */
const at = (value, path) => path.split("/").reduce((found, name) => found?.[name], value);

/**
 * A copy with another value at a path of members; undefined removes it.
 * @param {any} value @param {string[]} path @param {any} next
 * @returns {any}
 */
function putAt(value, [name = "", ...rest], next) {
  return put(value ?? {}, name, rest.length ? putAt(value?.[name], rest, next) : next);
}

/** Lines of a text that say something. @param {string} text */
const lines = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);

/**
 * @typedef {{ value: any, set: (path: string, next: any) => void }} Edit path: with slashes, as in the JSON pointer
 * @typedef {Edit & { path: string, label: string, hint?: any }} FieldProps
 */

/** A number; empty: not set. @param {FieldProps & { step?: string, as?: any }} props as: another field that does so */
const NumberField = ({ value, set, path, label, hint, step, as = NumberInput }) =>
  html`<${as} label=${label} hint=${hint} at=${`/${path}`} step=${step} value=${at(value, path)} onChange=${(/** @type {number | undefined} */ next) => set(path, next)} />`;

/** @param {FieldProps} props */
const Switch = ({ value, set, path, label, hint }) => html`<${Checkbox} label=${label} hint=${hint} at=${`/${path}`} checked=${Boolean(at(value, path))} onChange=${(/** @type {boolean} */ on) => set(path, on)} />`;

/** Texts, one a line. @param {FieldProps & { rows?: number }} props */
function Lines({ value, set, path, label, hint, rows = 4 }) {
  const [text, setText] = useText((at(value, path) ?? []).join("\n"), (text) => lines(text).join("\n"));
  const type = (/** @type {string} */ next) => {
    setText(next);
    set(path, lines(next));
  };
  return html`<${TextArea} label=${label} hint=${hint} at=${`/${path}/`} rows=${rows} value=${text} rest=${{ class: "code", spellcheck: false }} onInput=${type} />`;
}

/** So many in so many days, or no cap. @param {Edit & { name: string, label: string }} props */
function Cap({ value, set, name, label }) {
  const path = `frequency/${name}`;
  const cap = at(value, path);
  return html`<fieldset><legend>${label}</legend>
    <${Checkbox} label="At most so many for a person" checked=${Boolean(cap)} onChange=${(/** @type {boolean} */ on) => set(path, on ? { max: 1, windowDays: 7 } : undefined)} />
    ${cap && html`<div class="filters"><${NumberField} value=${value} set=${set} path=${`${path}/max`} label="How many" /><${NumberField} value=${value} set=${set} path=${`${path}/windowDays`} label="In how many days" /></div>`}
  </fieldset>`;
}

/** @param {Edit} edit */
const Groups = (edit) => {
  const { value, set } = edit;
  const quiet = value.quietHours;
  const allow = value.privacy?.allowKeys;
  return html`
    <h2>Events</h2>
    <div class="filters">
      <${NumberField} ...${edit} as=${Span} path="ingest/pastWindowSeconds" label="How old an event may be" />
      <${NumberField} ...${edit} as=${Span} path="ingest/futureWindowSeconds" label="How far ahead of the clock" />
    </div>
    <${Switch} ...${edit} path="ingest/allowUnverifiedServerEvents" label="A public write key is enough for events under a user id" hint="Anybody who reads the key can then send events in anybody's name." />
    <${Switch} ...${edit} path="lifecycleEvents" label="SDKs send lifecycle events by themselves" />
    <h2>Pages that may use the SDK</h2>
    <${Lines} ...${edit} path="allowedOrigins" label="Origins" hint=${html`One a line, such as <code>https://shop.example.com</code>. <code>*</code> alone: all pages.`} />
    <h2>Consent and privacy</h2>
    <${Switch} ...${edit} path="consent/required" label="Consent must be given first" hint="Until then nothing is stored of a person, shown or sent." />
    <${Lines} ...${edit} path="privacy/denyKeys" label="Property keys that are never stored" hint="One a line." />
    <${Checkbox} label="Backends may store only some property keys" checked=${allow !== undefined} onChange=${(/** @type {boolean} */ on) => set("privacy/allowKeys", on ? [] : undefined)} />
    ${allow !== undefined && html`<${Lines} ...${edit} path="privacy/allowKeys" label="Property keys that backends may store" hint="One a line. All others are dropped." />`}
    <h2>How often</h2>
    <div class="sides">
      <${Cap} ...${edit} name="surveys" label="Surveys" /><${Cap} ...${edit} name="in_app" label="In-app messages" /><${Cap} ...${edit} name="push" label="Push messages" />
    </div>
    <${NumberField} ...${edit} as=${Span} path="frequency/minSecondsBetweenPresentations" label="Pause between two presentations: surveys and in-app messages" />
    <h2>Quiet hours</h2>
    <${Checkbox} label="There are hours in which nobody is disturbed" checked=${Boolean(quiet)} onChange=${(/** @type {boolean} */ on) => set("quietHours", on ? { from: "22:00", to: "08:00", onQuiet: "defer" } : undefined)} hint="In the person's own time zone." />
    ${quiet && html`<div class="filters">
      <${Input} type="time" label="From" at="/quietHours/from" value=${quiet.from} onInput=${(/** @type {string} */ text) => set("quietHours/from", text)} />
      <${Input} type="time" label="To" at="/quietHours/to" value=${quiet.to} onInput=${(/** @type {string} */ text) => set("quietHours/to", text)} />
      <${Select} label="What falls into them" at="/quietHours/onQuiet" value=${quiet.onQuiet} options=${[["defer", "waits for their end"], ["drop", "is not sent"]]} onChange=${(/** @type {string} */ one) => set("quietHours/onQuiet", one)} />
    </div>`}
    <h2>Plugins</h2>
    <div class="filters">
      <${NumberField} ...${edit} path="plugins/maxFailureRate" step="any" label="Roll back above this share of failures" hint="0 to 1." />
      <${Select} label="While the validation plugin fails" at="/plugins/validationFailure" value=${value.plugins?.validationFailure} options=${[["closed", "events are refused"], ["open", "events are taken"]]} onChange=${(/** @type {string} */ one) => set("plugins/validationFailure", one)} />
    </div>
    <p class="hint">Limits of a call. Empty: the server's; an app can only lower them.</p>
    <div class="filters">
      <${NumberField} ...${edit} path="plugins/memoryBytes" label="Memory (bytes)" />
      <${NumberField} ...${edit} path="plugins/deadlineMs" label="Time (ms)" />
      <${NumberField} ...${edit} path="plugins/validationDeadlineMs" label="Time to validate (ms)" />
      <${NumberField} ...${edit} path="plugins/outputBytes" label="Output (bytes)" />
      <${NumberField} ...${edit} path="plugins/logBytes" label="Log (bytes)" />
      <${NumberField} ...${edit} path="plugins/hostCalls" label="Host calls" />
    </div>
    <h2>How long things are kept</h2>
    <div class="filters">
      <${NumberField} ...${edit} path="retention/eventsDays" label="Events (days)" hint="Empty: for ever." />
      <${NumberField} ...${edit} path="retention/deliveriesDays" label="Push deliveries (days)" hint="Empty: 90." />
      <${NumberField} ...${edit} path="retention/deadLettersDays" label="Dead letters (days)" />
    </div>`;
};

/** @param {{ settings: any, onSaved: (settings: any) => void }} props */
function Editor({ settings, onSaved }) {
  const draft = useDraft("settings", written(settings), settings.version);
  const [save, dialog] = useSaving(inApp(PATH), (saved) => {
    onSaved(saved);
    return "The settings are saved, and hold from now on.";
  }, draft, written);
  const set = (/** @type {string} */ path, /** @type {any} */ next) => draft.set((/** @type {any} */ before) => putAt(before, path.split("/"), next));
  return html`<${RestoredDraft} draft=${draft} />
    <${Form} label="Rules" onSubmit=${() => save(difference(draft.base, draft.value), draft.version)} submit="Save the rules" disabled=${!draft.changed} actions=${html`<${Discard} draft=${draft} />`}>
      <${Groups} value=${draft.value} set=${set} />
    <//>${dialog}`;
}

export function Rules() {
  const found = useResource(inApp(PATH));
  return html`<${Loaded} of=${found}>${(/** @type {any} */ settings) => html`<${Editor} settings=${settings} onSaved=${found.set} />`}<//>`;
}
