// What something waits for: an event, a screen, a session, a change, the calendar, a segment, a plugin.
import { useList } from "../lib/load.js";
import { html, useRef } from "../lib/preact.js";
import { inApp } from "../lib/session.js";
import { EventName, SegmentChoice, WithChoices } from "./choices.js";
import { Failed } from "./error.js";
import { isBlank, NumberInput, Ordered, put, Span } from "./fields.js";
import { FilterEditor } from "./filter.js";
import { Input, Select } from "./form.js";
import { JsonField } from "./json.js";
import { DAYS } from "./schedule.js";

/** @typedef {{ value: any, onChange: (value: any) => void, at: string }} Editor */

/** Kinds of triggers: their names, and a new one of each. @type {Record<string, [string, () => Record<string, any>]>} */
const KINDS = {
  event: ["an event", () => ({ eventName: "", occurrence: { mode: "every" } })],
  screen_view: ["a screen is seen", () => ({ screenName: "", occurrence: { mode: "every" } })],
  session_start: ["a session begins", () => ({ occurrence: { mode: "every" } })],
  property_changed: ["a property changes", () => ({ key: "", occurrence: { mode: "every" } })],
  segment: ["somebody enters or leaves a segment", () => ({ segmentId: "", on: "enter" })],
  schedule: ["the calendar", () => ({ every: "week", at: "09:00" })],
  manual: ["by hand", () => ({})],
  plugin: ["a plugin of yours decides", () => ({ plugin: "", config: {} })],
};

/** @type {[string, string][]} */
const MODES = [
  ["every", "every time"],
  ["first", "the first time ever"],
  ["once", "once a person"],
  ["once_per_session", "once a session"],
  ["nth", "the n-th time"],
  ["every_nth", "every n-th time"],
  ["at_least", "from the n-th time within days"],
];

/** How often. @param {Editor} props */
function Occurrence({ value = { mode: "every" }, onChange, at }) {
  const { mode, n = 2, withinDays = 7 } = value;
  const change = (/** @type {string} */ next) => onChange({ mode: next, ...(/nth|at_least/.test(next) ? { n } : {}), ...(next == "at_least" ? { withinDays } : {}) });
  return html`<div class="row">
    <${Select} label="How often it counts" at=${`${at}/mode`} value=${mode} options=${MODES} onChange=${change} />
    ${/nth|at_least/.test(mode) && html`<${NumberInput} label="n" at=${`${at}/n`} min=${1} value=${value.n} onChange=${(/** @type {any} */ next) => onChange({ ...value, n: next ?? 1 })} />`}
    ${mode == "at_least" && html`<${NumberInput} label="Within days" at=${`${at}/withinDays`} min=${1} max=${365} value=${value.withinDays} onChange=${(/** @type {any} */ next) => onChange({ ...value, withinDays: next ?? 1 })} />`}
  </div>`;
}

const SCALARS = /** @type {const} */ ([["any", "anything"], ["text", "a text"], ["number", "a number"], ["true", "true"], ["false", "false"], ["null", "nothing"]]);

/** A value that a property had or has; undefined: whichever. @param {Editor & { label: string }} props */
function Scalar({ value, onChange, at, label }) {
  const kind = value === undefined ? "any" : typeof value == "string" ? "text" : typeof value == "number" ? "number" : String(value);
  const change = (/** @type {string} */ next) => onChange({ any: undefined, text: "", number: 0, true: true, false: false, null: null }[next]);
  return html`<div class="row">
    <${Select} label=${label} at=${at} value=${kind} options=${SCALARS} onChange=${change} />
    ${kind == "text" && html`<${Input} label=${`${label}: text`} value=${value} onInput=${onChange} />`}
    ${kind == "number" && html`<${NumberInput} label=${`${label}: number`} step="any" value=${value} onChange=${(/** @type {any} */ next) => onChange(next ?? 0)} />`}
  </div>`;
}

/** @param {Editor} props */
function Calendar({ value, onChange, at }) {
  const { every = "" } = value;
  const set = (/** @type {string} */ name) => (/** @type {any} */ next) => onChange(put(value, name, next));
  const change = (/** @type {string} */ next) => {
    const { dayOfWeek: _, dayOfMonth: __, every: ___, at: ____, ...rest } = value;
    onChange(next ? { ...rest, every: next, at: value.at ?? "09:00" } : rest);
  };
  return html`<div class="row">
    <${Select} label="It comes" at=${`${at}/every`} value=${every} options=${[["", "once"], ["day", "every day"], ["week", "every week"], ["month", "every month"]]} onChange=${change} />
    ${every && html`<${Input} label="At" type="time" at=${`${at}/at`} value=${value.at ?? ""} onInput=${set("at")} />`}
    ${every == "week" && html`<${Select} label="Day of the week" at=${`${at}/dayOfWeek`} value=${value.dayOfWeek ?? "monday"} options=${DAYS} onChange=${set("dayOfWeek")} />`}
    ${every == "month" && html`<${NumberInput} label="Day of the month" at=${`${at}/dayOfMonth`} min=${1} max=${31} value=${value.dayOfMonth ?? 1} onChange=${set("dayOfMonth")} />`}
  </div>
  <p class="hint">${every ? "By the schedule's time zone." : "At the schedule's start, or when it is activated."}</p>`;
}

