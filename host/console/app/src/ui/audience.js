// Whom something is for: who is included, who is left out, and of them what share.
import { useList } from "../lib/load.js";
import { html } from "../lib/preact.js";
import { inApp } from "../lib/session.js";
import { EventName, SegmentChoice, WithChoices } from "./choices.js";
import { Failed } from "./error.js";
import { isBlank, NumberInput, PickSome, put, Words } from "./fields.js";
import { blankFilter, COMPARISONS, DateValue, FilterEditor, FilterLeaf, operators } from "./filter.js";
import { Input, Select } from "./form.js";
import { Tree } from "./tree.js";

/** Kinds of conditions: their names, and a new one of each. @type {Record<string, [string, () => Record<string, any>]>} */
const KINDS = {
  user_property: ["has a property", () => ({ filter: blankFilter() })],
  event: ["did something", () => ({ eventName: "", count: { operator: "gte", n: 1 }, withinDays: 30 })],
  segment: ["is in a segment", () => ({ segmentId: "", in: true })],
  platform: ["uses a platform", () => ({ in: ["ios"] })],
  country: ["is in a country", () => ({ in: ["AT"] })],
  locale: ["speaks a language", () => ({ in: ["en"] })],
  app_version: ["has a version of the app", () => ({ operator: "gte", value: "1.0.0" })],
  first_seen: ["was first seen", () => ({ operator: "within_last", value: { amount: 7, unit: "days" } })],
  last_seen: ["was last seen", () => ({ operator: "within_last", value: { amount: 7, unit: "days" } })],
  survey_interaction: ["met a survey", () => ({ interaction: "displayed" })],
  message_interaction: ["met a message", () => ({ interaction: "displayed" })],
};

/** @type {Record<string, string[]>} */
const INTERACTIONS = {
  survey_interaction: ["displayed", "started", "completed", "dismissed"],
  message_interaction: ["sent", "delivered", "displayed", "opened", "clicked", "dismissed", "bounced", "failed"],
};

/** @typedef {{ value: any, onChange: (value: any) => void, at: string }} Editor */

/** @param {Editor} props */
const Property = ({ value, onChange, at }) => {
  const { filter } = value;
  const set = (/** @type {any} */ next) => onChange({ ...value, filter: next ?? blankFilter() });
  return filter?.all || filter?.any
    ? html`<${FilterEditor} legend="Properties" value=${filter} onChange=${set} at=${`${at}/filter`} />`
    : html`<${FilterLeaf} value=${filter ?? blankFilter()} onChange=${set} at=${`${at}/filter`} />`;
};

/** @param {Editor} props */
const Events = ({ value, onChange, at }) => {
  const { operator = "gte", n = 1 } = value.count ?? {};
  const set = (/** @type {string} */ name) => (/** @type {any} */ next) => onChange(put(value, name, next));
  return html`
    <${EventName} at=${`${at}/eventName`} value=${value.eventName} onChange=${set("eventName")} />
    <${Select} label="Times" at=${`${at}/count/operator`} value=${operator} options=${COMPARISONS} onChange=${(/** @type {string} */ next) => set("count")({ operator: next, n })} />
    <${NumberInput} label="Number" at=${`${at}/count/n`} min=${0} max=${999} value=${n} onChange=${(/** @type {any} */ next) => set("count")({ operator, n: next ?? 0 })} />
    <${NumberInput} label="Within days" at=${`${at}/withinDays`} min=${1} max=${90} value=${value.withinDays} onChange=${set("withinDays")} />
    <details open=${!isBlank(value.filters)}><summary>Properties of the event</summary><${FilterEditor} value=${value.filters} onChange=${set("filters")} at=${`${at}/filters`} /></details>`;
};

/** @param {Editor} props */
function Interaction({ value, onChange, at }) {
  const surveys = value.kind == "survey_interaction";
  const [member, path] = surveys ? ["surveyIds", "/surveys"] : ["campaignIds", "/campaigns"];
  const list = useList(inApp(path));
  const options = (list.data?.items ?? []).map(({ id, name }) => [id, name]);
  return html`
    <${Select} label="What happened" at=${`${at}/interaction`} value=${value.interaction} options=${INTERACTIONS[value.kind]} onChange=${(/** @type {string} */ interaction) => onChange({ ...value, interaction })} />
    <${NumberInput} label="Within days" at=${`${at}/withinDays`} min=${1} max=${90} hint="Empty: ever." value=${value.withinDays} onChange=${(/** @type {any} */ days) => onChange(put(value, "withinDays", days))} />
    <${Failed} of=${[list]} />
    <details open=${value[member]?.length > 0}><summary>${value[member]?.length ? `${value[member].length} chosen` : surveys ? "Any survey" : "Any message"}</summary>
      <${PickSome} label=${surveys ? "Surveys" : "Messages"} options=${options} value=${value[member] ?? []} onChange=${(/** @type {string[]} */ ids) => onChange(put(value, member, ids.length ? ids : undefined))} />
    </details>`;
}

