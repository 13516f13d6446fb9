/** Options in an order: moved by buttons, so that nobody has to drag. */

import { glyph, h, membersOf } from "../dom.js";
import type { Item, Json } from "../host.js";
import type { Field, Setting } from "./field.js";

export function ranking({ question, texts, initial, say }: Setting): Field {
  const options = question.options ?? [];
  const before = membersOf(initial).optionIds;
  const place = (item: Item): number => (Array.isArray(before) ? before.indexOf(item.id) : 0);
  const order = [...options].sort((one, other) => place(one) - place(other));
  const list = h("ol", { class: "ranking" });

  const move = (item: Item, by: number, button: HTMLElement): void => {
    const from = order.indexOf(item);
    const to = from + by;
    if (to >= 0 && to < order.length) {
      order.splice(from, 1);
      order.splice(to, 0, item);
      show();
      // Moving an element takes the focus from it.
      button.focus();
    }
    say(texts("moved", item.label, order.indexOf(item) + 1, order.length));
  };
  const rows = new Map<Item, [row: HTMLElement, up: HTMLElement, down: HTMLElement]>();
  for (const item of order) {
    const button = (by: number): HTMLElement => {
      const label = texts(by < 0 ? "up" : "down", item.label);
      const made = h("button", { type: "button", class: "icon", "aria-label": label, title: label }, glyph(by < 0 ? "↑" : "↓"));
      made.addEventListener("click", () => move(item, by, made));
      return made;
    };
    const [up, down] = [button(-1), button(1)];
    rows.set(item, [h("li", {}, h("span", {}, item.label), up, down), up, down]);
  }
  const show = (): void => {
    order.forEach((item, index) => {
      const [row, up, down] = rows.get(item) ?? [];
      if (!row || !up || !down) return;
      // Not `disabled`: the focus would be lost where a move ends at the edge.
      up.setAttribute("aria-disabled", `${index === 0}`);
      down.setAttribute("aria-disabled", `${index === order.length - 1}`);
      list.append(row);
    });
  };
  show();
  return {
    nodes: [list],
    read: (): Json => ({ optionIds: order.map((item) => item.id) }),
    aim: () => list.querySelector("button"),
  };
}
