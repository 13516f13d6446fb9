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
  part?: string;
}

/** The most characters of an option in one's own words and of a field. */
export const MOST_FIELD = 500;

/** What limits answers to a question, from wherever it stands. */
export const limitsOf = (question: Question): Limits => ({ ...question, ...question.validation });

const length = (text: string): number => [...text].length;

/** What is wrong with an answer; nothing: the server takes it, as far as one can tell. */
export function check(question: Question, value: Json): Problem | undefined {
  const { type } = question;
  if (type === "statement") return undefined;
  if (value === null) {
    if (!question.required) return undefined;
    return { key: type === "consent" ? "consent" : type === "link" ? "link" : type === "matrix" ? "rows" : "required" };
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
  if (typeof min === "number" && number < min) return { key: "min", values: [min] };
  if (typeof max === "number" && number > max) return { key: "max", values: [max] };
  if (step === undefined) return undefined;
  const from = typeof min === "number" ? min : 0;
  const steps = (number - from) / step;
  const inexact = (4 * Number.EPSILON * (Math.abs(number) + Math.abs(from))) / step;
  return Math.abs(steps - Math.round(steps)) > Math.max(inexact, 1e-9) ? { key: "step", values: [step] } : undefined;
}

function checkDate({ min, max }: Limits, day: string): Problem | undefined {
  if (!isDate(day)) return { key: "date" };
  if (typeof min === "string" && day < min) return { key: "min", values: [min] };
  return typeof max === "string" && day > max ? { key: "max", values: [max] } : undefined;
}

function checkText(question: Question, limits: Limits, text: string): Problem | undefined {
  if (question.type !== "short_text" && question.type !== "long_text") return undefined;
  if (question.required && !text.trim()) return { key: "required" };
  const { minLength = 0, maxLength = question.type === "short_text" ? 1_000 : 10_000, format } = limits;
  if (length(text) < minLength) return { key: "shortest", values: [minLength] };
  if (length(text) > maxLength) return { key: "longest", values: [maxLength] };
  return format && !FORMATS[format](text) ? { key: format } : undefined;
}

const bytes = (text: string): number => new TextEncoder().encode(text).length;

const FORMATS = {
  email: (text: string): boolean => {
    const at = text.lastIndexOf("@");
    const local = text.slice(0, Math.max(at, 0));
    const domain = text.slice(at + 1);
    return (
      /^[^@\s\p{Cc}]+$/u.test(local) &&
      bytes(local) <= 64 &&
      bytes(domain) <= 255 &&
      domain.includes(".") &&
      domain.split(".").every((label) => /^(?!-)[\p{Alphabetic}\p{N}-]+(?<!-)$/u.test(label))
    );
  },
  url: (text: string): boolean => {
    if (!/^https?:\/\/[^\s\p{Cc}]+$/iu.test(text) || bytes(text) > 2_048) return false;
    try {
      return !!new URL(text).host;
    } catch {
      return false;
    }
  },
  phone: (text: string): boolean => {
    const digits = text.replace(/[^0-9]/g, "").length;
    return digits >= 5 && digits <= 15 && /^\+?[0-9 \-./()]*$/.test(text);
  },
};

function checkFields(question: Question, value: { [key: string]: Json }): Problem | undefined {
  for (const { id, label, required } of question.fields ?? []) {
    const text = `${value[id] ?? ""}`;
    if (required && !text.trim()) return { key: "field", values: [label], part: id };
    if (length(text) > MOST_FIELD) return { key: "longest", values: [MOST_FIELD], part: id };
  }
  return undefined;
}

function checkOptions(question: Question, limits: Limits, value: { [key: string]: Json }): Problem | undefined {
  const { other } = value;
  if (typeof other === "string" && (!other.trim() || length(other) > MOST_FIELD)) {
    return other.trim() ? { key: "longest", values: [MOST_FIELD], part: "other" } : { key: "words", part: "other" };
  }
  if (question.type !== "multiple_choice" || !Array.isArray(value.optionIds)) return undefined;
  const count = value.optionIds.length + (other === undefined ? 0 : 1);
  const least = Math.max(limits.minSelections ?? 0, 1);
  const { maxSelections: most } = limits;
  if (count < least) return { key: "least", values: [least] };
  return most !== undefined && count > most ? { key: "most", values: [most] } : undefined;
}
