// The audit log: who changed what, and which uses of keys were refused. Nothing in it can be changed.
import { downloadCsv, html, inApp, route, setQuery, useList, words } from "../lib/index.js";
import { Badge, Button, Day, Empty, PageHead, Search, Table, Time } from "../ui/index.js";

const FILTERS = ["action", "actor", "resource", "from", "to"];

/** @param {any} value @returns {value is Record<string, any>} */
const isObject = (value) => value !== null && typeof value == "object" && !Array.isArray(value);

/**
 * The members of a value, each with its path: `frequency.surveys.max`.
 * @param {Record<string, any>} value
 * @param {string} [before]
 * @returns {[string, any][]}
 */
const members = (value, before = "") => Object.entries(value).flatMap(([name, inner]) => (isObject(inner) && Object.keys(inner).length ? members(inner, `${before}${name}.`) : [[before + name, inner]]));

/** A value that was set, or one that was removed. @param {{ value: any }} props */
const Now = ({ value }) => (value === null ? html`<del>removed</del>` : html`<code>${typeof value == "string" ? value : JSON.stringify(value)}</code>`);

/** What an entry says of the change: which members were set to what, or what it was from and to. @param {{ detail: any }} props */
function Change({ detail }) {
  if (!isObject(detail)) return html`<code>${JSON.stringify(detail)}</code>`;
  const { patch, from, ...rest } = detail;
  const changes = isObject(patch) ? members(patch) : patch === undefined ? [] : [["patch", patch]];
  const others = members(rest);
  if (!changes.length && !others.length && from === undefined) return "–";
  return html`<ul class="changes">
    ${changes.map(([name, value]) => html`<li>${value === null ? "−" : "+"} <strong>${name}</strong> <${Now} value=${value} /></li>`)}
    ${from !== undefined && html`<li>− <strong>from</strong> <${Now} value=${from} /></li>`}
    ${others.map(([name, value]) => html`<li><strong>${words(name)}</strong> <${Now} value=${value} /></li>`)}
  </ul>`;
}

/** The log of an app, or of the server. @param {{ path: string, name: string }} props path of the route; name of the file */
export function AuditLog({ path, name }) {
  const { query } = route.value;
  const filter = Object.fromEntries(FILTERS.map((one) => [one, query[one]]));
  const list = useList(path, { ...filter, cursor: query.cursor });
  const set = (/** @type {string} */ one) => (/** @type {string} */ value) => setQuery({ [one]: value }, { replace: true });
  const columns = [
    { title: "Action", render: (/** @type {any} */ row) => html`<${Badge} kind=${/refused|deleted|rolled|revoked/.test(row.action) ? "warn" : "info"}>${row.action}<//>` },
    { title: "At", render: (/** @type {any} */ row) => html`<${Time} at=${row.at} />` },
    { title: "By", render: (/** @type {any} */ row) => html`<button type="button" class="sort" title="Only by this one" onClick=${() => setQuery({ actor: row.actor })}>${row.actor}</button>` },
    { title: "What", render: (/** @type {any} */ row) => html`<button type="button" class="sort" title="Only this one" onClick=${() => setQuery({ resource: row.resource })}>${row.resource}</button>` },
    { title: "Change", render: (/** @type {any} */ row) => html`<${Change} detail=${row.detail} />` },
  ];
  const filtered = FILTERS.some((one) => query[one]);
  const empty = filtered
    ? html`<${Empty} title="No entry is like that" actions=${html`<${Button} onClick=${() => setQuery({ action: "", actor: "", resource: "", from: "", to: "" })}>Show all<//>`}><p>Actions and actors are whole names, such as <code>settings.updated</code>.</p><//>`
    : html`<${Empty} title="Nothing was changed yet"><p>Every change by a route of management stands here, and every use of a key that was refused.</p><//>`;
  return html`<div class="filters">
      <${Search} label="Action" value=${query.action ?? ""} onInput=${set("action")} />
      <${Search} label="By" value=${query.actor ?? ""} onInput=${set("actor")} />
      <${Search} label="What" value=${query.resource ?? ""} onInput=${set("resource")} />
      <${Day} label="From (UTC)" value=${query.from} onInput=${set("from")} />
      <${Day} label="To (UTC)" value=${query.to} onInput=${set("to")} />
      <p><${Button} onClick=${() => downloadCsv(path, filter, name)}>All of the filter as CSV<//></p>
    </div>
    <${Table} label="Audit log" list=${list} columns=${columns} id=${(/** @type {any} */ row) => row.id} empty=${empty} />`;
}

export default () => html`<${PageHead} title="Audit log" /><${AuditLog} path=${inApp("/audit-log")} name="audit-log.csv" />`;
