/** Options: single_choice, multiple_choice, picture_choice. */

import { h, isWeb, membersOf, newId, safeUrl } from "../dom.js";
import type { Item, Json } from "../host.js";
import type { Field, Setting } from "./field.js";

const OTHER = "other";

const orders = new WeakMap<Item[], Item[]>();

/** Options in an order of their own, which stays while the survey is shown. */
function shuffled(options: Item[]): Item[] {
  let order = orders.get(options);
  if (!order) {
    const lots = options.map((option): [number, Item] => [Math.random(), option]);
    order = lots.sort(([one], [other]) => one - other).map(([, option]) => option);
    orders.set(options, order);
  }
  return order;
}

export function choice({ question, texts, initial, describedBy }: Setting): Field {
  const pictures = question.type === "picture_choice";
  const several = pictures ? !!question.multiple : question.type === "multiple_choice";
  const single = question.type === "single_choice";
  const name = newId();
  const before = membersOf(initial);
  const chosen = Array.isArray(before.optionIds) ? before.optionIds : [before.optionId];
  const list = h("div", { class: pictures ? "options pictures" : "options" });
  const add = (value: string, label: string, checked: boolean, image?: string): HTMLInputElement => {
    const input = h("input", {
      type: several ? "checkbox" : "radio",
      name,
      value,
      checked,
      required: !several && question.required,
    });
    const address = safeUrl(image);
    const picture = isWeb(address) && h("img", { src: address, alt: "", referrerpolicy: "no-referrer", loading: "lazy" });
    list.append(h("label", { class: "option" }, input, picture, h("span", {}, label)));
    return input;
  };
  const all = question.options ?? [];
  const inputs = (question.shuffle ? shuffled(all) : all).map(({ id, label, imageUrl }) =>
    add(id, label, chosen.includes(id), imageUrl),
  );
  let other: HTMLInputElement | undefined;
  const words = h("input", {
    type: "text",
    class: "text",
    "aria-label": texts("other"),
    "aria-describedby": describedBy,
  });
  if (question.allowOther && !pictures) {
    // Its value is no id of an option, so that no option is taken for it.
    other = add("", texts("other"), before.other !== undefined);
    words.value = `${before.other ?? ""}`;
    list.append(words);
    const follow = (): void => {
      words.hidden = !other?.checked;
    };
    list.addEventListener("change", follow);
    follow();
  }
  const read = (): Json => {
    const ids = inputs.filter((input) => input.checked).map((input) => input.value);
    const own = other?.checked ? words.value : undefined;
    if (!ids.length && own === undefined) return null;
    if (!single) return own === undefined ? { optionIds: ids } : { optionIds: ids, other: own };
    return own === undefined ? { optionId: ids[0] ?? "" } : { other: own };
  };
  const aim = (part?: string): HTMLElement | null | undefined =>
    part === OTHER ? words : (list.querySelector<HTMLElement>("input:checked") ?? inputs[0] ?? other);
  return { nodes: [list], read, aim };
}
