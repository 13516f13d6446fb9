// Conditions on properties: of events, and of people.
import { html } from "../lib/preact.js";
import { Input, Select } from "./form.js";
import { MARKED, NumberInput, put, Words } from "./fields.js";
import { Tree } from "./tree.js";

/** @type {Record<string, string[]>} */
const OPERATORS = {
  string: ["equals", "not_equals", "in", "not_in", "contains", "not_contains", "starts_with", "ends_with", "matches"],
  number: ["eq", "neq", "gt", "gte", "lt", "lte", "between"],
  boolean: ["is"],
  date: ["before", "after", "within_last"],
};

/** What operators are called. @type {Record<string, string>} */
const NAMES = { eq: "=", neq: "≠", gt: ">", gte: "≥", lt: "<", lte: "≤", in: "is one of", not_in: "is none of", matches: "matches the pattern", nps_bucket: "is a" };

/** What an operator is called. @param {string} name */
export const operatorName = (name) => NAMES[name] ?? name.replaceAll("_", " ");

/** Options of a choice of operators. @param {string[]} names @returns {[string, string][]} */
export const operators = (names) => names.map((name) => [name, operatorName(name)]);

export const COMPARISONS = operators(["eq", "neq", "gt", "gte", "lt", "lte"]);

/** The value that suits an operator. @param {string} type @param {string} operator */
function fresh(type, operator) {
  if (operator.startsWith("is_")) return undefined;
  if (operator == "in" || operator == "not_in") return [];
  if (operator == "between") return [0, 0];
  if (operator == "within_last") return { amount: 7, unit: "days" };
  return { string: "", number: 0, boolean: true, date: "" }[type];
}

/** A value of a date's operator. @param {{ operator: string, value: any, onChange: (value: any) => void, at: string }} props */
export function DateValue({ operator, value, onChange, at }) {
  if (operator != "within_last") return html`<${Input} label="Day" at=${at} type=${/T/.test(value ?? "") ? "text" : "date"} value=${value ?? ""} onInput=${onChange} />`;
  return html`<${NumberInput} label="Amount" at=${`${at}/amount`} min=${1} value=${value?.amount} onChange=${(/** @type {any} */ amount) => onChange({ ...value, amount: amount ?? 1 })} />
    <${Select} label="Unit" at=${`${at}/unit`} value=${value?.unit ?? "days"} options=${["minutes", "hours", "days", "weeks"]} onChange=${(/** @type {string} */ unit) => onChange({ ...value, unit })} />`;
}

/** @param {{ type: string, operator: string, value: any, onChange: (value: any) => void, at: string }} props */
function Value({ type, operator, value, onChange, at }) {
  if (operator.startsWith("is_")) return null;
  if (operator == "in" || operator == "not_in") return html`<${Words} label="Values" at=${at} value=${Array.isArray(value) ? value : []} onChange=${onChange} hint=${MARKED} />`;
  if (operator == "between") return [0, 1].map((place) => html`<${NumberInput} label=${place ? "Most" : "Least"} at=${`${at}/${place}`} step="any" value=${value?.[place]} onChange=${(/** @type {any} */ number) => onChange((value ?? [0, 0]).with(place, number ?? 0))} />`);
  if (type == "number") return html`<${NumberInput} label="Value" at=${at} step="any" value=${value} onChange=${onChange} />`;
  if (type == "boolean") return html`<${Select} label="Value" at=${at} value=${String(value)} options=${["true", "false"]} onChange=${(/** @type {string} */ text) => onChange(text == "true")} />`;
  if (type == "date") return html`<${DateValue} operator=${operator} value=${value} onChange=${onChange} at=${at} />`;
  return html`<${Input} label=${operator == "matches" ? "Pattern" : "Value"} at=${at} value=${value ?? ""} onInput=${onChange} />`;
}

/** A condition on one property. @param {{ value: any, onChange: (value: any) => void, at: string }} props */
export function FilterLeaf({ value, onChange, at }) {
  const { property = "", type = "string", operator = "equals" } = value;
  const all = [...(OPERATORS[type] ?? []), "is_set", "is_not_set"];
  const turn = (/** @type {string} */ kind, /** @type {string} */ by) => onChange(put({ ...value, type: kind, operator: by }, "value", fresh(kind, by)));
  const operate = (/** @type {string} */ by) => (typeof fresh(type, by) == typeof value.value && Array.isArray(fresh(type, by)) == Array.isArray(value.value) && by != "between" ? onChange({ ...value, operator: by }) : turn(type, by));
  return html`
    <${Input} label="Property" at=${`${at}/property`} value=${property} onInput=${(/** @type {string} */ name) => onChange({ ...value, property: name })} />
    <${Select} label="Type" at=${`${at}/type`} value=${type} options=${[["string", "text"], "number", ["boolean", "yes or no"], "date"]} onChange=${(/** @type {string} */ kind) => turn(kind, (OPERATORS[kind] ?? [])[0] ?? "is_set")} />
    <${Select} label="Operator" at=${`${at}/operator`} value=${operator} options=${operators(all)} onChange=${operate} />
    <${Value} type=${type} operator=${operator} value=${value.value} at=${`${at}/value`} onChange=${(/** @type {any} */ next) => onChange(put(value, "value", next))} />`;
}

export const blankFilter = () => ({ property: "", type: "string", operator: "equals", value: "" });

/**
 * A filter: conditions on properties, in groups.
 * @param {{ value: any, onChange: (value: any) => void, at: string, legend?: string }} props
 */
export const FilterEditor = ({ value, onChange, at, legend = "Only with these properties" }) =>
  html`<${Tree} value=${value} onChange=${onChange} at=${at} legend=${legend} leaf=${FilterLeaf} blank=${blankFilter} />`;
