// One timeline of a person: events, what was decided about them, and messages. Each kind is a list of the server with
// cursors of its own; they are merged here page by page, and where a page begins in each is in the address.
import { can, html, inApp, link, list, number, post, route, setQuery, useLoaded, useState, whole, words } from "../lib/index.js";
import { Badge, Button, Checkbox, Copy, Empty, Facts, Failed, Json, LinkButton, Loaded, Notice, Table, Time } from "../ui/index.js";
import { Entries, Entry, EventEntry } from "./entries.js";
import { place, useCampaigns } from "./find.js";

const PAGE = 50;

/**
 * @typedef {object} Source
 * @property {string} id
 * @property {string} title
 * @property {(person: any) => { path: string, query: import("../lib/api.js").Query }} list
 * @property {(item: any) => string} at
 * @property {(item: any) => string} key
 */

/** @type {Source[]} */
const SOURCES = [
  { id: "events", title: "Events", list: (person) => ({ path: `${place(person).path}/events`, query: place(person).query }), at: (item) => item.timestamp, key: (item) => item.eventId },
  { id: "decisions", title: "Decisions", list: ({ subjectId }) => ({ path: inApp("/decisions"), query: { subjectId } }), at: (item) => item.at, key: (item) => item.decisionId },
  { id: "messages", title: "Push messages", list: ({ subjectId }) => ({ path: inApp("/push/deliveries"), query: { subjectId } }), at: (item) => item.createdAt, key: (item) => item.deliveryId },
  { id: "shown", title: "Surveys and in-app", list: ({ subjectId }) => ({ path: inApp("/instructions"), query: { subjectId } }), at: (item) => item.createdAt, key: (item) => item.instructionId },
  { id: "answers", title: "Answers", list: ({ subjectId }) => ({ path: inApp("/attempts"), query: { subjectId } }), at: (item) => item.startedAt, key: (item) => item.attemptId },
];

/** @typedef {Record<string, [string | null, number]>} Begin where a page begins: in each list its cursor, and how many of that page were shown already; a null cursor with -1: nothing is left */

/**
 * The newest of all lists, and where the next page begins.
 * @param {Source[]} sources
 * @param {any} person
 * @param {Begin} begin
 * @param {AbortSignal} signal
 */
async function merged(sources, person, begin, signal) {
  const pages = await Promise.all(sources.map(async (source) => {
    const [cursor, skip] = begin[source.id] ?? [null, 0];
    if (skip < 0) return { source, items: [], taken: 0, cursor, skip, next: null };
    const { path, query } = source.list(person);
    const page = await list(path, { ...query, limit: PAGE, cursor }, signal);
    return { source, items: page.items.slice(skip), taken: 0, cursor, skip, next: page.nextCursor };
  }));
  const rows = [];
  while (rows.length < PAGE) {
    // What is older than the end of a page that goes on may not come before the rest of that list.
    if (pages.some(({ items, taken, next }) => taken == items.length && next)) break;
    const left = pages.filter(({ items, taken }) => taken < items.length);
    const at = (/** @type {typeof pages[0]} */ { source, items, taken }) => source.at(items[taken]);
    const newest = left.reduce((/** @type {typeof pages[0] | undefined} */ best, page) => (best && at(best) >= at(page) ? best : page), undefined);
    if (!newest) break;
    rows.push({ source: newest.source, item: newest.items[newest.taken++] });
  }
  const after = pages.map(({ source, items, taken, cursor, skip, next }) => [source.id, taken < items.length ? [cursor, skip + taken] : [next, next ? 0 : -1]]);
  const more = pages.some(({ items, taken, next }) => taken < items.length || next);
  return { rows, next: more ? JSON.stringify(Object.fromEntries(after)) : null };
}

/** @param {string | undefined} text @returns {Begin} */
function read(text) {
  try {
    return JSON.parse(text ?? "{}");
  } catch {
    return {};
  }
}

/** What a plugin decided about events of the person. @param {{ decision: any, subjectId: string, nameOf: (id: string) => string }} props */
function Decision({ decision, subjectId, nameOf }) {
  const { params } = route.value;
  const [again, setAgain] = useState(/** @type {any} */ (undefined));
  const { plugin, campaigns, items, fired } = decision;
  const run = async () => setAgain(await post(inApp(`/decisions/${decision.decisionId}/rerun`)));
  return html`<${Entry} title=${fired ? `Fired ${number(fired)}` : "Nothing fired"} about=${`${plugin.name} ${plugin.version} decided about ${number(items)} events or timers`} at=${decision.at}>
    <${Facts} facts=${[["Decision id", html`<${Copy} text=${decision.decisionId} label="id of the decision" />`], ["Plugin", `${plugin.name} ${plugin.version}`], ["Its digest", html`<${Copy} short text=${plugin.digest} label="digest" />`]]} />
    <ul>${campaigns.map((/** @type {any} */ { campaignId, version }) => html`<li><a href=${link("/apps/:appId/why", params, { subject: subjectId, campaign: campaignId })}>Why? ${nameOf(campaignId)}</a>, version ${version}</li>`)}</ul>
    ${can("editor") && html`<p><${Button} onClick=${run}>Run the decision again<//></p>`}
    ${again && html`<${Again} again=${again} />`}
  <//>`;
}

