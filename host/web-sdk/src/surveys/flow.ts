/**
 * The way that answers lead through a flow, by the server's rules (`host/campaigns/src/surveys/flow/way.rs`): the first
 * branch whose condition holds; without one, the next question; after the last, the first end screen.
 * Vectors that the server's code writes hold both to the same.
 */

import type { Branch, Condition, Flow, Json, Next, Question } from "./host.js";

/** Answers by question. Null is a question that was passed over, except for a statement, whose answer it is. */
export type Answers = ReadonlyMap<string, Json>;

/** A question on a way, and what became of it. */
export interface Stop {
  question: Question;
  fate: "answered" | "passed" | "open";
}

/** A way: the questions that it leads by, and where it ends. `required`: at its last question, which must be answered. */
export interface Way {
  stops: Stop[];
  end: "required" | Next;
}

type Known = (questionId: string) => { question: Question; answer: Json } | undefined;

/** Whether a condition may be left unanswered. */
export const mayBeLeft = (question: Question): boolean => !question.required || question.type === "statement";

const fateOf = (question: Question, answer: Json | undefined): Stop["fate"] =>
  answer === undefined ? "open" : answer === null && question.type !== "statement" ? "passed" : "answered";

/** Where a flow begins. */
const startOf = (flow: Flow): number =>
  Math.max(0, flow.questions.findIndex((question) => question.id === flow.startQuestionId));

const firstScreen = (flow: Flow): Next => {
  const screen = flow.endScreens?.[0];
  return screen ? { endScreenId: screen.id } : null;
};

/** The way that answers lead. Conditions know the answers of what the way has led by, and no others. */
export function wayOf(flow: Flow, answers: Answers): Way {
  const stops: Stop[] = [];
  const behind = new Map<string, { question: Question; answer: Json }>();
  let place = startOf(flow);
  for (;;) {
    const question = flow.questions[place];
    if (!question) return { stops, end: firstScreen(flow) };
    const answer = answers.get(question.id);
    const fate = fateOf(question, answer);
    stops.push({ question, fate });
    if (fate === "answered") behind.set(question.id, { question, answer: answer ?? null });
    else if (!mayBeLeft(question)) return { stops, end: "required" };
    if (stops.length > flow.questions.length) return { stops, end: null };
    const next = follow(flow, place, (id) => behind.get(id));
    if (typeof next !== "number") return { stops, end: next };
    place = next;
  }
}

function follow(flow: Flow, place: number, known: Known): number | Next {
  const from = flow.questions[place]?.id;
  for (const branch of flow.branches ?? []) {
    if (branch.from === from && (!branch.when || holds(branch.when, known))) return target(flow, branch);
  }
  return place + 1 < flow.questions.length ? place + 1 : firstScreen(flow);
}

function target(flow: Flow, { to }: Branch): number | Next {
  if ("endScreenId" in to) return { endScreenId: to.endScreenId };
  const place = flow.questions.findIndex((question) => question.id === to.questionId);
  return place < 0 ? null : place;
}

/**
 * The question to be asked next: after the one answered last, the first that there is no word of. Undefined: the end
 * is reached.
 */
export function positionOf(way: Way, last?: string): Question | undefined {
  const from = way.stops.findIndex((stop) => stop.question.id === last) + 1;
  const next = way.stops.slice(from).find((stop) => stop.fate === "open");
  return (next ?? (way.end === "required" ? way.stops.at(-1) : undefined))?.question;
}

/** How many questions there may still be after one, at the most: what progress is measured by. */
export function ahead(flow: Flow, questionId: string): number {
  const known = new Map<number, number>();
  const places = new Map(flow.questions.map((question, place) => [question.id, place]));
  const from = (place: number): number => {
    let most = known.get(place);
    if (most !== undefined) return most;
    known.set(place, 0);
    const nexts: number[] = [];
    let always = false;
    for (const branch of flow.branches ?? []) {
      if (always || branch.from !== flow.questions[place]?.id) continue;
      always = !branch.when;
      if ("questionId" in branch.to) nexts.push(places.get(branch.to.questionId) ?? flow.questions.length);
    }
    if (!always) nexts.push(place + 1);
    most = Math.max(0, ...nexts.filter((next) => next < flow.questions.length).map((next) => 1 + from(next)));
    known.set(place, most);
    return most;
  };
  return from(places.get(questionId) ?? 0);
}

