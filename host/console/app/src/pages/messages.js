// The messages of an app: push and in-app.
import { can, copied, del, get, go, html, inApp, link, number, patch, post, say, setQuery, useList, words } from "../lib/index.js";
import { Badge, Button, confirm, Copy, Empty, PageHead, Search, Select, Table, Time } from "../ui/index.js";
import { blankMessage, STATUSES, TYPES, written } from "./message/kinds.js";

/** @typedef {import("../../../types/api.js").components["schemas"]["AnyCampaignView"]} Campaign */

/** @param {{ params: Record<string, string>, query: Record<string, string> }} props */
export default function Messages({ params, query }) {
  const { q = "", status = "", type = "" } = query;
  const list = useList(inApp("/campaigns"), { type });
  // The route answers every message of the type: the page filters them by the rest.
  const items = list.data?.items.filter((campaign) => (!status || campaign.status == status) && campaign.name.toLowerCase().includes(q.toLowerCase()));
  const shown = { ...list, data: items && { items, nextCursor: null, total: items.length } };
  const page = (/** @type {string} */ campaignId) => link("/apps/:appId/messages/:campaignId", { ...params, campaignId });

  const create = async (/** @type {Record<string, any>} */ body) => go(page((await post(inApp("/campaigns"), body)).id));
  const double = async (/** @type {Campaign} */ row) => {
    const campaign = await get(inApp(`/campaigns/${row.id}`));
    const variants = campaign.variants.map(({ id = "", ...variant }) => variant);
    await create({ ...written(campaign), variants, type: campaign.type, name: copied(campaign.name), status: "draft" });
  };
  const pause = async (/** @type {Campaign} */ row) => {
    await patch(inApp(`/campaigns/${row.id}`), { status: "paused" }, row.version);
    say(`“${row.name}” is paused.`);
    await list.reload();
  };
  const remove = (/** @type {Campaign} */ row) => {
    const known = { version: row.version };
    confirm({
      title: "Delete the message?",
      text: `What is queued of “${row.name}” is cancelled. This can't be undone.`,
      action: "Delete",
      danger: true,
      run: async () => {
        await del(inApp(`/campaigns/${row.id}`), known);
        say(`“${row.name}” was deleted.`);
        await list.reload();
      },
    });
  };

  const columns = [
    { title: "Name", sort: "name", value: (/** @type {any} */ row) => row.name, render: (/** @type {any} */ row) => html`<a href=${page(row.id)}>${row.name}</a>` },
    { title: "Type", sort: "kind", value: (/** @type {any} */ row) => row.type, render: (/** @type {any} */ row) => TYPES[row.type] },
    { title: "Status", sort: "status", value: (/** @type {any} */ row) => row.status, render: (/** @type {any} */ row) => html`<${Badge} kind=${STATUSES[row.status]}>${row.status}<//>` },
    { title: "Sent by", sort: "mode", value: (/** @type {any} */ row) => row.mode, render: (/** @type {any} */ row) => words(row.mode) },
    { title: "Sent", end: true, sort: "sent", value: (/** @type {any} */ row) => row.stats?.sent ?? 0, render: (/** @type {any} */ row) => number(row.stats?.sent) },
    { title: "Changed", sort: "updated", value: (/** @type {any} */ row) => row.updatedAt, render: (/** @type {any} */ row) => html`<${Time} relative at=${row.updatedAt} />` },
    { title: "Id", render: (/** @type {any} */ row) => html`<${Copy} short text=${row.id} label=${`id of ${row.name}`} />` },
  ];
  const actions = (/** @type {any} */ row) => html`
    ${row.status == "active" && html`<${Button} label=${`Pause ${row.name}`} onClick=${() => pause(row)}>Pause<//>`}
    <${Button} label=${`Duplicate ${row.name}`} onClick=${() => double(row)}>Duplicate<//>
    <${Button} kind="danger" label=${`Delete ${row.name}`} onClick=${() => remove(row)}>Delete<//>`;
  const add = can("editor") && html`<${Button} kind="primary" onClick=${() => create(blankMessage("push"))}>New push message<//><${Button} kind="primary" onClick=${() => create(blankMessage("in_app"))}>New in-app message<//>`;
  const empty = q || status || type
    ? html`<${Empty} title="No message is like that" actions=${html`<${Button} onClick=${() => setQuery({ q: "", status: "", type: "" })}>Show all<//>`} />`
    : html`<${Empty} title="There is no message yet"><p>${can("editor") ? "Begin with a new push message or in-app message: it reaches nobody before it is activated." : "An editor makes messages here."}</p><//>`;
  return html`<${PageHead} title="Messages" actions=${add} />
    <div class="filters">
      <${Search} label="Name" value=${q} onInput=${(/** @type {string} */ value) => setQuery({ q: value }, { replace: true })} />
      <${Select} label="Type" value=${type} options=${[["", "all"], ...Object.entries(TYPES)]} onChange=${(/** @type {string} */ value) => setQuery({ type: value })} />
      <${Select} label="Status" value=${status} options=${[["", "all"], ...Object.keys(STATUSES).map((one) => [one, one])]} onChange=${(/** @type {string} */ value) => setQuery({ status: value })} />
    </div>
    <${Table} label="Messages" list=${shown} columns=${columns} id=${(/** @type {any} */ row) => row.id} actions=${can("editor") ? actions : undefined} empty=${empty} />`;
}
