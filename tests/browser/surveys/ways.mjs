// How each type of question is answered by keyboard alone.
import { tabTo } from "./harness.mjs";

const times = (count, key) => Array(count).fill(key);
const type = (text) => async (tab) => tab.keyboard.type(text);
const to = (label) => (tab) => tabTo(tab, label);

/** What is pressed from the first control on, and the answer. */
export const WAYS = {
  nps: [["Space", ...times(9, "ArrowRight"), "Enter"], 9],
  rating: [["Space", "ArrowRight", "Enter"], 2],
  csat: [["Space", ...times(3, "ArrowRight"), "Enter"], 4],
  ces: [["Space", "Enter"], 1],
  thumbs: [["Space", "ArrowRight", "Enter"], "down"],
  single_choice: [["Space", ...times(3, "ArrowDown"), "Tab", type("Dill"), "Enter"], { other: "Dill" }],
  multiple_choice: [["Space", "Tab", "Tab", "Space", "Enter"], { optionIds: ["a", "c"] }],
  picture_choice: [["Space", "ArrowDown", "Enter"], { optionIds: ["b"] }],
  ranking: [["Tab", "Enter", "Enter", to("Next"), "Enter"], { optionIds: ["b", "c", "a"] }],
  matrix: [["Space", "ArrowRight", "Tab", "Space", "ArrowRight", "ArrowRight", "Enter"], { a: "fair", b: "good" }],
  short_text: [[type("ada@example.com"), "Enter"], "ada@example.com"],
  long_text: [[type("Fine."), "Enter", type("Thanks."), to("Next"), "Enter"], "Fine.\nThanks."],
  number: [[type("7.5"), "Enter"], 7.5],
  date: [[type("07092026"), "Enter"], "2026-07-09"],
  consent: [["Space", "Enter"], true],
  contact_info: [[type("Ada"), "Tab", type("ada@example.com"), "Enter"], { name: "Ada", email: "ada@example.com" }],
  statement: [[to("Go on"), "Enter"], null],
  link: [["Enter", to("Send"), "Enter"], "clicked"],
};
