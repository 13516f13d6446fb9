// The editor of a message. The draft is previewed as it is, saved or not.
import { difference, html } from "../../lib/index.js";
import { AudienceEditor, CapEditor, Discard, DraftFields, Form, Input, isBlank, NumberInput, Ordered, put, RestoredDraft, ScheduleEditor, Select, Span, Text, TextArea, TriggerEditor } from "../../ui/index.js";
import { Theme } from "../survey/look.js";
import { blankVariant, fitting, letter, MODES, TRIGGERS } from "./kinds.js";
import { trialClass, Try } from "./preview.js";
import { Variant } from "./variant.js";

/** How a push message is delivered. @param {{ value: any, onChange: (value: any) => void }} props */
function Delivery({ value = {}, onChange }) {
  const set = (/** @type {string} */ name) => (/** @type {any} */ next) => {
    const changed = put(value, name, next);
    onChange(isBlank(changed) ? undefined : changed);
  };
  return html`
    <${Text} label="Image" type="url" at="/options/imageUrl" hint="An https address." value=${value.imageUrl} onChange=${set("imageUrl")} />
    <div class="row">
      <${Select} label="Urgency" at="/options/priority" value=${value.priority ?? ""} options=${[["", "high, as usual"], ["high", "high"], ["normal", "normal"]]} onChange=${(/** @type {string} */ next) => set("priority")(next || undefined)} />
      <${Text} label="Sound" at="/options/sound" hint="A name that the app has, or default." value=${value.sound} onChange=${set("sound")} />
      <${NumberInput} label="Number on the icon" at="/options/badge" min=${0} value=${value.badge} onChange=${set("badge")} />
    </div>
    <${Text} label="Takes the place of earlier ones with the key" at="/options/collapseKey" value=${value.collapseKey} onChange=${set("collapseKey")} />
    <${Span} label="How long providers keep trying" at="/options/ttlSeconds" hint="Empty: as long as the provider does." value=${value.ttlSeconds} onChange=${set("ttlSeconds")} />`;
}

/** @param {{ draft: any, type: string }} props */
function Fields({ draft, type }) {
  const { value, set: change } = draft;
  const set = (/** @type {string} */ name) => (/** @type {any} */ next) => change((/** @type {any} */ before) => put(before, name, next));
  const { mode, variants = [] } = value;
  const whole = variants.reduce((/** @type {number} */ sum, /** @type {any} */ variant) => sum + (variant.weight ?? 1), 0);
  return html`
    <${Input} label="Name" at="/name" value=${value.name} onInput=${set("name")} />
    <${TextArea} label="Description" at="/description" rows=${2} value=${value.description ?? ""} onInput=${(/** @type {string} */ text) => set("description")(text || undefined)} />
    <${Select} label="It is sent by" at="/mode" value=${mode} options=${MODES[type]} onChange=${set("mode")} />
    <h2>What it says</h2>
    <${Ordered} items=${variants} least=${1} most=${10} onChange=${set("variants")} add="Add a variant" blank=${() => blankVariant(type)} copy=${(/** @type {any} */ { id, ...variant }) => variant} name=${(/** @type {any} */ _, /** @type {number} */ index) => `variant ${letter(index)}`}
      render=${(/** @type {any} */ variant, /** @type {number} */ index, /** @type {any} */ one) => html`<fieldset><legend>Variant ${letter(index)}</legend><${Variant} type=${type} value=${variant} onChange=${one} at=${`/variants/${index}`} whole=${whole} alone=${variants.length == 1} /></fieldset>`} />
    ${TRIGGERS[mode] && html`<fieldset><legend>When</legend><${TriggerEditor} value=${fitting(draft).trigger} onChange=${set("trigger")} kinds=${TRIGGERS[mode]} optional=${mode == "scheduled"} /></fieldset>`}
    ${mode != "transactional" && html`
      <details open=${!isBlank(value.audience)}><summary>For whom</summary><${AudienceEditor} value=${value.audience} onChange=${set("audience")} /></details>
      <details open=${!isBlank(value.schedule)}><summary>Schedule</summary><${ScheduleEditor} value=${value.schedule} onChange=${set("schedule")} /></details>`}
    <details open=${!isBlank(value.frequencyCap)}><summary>How often a person gets it</summary><${CapEditor} value=${value.frequencyCap} onChange=${set("frequencyCap")} /></details>
    <details open=${!isBlank(value.options) || !isBlank(value.theme)}><summary>${type == "push" ? "Delivery" : "Look and life"}</summary>
      ${type == "push" ? html`<${Delivery} value=${value.options} onChange=${set("options")} />` : html`
        <${Span} label="Stays on offer for" at="/expiresAfterSeconds" hint="Empty: 7 days; 90 days at the most." max=${7_776_000} value=${value.expiresAfterSeconds} onChange=${set("expiresAfterSeconds")} />
        <${Theme} value=${value.theme} onChange=${set("theme")} />`}
      <${NumberInput} label="Priority" at="/priority" hint="When several fire, the higher one comes first." value=${value.priority ?? 0} onChange=${(/** @type {any} */ priority) => set("priority")(priority ?? 0)} />
    </details>`;
}

/** @param {{ campaign: any, draft: import("../../lib/draft.js").Draft<any>, save: (change: any, version?: number, value?: any) => Promise<void>, failed?: Error }} props */
export const Editor = ({ campaign, draft, save, failed }) => html`<${RestoredDraft} draft=${draft} />
    <div class=${trialClass()}>
      <${Form} label="Message" failed=${failed} onSubmit=${() => save(difference(draft.base, fitting(draft)), draft.version, fitting(draft))} disabled=${!draft.changed} actions=${html`<${Discard} draft=${draft} />`}>
        <${DraftFields} draft=${draft}><${Fields} draft=${draft} type=${campaign.type} /><//>
      <//>
      <${Try} campaign=${campaign} draft=${draft.value} changed=${draft.changed} />
    </div>`;
