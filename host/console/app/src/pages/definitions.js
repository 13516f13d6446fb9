// What events must look like: the definitions, and how events have fared by them.
import { can, del, html, inApp, link, number, patch, percent, route, say, useList } from "../lib/index.js";
import { Badge, Button, confirm, Empty, LinkButton, PageHead, Table, Time } from "../ui/index.js";

export default function Definitions() {
  const { params, query } = route.value;
  const list = useList(inApp("/event-definitions"), { cursor: query.cursor });
  const archive = (/** @type {any} */ row) =>
    confirm({
      title: `Archive the definition of ${row.name}?`,
      text: "Events of this name are then taken as they come. It can be brought back.",
      action: "Archive",
      run: async () => {
        await del(inApp(`/event-definitions/${row.id}`));
        say(`The definition of ${row.name} is archived.`);
        await list.reload();
      },
    });
  const restore = async (/** @type {any} */ row) => {
    await patch(inApp(`/event-definitions/${row.id}`), { status: "active" }, row.version);
    say(`The definition of ${row.name} holds again.`);
    await list.reload();
  };
  const broken = ({ seen24h = 0, violations24h = 0 }) => (violations24h ? html`<${Badge} kind="bad">${number(violations24h)} (${percent(violations24h / Math.max(1, seen24h))})<//>` : "0");
  const columns = [
    { title: "Event", sort: "name", render: (/** @type {any} */ row) => html`<a href=${link("/apps/:appId/definitions/:definitionId", { ...params, definitionId: row.id })}>${row.name}</a>` },
    { title: "Status", sort: "status", render: (/** @type {any} */ row) => html`<${Badge} kind=${row.status == "active" ? "good" : "info"}>${row.status}<//>` },
    { title: "What breaks it", sort: "enforcement", render: (/** @type {any} */ row) => (row.enforcement == "enforce" ? "is rejected" : "is only counted") },
    { title: "Properties", end: true, render: (/** @type {any} */ row) => number(row.properties.length) },
    { title: "Version", sort: "version", end: true, render: (/** @type {any} */ row) => row.version },
    { title: "Seen in 24 h", sort: "seen", value: (/** @type {any} */ row) => row.stats.seen24h, end: true, render: (/** @type {any} */ row) => number(row.stats.seen24h) },
    { title: "Broken in 24 h", sort: "broken", value: (/** @type {any} */ row) => row.stats.violations24h, end: true, render: (/** @type {any} */ row) => broken(row.stats) },
    { title: "Changed", sort: "updatedAt", render: (/** @type {any} */ row) => html`<${Time} relative at=${row.updatedAt} />` },
  ];
  const actions = (/** @type {any} */ row) => (row.status == "active"
    ? html`<${Button} label=${`Archive ${row.name}`} onClick=${() => archive(row)}>Archive<//>`
    : html`<${Button} label=${`Bring ${row.name} back`} onClick=${() => restore(row)}>Bring back<//>`);
  const create = html`<${LinkButton} kind="primary" href=${link("/apps/:appId/definitions/:definitionId", { ...params, definitionId: "new" })}>New definition<//>`;
  const head = html`<${LinkButton} href=${link("/apps/:appId/dead-letters", params)}>Dead letters<//>${can("editor") && create}`;
  const empty = html`<${Empty} title="No event is defined" actions=${can("editor") && create}><p>Without a definition every event of a name is taken. A definition can be made of the events that came.</p><//>`;
  return html`<${PageHead} title="Definitions" actions=${head} />
    <${Table} label="Definitions" list=${list} columns=${columns} id=${(/** @type {any} */ row) => row.id} actions=${can("editor") ? actions : undefined} empty=${empty} />`;
}
