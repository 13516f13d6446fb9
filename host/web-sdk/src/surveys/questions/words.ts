/** What is typed: short_text, long_text, number, date, contact_info. */

import { limitsOf } from "../answers.js";
import { type Attributes, h, membersOf, newId } from "../dom.js";
import type { Json } from "../host.js";
import type { Field, Setting } from "./field.js";

export function words({ question, initial, describedBy }: Setting): Field {
  const { type } = question;
  const { format, min, max, step } = limitsOf(question);
  // No `maxlength`: it counts otherwise than the server, and cuts without a word.
  const attributes: Attributes = {
    class: "text",
    id: newId(),
    "aria-describedby": describedBy,
    required: question.required,
    placeholder: question.placeholder,
  };
  // How a text of a format is typed is called as what a browser knows of it.
  const kind = format === "phone" ? "tel" : format;
  const limits = { min, max, ...(type === "number" ? { step: step ?? "any" } : {}) };
  const control =
    type === "long_text"
      ? h("textarea", { ...attributes, rows: 4 })
      : type === "short_text"
        ? h("input", { type: kind ?? "text", autocomplete: kind, ...attributes })
        : h("input", { type, ...limits, ...attributes });
  if (initial != null) control.value = `${initial as string | number}`;
  return {
    nodes: [control],
    control,
    read: (): Json => {
      const { value } = control;
      if (value === "") return null;
      return type === "number" ? Number(value) : value;
    },
    odd: () => (control.validity.badInput ? { key: type === "date" ? "date" : "number" } : undefined),
    aim: () => control,
  };
}

/** What browsers call the fields that contact information mostly has (WCAG 1.3.5). */
const PURPOSES: [RegExp, string, string?][] = [
  [/mail/, "email", "email"],
  [/phone|tel|mobile/, "tel", "tel"],
  [/first|given/, "given-name"],
  [/last|family|surname/, "family-name"],
  [/company|organi[sz]ation/, "organization"],
  [/street|address/, "street-address"],
  [/name/, "name"],
];

export function contact({ question, texts, initial, describedBy }: Setting): Field {
  const before = membersOf(initial);
  const inputs = new Map<string, HTMLInputElement>();
  const nodes = (question.fields ?? []).map(({ id, label, required }) => {
    const [, autocomplete, type = "text"] = PURPOSES.find(([pattern]) => pattern.test(id.toLowerCase())) ?? [];
    const input = h("input", {
      id: newId(),
      class: "text",
      type,
      autocomplete,
      required,
      "aria-describedby": describedBy,
    });
    input.value = `${(before[id] as string | undefined) ?? ""}`;
    inputs.set(id, input);
    const optional = required ? "" : ` ${texts("optional")}`;
    return h("p", { class: "field" }, h("label", { for: input.id }, label, optional), input);
  });
  return {
    nodes,
    read: (): Json => {
      const filled = [...inputs].filter(([, input]) => input.value.trim());
      return filled.length ? Object.fromEntries(filled.map(([id, input]) => [id, input.value])) : null;
    },
    aim: (part) => inputs.get(part ?? "") ?? inputs.values().next().value,
  };
}
