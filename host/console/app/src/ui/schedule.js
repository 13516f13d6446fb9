// When something runs, and how often one person meets it.
import { html, useId, useRef } from "../lib/preact.js";
import { Instant, isBlank, NumberInput, Ordered, PickSome, put } from "./fields.js";
import { Checkbox, Input, Select } from "./form.js";

export const DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/** A day by its whole name, however it was written. @param {string | number} day */
const whole = (day) => (typeof day == "number" ? DAYS[(day + 6) % 7] : DAYS.find((name) => name.startsWith(String(day).toLowerCase()))) ?? String(day);

/** @typedef {{ value: any, onChange: (value: any) => void, at?: string }} Editor undefined: nothing is said */

/**
 * When it runs.
 * @param {Editor & { responses?: boolean }} props responses: whether a number of responses may end it, as of surveys
 */
export function ScheduleEditor({ value = {}, onChange, at = "/schedule", responses = false }) {
  const zones = useId();
  const set = (/** @type {string} */ name) => (/** @type {any} */ next) => {
    const changed = put(value, name, next);
    onChange(isBlank(changed) ? undefined : changed);
  };
  const { timezone = "subject", quietHours: quiet } = value;
  const time = (/** @type {any} */ hours, /** @type {string} */ name, /** @type {string} */ label, /** @type {string} */ pointer, /** @type {(hours: any) => void} */ change) =>
    html`<${Input} label=${label} type="time" at=${`${pointer}/${name}`} value=${hours[name] ?? ""} onInput=${(/** @type {string} */ text) => change({ ...hours, [name]: text })} />`;
  return html`
    <div class="row"><${Instant} label="Starts" at=${`${at}/startAt`} value=${value.startAt} onChange=${set("startAt")} /><${Instant} label="Ends" at=${`${at}/endAt`} value=${value.endAt} onChange=${set("endAt")} /></div>
    <div class="row">
      <${Select} label="Time zone" at=${timezone == "subject" ? `${at}/timezone` : undefined} value=${timezone == "subject" ? "subject" : "named"} options=${[["subject", "each person's own"], ["named", "one time zone"]]} onChange=${(/** @type {string} */ next) => set("timezone")(next == "subject" ? undefined : Intl.DateTimeFormat().resolvedOptions().timeZone)} />
      ${timezone != "subject" && html`<${Input} label="Which time zone" at=${`${at}/timezone`} value=${timezone} onInput=${set("timezone")} rest=${{ list: zones }} /><datalist id=${zones}>${Intl.supportedValuesOf("timeZone").map((zone) => html`<option value=${zone}></option>`)}</datalist>`}
    </div>
    <${PickSome} label="Days" hint="None: all days." options=${DAYS.map((day) => [day, day])} value=${(value.daysOfWeek ?? []).map(whole)} onChange=${(/** @type {string[]} */ days) => set("daysOfWeek")(days.length ? DAYS.filter((day) => days.includes(day)) : undefined)} />
    <fieldset><legend>Hours in which it may fire</legend>
      ${!value.timeWindows?.length && html`<p class="hint">All day.</p>`}
      <${Ordered} tight items=${value.timeWindows ?? []} most=${24} add="Add hours" blank=${() => ({ from: "09:00", to: "17:00" })} name=${(/** @type {any} */ _, /** @type {number} */ index) => `hours ${index + 1}`}
        onChange=${(/** @type {any[]} */ all) => set("timeWindows")(all.length ? all : undefined)}
        render=${(/** @type {any} */ one, /** @type {number} */ index, /** @type {any} */ change) => html`<div class="row">${time(one, "from", "From", `${at}/timeWindows/${index}`, change)}${time(one, "to", "To", `${at}/timeWindows/${index}`, change)}</div>`} />
    </fieldset>
    <${Checkbox} label="Quiet hours" checked=${Boolean(quiet)} onChange=${(/** @type {boolean} */ on) => set("quietHours")(on ? { from: "22:00", to: "07:00", onQuiet: "defer" } : undefined)} />
    ${quiet && html`<div class="row">${time(quiet, "from", "Quiet from", `${at}/quietHours`, set("quietHours"))}${time(quiet, "to", "Quiet to", `${at}/quietHours`, set("quietHours"))}
      <${Select} label="What falls into them" at=${`${at}/quietHours/onQuiet`} value=${quiet.onQuiet} options=${[["defer", "waits for their end"], ["drop", "is dropped"]]} onChange=${(/** @type {string} */ onQuiet) => set("quietHours")({ ...quiet, onQuiet })} /></div>`}
    ${responses && html`<${NumberInput} label="Ends after so many responses" at=${`${at}/maxResponses`} min=${1} value=${value.maxResponses} onChange=${set("maxResponses")} />`}`;
}

/** How often one person meets it. @param {Editor} props */
export function CapEditor({ value = {}, onChange, at = "/frequencyCap" }) {
  const set = (/** @type {string} */ name) => (/** @type {any} */ next) => {
    const changed = put(value, name, next);
    onChange(isBlank(changed) ? undefined : changed);
  };
  const { perSubject: per, cooldownDays: pause = {} } = value;
  const cool = (/** @type {string} */ name) => (/** @type {any} */ days) => {
    const changed = put(pause, name, days);
    set("cooldownDays")(isBlank(changed) ? undefined : changed);
  };
  const ever = per?.windowDays == "lifetime";
  // While the number is emptied there is no cap.
  const time = useRef(30);
  if (per) time.current = per.windowDays;
  return html`
    <div class="row">
      <${NumberInput} label="At most so often a person" at=${`${at}/perSubject/max`} min=${1} max=${1000} hint="Empty: no limit." value=${per?.max} onChange=${(/** @type {any} */ max) => set("perSubject")(max === undefined ? undefined : { windowDays: time.current, ...per, max })} />
      ${per && html`<${Select} label="In what time" value=${ever ? "lifetime" : "days"} options=${[["days", "in days"], ["lifetime", "ever"]]} onChange=${(/** @type {string} */ next) => set("perSubject")({ ...per, windowDays: next == "days" ? 30 : next })} />`}
      ${per && !ever && html`<${NumberInput} label="Days" at=${`${at}/perSubject/windowDays`} min=${1} max=${365} value=${per.windowDays} onChange=${(/** @type {any} */ days) => set("perSubject")({ ...per, windowDays: days ?? 1 })} />`}
    </div>
    <div class="row">
      <${NumberInput} label="Days of pause after itself" at=${`${at}/cooldownDays/self`} min=${0} max=${365} value=${pause.self} onChange=${cool("self")} />
      <${NumberInput} label="Days of pause after any of its kind" at=${`${at}/cooldownDays/sameType`} min=${0} max=${365} value=${pause.sameType} onChange=${cool("sameType")} />
    </div>
    <${Checkbox} label="The app's limits do not hold for it" at=${`${at}/ignoreGlobalCap`} checked=${Boolean(value.ignoreGlobalCap)} onChange=${(/** @type {boolean} */ on) => set("ignoreGlobalCap")(on || undefined)} />`;
}
