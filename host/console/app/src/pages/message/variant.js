// One way to say it, of a push message or of an in-app message, and what its tokens stand for.
import { html, inApp, percent, useList } from "../../lib/index.js";
import { Checkbox, CopyButton, Failed, FilterEditor, Id, Input, JsonField, NumberInput, Ordered, put, Select, Text, TextArea } from "../../ui/index.js";
import { Languages } from "../survey/languages.js";
import { textsOf } from "../survey/model.js";

/** @type {[string, string][]} */
const KINDS = [["user_property", "the person's properties"], ["trigger_event", "the event that caused it"], ["latest_event", "the newest event of a name"], ["send_data", "the data of the request (transactional)"]];
const TYPES = ["string", "number", "boolean", "date"];
/** @type {Record<string, string[]>} */
const STYLES = { number: ["decimal", "integer", "percent", "currency"], date: ["date", "datetime"] };

/** A name that is not taken: `source2`. @param {{ id: string }[]} taken @param {string} stem */
function free(taken, stem) {
  let number = taken.length + 1;
  while (taken.some(({ id }) => id == stem + number)) number++;
  return stem + number;
}

/** @typedef {{ value: any, onChange: (value: any) => void, at: string }} Editor */

/** @param {Editor & { taken: string[], onRename: (id: string) => void }} props */
function Source({ value, onChange, at, taken, onRename }) {
  const set = (/** @type {string} */ name) => (/** @type {any} */ next) => onChange(put(value, name, next));
  const turn = (/** @type {string} */ kind) => onChange({ id: value.id, label: value.label, kind, ...(kind == "latest_event" && { eventName: "", lookbackDays: 30 }) });
  return html`<div class="row">
      <${Id} label="Source" at=${`${at}/id`} value=${value.id} taken=${taken} onChange=${onRename} />
      <${Select} label="Where from" at=${`${at}/kind`} value=${value.kind} options=${KINDS} onChange=${turn} />
      ${value.kind == "latest_event" && html`<${Input} label="Event" at=${`${at}/eventName`} value=${value.eventName} onInput=${set("eventName")} />
        <${NumberInput} label="Days to look back" at=${`${at}/lookbackDays`} min=${1} max=${90} value=${value.lookbackDays} onChange=${set("lookbackDays")} />`}
    </div>
    ${value.kind == "latest_event" && html`<details open=${Boolean(value.filters)}><summary>Only events with these properties</summary><${FilterEditor} value=${value.filters} onChange=${set("filters")} at=${`${at}/filters`} /></details>`}`;
}

/** What stands in for a missing value, in the binding's type. @param {Editor} props */
function Fallback({ value, onChange, at }) {
  const given = "fallback" in value;
  const set = (/** @type {any} */ next) => onChange(put(value, "fallback", next));
  const blank = { string: "", number: 0, boolean: false, date: new Date().toISOString().slice(0, 10) };
  const field = { label: "Fallback", at: `${at}/fallback` };
  return html`<${Checkbox} label="Something else where the value is missing" checked=${given} onChange=${(/** @type {boolean} */ on) => set(on ? blank[/** @type {keyof typeof blank} */ (value.type)] : undefined)} />
    ${given && value.type == "number" && html`<${NumberInput} ...${field} step="any" value=${value.fallback} onChange=${(/** @type {any} */ next) => set(next ?? 0)} />`}
    ${given && value.type == "boolean" && html`<${Select} ...${field} value=${String(value.fallback)} options=${["true", "false"]} onChange=${(/** @type {string} */ next) => set(next == "true")} />`}
    ${given && ["string", "date"].includes(value.type) && html`<${Input} ...${field} value=${value.fallback} onInput=${set} />`}`;
}

/** @param {Editor & { sources: any[] }} props */
function Binding({ value, onChange, at, sources }) {
  const set = (/** @type {string} */ name) => (/** @type {any} */ next) => onChange(put(value, name, next));
  const turn = (/** @type {string} */ type) => {
    const { fallback, format, ...rest } = value;
    onChange({ ...rest, type });
  };
  const style = value.format?.style ?? "";
  const styles = STYLES[value.type];
  const restyle = (/** @type {string} */ next) => set("format")(next ? { style: next, ...(next == "currency" && { currency: "EUR" }) } : undefined);
  const token = `{{p.${value.id}}}`;
  return html`<div class="row">
      <${Input} label="Token" at=${`${at}/id`} value=${value.id} onInput=${set("id")} hint=${html`<code>${token}</code> <${CopyButton} text=${token} label=${`Copy ${token}`} />`} />
      <${Select} label="Of source" at=${`${at}/sourceId`} value=${value.sourceId} options=${sources.map(({ id }) => [id, id])} onChange=${set("sourceId")} />
      <${Input} label="Property" at=${`${at}/key`} value=${value.key} onInput=${set("key")} />
      <${Select} label="Type" at=${`${at}/type`} value=${value.type} options=${TYPES} onChange=${turn} />
      ${styles && html`<${Select} label="Written as" at=${`${at}/format/style`} value=${style} options=${[["", "it is"], ...styles.map((one) => [one, one])]} onChange=${restyle} />`}
      ${style == "currency" && html`<${Input} label="Currency" at=${`${at}/format/currency`} value=${value.format.currency} onInput=${(/** @type {string} */ currency) => set("format")({ ...value.format, currency })} />`}
    </div>
    <${Fallback} value=${value} onChange=${onChange} at=${at} />`;
}

