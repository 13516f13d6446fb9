// Answers as numbers: what a distribution counts of each, and a report of some attempts alone.

/** What a distribution counts of an answer, as the server's own does. @param {string} type @param {any} value @returns {any[]} */
export function valuesOf(type, value) {
  if (value === null || value === undefined || /_text$|^contact_info$|^statement$/.test(type)) return [];
  if (type == "single_choice") return [value.optionId ?? "other"];
  if (type == "multiple_choice" || type == "picture_choice") return [...(value.optionIds ?? []), ...(value.other === undefined ? [] : ["other"])];
  if (type == "ranking") return (value.optionIds ?? []).slice(0, 1);
  if (type == "matrix") return Object.entries(value).map(([row, column]) => ({ [row]: column }));
  return [value];
}

/** A counted value in words. @param {any} value @param {any} question of the flow, if it is there still */
export function wordsOf(value, question) {
  const label = (/** @type {any[] | undefined} */ items, /** @type {any} */ id) => items?.find((one) => one.id === id)?.label ?? String(id);
  if (value && typeof value == "object") return Object.entries(value).map(([row, column]) => `${label(question?.rows, row)}: ${label(question?.columns, column)}`).join("; ");
  if (value === "other" && !question?.options?.some((/** @type {any} */ { id }) => id == "other")) return "Other";
  return question?.options ? label(question.options, value) : String(value);
}

/** A whole answer in words. @param {any} value @param {any} question */
export function answerInWords(value, question) {
  if (value === null || value === undefined) return "skipped";
  if (typeof value != "object") return String(value);
  if (question?.type == "contact_info") return Object.values(value).join(", ");
  if (question?.type == "matrix") return wordsOf(value, question);
  const ids = value.optionIds ?? (value.optionId === undefined ? [] : [value.optionId]);
  return [...ids.map((/** @type {any} */ id) => wordsOf(id, question)), ...(value.other ? [`Other: ${value.other}`] : [])].join(question?.type == "ranking" ? " > " : ", ") || JSON.stringify(value);
}

/** Whether an attempt has an answer that counts as a value. @param {any} attempt @param {string} questionId @param {string} type @param {string} wanted as JSON */
export const answersSo = (attempt, questionId, type, wanted) =>
  attempt.answers.some((/** @type {any} */ answer) => answer.questionId == questionId && valuesOf(type, answer.answerValue).some((value) => JSON.stringify(value) == wanted));

/**
 * The reports of questions for some attempts alone. What may be answered is known from the report of all.
 * @param {any[]} perQuestion of the report of all
 * @param {any[]} attempts
 */
export function reportOf(perQuestion, attempts) {
  return perQuestion.map((all) => {
    const given = attempts.flatMap(({ answers }) => answers.filter((/** @type {any} */ one) => one.questionId == all.questionId).map((/** @type {any} */ one) => one.answerValue));
    // Who is past a statement has seen it, whatever the SDK says.
    const answers = given.filter((value) => value !== null || all.type == "statement");
    /** @type {Map<string, number>} */
    const counts = new Map(all.distribution.map((/** @type {any} */ { value }) => [JSON.stringify(value), 0]));
    for (const value of answers.flatMap((one) => valuesOf(all.type, one))) counts.set(JSON.stringify(value), (counts.get(JSON.stringify(value)) ?? 0) + 1);
    const of = answers.length || 1;
    const numbers = all.mean === undefined ? [] : answers.filter((value) => typeof value == "number");
    const many = (/** @type {(score: number) => boolean} */ fits) => answers.filter(fits).length;
    const [promoters, detractors] = [many((score) => score >= 9), many((score) => score <= 6)];
    return {
      ...all,
      responses: answers.length,
      skipped: given.length - answers.length,
      distribution: [...counts].map(([text, count]) => ({ value: JSON.parse(text), count, share: count / of })),
      nps: all.nps && { score: (100 * (promoters - detractors)) / of, promoters, detractors, passives: answers.length - promoters - detractors },
      mean: numbers.length ? numbers.reduce((sum, value) => sum + value, 0) / numbers.length : undefined,
      texts: all.texts && answers.map((value) => answerInWords(value, all)).slice(0, 20),
    };
  });
}
