// Where a survey leads: branches, end screens, and a picture of the ways.
import { html } from "../../lib/index.js";
import { Checkbox, Input, JsonField, MARKED, Notice, NumberInput, Ordered, PickSome, put, Select, Text, TextArea, Tree, Words } from "../../ui/index.js";
import { operators } from "../../ui/filter.js";
import { flowOf, freshId, withFlow } from "./model.js";
import { Picture } from "./picture.js";

const ORDER = ["equals", "not_equals", "one_of", "gt", "gte", "lt", "lte", "between"];
const AMONG = ["equals", "not_equals", "includes_any", "includes_all", "includes_none"];

/** The operators that suit answers of a question. @param {any} question @returns {string[]} */
function suiting(question) {
  const { type, multiple } = question ?? {};
  if (type == "contact_info" || type == "statement" || !type) return ["answered", "skipped"];
  const own = type == "nps" ? ["nps_bucket", ...ORDER]
    : /^(rating|csat|ces|number|date)$/.test(type) ? ORDER
    : /_text$/.test(type) ? ["equals", "not_equals", "one_of", "contains", "starts_with", "ends_with"]
    : /^(thumbs|link|consent)$/.test(type) ? ["equals", "not_equals", "one_of"]
    : type == "single_choice" || (type == "picture_choice" && !multiple) ? ["equals", "not_equals", "one_of", ...AMONG.slice(2)]
    : AMONG;
  return [...own, "answered", "skipped"];
}

/** Answers to choose from. @param {any} question @returns {[string, string][] | undefined} */
function known({ type, options }) {
  if (options) return options.map((/** @type {any} */ { id, label }) => [id, label]);
  if (type == "thumbs") return [["up", "up"], ["down", "down"]];
  if (type == "link") return [["clicked", "clicked"]];
  return undefined;
}

/** A value that suits an operator. @param {any} question @param {string} operator */
function fresh(question, operator) {
  if (operator == "answered" || operator == "skipped") return undefined;
  if (operator == "nps_bucket") return "detractor";
  if (question.type == "matrix") return {};
  const first = known(question)?.[0]?.[0] ?? (question.type == "consent" ? true : /_text$|^date$/.test(question.type) ? "" : 0);
  if (operator == "between") return [first, first];
  const several = operator == "one_of" || operator.startsWith("includes") || /^(multiple_choice|ranking)$/.test(question.type) || question.multiple;
  return several ? (known(question) ? [first] : []) : first;
}

/** @param {{ question: any, operator: string, value: any, onChange: (value: any) => void, at: string }} props */
function Value({ question, operator, value, onChange, at }) {
  if (!question || operator == "answered" || operator == "skipped") return null;
  if (operator == "nps_bucket") return html`<${Select} label="Who" at=${at} value=${value} options=${["promoter", "passive", "detractor"]} onChange=${onChange} />`;
  const choices = known(question);
  if (Array.isArray(value) && operator == "between") return [0, 1].map((place) => html`<${Scalar} question=${question} label=${place ? "Most" : "Least"} at=${`${at}/${place}`} value=${value[place]} onChange=${(/** @type {any} */ next) => onChange(value.with(place, next))} />`);
  if (Array.isArray(value) && choices) return html`<${PickSome} label="Answers" options=${choices} value=${value} onChange=${onChange} />`;
  if (Array.isArray(value)) return html`<${Words} label="Answers" at=${at} hint=${MARKED} value=${value.map(String)} onChange=${(/** @type {string[]} */ all) => onChange(/_text$|^date$/.test(question.type) ? all : all.map(Number).filter((number) => !Number.isNaN(number)))} />`;
  if (question.type == "matrix") return html`<${JsonField} label="Columns by row" rows=${3} at=${at} value=${value} onChange=${onChange} />`;
  return html`<${Scalar} question=${question} label="Answer" at=${at} value=${value} onChange=${onChange} />`;
}

