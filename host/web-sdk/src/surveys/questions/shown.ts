/** What is read rather than answered: consent, statement, link. */

import { h, safeUrl } from "../dom.js";
import type { Json } from "../host.js";
import { actionOf, type Field, type Setting } from "./field.js";

export function consent({ question, initial, describedBy }: Setting): Field {
  const input = h("input", {
    type: "checkbox",
    required: question.required,
    checked: initial === true,
    "aria-describedby": describedBy,
  });
  const label = h("label", { class: "option" }, input, h("span", {}, question.label));
  return { nodes: [label], read: () => input.checked || null, aim: () => input };
}

/** A link that the app opens, or the browser where somebody wants a tab of their own. */
function anchor({ open }: Setting, url: string, label: string, followed: () => void): HTMLElement {
  return h(
    "a",
    {
      class: "link",
      href: url,
      target: "_blank",
      rel: "noopener noreferrer",
      click: (event: MouseEvent) => {
        followed();
        if (event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        open(actionOf(url));
      },
    },
    label,
  );
}

const paragraph = (text: string | undefined): Node[] => (text ? [h("p", { class: "body" }, text)] : []);

export function statement(setting: Setting): Field {
  const { body, url, title } = setting.question;
  const nodes = paragraph(body);
  const address = safeUrl(url);
  if (address) nodes.push(anchor(setting, address, url ?? title, () => {}));
  return { nodes, read: () => null, aim: () => null };
}

export function link(setting: Setting): Field {
  const { question, texts, initial } = setting;
  let value: Json = initial ?? null;
  const nodes = paragraph(question.body);
  const followed = (): void => {
    value = "clicked";
  };
  const address = safeUrl(question.url);
  const label = question.buttonLabel ?? texts("open");
  // A link without an address is a button that says that it was clicked.
  const control = address
    ? anchor(setting, address, label, followed)
    : h("button", { type: "button", "aria-pressed": `${value === "clicked"}` }, label);
  if (!address) {
    control.addEventListener("click", () => {
      followed();
      control.setAttribute("aria-pressed", "true");
    });
  }
  nodes.push(control);
  return { nodes, read: () => value, aim: () => control };
}
