// Conditions in groups: all of them, or any. Filters, audiences and branches are such trees, with leaves of their own.
import { html, useRef } from "../lib/preact.js";
import { Button, refocus } from "./button.js";
import { Select } from "./form.js";
import { JsonField } from "./json.js";

/** @param {any} value */
const isGroup = (value) => Array.isArray(value?.all) || Array.isArray(value?.any);

/**
 * @param {object} props
 * @param {any} props.value undefined: no condition
 * @param {(value: any) => void} props.onChange told undefined where no condition is left
 * @param {string} props.legend what the conditions are for
 * @param {string} props.at the JSON pointer
 * @param {(props: { value: any, onChange: (value: any) => void, at: string }) => any} props.leaf shows a condition
 * @param {() => any} props.blank a new condition
 * @param {string} [props.none] what it means that there is none
 * @param {number} [props.depth]
 * @param {number} [props.most] how deep groups may nest
 */
export function Tree({ value, onChange, legend, at, leaf, blank, none, depth = 1, most = 4 }) {
  const own = useRef(/** @type {HTMLElement | null} */ (null));
  if (value?.all?.length && value?.any?.length) return html`<${JsonField} label=${`${legend}: all of some and any of others`} at=${at} rows=${6} value=${value} onChange=${onChange} />`;
  const kind = value?.any?.length || (value?.any && !value?.all) ? "any" : "all";
  /** @type {any[]} */
  const items = isGroup(value) ? value[kind] : value ? [value] : [];
  const place = (/** @type {number} */ index) => (isGroup(value) ? `${at}/${kind}/${index}` : at);
  const tell = (/** @type {any[]} */ next, group = kind) => onChange(next.length ? { [group]: next } : undefined);
  const set = (/** @type {number} */ index, /** @type {any} */ item) => {
    if (item === undefined) refocus(() => own.current?.querySelector(":scope > .actions > button"));
    tell(item === undefined ? items.toSpliced(index, 1) : items.with(index, item));
  };
  return html`<fieldset ref=${own} class="tree"><legend>${legend}</legend>
    ${!items.length && none && html`<p class="hint">${none}</p>`}
    ${items.length > 1 && html`<${Select} label="How they count" value=${kind} options=${[["all", "all of these"], ["any", "any of these"]]} onChange=${(/** @type {string} */ group) => tell(items, group)} />`}
    ${items.map((item, index) => isGroup(item)
      ? html`<${Tree} key=${index} value=${item} onChange=${(/** @type {any} */ next) => set(index, next)} legend=${`Group ${index + 1}`} at=${place(index)} leaf=${leaf} blank=${blank} depth=${depth + 1} most=${most} />`
      : html`<div class="leaf" key=${index} role="group" aria-label=${`Condition ${index + 1}`}>${leaf({ value: item, onChange: (next) => set(index, next), at: place(index) })}<${Button} kind="plain" label=${`Remove condition ${index + 1}`} onClick=${() => set(index, undefined)}>Remove<//></div>`)}
    <div class="actions">
      <${Button} onClick=${() => tell([...items, blank()])}>Add a condition<//>
      ${depth < most && items.length > 0 && html`<${Button} onClick=${() => tell([...items, { [kind == "all" ? "any" : "all"]: [blank(), blank()] }])}>Add a group<//>`}
      ${depth > 1 && html`<${Button} kind="plain" onClick=${() => onChange(undefined)}>Remove the group<//>`}
    </div>
  </fieldset>`;
}
