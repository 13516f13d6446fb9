// The questions of a survey: what they ask, and what their type adds.
import { html, useRef } from "../../lib/index.js";
import { Button, Checkbox, Id, Input, NumberInput, Ordered, put, Select, Text, TextArea } from "../../ui/index.js";
import { CHOICES, flowOf, freshId, LIMITS, newQuestion, renamed, SCALES, turned, TYPES, withFlow } from "./model.js";

/** @typedef {(id: string, member?: string, place?: number) => void} Rename of a question, or of what has a place in a member of it */
/** @typedef {{ value: any, set: (name: string) => (value: any) => void, at: string }} Part of a question */

/** Options, rows, columns or fields. @param {Part & { member: string, onRename: Rename, noun: string, pictures?: boolean, required?: boolean }} props */
function Items({ value, set: change, at: question, member, onRename, noun, pictures, required }) {
  /** @type {any[]} */
  const items = value[member] ?? [];
  const at = `${question}/${member}`;
  return html`<fieldset><legend>${noun}s</legend>
    <${Ordered} tight items=${items} onChange=${change(member)} least=${1} add=${`Add: ${noun.toLowerCase()}`} name=${(/** @type {any} */ item, /** @type {number} */ index) => `${noun} ${index + 1}, ${item.label}`}
      blank=${() => ({ id: freshId(noun[0]?.toLowerCase() ?? ""), label: `${noun} ${items.length + 1}`, ...(pictures ? { imageUrl: "https://" } : {}), ...(required ? { required: false } : {}) })}
      render=${(/** @type {any} */ item, /** @type {number} */ index, /** @type {(item: any) => void} */ set) => html`<div class="row">
        <${Input} label="Label" at=${`${at}/${index}/label`} value=${item.label ?? ""} onInput=${(/** @type {string} */ label) => set({ ...item, label })} />
        ${pictures && html`<${Input} label="Address of the picture" type="url" at=${`${at}/${index}/imageUrl`} value=${item.imageUrl ?? ""} onInput=${(/** @type {string} */ imageUrl) => set({ ...item, imageUrl })} />`}
        <${Id} label="Id" at=${`${at}/${index}/id`} value=${item.id} taken=${items.map(({ id }) => id)} onChange=${(/** @type {string} */ id) => onRename(id, member, index)} rest=${{ size: 8 }} />
        ${required && html`<${Checkbox} label="Required" checked=${Boolean(item.required)} onChange=${(/** @type {boolean} */ on) => set({ ...item, required: on })} />`}
      </div>`} />
  </fieldset>`;
}

const LABELS = /** @type {Record<string, string>} */ ({ minSelections: "Choose at least", maxSelections: "Choose at most", minLength: "Characters at least", maxLength: "Characters at most", min: "Least", max: "Most", step: "In steps of" });

/** What limits answers. @param {Part} props */
function Limits({ value, set, at }) {
  const names = LIMITS[value.type] ?? [];
  // It stays where it stands: at the question, or under `validation`.
  const inside = (/** @type {string} */ name) => value.validation && name in value.validation;
  const change = (/** @type {string} */ name) => (/** @type {any} */ next) => (inside(name) ? set("validation")(put(value.validation, name, next)) : set(name)(next));
  const read = (/** @type {string} */ name) => (inside(name) ? value.validation[name] : value[name]);
  const place = (/** @type {string} */ name) => (inside(name) ? `${at}/validation/${name}` : `${at}/${name}`);
  if (!names.length) return null;
  return html`<div class="row">${names.map((name) => {
    if (name == "format") return html`<${Select} label="It has to be" at=${place(name)} value=${read(name) ?? ""} options=${[["", "any text"], ["email", "an e-mail address"], ["url", "a web address"], ["phone", "a phone number"]]} onChange=${(/** @type {string} */ format) => change(name)(format || undefined)} />`;
    if (value.type == "date") return html`<${Text} label=${name == "min" ? "First day" : "Last day"} type="date" at=${place(name)} value=${read(name)} onChange=${change(name)} />`;
    return html`<${NumberInput} label=${LABELS[name]} at=${place(name)} step=${value.type == "number" ? "any" : 1} value=${read(name)} onChange=${change(name)} />`;
  })}</div>`;
}

