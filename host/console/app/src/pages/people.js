// People: who there is, and who is being deleted.
import { can, downloadCsv, html, inApp, link, number, route, setQuery, useList } from "../lib/index.js";
import { Badge, Button, Copy, Empty, LinkButton, PageHead, Search, Table, Tabs, Time } from "../ui/index.js";
import { nameOf } from "./find.js";
import { Deletion } from "./person-privacy.js";

/** Everybody, or who is found. */
function Everybody() {
  const { params, query } = route.value;
  const { q = "" } = query;
  const list = useList(inApp("/users"), { q, cursor: query.cursor });
  const columns = [
    { title: "Person", render: (/** @type {any} */ row) => html`<a href=${link("/apps/:appId/people/:personId", { ...params, personId: row.subjectId })}>${nameOf(row)}</a>` },
    { title: "Properties", render: (/** @type {any} */ row) => Object.entries(row.topProperties).slice(0, 3).map(([name, value]) => html`<${Badge}>${name}: ${String(value).slice(0, 40)}<//> `) },
    { title: "Platform", render: (/** @type {any} */ row) => row.platform ?? "–" },
    { title: "Country", render: (/** @type {any} */ row) => row.country ?? "–" },
    { title: "Events", end: true, render: (/** @type {any} */ row) => number(row.eventCount) },
    { title: "Last seen", render: (/** @type {any} */ row) => html`<${Time} relative at=${row.lastSeenAt} />` },
    { title: "Subject id", render: (/** @type {any} */ row) => html`<${Copy} short text=${row.subjectId} label="subject id" />` },
  ];
  const empty = q
    ? html`<${Empty} title="Nobody is like that" actions=${html`<${Button} onClick=${() => setQuery({ q: "" })}>Show everybody<//>`}><p>An id is found by what it begins with, a property by what is in its text.</p><//>`
    : html`<${Empty} title="There is nobody yet" actions=${html`<${LinkButton} kind="primary" href=${link("/apps/:appId/start", params)}>Send an event<//>`}><p>Whoever sends an event, or opens a page with the SDK, is a person here.</p><//>`;
  return html`<div class="filters">
      <${Search} label="Search" value=${q} onInput=${(/** @type {string} */ value) => setQuery({ q: value }, { replace: true })} rest=${{ maxlength: 256 }} />
      <p><${Button} onClick=${() => downloadCsv(inApp("/users"), { q }, "people.csv")}>All of the search as CSV<//></p>
    </div>
    <p class="hint">Finds what an anonymous, external or subject id begins with, and what is in the text of a property. A search can show a short page and go on to the next one: each looks through 20,000 values.</p>
    <${Table} label="People" list=${list} columns=${columns} id=${(/** @type {any} */ row) => row.subjectId} empty=${empty} />`;
}

/** @type {Record<string, "good" | "bad" | "info">} */
const KINDS = { completed: "good", failed: "bad" };

/** Deletions of the app. The people are gone: they are known by their jobs. */
function Deletions() {
  const { path, query } = route.value;
  const list = useList(inApp("/gdpr/jobs"), { cursor: query.cursor });
  const columns = [
    { title: "Job", render: (/** @type {any} */ row) => html`<a href=${link(path, {}, { ...query, job: row.jobId })}>${row.jobId}</a>` },
    { title: "Status", render: (/** @type {any} */ row) => html`<${Badge} kind=${KINDS[row.status]}>${row.status.replaceAll("_", " ")}<//>` },
    { title: "Requested by", render: (/** @type {any} */ row) => row.requestedBy },
    { title: "Requested", render: (/** @type {any} */ row) => html`<${Time} at=${row.requestedAt} />` },
    { title: "Completed", render: (/** @type {any} */ row) => html`<${Time} at=${row.completedAt} />` },
  ];
  const empty = html`<${Empty} title="Nobody was deleted"><p>Somebody's data is deleted on their page, under “Privacy”.</p><//>`;
  return html`${query.job && html`<${Deletion} key=${query.job} jobId=${query.job} onEnd=${list.reload} />`}
    <${Table} label="Deletions" list=${list} columns=${columns} id=${(/** @type {any} */ row) => row.jobId} empty=${empty} />`;
}

export default function People() {
  const everybody = { id: "all", title: "Everybody", render: () => html`<${Everybody} />` };
  const deletions = { id: "deletions", title: "Deletions", render: () => html`<${Deletions} />` };
  return html`<${PageHead} title="People" />
    ${can("admin") ? html`<${Tabs} label="Views" tabs=${[everybody, deletions]} />` : html`<${Everybody} />`}`;
}
