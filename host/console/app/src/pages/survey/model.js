// What a survey is made of: types of questions, ids, texts for translators, the ways of a flow.
import { put } from "../../ui/fields.js";
import { operatorName } from "../../ui/filter.js";

/** @typedef {Record<string, any>} Question */

/** What the server adds to what is written; the status is changed by its own buttons. */
const ADDED = ["id", "appId", "version", "createdAt", "updatedAt", "activatedAt", "status"];

/** What people wrote of a survey. @param {Record<string, any>} survey */
export const written = (survey) => Object.fromEntries(Object.entries(survey).filter(([name]) => !ADDED.includes(name)));

/** What is wrong with JSON that is to be a survey: what the pages can't show. @param {any} survey @returns {string | undefined} */
export function wrong(survey) {
  const isObject = (/** @type {any} */ value) => value && typeof value == "object" && !Array.isArray(value);
  if (!isObject(survey)) return "A survey is an object.";
  if (!isObject(survey.flow ?? {})) return "flow has to be an object.";
  const name = ["questions", "branches", "endScreens"].find((name) => {
    const part = survey.flow?.[name];
    return part !== undefined && !(Array.isArray(part) && part.every(isObject));
  });
  return name && `flow.${name} has to be a list of objects.`;
}

/** An id that nothing has, and nothing that was deleted had: answers and translations are kept under ids. @param {string} prefix */
export const freshId = (prefix) => `${prefix}_${crypto.randomUUID().slice(0, 8)}`;

const items = (/** @type {string} */ prefix, /** @type {string[]} */ labels) => labels.map((label) => ({ id: freshId(prefix), label }));
const options = () => ({ options: items("o", ["First", "Second"]) });

/** Types of questions: their names, and what a new one has. @type {Record<string, [string, () => Question]>} */
export const TYPES = {
  nps: ["Recommendation, 0 to 10 (NPS)", () => ({ lowLabel: "Not at all likely", highLabel: "Very likely" })],
  rating: ["Rating", () => ({ scale: 5, display: "star" })],
  csat: ["Satisfaction (CSAT)", () => ({ scale: 5, display: "emoji" })],
  ces: ["Effort (CES)", () => ({ scale: 7, lowLabel: "Very difficult", highLabel: "Very easy" })],
  thumbs: ["Thumbs up or down", () => ({})],
  single_choice: ["One of some", options],
  multiple_choice: ["Some of some", options],
  picture_choice: ["Pictures", () => ({ options: items("o", ["First", "Second"]).map((one) => ({ ...one, imageUrl: "https://" })) })],
  ranking: ["An order", options],
  matrix: ["Rows and columns", () => ({ rows: items("r", ["First row", "Second row"]), columns: items("c", ["Bad", "Good"]) })],
  short_text: ["A line of text", () => ({})],
  long_text: ["Text", () => ({})],
  number: ["A number", () => ({})],
  date: ["A date", () => ({})],
  consent: ["Consent", () => ({ label: "I agree" })],
  contact_info: ["Contact details", () => ({ fields: [{ id: "name", label: "Name", required: false }, { id: "email", label: "E-mail", required: true }] })],
  statement: ["Only a text", () => ({ buttonLabel: "Go on" })],
  link: ["A link", () => ({ buttonLabel: "Open", url: "https://example.com" })],
};

export const SCALES = /** @type {Record<string, number[]>} */ ({ rating: [3, 4, 5, 6, 7, 10], csat: [5], ces: [5, 7] });
export const CHOICES = ["single_choice", "multiple_choice", "ranking", "picture_choice"];

/** What limits answers, at the question or under `validation`. @type {Record<string, string[]>} */
export const LIMITS = { multiple_choice: ["minSelections", "maxSelections"], short_text: ["minLength", "maxLength", "format"], long_text: ["minLength", "maxLength", "format"], number: ["min", "max", "step"], date: ["min", "max"] };

/** A new question. @param {string} [type] @returns {Question} */
export const newQuestion = (type = "single_choice") => ({ id: freshId("q"), type, title: "A question", required: false, ...TYPES[type]?.[1]() });

/** The same question with another type: it keeps what both types have. @param {Question} question @param {string} type @returns {Question} */
export function turned(question, type) {
  const { id, title, description, required, validation, ...extras } = question;
  const base = { id, type, title, description, required, validation: validation?.message ? { message: validation.message } : undefined };
  const kept = CHOICES.includes(question.type) && CHOICES.includes(type)
    ? { options: extras.options.map((/** @type {any} */ one) => (type == "picture_choice" ? { imageUrl: "https://", ...one } : { id: one.id, label: one.label })) }
    : {};
  const all = { ...base, ...TYPES[type]?.[1](), ...kept };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}