/** What a type adds. @param {Part & { onRename: Rename }} props */
function Extras(props) {
  const { value, set, at } = props;
  const { type } = value;
  if (type == "nps" || type in SCALES) return html`<div class="row">
    ${type != "nps" && html`<${Select} label="Scale" at=${`${at}/scale`} value=${String(value.scale ?? 5)} options=${SCALES[type]?.map(String)} onChange=${(/** @type {string} */ text) => set("scale")(Number(text))} />
      <${Select} label="Shown as" at=${`${at}/display`} value=${value.display ?? "number"} options=${[["number", "numbers"], ["star", "stars"], ["emoji", "faces"]]} onChange=${set("display")} />`}
    <${Text} label="At the low end" at=${`${at}/lowLabel`} value=${value.lowLabel} onChange=${set("lowLabel")} />
    <${Text} label="At the high end" at=${`${at}/highLabel`} value=${value.highLabel} onChange=${set("highLabel")} />
  </div>`;
  if (CHOICES.includes(type)) return html`
    <${Items} ...${props} member="options" noun="Option" pictures=${type == "picture_choice"} />
    ${type == "picture_choice" && html`<${Checkbox} label="Several may be chosen" checked=${Boolean(value.multiple)} onChange=${set("multiple")} />`}
    ${/^(single|multiple)/.test(type) && html`<${Checkbox} label="People may write another answer" checked=${Boolean(value.allowOther)} onChange=${set("allowOther")} /><${Checkbox} label="In random order" checked=${Boolean(value.shuffle)} onChange=${set("shuffle")} />`}`;
  if (type == "matrix") return html`<${Items} ...${props} member="rows" noun="Row" /><${Items} ...${props} member="columns" noun="Column" />`;
  if (type == "contact_info") return html`<${Items} ...${props} member="fields" noun="Field" required />`;
  if (/_text$/.test(type)) return html`<${Text} label="Shown while it is empty" at=${`${at}/placeholder`} value=${value.placeholder} onChange=${set("placeholder")} />`;
  if (type == "consent") return html`<${Input} label="What people agree to" at=${`${at}/label`} value=${value.label ?? ""} onInput=${set("label")} />`;
  if (type == "statement" || type == "link") return html`
    <${TextArea} label="Text" rows=${2} at=${`${at}/body`} value=${value.body ?? ""} onInput=${(/** @type {string} */ text) => set("body")(text || undefined)} />
    <div class="row"><${Text} label="The button says" at=${`${at}/buttonLabel`} value=${value.buttonLabel} onChange=${set("buttonLabel")} />
    <${Text} label="Address" type="url" at=${`${at}/url`} value=${value.url} onChange=${set("url")} /></div>`;
  return null;
}

/** One question. @param {{ value: any, onChange: (value: any) => void, taken: string[], onRename: Rename, index: number }} props */
function Question({ value, onChange, taken, onRename, index }) {
  const at = `/flow/questions/${index}`;
  const set = (/** @type {string} */ name) => (/** @type {any} */ next) => onChange(put(value, name, next));
  const message = (/** @type {string | undefined} */ text) => {
    const validation = put(value.validation ?? {}, "message", text);
    set("validation")(Object.keys(validation).length ? validation : undefined);
  };
  const more = Boolean(value.description || value.validation?.message);
  return html`<details class="question" open><summary><h3>${index + 1}. ${value.title || TYPES[value.type]?.[0]}</h3></summary>
    <div class="row">
      <${Select} label="Type" at=${`${at}/type`} value=${value.type} options=${Object.entries(TYPES).map(([type, [name]]) => [type, name])} onChange=${(/** @type {string} */ type) => onChange(turned(value, type))} />
      ${value.type != "statement" && html`<div class="level"><${Checkbox} label="It must be answered" checked=${Boolean(value.required)} onChange=${set("required")} /></div>`}
    </div>
    <${TextArea} label="Question" rows=${2} at=${`${at}/title`} value=${value.title} onInput=${set("title")} />
    <${Extras} value=${value} set=${set} at=${at} onRename=${onRename} />
    <${Limits} value=${value} set=${set} at=${at} />
    <details open=${more}><summary>More</summary>
      <${Text} label="What else it says" at=${`${at}/description`} value=${value.description} onChange=${set("description")} />
      ${value.type != "statement" && html`<${Text} label="What is said where an answer does not fit" at=${`${at}/validation/message`} hint="Empty: the SDK's own words, in each language." value=${value.validation?.message} onChange=${message} />`}
      <${Id} label="Id" at=${`${at}/id`} hint="Answers and translations are kept under it." value=${value.id} taken=${taken} onChange=${onRename} rest=${{ size: 8 }} />
    </details>
  </details>`;
}

/**
 * All questions. What names a question that goes is left: the branches say so.
 * @param {{ value: any, onChange: (value: any) => void }} props value: the survey
 */
export function Questions({ value, onChange }) {
  const flow = flowOf(value);
  const { questions } = flow;
  const copied = (/** @type {any} */ question) => ({ ...structuredClone(question), id: freshId("q") });
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  const fold = (/** @type {boolean} */ open) => list.current?.querySelectorAll("details.question").forEach((/** @type {any} */ one) => (one.open = open));
  return html`<div ref=${list}>
    ${questions.length > 3 && html`<p class="actions"><${Button} onClick=${() => fold(false)}>Fold all<//><${Button} onClick=${() => fold(true)}>Open all<//></p>`}
    <${Ordered} items=${questions} most=${100} add="Add a question" onChange=${(/** @type {any[]} */ all) => onChange(withFlow(value, "questions", all))} copy=${copied} blank=${newQuestion}
      name=${(/** @type {any} */ _, /** @type {number} */ index) => `question ${index + 1}`}
      render=${(/** @type {any} */ question, /** @type {number} */ index, /** @type {any} */ set) => html`<${Question} value=${question} index=${index} onChange=${set} taken=${questions.map(({ id = "" }) => id)} onRename=${(/** @type {Parameters<Rename>} */ ...to) => onChange(renamed(value, index, ...to))} />`} />
    </div><h2>On the way</h2>
    <${Select} label="Progress" at="/flow/progressStyle" value=${flow.progressStyle ?? "bar"} options=${[["bar", "a bar"], ["steps", "question 1 of 3"], ["percent", "percent"], ["none", "not shown"]]} onChange=${(/** @type {string} */ style) => onChange(withFlow(value, "progressStyle", style))} />
    <${Checkbox} label="People may go back" checked=${Boolean(flow.backNavigation)} onChange=${(/** @type {boolean} */ on) => onChange(withFlow(value, "backNavigation", on))} />`;
}
