// Events of all people: as they come, and by time. What a filter does not see is said.
import { html, inApp, link, percent, route, setQuery, useEvents, useList } from "../lib/index.js";
import { Badge, Button, Day, Empty, ErrorView, LinkButton, Loaded, Notice, PageHead, Pages, Search, Select, Tabs } from "../ui/index.js";
import { Entries, EventEntry } from "./entries.js";

const MOST = 500;

/** @param {string} name */
const set = (name) => (/** @type {string} */ value) => setQuery({ [name]: value }, { replace: true });

/** The members of the filter that are in the URL. @param {string[]} names */
const filter = (names) => Object.fromEntries(names.map((name) => [name, route.value.query[name]]));

/** @param {any} event */
const key = (event) => `${event.eventId ?? event.subjectId} ${event.receivedAt} ${event.verdict}`;

/** @param {{ label: string, items: any[] }} props */
const List = ({ label, items }) => html`<${Entries} label=${label}>${items.map((event) => html`<${EventEntry} key=${key(event)} event=${event} subjectId=${event.subjectId} />`)}<//>`;

/** @type {Record<string, any>} */
const STATES = {
  connecting: html`<${Badge}>connecting<//>`,
  open: html`<${Badge} kind="good">live<//>`,
  waiting: html`<${Badge} kind="warn">interrupted, trying again<//>`,
  refused: html`<${Badge} kind="bad">refused<//>`,
  paused: html`<${Badge} kind="warn">paused<//>`,
};

/** As they come. */
function Live() {
  const stream = useEvents(inApp("/events/stream"), filter(["name", "excludeName", "verdict"]), { most: MOST });
  const { items, state, error, rate, paused } = stream;
  return html`<div class="head">
      <p role="status">${STATES[state]} ${items.length >= MOST ? `The newest ${MOST} are held here.` : ""}</p>
      <div class="actions">
        <${Button} onClick=${paused ? stream.resume : stream.pause}>${paused ? "Go on" : "Pause"}<//>
        <${Button} onClick=${stream.clear} disabled=${!items.length}>Clear<//>
      </div>
    </div>
    ${rate !== undefined && html`<${Notice} kind="warn">More than 50 events a second came: this is a sample, lately of ${percent(rate)}. All of them are under <a href=${link(route.value.path, {}, { ...route.value.query, tab: "feed" })}>By time</a>.<//>`}
    ${error && html`<${ErrorView} error=${error} />`}
    ${items.length
      ? html`<${List} label="Live events" items=${items} />`
      : html`<${Empty} title=${paused ? "Paused" : "Waiting for events"} actions=${html`<${LinkButton} href=${link("/apps/:appId/start", route.value.params)}>How to send one<//>`}><p>Events show here as they come. What came before is under “By time”.</p><//>`}
    <p class="hint">It begins when this page is opened, and shows nothing earlier. While it is paused nothing is lost: it goes on after the last event that was shown, as far as the server still has it.</p>`;
}

/** By time. */
function Feed() {
  const { query } = route.value;
  const list = useList(inApp("/events"), { ...filter(["name", "excludeName", "verdict", "from", "to"]), cursor: query.cursor });
  const filtered = ["name", "excludeName", "verdict", "from", "to"].some((name) => query[name]);
  const empty = filtered
    ? html`<${Empty} title="No event is like that" actions=${html`<${Button} onClick=${() => setQuery({ name: "", excludeName: "", verdict: "", from: "", to: "" })}>Show all<//>`}><p>A name must be the whole name, exactly as it was sent.</p><//>`
    : html`<${Empty} title="There is no event yet" actions=${html`<${LinkButton} kind="primary" href=${link("/apps/:appId/start", route.value.params)}>Send the first<//>`} />`;
  return html`<div class="filters">
      <${Day} label="Received from (UTC)" value=${query.from} onInput=${set("from")} />
      <${Day} label="Received to (UTC)" value=${query.to} onInput=${set("to")} />
      <p><${Button} onClick=${list.reload}>Look again<//></p>
    </div>
    <${Loaded} of=${list}>${(/** @type {any} */ data) => html`${data.items.length ? html`<${List} label="Events" items=${data.items} />` : empty}<${Pages} label="events" data=${data} />`}<//>`;
}

export default function Events() {
  const { query } = route.value;
  return html`<${PageHead} title="Events" />
    <div class="filters">
      <${Search} label="Only the name" value=${query.name ?? ""} onInput=${set("name")} />
      <${Search} label="Without the name" value=${query.excludeName ?? ""} onInput=${set("excludeName")} />
      <${Select} label="Verdict" value=${query.verdict ?? ""} options=${[["", "accepted and rejected"], "accepted", "rejected"]} onChange=${set("verdict")} />
    </div>
    <details class="numbers"><summary>What a filter does not see</summary><ul>
      <li>Rejected events are kept for an hour. Before that only accepted ones are found, and the dead letters of those that broke their definition.</li>
      <li>A rejected event shows no property that the privacy settings deny, and no property at all where they could not be read.</li>
      <li>A name is the whole name as it was sent, upper and lower case. One name is taken, and one is left out.</li>
      <li>Times are those of the receipt, not of the event itself: one that a phone sent late stands where it came.</li>
      <li>Events that were older than the app keeps them are gone, as are those of deleted people.</li>
      <li>All that was accepted is found, however old: pages go on to the first event.</li>
    </ul></details>
    <${Tabs} label="Views" tabs=${[{ id: "live", title: "Live", render: () => html`<${Live} />` }, { id: "feed", title: "By time", render: () => html`<${Feed} />` }]} />`;
}
