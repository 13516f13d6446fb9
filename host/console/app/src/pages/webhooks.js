// Endpoints that are told what becomes of push deliveries.
import { html, inApp, link, patch, post, say, useList, useState } from "../lib/index.js";
import { Badge, Button, Copy, Dialog, Empty, Form, PageHead, Secret, Table, Time } from "../ui/index.js";
import { BLANK, Fields, HealthBadge } from "./webhook/parts.js";

/** @param {{ onDone: (webhook: any) => unknown, onClose: () => void }} props */
function Create({ onDone, onClose }) {
  const [value, setValue] = useState(BLANK);
  const submit = async () => onDone(await post(inApp("/push/webhooks"), value));
  return html`<${Dialog} title="New webhook" onClose=${onClose}>
    <${Form} onSubmit=${submit} submit="Create" actions=${html`<${Button} onClick=${onClose}>Cancel<//>`}><${Fields} value=${value} onChange=${setValue} /><//>
  <//>`;
}

/** @param {{ params: Record<string, string>, query: Record<string, string> }} props */
export default function Webhooks({ params, query }) {
  const list = useList(inApp("/push/webhooks"), { cursor: query.cursor });
  const [creating, setCreating] = useState(false);
  const [created, setCreated] = useState(/** @type {any} */ (undefined));
  const done = async (/** @type {any} */ webhook) => {
    setCreating(false);
    setCreated(webhook);
    await list.reload();
  };
  const turn = async (/** @type {any} */ webhook) => {
    await patch(inApp(`/push/webhooks/${webhook.id}`), { active: !webhook.active }, webhook.version);
    say(webhook.active ? "Nothing is sent there any longer." : "The webhook is active.");
    await list.reload();
  };
  const enable = async (/** @type {any} */ webhook) => {
    await post(inApp(`/push/webhooks/${webhook.id}/enable`));
    say("The webhook is enabled. What it has missed can be recovered.");
    await list.reload();
  };
  const columns = [
    { title: "Address", sort: "url", render: (/** @type {any} */ row) => html`<a href=${link("/apps/:appId/webhooks/:webhookId", { ...params, webhookId: row.id })}>${row.url}</a>${row.description && html`<br /><span class="hint">${row.description}</span>`}` },
    { title: "Health", sort: "health", value: (/** @type {any} */ row) => row.health.state, render: (/** @type {any} */ row) => html`<${HealthBadge} webhook=${row} />` },
    { title: "Told of", render: (/** @type {any} */ row) => row.eventTypes.map((/** @type {string} */ type) => html`<${Badge}>${type}<//> `) },
    { title: "Last success", sort: "success", value: (/** @type {any} */ row) => row.health.lastSuccessAt, render: (/** @type {any} */ row) => html`<${Time} relative at=${row.health.lastSuccessAt} none="none yet" />` },
    { title: "Id", render: (/** @type {any} */ row) => html`<${Copy} short text=${row.id} label=${`id of ${row.url}`} />` },
  ];
  const actions = (/** @type {any} */ row) => row.health.state == "disabled"
    ? html`<${Button} kind="primary" label=${`Enable ${row.url}`} onClick=${() => enable(row)}>Enable<//>`
    : html`<${Button} label=${`${row.active ? "Pause" : "Activate"} ${row.url}`} onClick=${() => turn(row)}>${row.active ? "Pause" : "Activate"}<//>`;
  const add = html`<${Button} kind="primary" onClick=${() => setCreating(true)}>New webhook<//>`;
  const empty = html`<${Empty} title="There is no webhook yet" actions=${add}><p>A webhook tells a server of yours when a push message was sent, shown, clicked or has failed.</p><//>`;
  return html`<${PageHead} title="Webhooks" actions=${add} />
    <${Table} label="Webhooks" list=${list} columns=${columns} id=${(/** @type {any} */ row) => row.id} actions=${actions} empty=${empty} />
    ${creating && html`<${Create} onDone=${done} onClose=${() => setCreating(false)} />`}
    ${created && html`<${Secret} title="The webhook's secret" secret=${created.secret} onClose=${() => setCreated(undefined)}><p>Requests to ${created.url} are signed with it.</p><//>`}`;
}
