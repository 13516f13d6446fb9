// What a survey has brought: how far people came, what they answered, who they are; all of it, or of those alone who gave
// a certain answer.
import { downloadCsv, html, inApp, link, list, number, percent, route, setQuery, useEffect, useList, useResource, useState, whole, words } from "../lib/index.js";
import { Badge, Button, Copy, Day, Empty, ErrorView, Facts, Funnel, LinkButton, Loaded, Loading, Notice, PageHead, Select, Table, Tabs, Time } from "../ui/index.js";
import { flowOf } from "./survey/model.js";
import { answerInWords, answersSo, reportOf, wordsOf } from "./survey/report.js";

/** Attempts that are looked through before it is asked whether to go on. */
const AT_ONCE = 5_000;
const PAGE = 200;
const STATES = ["issued", "displayed", "started", "completed", "dismissed", "expired", "suppressed"];

/** @param {any} survey @param {string} id */
const questionOf = (survey, id) => flowOf(survey).questions.find((/** @type {any} */ question) => question.id == id);

/** A report of a question: its numbers, a chart with its table, and words. @param {{ report: any, survey: any }} props */
function QuestionReport({ report, survey }) {
  const { questionId, title, type, responses, skipped, nps, mean, distribution, texts } = report;
  const question = questionOf(survey, questionId);
  // The server has the most frequent ones first, and leaves out what is rare.
  const open = /^(number|date)$/.test(type);
  const bars = open ? [...distribution].sort((one, other) => (one.value < other.value ? -1 : 1)) : distribution;
  const rare = open && bars.reduce((/** @type {number} */ sum, /** @type {any} */ { count }) => sum + count, 0) < responses;
  return html`<section aria-label=${title}><h2>${title}</h2>
    <p><${Badge}>${words(type)}<//> ${number(responses)} answers, ${number(skipped)} skipped${typeof mean == "number" && `, mean ${mean.toFixed(2)}`}${nps && html`, <strong>NPS ${Math.round(nps.score)}</strong> <span class="hint">(${number(nps.promoters)} promoters, ${number(nps.passives)} passives, ${number(nps.detractors)} detractors)</span>`}</p>
    ${distribution.length > 0 && html`<${Funnel} title=${type == "ranking" ? `Ranked first: ${title}` : `Answers: ${title}`} head="Answer" name="Answers" steps=${bars.map((/** @type {any} */ { value, count, share }) => ({ label: wordsOf(value, question), value: count, share }))} />`}
    ${rare && html`<p class="hint">The ${bars.length} most frequent of ${number(responses)} answers.</p>`}
    ${texts?.length > 0 && html`<h3>Newest in words</h3><ul class="quotes">${texts.map((/** @type {any} */ text) => html`<li>${typeof text == "string" ? text : answerInWords(text, question)}</li>`)}</ul>`}
  </section>`;
}