/** What came of making a decision again. @param {{ again: any }} props */
export const Again = ({ again: { same, differences, newQuestions, recorded, rerun } }) => html`
  <${Notice} kind=${same ? "good" : "warn"}>${same ? "The same was decided again." : `Something else was decided: ${number(differences.length)} differences.`} Nothing took effect.
    ${newQuestions > 0 && ` The plugin asked ${number(newQuestions)} questions that it had not asked then: it does not always decide alike.`}<//>
  ${!same && html`<${Table} label="Differences" list=${whole(differences)} id=${(/** @type {any} */ row) => row.pointer} columns=${[
    { title: "Where", render: (/** @type {any} */ row) => html`<code>${row.pointer || "/"}</code>` },
    { title: "Then", render: (/** @type {any} */ row) => html`<code>${JSON.stringify(row.expected)}</code>` },
    { title: "Now", render: (/** @type {any} */ row) => html`<code>${JSON.stringify(row.actual)}</code>` },
  ]} empty=${null} />`}
  <details class="numbers"><summary>Both decisions</summary><div class="sides"><div><h3>Then</h3><${Json} value=${recorded} label="Decided then" /></div><div><h3>Now</h3><${Json} value=${rerun} label="Decided now" /></div></div></details>`;

/** A push message. @param {{ delivery: any, nameOf: (id: string) => string }} props */
const Delivery = ({ delivery, nameOf }) => html`<${Entry} title=${nameOf(delivery.campaignId)} at=${delivery.createdAt}
    about=${html`push message <${Badge} kind=${["failed", "bounced"].includes(delivery.status) ? "bad" : "info"}>${words(delivery.status)}<//>${delivery.reason && ` ${words(delivery.reason)}`}${delivery.test && " · test"}`}>
  <${Facts} facts=${[["Delivery id", html`<${Copy} text=${delivery.deliveryId} label="delivery id" />`], ["Attempts", number(delivery.attempts)], ["Variant", delivery.variantId]]} />
  <ol>${delivery.transitions.map((/** @type {any} */ { status, at }) => html`<li>${words(status)}, <${Time} at=${at} /></li>`)}</ol>
  <${Json} value=${delivery.content} label="What was sent" />
<//>`;

/** What an SDK was told to show. @param {{ shown: any, nameOf: (id: string) => string }} props */
const Shown = ({ shown, nameOf }) => html`<${Entry} title=${nameOf(shown.campaignId)} at=${shown.createdAt}
    about=${html`${words(shown.kind)} <${Badge} kind="info">${words(shown.suppressedBy ? "suppressed" : shown.status)}<//>${shown.suppressedBy && ` ${words(shown.suppressedBy)}`}`}>
  <${Facts} facts=${[["Instruction id", html`<${Copy} text=${shown.instructionId} label="instruction id" />`], ["Version", shown.campaignVersion], ["Triggered by", shown.triggerName], ["Displayed", shown.displayedAt && html`<${Time} at=${shown.displayedAt} />`], ["Since", html`<${Time} at=${shown.statusAt} />`]]} />
<//>`;

/** An attempt at a survey. @param {{ attempt: any, nameOf: (id: string) => string }} props */
const Attempt = ({ attempt, nameOf }) => html`<${Entry} title=${nameOf(attempt.surveyId)} at=${attempt.startedAt}
    about=${html`${number(attempt.answers.length)} answers <${Badge} kind="info">${words(attempt.state)}<//>`}>
  <${Facts} facts=${[["Attempt id", html`<${Copy} text=${attempt.attemptId} label="attempt id" />`], ...attempt.answers.map((/** @type {any} */ { questionId, answerValue }) => [questionId, JSON.stringify(answerValue)])]} />
<//>`;

/** @param {{ person: any }} props */
export function Timeline({ person }) {
  const { path, query } = route.value;
  const campaigns = useCampaigns();
  const { nameOf } = campaigns;
  const hidden = (query.without ?? "").split(",").filter(Boolean);
  const sources = SOURCES.filter(({ id }) => !hidden.includes(id));
  const found = useLoaded(`${person.subjectId} ${hidden} ${query.at ?? ""}`, (signal) => merged(sources, person, read(query.at), signal));
  const toggle = (/** @type {string} */ id) => (/** @type {boolean} */ shown) =>
    setQuery({ without: (shown ? hidden.filter((one) => one != id) : [...hidden, id]).join(), at: "" }, { replace: true });
  const rows = (/** @type {any} */ { source, item }) => {
    const key = `${source.id} ${source.key(item)}`;
    if (source.id == "events") return html`<${EventEntry} key=${key} event=${item} subjectId=${person.subjectId} inTimeline />`;
    if (source.id == "decisions") return html`<${Decision} key=${key} decision=${item} subjectId=${person.subjectId} nameOf=${nameOf} />`;
    if (source.id == "shown") return html`<${Shown} key=${key} shown=${item} nameOf=${nameOf} />`;
    if (source.id == "answers") return html`<${Attempt} key=${key} attempt=${item} nameOf=${nameOf} />`;
    return html`<${Delivery} key=${key} delivery=${item} nameOf=${nameOf} />`;
  };
  return html`<div class="filters" role="group" aria-label="What is shown">${SOURCES.map(({ id, title }) => html`<${Checkbox} label=${title} checked=${!hidden.includes(id)} onChange=${toggle(id)} />`)}</div>
    <${Failed} of=${[campaigns]} />
    <${Loaded} of=${found}>${(/** @type {any} */ data) => html`
      ${data.rows.length ? html`<${Entries} label="Timeline">${data.rows.map(rows)}<//>` : html`<${Empty} title="Nothing is here"><p>Events, decisions, messages and answers of this person show here.</p><//>`}
      <nav class="pages" aria-label="Pages of the timeline">
        <span class="hint"></span>
        ${query.at && html`<${LinkButton} href=${link(path, {}, { ...query, at: "" })}>Newest<//>`}
        ${data.next && html`<${LinkButton} href=${link(path, {}, { ...query, at: data.next })}>Older<//>`}
      </nav>`}<//>`;
}
