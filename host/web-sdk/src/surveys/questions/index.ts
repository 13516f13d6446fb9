/** A control for each type of question. */

import type { QuestionType } from "../host.js";
import { choice } from "./choice.js";
import type { Field, Setting } from "./field.js";
import { matrix } from "./matrix.js";
import { ranking } from "./ranking.js";
import { scale, thumbs } from "./scale.js";
import { consent, link, statement } from "./shown.js";
import { contact, words } from "./words.js";

/** What makes the control of a type. */
export const FIELDS: Record<QuestionType, (setting: Setting) => Field> = {
  nps: scale,
  rating: scale,
  csat: scale,
  ces: scale,
  thumbs,
  single_choice: choice,
  multiple_choice: choice,
  picture_choice: choice,
  ranking,
  matrix,
  short_text: words,
  long_text: words,
  number: words,
  date: words,
  consent,
  contact_info: contact,
  statement,
  link,
};