/** All attempts with an answer: they are looked through page by page, and it is said how far. @param {{ survey: any, report: any, questionId: string, wanted: string }} props */
function OnlySome({ survey, report, questionId, wanted }) {
  const { from = "", to = "" } = route.value.query;
  const [state, setState] = useState(/** @type {{ found: any[], seen: number, cursor: string | null, done: boolean, error?: Error }} */ ({ found: [], seen: 0, cursor: null, done: false }));
  const [limit, setLimit] = useState(AT_ONCE);
  const [turn, setTurn] = useState(0);
  const type = report.perQuestion.find((/** @type {any} */ one) => one.questionId == questionId)?.type ?? "";
  // A day that is named is whole, as in the report of all.
  const before = to && (to.length == 10 ? new Date(Date.parse(to) + 86_400_000).toISOString() : to);
  const fits = (/** @type {any} */ attempt) => (!from || attempt.startedAt >= from) && (!before || attempt.startedAt < before) && answersSo(attempt, questionId, type, wanted);
  useEffect(() => {
    const controller = new AbortController();
    const run = async () => {
      let { found, seen, cursor, done } = state;
      while (!done && seen < limit && !controller.signal.aborted) {
        const page = await list(inApp(`/surveys/${survey.id}/attempts`), { limit: PAGE, cursor }, controller.signal);
        found = [...found, ...page.items.filter(fits)];
        seen += page.items.length;
        cursor = page.nextCursor;
        // The newest come first.
        done = !cursor || Boolean(from && page.items.at(-1)?.startedAt < from);
        setState({ found, seen, cursor, done });
      }
    };
    run().catch((error) => controller.signal.aborted || setState((now) => ({ ...now, error })));
    return () => controller.abort();
  }, [limit, turn]);
  const { found, seen, done, error } = state;
  const again = () => {
    setState({ ...state, error: undefined });
    setTurn(turn + 1);
  };
  const label = wordsOf(JSON.parse(wanted), questionOf(survey, questionId));
  return html`
    ${error ? html`<${ErrorView} error=${error} retry=${again} />` : html`<${Notice} kind=${done ? "good" : "info"} actions=${!done && seen >= limit && html`<${Button} onClick=${() => setLimit(limit + AT_ONCE)}>Go on<//>`}>
      ${number(found.length)} attempts answered “${label}”. ${done ? `All ${number(seen)} attempts were looked through.` : seen >= limit ? `${number(seen)} attempts were looked through, the newest first: there are more.` : `Looking: ${number(seen)} attempts so far…`}
    <//>`}
    ${found.length > 0 && reportOf(report.perQuestion, found).map((one) => html`<${QuestionReport} report=${one} survey=${survey} />`)}`;
}

/** Chooses those who gave an answer. @param {{ survey: any, report: any }} props */
function AnswerFilter({ survey, report }) {
  const { question = "", answer = "" } = route.value.query;
  const able = report.perQuestion.filter((/** @type {any} */ { distribution }) => distribution.length);
  const chosen = able.find((/** @type {any} */ { questionId }) => questionId == question);
  return html`
    <${Select} label="Only who answered" value=${question} options=${[["", "everybody"], ...able.map((/** @type {any} */ { questionId, title }) => [questionId, title])]} onChange=${(/** @type {string} */ id) => setQuery({ question: id, answer: "" })} />
    ${chosen && html`<${Select} label="with" value=${answer} options=${[["", "choose an answer"], ...chosen.distribution.map((/** @type {any} */ { value, count }) => [JSON.stringify(value), `${wordsOf(value, questionOf(survey, question))} (${number(count)})`])]} onChange=${(/** @type {string} */ text) => setQuery({ answer: text })} />`}`;
}

/** @param {{ survey: any, report: any }} props */
function Report({ survey, report }) {
  const { question = "", answer = "", from = "", to = "" } = route.value.query;
  const { totals, funnel, perQuestion } = report;
  const title = (/** @type {any} */ { step, questionId }) => (step == "question" ? perQuestion.find((/** @type {any} */ one) => one.questionId == questionId)?.title ?? questionId : step);
  const columns = [
    { title: "Step", render: title },
    { title: "Came to it", end: true, render: (/** @type {any} */ row) => number(row.reached) },
    { title: "Answered", end: true, render: (/** @type {any} */ row) => number(row.answered) },
    { title: "Skipped", end: true, render: (/** @type {any} */ row) => number(row.skipped) },
    { title: "Left here", end: true, render: (/** @type {any} */ row) => `${number(row.droppedOff)} (${percent(row.dropOffRate)})` },
  ];
  if (!totals.started && !totals.shown) {
    return html`<${Empty} title="There is no answer yet" actions=${from || to ? html`<${Button} onClick=${() => setQuery({ from: "", to: "" })}>All of the time<//>` : html`<${LinkButton} href=${link("/apps/:appId/why", route.value.params, { campaign: survey.id })}>Why is it not shown?<//>`}><p>${survey.status == "active" ? "It is active: results come as soon as somebody meets it." : "It is not active: nobody meets it."}</p><//>`;
  }
  return html`<div class="filters"><${AnswerFilter} survey=${survey} report=${report} /></div>
    ${question && answer ? html`<${OnlySome} key=${`${question} ${answer} ${from} ${to}`} survey=${survey} report=${report} questionId=${question} wanted=${answer} />` : html`
      <${Facts} facts=${[["Shown", number(totals.shown)], ["Started", number(totals.started)], ["Completed", number(totals.completed)], ["Abandoned", number(totals.abandoned)], ["Completion rate", percent(totals.completionRate)]]} />
      <${Funnel} title="How far they came" steps=${funnel.map((/** @type {any} */ step) => ({ label: title(step), value: step.reached }))} name="People" />
      <details><summary>Where they left</summary><${Table} label="Where they left" list=${whole(funnel)} columns=${columns} id=${(/** @type {any} */ row) => row.step + (row.questionId ?? "")} empty=${null} /></details>
      ${perQuestion.map((/** @type {any} */ one) => html`<${QuestionReport} report=${one} survey=${survey} />`)}`}`;
}

/** @param {any} row */
const Person = (row) => html`<a href=${link("/apps/:appId/people/:personId", { appId: route.value.params.appId ?? "", personId: row.subjectId })}>${row.externalId ?? row.anonymousId ?? row.subjectId}</a>`;

