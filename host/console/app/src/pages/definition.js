// One definition: its schema as fields, made by hand or of the events that came; and tries.
import { can, difference, go, html, inApp, link, number, post, route, say, useDraft, useResource, useState, whole, words } from "../lib/index.js";
import { Badge, Button, Checkbox, Copy, Discard, DraftFields, Empty, ErrorView, Facts, Form, Input, Json, JsonField, LinkButton, Loading, MARKED, Notice, NumberInput, PageHead, put, RestoredDraft, Select, Table, Tabs, Text, TextArea, Time, Words, useSaving } from "../ui/index.js";

const WRITTEN = ["description", "status", "enforcement", "additionalProperties", "properties", "validator"];
const EMPTY = { name: "", status: "active", enforcement: "observe", additionalProperties: "allow", properties: [] };
/** @type {[string, string][]} */
const ENFORCEMENTS = [["enforce", "is rejected, and kept as a dead letter"], ["observe", "is accepted, and counted"]];
/** @type {[string, string][]} */
const FURTHER = [["allow", "are taken"], ["reject", "break it"]];

/** @param {Record<string, any>} definition */
const written = (definition) => Object.fromEntries(WRITTEN.flatMap((name) => (definition[name] === undefined ? [] : [[name, definition[name]]])));

/** What both a new and a saved definition have. @param {{ draft: import("../lib/draft.js").Draft<any>, name: string }} props */
function Written({ draft, name }) {
  const { value } = draft;
  const set = (/** @type {string} */ member) => (/** @type {any} */ next) => draft.set((/** @type {any} */ before) => put(before, member, next === "" ? undefined : next));
  return html`<${TextArea} label="Description" at="/description" rows=${2} value=${value.description ?? ""} onInput=${set("description")} />
    <div class="filters">
      <${Select} label="An event that breaks it" at="/enforcement" value=${value.enforcement} options=${ENFORCEMENTS} onChange=${set("enforcement")} />
      <${Select} label="Properties that it does not name" at="/additionalProperties" value=${value.additionalProperties} options=${FURTHER} onChange=${set("additionalProperties")} />
    </div>
    <h2>Properties</h2>
    <${Infer} draft=${draft} name=${name} />
    <${PropertyFields} properties=${value.properties} onChange=${set("properties")} />
    <${Checkbox} label="Another plugin decides" checked=${Boolean(value.validator)} onChange=${(/** @type {boolean} */ on) => set("validator")(on ? { plugin: "", config: {} } : undefined)}
      hint="Its own validation plugin, in place of the app's. The properties then only describe." />
    ${value.validator && html`<${Input} label="Plugin" at="/validator/plugin" value=${value.validator.plugin} onInput=${(/** @type {string} */ plugin) => set("validator")({ ...value.validator, plugin })} />
      <${JsonField} label="Its configuration" at="/validator/config" rows=${5} value=${value.validator.config} onChange=${(/** @type {any} */ config) => set("validator")({ ...value.validator, config })} />`}`;
}

/** @typedef {Record<string, any>} Property */

const TYPES = ["string", "number", "boolean", "date", "enum"];

/** The limits that a type has: member, label. @type {Record<string, [string, string][]>} */
const LIMITS = {
  string: [["minLength", "Shortest"], ["maxLength", "Longest"]],
  number: [["minimum", "Least"], ["maximum", "Most"]],
};

/**
 * A property without members that its type has not.
 * @param {Property} property
 * @returns {Property}
 */
function pruned(property) {
  const own = [...(LIMITS[property.type] ?? []).map(([name]) => name), ...(property.type == "string" ? ["pattern"] : []), ...(property.type == "enum" ? ["enumValues"] : [])];
  const limits = ["minLength", "maxLength", "minimum", "maximum", "pattern", "enumValues"];
  return Object.fromEntries(Object.entries(property).filter(([name]) => !limits.includes(name) || own.includes(name)));
}

/** @param {{ property: Property, at: string, onChange: (property: Property) => void, onRemove: () => void }} props */
function Fields({ property, at, onChange, onRemove }) {
  // An empty field means that there is no such limit.
  const set = (/** @type {string} */ name) => (/** @type {any} */ value) => onChange(put(property, name, value));
  const name = property.name || "the new property";
  return html`<fieldset><legend>${name}</legend>
    <div class="filters">
      <${Input} label="Name" at=${`${at}/name`} value=${property.name} onInput=${(/** @type {string} */ value) => onChange({ ...property, name: value })} />
      <${Select} label="Type" at=${`${at}/type`} value=${property.type} options=${TYPES} onChange=${(/** @type {string} */ type) => onChange(pruned({ ...property, type, ...(type == "enum" ? { enumValues: [] } : {}) }))} />
      <${Checkbox} label="Required" at=${`${at}/required`} checked=${Boolean(property.required)} onChange=${set("required")} />
      ${(LIMITS[property.type] ?? []).map(([member, label]) => html`<${NumberInput} key=${member} step="any" label=${label} at=${`${at}/${member}`} value=${property[member]} onChange=${set(member)} />`)}
      ${property.type == "string" && html`<${Text} label="Pattern" at=${`${at}/pattern`} value=${property.pattern} onChange=${set("pattern")} hint="A regular expression." />`}
      ${property.type == "enum" && html`<${Words} label="Values" at=${`${at}/enumValues`} value=${property.enumValues} onChange=${set("enumValues")} hint=${MARKED} />`}
      <${Text} label="Description" at=${`${at}/description`} value=${property.description} onChange=${set("description")} />
    </div>
    <p><${Button} label=${`Remove ${name}`} onClick=${onRemove}>Remove<//></p>
  </fieldset>`;
}