/** @param {{ question: any, label: string, value: any, onChange: (value: any) => void, at: string }} props */
function Scalar({ question, label, value, onChange, at }) {
  const choices = known(question);
  if (choices) return html`<${Select} label=${label} at=${at} value=${String(value)} options=${choices} onChange=${onChange} />`;
  if (question.type == "consent") return html`<${Select} label=${label} at=${at} value=${String(value)} options=${["true", "false"]} onChange=${(/** @type {string} */ text) => onChange(text == "true")} />`;
  if (/_text$|^date$/.test(question.type)) return html`<${Input} label=${label} at=${at} type=${question.type == "date" ? "date" : "text"} value=${value ?? ""} onInput=${onChange} />`;
  return html`<${NumberInput} label=${label} at=${at} step="any" value=${value} onChange=${(/** @type {any} */ next) => onChange(next ?? 0)} />`;
}

/** One branch. @param {{ value: any, onChange: (value: any) => void, flow: any, at: string }} props */
function Branch({ value, onChange, flow, at }) {
  /** @type {[string, string][]} */
  const questions = flow.questions.map((/** @type {any} */ { id, title }, /** @type {number} */ index) => [id, `${index + 1}. ${title}`]);
  const find = (/** @type {string} */ id) => flow.questions.find((/** @type {any} */ question) => question.id == id);
  const compare = (/** @type {string} */ questionId, /** @type {string | undefined} */ wanted = undefined) => {
    const question = find(questionId);
    const operator = wanted ?? suiting(question)[0] ?? "answered";
    return put({ questionId, operator }, "value", question && fresh(question, operator));
  };
  const leaf = (/** @type {any} */ { value: one, onChange: set, at: place }) => html`
    <${Select} label="Question" at=${`${place}/questionId`} value=${one.questionId} options=${including(questions, one.questionId)} onChange=${(/** @type {string} */ id) => set(compare(id))} />
    <${Select} label="Its answer" at=${`${place}/operator`} value=${one.operator} options=${operators([...new Set([...suiting(find(one.questionId)), one.operator])])} onChange=${(/** @type {string} */ operator) => set(compare(one.questionId, operator))} />
    <${Value} question=${find(one.questionId)} operator=${one.operator} value=${one.value} at=${`${place}/value`} onChange=${(/** @type {any} */ next) => set(put(one, "value", next))} />`;
  const target = value.to?.endScreenId !== undefined ? `screen:${value.to.endScreenId}` : `question:${value.to?.questionId}`;
  /** @type {[string, string][]} */
  const targets = [...questions.map(([id, title]) => /** @type {[string, string]} */ ([`question:${id}`, title])), ...flow.endScreens.map((/** @type {any} */ { id, title }) => [`screen:${id}`, `End: ${title}`])];
  const lead = (/** @type {string} */ text) => {
    const id = text.slice(text.indexOf(":") + 1);
    onChange({ ...value, to: text.startsWith("screen") ? { endScreenId: id } : { questionId: id } });
  };
  return html`
    <div class="row">
      <${Select} label="After" at=${`${at}/from`} value=${value.from} options=${including(questions, value.from)} onChange=${(/** @type {string} */ from) => onChange({ ...value, from })} />
      <${Select} label="Go to" at=${value.to?.endScreenId !== undefined ? `${at}/to/endScreenId` : `${at}/to/questionId`} value=${target} options=${including(targets, target)} onChange=${lead} />
    </div>
    <${Tree} legend="If" none="Always." value=${value.when ?? undefined} onChange=${(/** @type {any} */ when) => onChange({ ...value, when: when ?? null })} at=${`${at}/when`} leaf=${leaf} blank=${() => compare(value.from)} />`;
}

/** Choices with what is chosen, though it is gone. @param {[string, string][]} options @param {string} value @returns {[string, string][]} */
const including = (options, value) => (options.some(([key]) => key == value) ? options : [...options, [value, `${value} (missing)`]]);