/** Whether a condition holds. A comparison with a question that is not answered holds only as `skipped`. */
export function holds(condition: Condition, known: Known): boolean {
  if (condition.all) return condition.all.every((part) => holds(part, known));
  if (condition.any) return condition.any.some((part) => holds(part, known));
  const found = known(condition.questionId ?? "");
  if (!found) return condition.operator === "skipped";
  return compare(found.question, condition.operator, found.answer, condition.value ?? null);
}

/** Comparisons of order, by the sign of the difference. */
const ORDERS: Record<string, (sign: number) => boolean> = {
  gt: (sign) => sign > 0,
  gte: (sign) => sign >= 0,
  lt: (sign) => sign < 0,
  lte: (sign) => sign <= 0,
};

/** Comparisons of texts, and what does them. */
const WORDS: Record<string, "includes" | "startsWith" | "endsWith"> = {
  contains: "includes",
  starts_with: "startsWith",
  ends_with: "endsWith",
};

function compare(question: Question, operator = "", answer: Json, value: Json): boolean {
  const of = comparable(question, answer);
  const same = (other: Json): boolean => of !== undefined && of === comparable(question, other);
  const ordered = (by: string, other: Json | undefined): boolean => {
    const comparable = typeof answer === typeof other && /number|string/.test(typeof answer);
    const sign = (answer as number) < (other as number) ? -1 : +((answer as number) > (other as number));
    return comparable && !!ORDERS[by]?.(sign);
  };
  if (operator in ORDERS) return ordered(operator, value);
  const words = WORDS[operator];
  if (words) return typeof answer === "string" && typeof value === "string" && answer[words](value);
  const list = Array.isArray(value) ? value : [];
  const has = parts(question, answer);
  const wanted = parts(question, value);
  const any = !!has && !!wanted && wanted.some((part) => has.includes(part));
  switch (operator) {
    case "equals":
      return same(value);
    case "not_equals":
      return !same(value);
    case "one_of":
      return list.some(same);
    case "includes_any":
      return any;
    case "includes_all":
      return !!has && !!wanted && wanted.every((part) => has.includes(part));
    case "includes_none":
      return !any;
    case "between":
      return list.length === 2 && ordered("gte", list[0]) && ordered("lte", list[1]);
    case "nps_bucket":
      return bucket(answer as number) === value;
    default:
      return operator === "answered";
  }
}

const bucket = (score: number): string => (score >= 9 ? "promoter" : score >= 7 ? "passive" : "detractor");

/** A value in the one form in which values of a question are compared; undefined: no value of such a question. */
function comparable({ type }: Pick<Question, "type">, value: Json): string | number | boolean | undefined {
  const typed = (wanted: string, fits = true) =>
    typeof value === wanted && fits ? (value as string | number | boolean) : undefined;
  switch (type) {
    case "consent":
      return typed("boolean");
    case "date":
      return typed("string", isDate(`${value}`));
    case "short_text":
    case "long_text":
      return typed("string");
    case "thumbs":
    case "link":
      return typed("string", /^(up|down|clicked)$/.test(`${value}`));
    case "ranking":
      return text(selected(value));
    case "matrix":
    case "single_choice":
    case "multiple_choice":
    case "picture_choice":
      return text(parts({ type }, value)?.sort());
    default:
      return typed("number");
  }
}

const text = (list: string[] | undefined): string | undefined => list && JSON.stringify(list);

/** The options that a value names: an id, a list of ids, or an answer. */
function selected(value: Json | undefined): string[] | undefined {
  if (typeof value === "string") return [value];
  if (Array.isArray(value)) return value.every((id) => typeof id === "string") ? [...(value as string[])] : undefined;
  if (!value || typeof value !== "object") return undefined;
  const { optionId, optionIds } = value;
  if (optionIds === undefined && optionId !== undefined) return typeof optionId === "string" ? [optionId] : undefined;
  if (optionId === undefined && Array.isArray(optionIds)) return selected(optionIds);
  return optionId === undefined && optionIds === undefined && "other" in value ? [] : undefined;
}

/** What can be included: ids of options, or pairs of row and column. */
function parts({ type }: Pick<Question, "type">, value: Json): string[] | undefined {
  if (type !== "matrix") return selected(value);
  if (!value || typeof value !== "object" || Array.isArray(value)) return undefined;
  return Object.entries(value).map((pair) => JSON.stringify(pair));
}

/** Whether a text is a day of the calendar, `2026-01-31`. */
export function isDate(day: string): boolean {
  // Browsers take the 30th of February for a day of March, and what is no date at all for none.
  const at = Date.parse(`${day}T00:00:00Z`) || 0;
  return /^\d{4}-\d\d-\d\d$/.test(day) && new Date(at).toISOString().slice(0, 10) === day;
}