/** @param {Editor} props */
function Plugin({ value, onChange, at }) {
  const list = useList(inApp("/plugins"));
  const names = (list.data?.items ?? []).filter(({ kind }) => kind == "trigger").map(({ name }) => name);
  const options = [["", "choose a plugin"], ...[...new Set([...names, ...(value.plugin ? [value.plugin] : [])])].map((name) => [name, name])];
  return html`<${Failed} of=${[list]} />
    <${Select} label="Plugin" at=${`${at}/plugin`} value=${value.plugin ?? ""} options=${options} onChange=${(/** @type {string} */ plugin) => onChange({ ...value, plugin })} hint="It decides alone: the audience has to be empty." />
    <${JsonField} label="Its configuration" at=${`${at}/config`} rows=${6} value=${value.config ?? {}} onChange=${(/** @type {any} */ config) => onChange({ ...value, config })} />`;
}

/** What is special to a kind. @param {Editor} props */
function Source(props) {
  const { value, onChange, at } = props;
  const set = (/** @type {string} */ name) => (/** @type {any} */ next) => onChange(put(value, name, next));
  switch (value.kind) {
    case "event":
      return html`<${EventName} at=${`${at}/eventName`} value=${value.eventName} onChange=${set("eventName")} />`;
    case "screen_view":
      return html`<${Input} label="Screen" at=${`${at}/screenName`} value=${value.screenName ?? ""} onInput=${set("screenName")} />`;
    case "property_changed":
      return html`<${Input} label="Property of the person" at=${`${at}/key`} value=${value.key ?? ""} onInput=${set("key")} />
        <${Scalar} label="From" at=${`${at}/from`} value=${value.from} onChange=${set("from")} /><${Scalar} label="To" at=${`${at}/to`} value=${value.to} onChange=${set("to")} />`;
    case "segment":
      return html`<div class="row"><${SegmentChoice} at=${`${at}/segmentId`} value=${value.segmentId} onChange=${set("segmentId")} />
        <${Select} label="When somebody" at=${`${at}/on`} value=${value.on} options=${[["enter", "enters it"], ["exit", "leaves it"]]} onChange=${set("on")} /></div>
        <p class="hint">Who is in it already when this is activated fires nothing.</p>`;
    case "schedule":
      return html`<${Calendar} ...${props} />`;
    default:
      return null;
  }
}

/**
 * A trigger.
 * @param {object} props
 * @param {any} props.value undefined: none
 * @param {(value: any) => void} props.onChange
 * @param {string} [props.at] the JSON pointer
 * @param {string[]} [props.kinds] those to choose from; all unless given
 * @param {boolean} [props.optional] whether there may be none
 */
export function TriggerEditor({ value, onChange, at = "/trigger", kinds = Object.keys(KINDS), optional = false }) {
  const kind = value?.kind ?? "";
  const set = (/** @type {string} */ name) => (/** @type {any} */ next) => onChange(put(value, name, next));
  // An arrow key chooses another kind at once: what was written of the one before is there again.
  const { current: kept } = useRef(/** @type {Record<string, any>} */ ({}));
  if (kind) kept[kind] = value;
  const turn = (/** @type {string} */ next) => onChange(next ? kept[next] ?? { kind: next, ...KINDS[next]?.[1]() } : undefined);
  const listens = ["event", "screen_view", "session_start", "property_changed"].includes(kind);
  const options = [...(optional || !kind ? [["", "nothing"]] : []), ...[...new Set([...kinds, ...(kind ? [kind] : [])])].map((one) => [one, KINDS[one]?.[0] ?? one])];
  return html`<${WithChoices}>
    <${Select} label="It waits for" at=${kind ? `${at}/kind` : at} value=${kind} options=${options} onChange=${turn} />
    ${kind == "plugin" && html`<${Plugin} value=${value} onChange=${onChange} at=${at} />`}
    ${kind && kind != "plugin" && html`
      <${Source} value=${value} onChange=${onChange} at=${at} />
      ${listens && html`<${FilterEditor} legend=${kind == "property_changed" ? "Only where the change has" : "Only where the event has"} value=${value.filters} onChange=${set("filters")} at=${`${at}/filters`} />`}
      ${kind != "schedule" && kind != "manual" && html`<${Occurrence} value=${value.occurrence} onChange=${set("occurrence")} at=${`${at}/occurrence`} />`}
      <${Span} label="Wait before it fires" at=${`${at}/delaySeconds`} max=${7_776_000} value=${value.delaySeconds} onChange=${set("delaySeconds")} hint="At most 90 days." />
      <fieldset><legend>What cancels the wait</legend>
        <${Ordered} items=${value.cancelOn ?? []} most=${10} onChange=${(/** @type {any[]} */ all) => set("cancelOn")(all.length ? all : undefined)} add="Add an event that cancels" blank=${() => ({ eventName: "" })}
          name=${(/** @type {any} */ _, /** @type {number} */ index) => `event ${index + 1} that cancels`}
          render=${(/** @type {any} */ one, /** @type {number} */ index, /** @type {any} */ change) => html`<${EventName} label="Event that cancels" at=${`${at}/cancelOn/${index}/eventName`} value=${one.eventName} onChange=${(/** @type {string} */ eventName) => change({ ...one, eventName })} />
            <details open=${!isBlank(one.filters)}><summary>Its properties</summary><${FilterEditor} value=${one.filters} onChange=${(/** @type {any} */ filters) => change(put(one, "filters", filters))} at=${`${at}/cancelOn/${index}/filters`} /></details>`} />
      </fieldset>`}
  <//>`;
}