/** @param {{ properties: Property[], onChange: (properties: Property[]) => void }} props */
const PropertyFields = ({ properties, onChange }) => html`
  ${properties.map((property, index) => html`<${Fields} key=${index} property=${property} at=${`/properties/${index}`}
    onChange=${(/** @type {Property} */ changed) => onChange(properties.with(index, changed))}
    onRemove=${() => onChange(properties.toSpliced(index, 1))} />`)}
  <p><${Button} onClick=${() => onChange([...properties, { name: "", type: "string", required: false }])}>Add a property<//></p>`;

/** Proposes the properties from the events that came. @param {{ draft: import("../lib/draft.js").Draft<any>, name: string }} props */
function Infer({ draft, name }) {
  const [hours, setHours] = useState(/** @type {number | undefined} */ (24));
  const [basis, setBasis] = useState(/** @type {any} */ (undefined));
  const run = async () => {
    const { basedOn, properties, additionalProperties } = await post(inApp("/event-definitions/infer"), { eventName: name, sinceHours: hours });
    setBasis(basedOn);
    if (basedOn.events) draft.set((/** @type {any} */ before) => ({ ...before, properties, additionalProperties }));
  };
  return html`<div class="filters">
      <${NumberInput} presses label="From the events of how many hours" min=${1} max=${720} value=${hours} onChange=${setHours} />
      <p><${Button} onClick=${run} disabled=${!name}>Propose the properties<//></p>
    </div>
    <p class="hint">It replaces the properties below. Nothing is saved by it.</p>
    <div role="status">${basis && (basis.events
      ? html`<${Notice} kind="good">Proposed from ${number(basis.events)} events.${!basis.complete && " Not all of that time was looked through."}${basis.leftOut.length > 0 && ` Left out, as a definition can't describe them: ${basis.leftOut.join(", ")}.`}<//>`
      : html`<${Notice} kind="warn">No event of this name came in that time. The name must be the whole name.<//>`)}</div>`;
}

/** @param {{ violations: any[] }} props */
const Violations = ({ violations }) => html`<ul>${violations.map(({ property, code, expected, actual }) => html`<li><code>${property}</code> ${words(code)}: expected ${expected}, found ${actual}</li>`)}</ul>`;

/** @param {{ result: any }} props */
const Result = ({ result: { passed, failed, unchecked, samples, lookedAt, complete } }) => html`
  <${Notice} kind=${failed ? "warn" : "good"}>${number(passed)} match, ${number(failed)} break it${unchecked ? `, ${number(unchecked)} could not be checked because the plugin failed` : ""}.
    ${lookedAt > 0 && ` ${number(lookedAt)} events were looked at to find those of the name.`}${!complete && " Not all of that time was looked through: ask for fewer hours."}<//>
  ${samples.length > 0 && html`<${Table} label="Samples that break it" list=${whole(samples)} id=${(/** @type {any} */ row) => row.eventId ?? "this"} empty=${null} columns=${[
    { title: "Event", render: (/** @type {any} */ row) => (row.eventId ? html`<${Copy} short text=${row.eventId} label="event id" />` : "this one") },
    { title: "From", render: (/** @type {any} */ row) => html`<${Badge}>${words(row.source)}<//>` },
    { title: "Why", render: (/** @type {any} */ row) => html`<${Violations} violations=${row.violations} />` },
    { title: "Happened", render: (/** @type {any} */ row) => html`<${Time} at=${row.timestamp} />` },
  ]} />`}`;

