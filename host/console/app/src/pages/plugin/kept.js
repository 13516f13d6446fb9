// What trigger plugins keep of a person.
import { bytes, can, del, html, number, say, useResource, whole, words } from "../../lib/index.js";
import { Button, confirm, Empty, Failed, Loaded, Table, Time } from "../../ui/index.js";
import { useCampaigns } from "../find.js";

/** @param {{ path: string, query?: import("../../lib/api.js").Query }} props of the person's plugin state */
export function Kept({ path, query }) {
  const campaigns = useCampaigns();
  const found = useResource(path, query);
  const erase = () => confirm({
    title: "Erase what plugins keep of this person?",
    text: "Campaigns begin with the person as if they were new. This can't be undone.",
    action: "Erase",
    danger: true,
    run: async () => {
      await del(path, { query });
      say("It was erased.");
      await found.reload();
    },
  });
  const columns = [
    { title: "Campaign", render: (/** @type {any} */ row) => campaigns.nameOf(row.campaignId) },
    { title: "State", render: (/** @type {any} */ row) => (row.state ? html`<code>${row.state}</code> <span class="hint">${bytes(row.bytes)}</span>` : "–") },
    { title: "Timers", render: (/** @type {any} */ row) => (row.timers.length ? html`<ul>${row.timers.map((/** @type {any} */ timer) => html`<li><code>${timer.key}</code> ${timer.dueAt ? html`due <${Time} at=${timer.dueAt} />` : "waits"}</li>`)}</ul>` : "–") },
    { title: "Changed", render: (/** @type {any} */ row) => html`<${Time} relative at=${row.updatedAt} />` },
  ];
  return html`<${Failed} of=${[campaigns]} /><${Loaded} of=${found}>${(/** @type {any} */ data) => html`
    <p>Found as the ${words(data.matchedBy)}: ${bytes(data.stateBytes)} of state, ${number(data.timers)} timers. ${can("admin") && data.campaigns.length > 0 && html`<${Button} kind="danger" onClick=${erase}>Erase it<//>`}</p>
    <${Table} label="Kept of the person" list=${whole(data.campaigns)} columns=${columns} id=${(/** @type {any} */ row) => row.campaignId} empty=${html`<${Empty} title="Plugins keep nothing of this person" />`} />`}<//>`;
}