/** @type {Record<string, string>} */
const HINTS = { platform: "ios, android, web …", country: "Two letters: AT, DE …", locale: "en covers en-GB." };

/** A condition of an audience. @param {Editor} props */
function Leaf(props) {
  const { value, onChange, at } = props;
  const { kind } = value;
  const set = (/** @type {string} */ name) => (/** @type {any} */ next) => onChange(put(value, name, next));
  const body = () => {
    if (kind == "user_property") return html`<${Property} ...${props} />`;
    if (kind == "event") return html`<${Events} ...${props} />`;
    if (kind in INTERACTIONS) return html`<${Interaction} ...${props} />`;
    if (kind == "segment") return html`
      <${SegmentChoice} at=${`${at}/segmentId`} value=${value.segmentId} onChange=${set("segmentId")} />
      <${Select} label="Which people" at=${`${at}/in`} value=${String(value.in)} options=${[["true", "those in it"], ["false", "those not in it"]]} onChange=${(/** @type {string} */ text) => set("in")(text == "true")} />`;
    if (kind in HINTS) return html`<${Words} label="One of" at=${`${at}/in`} hint=${HINTS[kind]} value=${value.in} onChange=${set("in")} />`;
    if (kind == "app_version") return html`
      <${Select} label="Operator" at=${`${at}/operator`} value=${value.operator} options=${COMPARISONS} onChange=${set("operator")} />
      <${Input} label="Version" at=${`${at}/value`} value=${value.value ?? ""} onInput=${set("value")} />`;
    const operate = (/** @type {string} */ operator) => onChange({ ...value, operator, value: operator == "within_last" ? { amount: 7, unit: "days" } : typeof value.value == "string" ? value.value : "" });
    return html`
      <${Select} label="Operator" at=${`${at}/operator`} value=${value.operator} options=${operators(["before", "after", "within_last"])} onChange=${operate} />
      <${DateValue} operator=${value.operator} value=${value.value} onChange=${set("value")} at=${`${at}/value`} />`;
  };
  return html`
    <${Select} label="The person" at=${`${at}/kind`} value=${kind} options=${Object.entries(KINDS).map(([key, [name]]) => [key, name])} onChange=${(/** @type {string} */ next) => onChange({ kind: next, ...KINDS[next]?.[1]() })} />
    ${body()}`;
}

const blank = () => ({ kind: "user_property", filter: blankFilter() });

/**
 * An audience. `undefined` is everybody.
 * @param {object} props
 * @param {any} props.value
 * @param {(value: any) => void} props.onChange
 * @param {string} [props.at] the JSON pointer
 * @param {boolean} [props.sample] whether it may be a share of them: segments have none
 * @param {string} [props.everybody] what it means that nothing is said
 */
export function AudienceEditor({ value = {}, onChange, at = "/audience", sample = true, everybody = "Everybody." }) {
  const set = (/** @type {string} */ name) => (/** @type {any} */ next) => {
    const changed = put(value, name, next);
    onChange(isBlank(changed) ? undefined : changed);
  };
  return html`<${WithChoices}>
    <${Tree} legend="Include who meets" none=${everybody} value=${value.include} onChange=${set("include")} at=${`${at}/include`} leaf=${Leaf} blank=${blank} />
    <${Tree} legend="But not who meets" none="Nobody is left out." value=${value.exclude} onChange=${set("exclude")} at=${`${at}/exclude`} leaf=${Leaf} blank=${blank} />
    ${sample && html`<${NumberInput} label="Share of them, in percent" hint="Empty: all. Who is in the share stays in it when it grows." at=${`${at}/samplePercent`} min=${0} max=${100} step="any" value=${value.samplePercent} onChange=${set("samplePercent")} />`}
  <//>`;
}