/** Attempts with their answers, a page at a time. @param {{ survey: any }} props */
function Attempts({ survey }) {
  const found = useList(inApp(`/surveys/${survey.id}/attempts`), { cursor: route.value.query.cursor });
  const columns = [
    { title: "Person", render: Person },
    { title: "State", render: (/** @type {any} */ row) => html`<${Badge} kind=${row.state == "completed" ? "good" : "info"}>${row.state}<//>` },
    { title: "Answers", render: (/** @type {any} */ row) => html`<ul class="bare">${row.answers.map((/** @type {any} */ answer) => {
      const question = questionOf(survey, answer.questionId);
      return html`<li><span class="hint">${question?.title ?? answer.questionId}</span> ${answerInWords(answer.answerValue, question)}</li>`;
    })}</ul>` },
    { title: "Version", end: true, render: (/** @type {any} */ row) => row.surveyVersion },
    { title: "Started", render: (/** @type {any} */ row) => html`<${Time} at=${row.startedAt} />` },
    { title: "Id", render: (/** @type {any} */ row) => html`<${Copy} short text=${row.attemptId} label="id of the attempt" />` },
  ];
  return html`<${Table} label="Attempts" list=${found} columns=${columns} id=${(/** @type {any} */ row) => row.attemptId} empty=${html`<${Empty} title="Nobody has begun yet"><p>An attempt begins with the first answer.</p><//>`} />`;
}

/** @param {{ survey: any, name: string }} props */
function Recipients({ survey, name }) {
  const { state = "", cursor } = route.value.query;
  const path = inApp(`/surveys/${survey.id}/recipients`);
  const found = useList(path, { state, cursor });
  const columns = [
    { title: "Person", render: Person },
    { title: "State", render: (/** @type {any} */ row) => html`<${Badge} kind=${row.state == "completed" ? "good" : row.state == "suppressed" ? "warn" : "info"}>${row.state}<//>${row.suppressedBy && ` ${words(row.suppressedBy)}`}` },
    { title: "At", render: (/** @type {any} */ row) => html`<${Time} at=${row.at} />` },
  ];
  const why = (/** @type {any} */ row) => html`<${LinkButton} href=${link("/apps/:appId/why", route.value.params, { campaign: survey.id, subject: row.subjectId })} rest=${{ "aria-label": `Why? ${row.externalId ?? row.anonymousId ?? row.subjectId}` }}>Why?<//>`;
  return html`<div class="filters"><${Select} label="State" value=${state} options=${[["", "all"], ...STATES.map((one) => [one, one])]} onChange=${(/** @type {string} */ next) => setQuery({ state: next })} />
      <p class="level"><${Button} onClick=${() => downloadCsv(path, { state }, `${name}-recipients.csv`)}>All of the filter as CSV<//></p></div>
    <${Table} label="Recipients" list=${found} columns=${columns} id=${(/** @type {any} */ row) => row.subjectId + row.at} actions=${why} empty=${html`<${Empty} title="Nobody so far"><p>Whom the survey was issued to, or kept from, stands here.</p><//>`} />`;
}

/** @param {{ params: Record<string, string>, query: Record<string, string> }} props */
export default function SurveyResults({ params, query }) {
  const { from = "", to = "" } = query;
  const path = inApp(`/surveys/${params.surveyId}`);
  const survey = useResource(path);
  const report = useResource(`${path}/analytics`, { from, to });
  if (survey.error && !survey.data) return html`<${ErrorView} error=${survey.error} retry=${survey.reload} />`;
  if (!survey.data) return html`<${Loading} />`;
  const name = survey.data.name.replace(/[^\w-]+/g, "-").toLowerCase();
  const tabs = (/** @type {any} */ data) => [
    { id: "report", title: "Results", render: () => html`<${Report} survey=${survey.data} report=${data} />` },
    { id: "attempts", title: "Answers", render: () => html`<${Attempts} survey=${survey.data} />` },
    { id: "recipients", title: "Recipients", render: () => html`<${Recipients} survey=${survey.data} name=${name} />` },
  ];
  const actions = html`<${Button} onClick=${report.reload}>Reload<//><${Button} onClick=${() => downloadCsv(`${path}/responses`, { from, to }, `${name}-answers.csv`)}>All answers as CSV<//>`;
  const day = (/** @type {string} */ label, /** @type {string} */ member, /** @type {string} */ value) => html`<${Day} label=${label} value=${value} onInput=${(/** @type {string} */ next) => setQuery({ [member]: next }, { replace: true })} />`;
  return html`<${PageHead} title=${`Results: ${survey.data.name}`} back=${{ href: link("/apps/:appId/surveys/:surveyId", params), title: "The survey" }} actions=${actions} />
    <div class="filters">${day("From", "from", from)}${day("To", "to", to)}<p class="hint level">Days in UTC. They hold for the results and the CSV of answers.</p></div>
    <${Loaded} of=${report}>${(/** @type {any} */ data) => html`<${Tabs} label="Results" tabs=${tabs(data)} />`}<//>`;
}