/** A survey to begin with. */
export const newSurvey = () => ({
  name: "",
  mode: "triggered",
  priority: 0,
  trigger: { kind: "event", eventName: "", delaySeconds: 0, occurrence: { mode: "every" } },
  flow: {
    questions: [{ ...newQuestion("nps"), id: "q1", title: "How likely are you to recommend us?", required: true }],
    branches: [],
    endScreens: [{ id: "thanks", title: "Thank you!", button: { label: "Close", action: "close" } }],
    progressStyle: "bar",
    backNavigation: true,
  },
});

/** What of a flow people read. @param {any} flow */
export const spokenOf = ({ questions, endScreens }) => ({ questions, endScreens });

/** A flow with all its parts. @param {any} survey */
export const flowOf = ({ flow }) => ({ questions: [], branches: [], endScreens: [], ...flow });

/**
 * A survey with another id of a question, or of something in it, wherever it is named.
 * @param {any} survey
 * @param {number} index of the question
 * @param {string} to
 * @param {string} [member] of the question: options, rows, columns, fields
 * @param {number} [place] in the member
 */
export function renamed(survey, index, to, member, place = 0) {
  const flow = flowOf(survey);
  const question = flow.questions[index];
  const { id } = question;
  const from = member ? question[member][place].id : id;
  const now = (/** @type {any} */ one) => (one === from ? to : one);
  /** The answer in a condition: options; of a matrix, columns by their rows. @param {any} value @returns {any} */
  const answer = (value) => {
    if (Array.isArray(value)) return value.map(now);
    if (!value || typeof value != "object") return now(value);
    return Object.fromEntries(Object.entries(value).map(([row, column]) => (member == "rows" ? [now(row), column] : [row, now(column)])));
  };
  const named = (/** @type {string} */ key, /** @type {any} */ one) => {
    if (!member) return key == "questionId" || key == "from" ? now(one) : one;
    return one?.questionId === id && "value" in one ? { ...one, value: answer(one.value) } : one;
  };
  const changed = {
    ...flow,
    questions: flow.questions.with(index, member ? put(question, member, question[member].with(place, { ...question[member][place], id: to })) : { ...question, id: to }),
    branches: JSON.parse(JSON.stringify(flow.branches), named),
  };
  if (!member && flow.startQuestionId == from) changed.startQuestionId = to;
  const { localization } = survey;
  if (!localization) return { ...survey, flow: changed };
  const stem = member ? `questions/${id}/${member}/` : "questions/";
  const path = (/** @type {string} */ name) => (`${name}/`.startsWith(`${stem}${from}/`) ? stem + to + name.slice(stem.length + from.length) : name);
  const translations = Object.fromEntries(Object.entries(localization.translations ?? {}).map(([locale, texts]) => [locale, Object.fromEntries(Object.entries(/** @type {any} */ (texts)).map(([name, one]) => [path(name), one]))]));
  return { ...survey, flow: changed, localization: { ...localization, translations } };
}

const WORDS = ["title", "description", "label", "lowLabel", "highLabel", "placeholder", "body", "buttonLabel", "message"];

/**
 * The texts that people read, by the paths that translations have: members by name, items by id.
 * @param {any} parts what has texts: the questions and end screens of a flow, or a message
 * @returns {{ path: string, text: string }[]}
 */
export function textsOf(parts) {
  /** @type {{ path: string, text: string }[]} */
  const found = [];
  const walk = (/** @type {any} */ value, /** @type {string} */ path) => {
    for (const [name, one] of Object.entries(value)) {
      if (Array.isArray(one)) for (const item of one) item?.id && walk(item, `${path}${name}/${item.id}/`);
      else if (one && typeof one == "object") walk(one, `${path}${name}/`);
      else if (typeof one == "string" && one && WORDS.includes(name)) found.push({ path: path + name, text: one });
    }
  };
  walk(parts, "");
  return found;
}

const normal = (/** @type {string} */ locale) => locale.replaceAll("_", "-").toLowerCase();

/** A locale and its languages without region and script. @param {string} locale */
function fallbacks(locale) {
  const parts = normal(locale).split("-");
  return parts.map((_, index) => parts.slice(0, parts.length - index).join("-"));
}

/**
 * Texts in a locale, as the server's own rule has it: the nearest translation, then the default's.
 * @template T
 * @param {any} localization
 * @param {T} parts a flow, or a message
 * @param {string} locale
 * @returns {T}
 */
