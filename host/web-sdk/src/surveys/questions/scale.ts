/** Numbers in a row: nps, rating, csat, ces; and thumbs. */

import { glyph, h, newId } from "../dom.js";
import type { Field, Setting } from "./field.js";

const FACES = ["😡", "😠", "🙁", "😕", "😐", "🙂", "😊", "😀", "😁", "😍"];

/** The faces of a scale, from bad to good. */
const faceOf = (number: number, most: number): string =>
  FACES[Math.round(((number - 1) * (FACES.length - 1)) / (most - 1))] ?? "";

/** A radio button that looks like a button. */
function tile(name: string, required: boolean | undefined, value: string, checked: boolean, ...shown: (Node | string)[]): HTMLElement {
  const input = h("input", { type: "radio", name, value, required, checked });
  return h("label", { class: "tile" }, input, h("span", { class: "face" }, ...shown));
}

/** What is heard, and what is seen. */
const spoken = (text: string, shown: string): Node[] => [h("span", { class: "sr" }, text), glyph(shown)];

function radios(row: HTMLElement, read: (value: string) => number | string): Field {
  const chosen = (): HTMLInputElement | null => row.querySelector("input:checked");
  return {
    nodes: [row],
    read: () => {
      const input = chosen();
      return input ? read(input.value) : null;
    },
    aim: () => chosen() ?? row.querySelector("input"),
  };
}

export function scale({ question, texts, initial }: Setting): Field {
  const least = question.type === "nps" ? 0 : 1;
  const most = question.type === "nps" ? 10 : (question.scale ?? 5);
  const display = question.display ?? "number";
  const name = newId();
  const row = h("div", { class: `scale ${display}` });
  for (let number = least; number <= most; number++) {
    const shown =
      display === "number"
        ? [`${number}`]
        : spoken(texts("of", number, most), display === "star" ? "★" : faceOf(number, most));
    row.append(tile(name, question.required, `${number}`, initial === number, ...shown));
  }
  const field = radios(row, Number);
  const { lowLabel, highLabel } = question;
  if (lowLabel || highLabel) {
    field.nodes.push(h("p", { class: "ends" }, h("span", {}, lowLabel), h("span", {}, highLabel)));
  }
  return field;
}

export function thumbs({ question, texts, initial }: Setting): Field {
  const name = newId();
  const thumb = (value: string, text: string, shown: string): HTMLElement =>
    tile(name, question.required, value, initial === value, ...spoken(text, shown));
  const row = h("div", { class: "scale emoji" }, thumb("up", texts("good"), "👍"), thumb("down", texts("bad"), "👎"));
  return radios(row, String);
}
