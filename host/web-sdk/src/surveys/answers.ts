/**
 * What the form says before it asks the server. The server has the last word; what it refuses is shown at the question
 * too.
 */

import { isDate } from "./flow.js";
import type { Json, Limits, Question } from "./host.js";
import type { TextKey } from "./texts.js";

/** What is wrong with an answer: a text, its values, and the part of the answer that it is about. */
export interface Problem {
  key: TextKey;
  values?: (string | number)[];
  /** Whether the value counts characters. */
  characters?: boolean;
  part?: string;
}

/** The most characters of an option in one's own words and of a field. */
const MOST_FIELD = 500;
const TOO_LONG: Problem = { key: "most", values: [MOST_FIELD], characters: true };

/** What limits answers to a question, from wherever it stands. */
export const limitsOf = (question: Question): Limits => ({ ...question, ...question.validation });

const length = (text: string): number => [...text].length;

/** What is wrong with an answer; nothing: the server takes it, as far as one can tell. */
export function check(question: Question, value: Json): Problem | undefined {
  const { type } = question;
  if (type === "statement") return undefined;
  if (value === null) {
    if (!question.required) return undefined;
    return { key: type === "consent" ? "consent" : type === "matrix" ? "rows" : "required" };
  }
  const limits = limitsOf(question);
  if (typeof value === "number") return type === "number" ? checkNumber(limits, value) : undefined;
  if (typeof value === "string") return type === "date" ? checkDate(limits, value) : checkText(question, limits, value);
  if (typeof value !== "object" || Array.isArray(value)) return undefined;
  if (type === "matrix") {
    const missing = question.rows?.find((row) => !(row.id in value));
    return missing && question.required ? { key: "rows", part: missing.id } : undefined;
  }
  if (type === "contact_info") return checkFields(question, value);
  return checkOptions(question, limits, value);
}

function checkNumber(limits: Limits, number: number): Problem | undefined {
  const { min, max, step } = limits;
  if (!Number.isFinite(number)) return { key: "number" };
  if (typeof min === "number" && number < min) return { key: "least", values: [min] };
  if (typeof max === "number" && number > max) return { key: "most", values: [max] };
  if (step === undefined) return undefined;
  const from = typeof min === "number" ? min : 0;
  const steps = (number - from) / step;
  const inexact = (4 * Number.EPSILON * (Math.abs(number) + Math.abs(from))) / step;
  return Math.abs(steps - Math.round(steps)) > Math.max(inexact, 1e-9) ? { key: "step", values: [step] } : undefined;
}

function checkDate({ min, max }: Limits, day: string): Problem | undefined {
  if (!isDate(day)) return { key: "date" };
  if (typeof min === "string" && day < min) return { key: "least", values: [min] };
  return typeof max === "string" && day > max ? { key: "most", values: [max] } : undefined;
}

function checkText(question: Question, limits: Limits, text: string): Problem | undefined {
  if (!/_text$/.test(question.type)) return undefined;
  if (question.required && !text.trim()) return { key: "required" };
  const { minLength = 0, maxLength = question.type === "short_text" ? 1_000 : 10_000, format } = limits;
  if (length(text) < minLength) return { key: "least", values: [minLength], characters: true };
  if (length(text) > maxLength) return { key: "most", values: [maxLength], characters: true };
  return format && !FORMATS[format](text) ? { key: format } : undefined;
}

/** Whether a text has a format; what none of these says no to, the server may. */
const FORMATS = {
  email: (text: string): boolean =>
    /^[^@\s\p{Cc}]{1,64}@((?!-)[\p{Alphabetic}\p{N}-]+(?<!-)\.)+(?!-)[\p{Alphabetic}\p{N}-]+(?<!-)$/u.test(text),
  url: (text: string): boolean => /^https?:\/\/[^\s/?#][^\s]{0,2039}$/i.test(text),
  phone: (text: string): boolean => /^\+?([ \-./()]*\d){5,15}[ \-./()]*$/.test(text),
};

function checkFields(question: Question, value: { [key: string]: Json }): Problem | undefined {
  for (const { id, label, required } of question.fields ?? []) {
    const text = `${value[id] ?? ""}`;
    if (required && !text.trim()) return { key: "field", values: [label], part: id };
    if (length(text) > MOST_FIELD) return { ...TOO_LONG, part: id };
  }
  return undefined;
}

function checkOptions(question: Question, limits: Limits, value: { [key: string]: Json }): Problem | undefined {
  const { other } = value;
  if (typeof other === "string" && (!other.trim() || length(other) > MOST_FIELD)) {
    return { ...(other.trim() ? TOO_LONG : { key: "required" }), part: "other" };
  }
  if (question.type !== "multiple_choice" || !Array.isArray(value.optionIds)) return undefined;
  const count = value.optionIds.length + (other === undefined ? 0 : 1);
  const least = Math.max(limits.minSelections ?? 0, 1);
  const { maxSelections: most } = limits;
  if (count < least) return { key: "least", values: [least] };
  return most !== undefined && count > most ? { key: "most", values: [most] } : undefined;
}