/**
 * A variant's personalization; undefined: none.
 * @param {Editor} props
 */
export function Personalization({ value, onChange, at }) {
  const plugins = useList(inApp("/plugins"));
  if (!value) {
    const begin = () => onChange({ version: 1, missingData: "skip", sources: [{ id: "person", kind: "user_property" }], bindings: [{ id: "name", sourceId: "person", key: "name", type: "string" }] });
    return html`<${Checkbox} label="Personalize it" hint=${html`Tokens like <code>${"{{p.name}}"}</code> then stand for what is known of the person.`} checked=${false} onChange=${begin} />`;
  }
  const { sources = [], bindings = [] } = value;
  const set = (/** @type {string} */ name) => (/** @type {any} */ next) => onChange(put(value, name, next));
  // A source that is renamed keeps its bindings.
  const rename = (/** @type {number} */ index) => (/** @type {string} */ id) => {
    const source = sources[index];
    onChange({ ...value, sources: sources.with(index, { ...source, id }), bindings: bindings.map((/** @type {any} */ binding) => (binding.sourceId == source.id ? { ...binding, sourceId: id } : binding)) });
  };
  const own = (plugins.data?.items ?? []).filter(({ kind, scope }) => kind == "personalization" && scope != "builtin").map(({ name }) => [name, name]);
  return html`<fieldset><legend>Personalization</legend><${Failed} of=${[plugins]} />
    <${Checkbox} label="Personalize it" checked onChange=${() => onChange(undefined)} />
    <div class="row">
      <${Select} label="Where a value is missing" at=${`${at}/missingData`} value=${value.missingData ?? "skip"} options=${[["skip", "the message is not sent"], ["fail", "the message fails"]]} onChange=${set("missingData")} />
      ${(own.length > 0 || value.plugin) && html`<${Select} label="Resolved by" at=${`${at}/plugin`} value=${value.plugin ?? ""} options=${[["", "the plugin in the slot"], ...own]} onChange=${(/** @type {string} */ next) => set("plugin")(next || undefined)} />`}
    </div>
    <h4>Sources</h4>
    <${Ordered} items=${sources} most=${16} onChange=${set("sources")} add="Add a source" blank=${() => ({ id: free(sources, "source"), kind: "user_property" })} name=${(/** @type {any} */ source) => `source ${source.id}`}
      render=${(/** @type {any} */ source, /** @type {number} */ index, /** @type {any} */ change) => html`<${Source} value=${source} onChange=${change} taken=${sources.map(({ id = "" }) => id)} onRename=${rename(index)} at=${`${at}/sources/${index}`} />`} />
    <h4>Tokens</h4>
    <${Ordered} items=${bindings} most=${32} onChange=${set("bindings")} add="Add a token" blank=${() => ({ id: free(bindings, "token"), sourceId: sources[0]?.id ?? "", key: "", type: "string" })} name=${(/** @type {any} */ binding) => `token ${binding.id}`}
      render=${(/** @type {any} */ binding, /** @type {number} */ index, /** @type {any} */ change) => html`<${Binding} value=${binding} sources=${sources} onChange=${change} at=${`${at}/bindings/${index}`} />`} />
  </fieldset>`;
}

// One way to say it: of a push message, or of an in-app message.

/** @type {[string, string][]} */
const ACTIONS = [["none", "nothing"], ["open_app", "opens the app"], ["url", "opens a page of the web"], ["deep_link", "opens a place in the app"], ["json", "gives the app JSON"]];

