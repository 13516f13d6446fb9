/** A column for each row; each row is a group of its own, so that it is read, and fits, at any width. */

import { h, membersOf, newId } from "../dom.js";
import type { Json } from "../host.js";
import type { Field, Setting } from "./field.js";

export function matrix({ question, initial }: Setting): Field {
  const before = membersOf(initial);
  const rows = new Map<string, HTMLElement>();
  const chosen = (row: HTMLElement | undefined): HTMLInputElement | null | undefined =>
    row?.querySelector<HTMLInputElement>("input:checked");
  for (const row of question.rows ?? []) {
    const name = newId();
    const columns = (question.columns ?? []).map(({ id, label }) =>
      h(
        "label",
        { class: "tile" },
        h("input", { type: "radio", name, value: id, required: question.required, checked: before[row.id] === id }),
        h("span", { class: "face" }, label),
      ),
    );
    rows.set(
      row.id,
      h("fieldset", {}, h("legend", {}, row.label), h("div", { class: "columns" }, ...columns)),
    );
  }
  return {
    nodes: [...rows.values()],
    read: (): Json => {
      const value: Record<string, string> = {};
      for (const [id, row] of rows) {
        const input = chosen(row);
        if (input) value[id] = input.value;
      }
      return Object.keys(value).length ? value : null;
    },
    aim: (part) => {
      const row = rows.get(part ?? "") ?? rows.values().next().value;
      return chosen(row) ?? row?.querySelector("input");
    },
  };
}