/** @param {{ definition: any }} props */
function Trial({ definition }) {
  const [hours, setHours] = useState("24");
  const [properties, setProperties] = useState(/** @type {any} */ ({}));
  const [result, setResult] = useState(/** @type {any} */ (undefined));
  const path = inApp(`/event-definitions/${definition.id}/dry-run`);
  const run = (/** @type {() => any} */ body) => async () => setResult(await post(path, body()));
  return html`<p>This tries version ${definition.version}, as it is saved. No event is changed, sent or counted.</p>
    <div class="sides"><div>
      <${Form} label="Events that came" onSubmit=${run(() => ({ sinceHours: Number(hours) }))} submit="Try the events that came">
        <${Input} type="number" label="Of how many hours" at="/sinceHours" value=${hours} onInput=${setHours} hint="1 to 720. Dead letters of the name are among them." /><//>
    </div><div>
      <${Form} label="One event" onSubmit=${run(() => ({ properties }))} submit="Try these properties">
        <${JsonField} label="Properties of one event" at="/properties" rows=${5} value=${properties} onChange=${setProperties} /><//>
    </div></div>
    <div role="status">${result && html`<${Result} result=${result} />`}</div>`;
}

/** @param {{ params: Record<string, string> }} props */
function New({ params }) {
  const draft = useDraft("definition.new", /** @type {any} */ ({ ...EMPTY, name: route.value.query.event ?? "" }));
  const save = async () => {
    const made = await post(inApp("/event-definitions"), draft.value);
    draft.discard();
    say(`Events named ${made.name} are defined.`);
    if (draft.here()) go(link("/apps/:appId/definitions/:definitionId", { ...params, definitionId: made.id }));
  };
  const { name } = draft.value;
  return html`<${PageHead} title="New definition" back=${{ href: link("/apps/:appId/definitions", params), title: "Definitions" }} />
    <${RestoredDraft} draft=${draft} />
    <${Form} label="Definition" onSubmit=${save} submit="Save the definition" disabled=${!name}>
      <${Input} label="Name of the event" at="/name" value=${name} onInput=${(/** @type {string} */ next) => draft.set((/** @type {any} */ before) => ({ ...before, name: next }))} hint="Exactly as it is sent. It can't be changed later." />
      <${Written} draft=${draft} name=${name} />
    <//>`;
}

/** @param {{ definition: any, onSaved: (definition: any) => void }} props */
function Editor({ definition, onSaved }) {
  const draft = useDraft(`definition.${definition.id}`, written(definition), definition.version);
  const [save, dialog] = useSaving(inApp(`/event-definitions/${definition.id}`), (saved) => {
    onSaved(saved);
    return `Saved as version ${saved.version}.`;
  }, draft, written);
  return html`<${RestoredDraft} draft=${draft} />
    <${Form} label="Definition" onSubmit=${() => save(difference(draft.base, draft.value), draft.version)} submit="Save as a new version" disabled=${!draft.changed} actions=${html`<${Discard} draft=${draft} />`}>
      <${DraftFields} draft=${draft}><${Written} draft=${draft} name=${definition.name} /><//>
    <//>${dialog}`;
}

/** @param {{ params: Record<string, string> }} props */
function Saved({ params }) {
  const { data: definition, error, reload, set } = useResource(inApp(`/event-definitions/${params.definitionId}`));
  const back = { href: link("/apps/:appId/definitions", params), title: "Definitions" };
  if (error && !definition) return html`<${PageHead} title="Definition" back=${back} /><${ErrorView} error=${error} retry=${reload} />`;
  if (!definition) return html`<${Loading} />`;
  const { name, status, version, stats } = definition;
  const tabs = [
    { id: "schema", title: "Schema", render: () => (can("editor") ? html`<${Editor} definition=${definition} onSaved=${set} />` : html`<${Json} value=${written(definition)} label="Definition" />`) },
    ...(can("editor") ? [{ id: "trial", title: "Try it", render: () => html`<${Trial} definition=${definition} />` }] : []),
  ];
  const letters = html`<${LinkButton} href=${link("/apps/:appId/dead-letters", params, { eventName: name })}>Its dead letters<//><${LinkButton} href=${link("/apps/:appId/events", params, { name, tab: "feed" })}>Its events<//>`;
  return html`<${PageHead} title=${name} back=${back} actions=${letters}>
      <p><${Badge} kind=${status == "active" ? "good" : "info"}>${status}<//> version ${version} <${Copy} short text=${definition.id} label="id" /></p>
    <//>
    <${Facts} facts=${[["Seen in 24 h", number(stats.seen24h)], ["Broken in 24 h", number(stats.violations24h)], ["Made", html`<${Time} at=${definition.createdAt} />`], ["Changed", html`<${Time} at=${definition.updatedAt} />${can("admin") && html` <a href=${link("/apps/:appId/audit-log", params, { resource: `event-definition/${definition.id}` })}>versions, and who changed what</a>`}`]]} />
    <${Tabs} label="About this definition" tabs=${tabs} />`;
}

/** @param {{ params: Record<string, string> }} props */
export default function Definition({ params }) {
  if (params.definitionId != "new") return html`<${Saved} params=${params} />`;
  return can("editor") ? html`<${New} params=${params} />` : html`<${Empty} title="This takes the role editor"><p>Ask an administrator of the workspace for it.</p><//>`;
}