/** What opening a message, or pressing its button, does. @param {Editor & { label?: string }} props */
function OpenAction({ value, onChange, at, label = "Opening it" }) {
  const action = value?.action ?? "none";
  const turn = (/** @type {string} */ next) => onChange({ action: next, ...(["url", "deep_link"].includes(next) && { url: value?.url ?? "" }), ...(next == "json" && { actionJson: value?.actionJson ?? {} }) });
  return html`<div class="row">
      <${Select} label=${label} at=${`${at}/action`} value=${action} options=${ACTIONS} onChange=${turn} />
      ${["url", "deep_link"].includes(action) && html`<${Input} label="Address" at=${`${at}/url`} hint="May have tokens." value=${value.url ?? ""} onInput=${(/** @type {string} */ url) => onChange({ ...value, url })} />`}
    </div>
    ${action == "json" && html`<${JsonField} label="JSON for the app" at=${`${at}/actionJson`} rows=${5} value=${value.actionJson} onChange=${(/** @type {any} */ actionJson) => onChange(put(value, "actionJson", actionJson))} />`}`;
}

const LAYOUTS = ["banner", "modal", "card", "fullscreen"];

/** @param {Editor} props */
const Buttons = ({ value = [], onChange, at }) => html`<fieldset><legend>Buttons</legend>
  <${Ordered} items=${value} most=${2} onChange=${onChange} add="Add a button" blank=${() => ({ id: value.some(({ id = "" }) => id == "go") ? "later" : "go", label: "", style: value.length ? "secondary" : "primary", openAction: { action: "none" } })} name=${(/** @type {any} */ button) => `button ${button.id}`}
    render=${(/** @type {any} */ button, /** @type {number} */ index, /** @type {any} */ change) => html`<div class="row">
        <${Input} label="Label" at=${`${at}/${index}/label`} value=${button.label} onInput=${(/** @type {string} */ label) => change({ ...button, label })} />
        <${Input} label="Id in results" at=${`${at}/${index}/id`} value=${button.id} onInput=${(/** @type {string} */ id) => change({ ...button, id })} />
        <${Select} label="Weight of the button" at=${`${at}/${index}/style`} value=${button.style ?? "primary"} options=${["primary", "secondary"]} onChange=${(/** @type {string} */ style) => change({ ...button, style })} />
      </div>
      <${OpenAction} label="Pressing it" value=${button.openAction} onChange=${(/** @type {any} */ openAction) => change({ ...button, openAction })} at=${`${at}/${index}/openAction`} />`} />
</fieldset>`;

/** What of an in-app message people read. @param {any} variant */
const spokenOf = ({ title, body, buttons = [] }) => ({ title, body, buttons: buttons.map(({ id = "", label = "" }) => ({ id, label })) });

/** @param {Editor & { type: string, whole: number, alone: boolean }} props whole: all weights together */
export function Variant({ type, value, onChange, at, whole, alone }) {
  const set = (/** @type {string} */ name) => (/** @type {any} */ next) => onChange(put(value, name, next));
  const push = type == "push";
  return html`
    ${!push && html`<${Select} label="Layout" at=${`${at}/layout`} value=${value.layout} options=${LAYOUTS} onChange=${set("layout")} />`}
    <${Input} label="Title" at=${`${at}/title`} value=${value.title ?? ""} onInput=${push ? set("title") : (/** @type {string} */ text) => set("title")(text || undefined)} />
    <${TextArea} label="Body" at=${`${at}/body`} rows=${3} value=${value.body ?? ""} onInput=${push ? set("body") : (/** @type {string} */ text) => set("body")(text || undefined)} />
    ${push
      ? html`<${OpenAction} value=${value.openAction} onChange=${set("openAction")} at=${`${at}/openAction`} />`
      : html`<${Text} label="Image" type="url" at=${`${at}/imageUrl`} hint="An https address." value=${value.imageUrl} onChange=${set("imageUrl")} />
        <${Buttons} value=${value.buttons ?? []} onChange=${set("buttons")} at=${`${at}/buttons`} />
        <${Checkbox} label="People can close it" at=${`${at}/dismissible`} checked=${value.dismissible ?? true} onChange=${set("dismissible")} />`}
    ${!alone && html`<${NumberInput} label="Weight" at=${`${at}/weight`} min=${0} step="any" hint=${`${percent((value.weight ?? 1) / (whole || 1))} of people; a person always gets the same variant.`} value=${value.weight ?? 1} onChange=${(/** @type {any} */ weight) => set("weight")(weight ?? 0)} />`}
    <${Personalization} value=${value.personalization} onChange=${set("personalization")} at=${`${at}/personalization`} />
    ${!push && html`<details open=${Boolean(value.localization)}><summary>Other languages</summary><${Languages} value=${value.localization} onChange=${set("localization")} texts=${textsOf(spokenOf(value))} at=${`${at}/localization`} /></details>`}`;
}