/** One end screen. @param {{ value: any, onChange: (value: any) => void, at: string, index: number }} props */
function Screen({ value, onChange, at, index }) {
  const set = (/** @type {string} */ name) => (/** @type {any} */ next) => onChange(put(value, name, next));
  const { button } = value;
  const act = (/** @type {string} */ action) => set("button")(action == "close" ? { label: button.label, action } : { ...button, action, url: button.url ?? "https://" });
  return html`<h3>${value.title || `End screen ${index + 1}`}</h3>
    <${Input} label="Headline" at=${`${at}/title`} value=${value.title} onInput=${set("title")} />
    <${TextArea} label="Text" rows=${2} at=${`${at}/body`} value=${value.body ?? ""} onInput=${(/** @type {string} */ text) => set("body")(text || undefined)} />
    <${Checkbox} label="With a button of its own" checked=${Boolean(button)} onChange=${(/** @type {boolean} */ on) => set("button")(on ? { label: "Close", action: "close" } : undefined)} />
    ${button && html`<div class="row">
      <${Input} label="The button says" at=${`${at}/button/label`} value=${button.label} onInput=${(/** @type {string} */ label) => set("button")({ ...button, label })} />
      <${Select} label="It" at=${`${at}/button/action`} value=${button.action} options=${[["close", "closes the survey"], ["url", "opens a web page"], ["deep_link", "opens a place in the app"]]} onChange=${act} />
      ${button.action != "close" && html`<${Text} label="Address" at=${`${at}/button/url`} value=${button.url} onChange=${(/** @type {any} */ url) => set("button")(put(button, "url", url))} />`}
    </div>`}`;
}

/** @param {{ value: any, onChange: (value: any) => void }} props value: the survey */
export function Branches({ value, onChange }) {
  const flow = flowOf(value);
  const set = (/** @type {string} */ name) => (/** @type {any} */ next) => onChange(withFlow(value, name, next));
  if (!flow.questions.length) return html`<${Notice}>There is no question yet.<//>`;
  const start = flow.startQuestionId ?? flow.questions[0].id;
  const first = flow.questions[0].id;
  return html`
    <${Picture} flow=${flow} />
    <${Select} label="It begins with" at="/flow/startQuestionId" value=${start} options=${including(flow.questions.map((/** @type {any} */ { id, title }) => [id, title]), start)} onChange=${(/** @type {string} */ id) => set("startQuestionId")(id)} />
    <h2>Branches</h2>
    <p class="hint">After a question, the first branch whose condition holds is taken. Without one, the next question comes; after the last, the first end screen.</p>
    <${Ordered} items=${flow.branches} most=${200} add="Add a branch" onChange=${set("branches")} name=${(/** @type {any} */ _, /** @type {number} */ index) => `branch ${index + 1}`}
      blank=${() => ({ id: freshId("b"), from: first, when: null, to: flow.endScreens[0] ? { endScreenId: flow.endScreens[0].id } : { questionId: flow.questions.at(-1).id } })}
      copy=${(/** @type {any} */ branch) => ({ ...structuredClone(branch), id: freshId("b") })}
      render=${(/** @type {any} */ branch, /** @type {number} */ index, /** @type {any} */ change) => html`<${Branch} value=${branch} onChange=${change} flow=${flow} at=${`/flow/branches/${index}`} />`} />
    <h2>End screens</h2>
    <${Ordered} items=${flow.endScreens} most=${20} add="Add an end screen" onChange=${set("endScreens")} name=${(/** @type {any} */ _, /** @type {number} */ index) => `end screen ${index + 1}`}
      blank=${() => ({ id: freshId("end"), title: "Thank you!" })}
      render=${(/** @type {any} */ screen, /** @type {number} */ index, /** @type {any} */ change) => html`<${Screen} value=${screen} onChange=${change} index=${index} at=${`/flow/endScreens/${index}`} />`} />`;
}