export function localized(localization, parts, locale) {
  if (!localization) return parts;
  const copy = structuredClone(parts);
  const chosen = [...new Set([...fallbacks(locale), ...fallbacks(localization.defaultLocale ?? "")])].reverse();
  for (const wanted of chosen) {
    for (const [name, texts] of Object.entries(localization.translations ?? {})) {
      if (normal(name) == wanted) for (const [path, text] of Object.entries(/** @type {any} */ (texts))) place(copy, path.split("/"), text);
    }
  }
  return copy;
}

/** Puts a text at a path, if there is one to be replaced. @param {any} root @param {string[]} path @param {any} text */
function place(root, path, text) {
  let value = root;
  for (const segment of path.slice(0, -1)) value = Array.isArray(value) ? value.find(({ id }) => id == segment) : value?.[segment];
  const last = path.at(-1) ?? "";
  // The path of an item is that of its label.
  if (Array.isArray(value)) [value] = [value.find(({ id }) => id == last)];
  const name = typeof value?.[last] == "string" ? last : "label";
  if (typeof value?.[name] == "string" && text) value[name] = text;
}

/**
 * Where a question leads: its branches, and, unless one of them always holds, what follows.
 * @param {any} flow
 * @param {number} index
 * @returns {{ when: any, to: any, rest: boolean }[]} rest: what follows where no branch holds
 */
export function waysFrom(flow, index) {
  const ways = [];
  for (const branch of flow.branches.filter((/** @type {any} */ { from }) => from == flow.questions[index].id)) {
    ways.push({ when: branch.when ?? null, to: branch.to, rest: false });
    if (!branch.when) return ways;
  }
  const next = flow.questions[index + 1];
  const screen = flow.endScreens[0];
  ways.push({ when: null, to: next ? { questionId: next.id } : screen ? { endScreenId: screen.id } : null, rest: true });
  return ways;
}

/** Ids of questions that nothing leads to, and of those that lead back. @param {any} flow */
export function troubles(flow) {
  const place = (/** @type {string} */ id) => flow.questions.findIndex((/** @type {Question} */ question) => question.id == id);
  /** @type {Map<number, "open" | "done">} */
  const states = new Map();
  /** @type {Set<string>} */
  const circles = new Set();
  const walk = (/** @type {number} */ index) => {
    states.set(index, "open");
    for (const { to } of waysFrom(flow, index)) {
      const next = to?.questionId === undefined ? -1 : place(to.questionId);
      if (next < 0) continue;
      if (states.get(next) == "open") circles.add(flow.questions[next].id);
      else if (!states.has(next)) walk(next);
    }
    states.set(index, "done");
  };
  if (flow.questions.length) walk(Math.max(0, place(flow.startQuestionId)));
  /** @type {Question[]} */
  const lost = flow.questions.filter((/** @type {Question} */ _, /** @type {number} */ index) => !states.has(index));
  return { circles, lost: new Set(lost.map(({ id }) => id)) };
}

/** A condition in words. @param {any} condition @param {any} flow @returns {string} */
export function said(condition, flow) {
  if (!condition) return "always";
  if (condition.all) return condition.all.map((/** @type {any} */ one) => said(one, flow)).join(" and ");
  if (condition.any) return `(${condition.any.map((/** @type {any} */ one) => said(one, flow)).join(" or ")})`;
  const question = flow.questions.find((/** @type {Question} */ { id }) => id == condition.questionId);
  const label = (/** @type {any} */ value) => question?.options?.find((/** @type {any} */ { id }) => id == value)?.label ?? (typeof value == "object" ? JSON.stringify(value) : String(value));
  const { operator = "", value } = condition;
  const shown = value === undefined ? "" : ` ${(Array.isArray(value) ? value : [value]).map(label).join(", ")}`;
  return `${question?.title ?? condition.questionId} ${operatorName(operator)}${shown}`;
}

/** The name of a target. @param {any} to @param {any} flow @returns {string} */
export function nameOf(to, flow) {
  if (!to) return "the end";
  const found = to.questionId !== undefined ? flow.questions.find((/** @type {any} */ { id }) => id == to.questionId) : flow.endScreens.find((/** @type {any} */ { id }) => id == to.endScreenId);
  return found?.title ?? `${to.questionId ?? to.endScreenId} (missing)`;
}

/** The survey with a change of its flow. @param {any} survey @param {string} name @param {any} value */
export const withFlow = (survey, name, value) => ({ ...survey, flow: put(flowOf(survey), name, value) });
