// One webhook: how it fares, what was sent to it, and sending again what did not arrive.
import { del, difference, go, html, inApp, link, number, percent, post, route, say, setQuery, useDraft, useList, usePolling, useResource, useState } from "../lib/index.js";
import { Badge, Button, confirm, Copy, Dialog, Discard, Empty, ErrorView, Form, Loading, Notice, NumberInput, PageHead, Progress, RestoredDraft, Secret, Table, Tabs, Time, Instant, useSaving } from "../ui/index.js";
import { Fields, Health, HealthBadge } from "./webhook/parts.js";

const DAY = 86_400_000;

/** When an id was made: ids begin with the time, in milliseconds. @param {string} id */
const made = (id) => new Date(Number.parseInt(id.replaceAll("-", "").slice(0, 12), 16));

/** Sends again what never arrived. @param {{ path: string, since: string, onClose: () => void }} props */
function Recover({ path, since: begin, onClose }) {
  const [since, setSince] = useState(begin);
  const submit = async () => {
    const { jobId } = await post(`${path}/recover`, { since });
    onClose();
    setQuery({ recovering: jobId, tab: "" });
  };
  return html`<${Dialog} title="Send again what never arrived" onClose=${onClose}>
    <${Form} onSubmit=${submit} submit="Send again" actions=${html`<${Button} onClick=${onClose}>Cancel<//>`}>
      <p>Messages that failed for good, and those that were kept while the webhook was disabled, are sent once more. What has arrived is not.</p>
      <${Instant} label="From" at="/since" hint="14 days ago at the most." value=${since} onChange=${(/** @type {string | undefined} */ at) => setSince(at ?? "")} />
    <//>
  <//>`;
}

/** @param {{ path: string, onDone: (secret: string) => void, onClose: () => void }} props */
function Rotate({ path, onDone, onClose }) {
  const [hours, setHours] = useState(/** @type {number | undefined} */ (24));
  const submit = async () => onDone((await post(`${path}/rotate-secret`, { gracePeriodSeconds: Math.round((hours ?? 0) * 3600) })).secret);
  return html`<${Dialog} title="Rotate the secret" onClose=${onClose}>
    <${Form} onSubmit=${submit} submit="Rotate" actions=${html`<${Button} onClick=${onClose}>Cancel<//>`}>
      <${NumberInput} label="Hours for which the old secret signs too" at="/gracePeriodSeconds" min=${0} max=${168} step="any" hint="Time to change it at the receiver: 168 at the most; with 0 it stops at once." value=${hours} onChange=${setHours} />
    <//>
  <//>`;
}

/** Times that messages were sent, the newest first. @param {{ path: string, onRecover: (since: string) => void }} props */
function Attempts({ path, onRecover }) {
  const { cursor, recovering } = route.value.query;
  const list = useList(`${path}/attempts`, { cursor });
  usePolling(list.reload, cursor ? null : recovering ? 2000 : 5000);
  const failed = (/** @type {any} */ row) => row.error || !(row.statusCode >= 200 && row.statusCode < 300);
  const outcome = (/** @type {any} */ row) => (failed(row)
    ? html`<${Badge} kind="bad">${row.statusCode ?? "no answer"}<//> ${row.error}`
    : html`<${Badge} kind="good">${row.statusCode}<//>`);
  const columns = [
    { title: "At", render: (/** @type {any} */ row) => html`<${Time} at=${row.at} />` },
    { title: "Event", render: (/** @type {any} */ row) => row.eventType },
    { title: "Message", render: (/** @type {any} */ row) => html`<${Copy} short text=${row.messageId} label="id of the message" />` },
    { title: "Attempt", end: true, render: (/** @type {any} */ row) => number(row.attempt) },
    { title: "Answer", render: outcome },
    { title: "Took", end: true, render: (/** @type {any} */ row) => `${number(row.latencyMs)} ms` },
    { title: "Next attempt", render: (/** @type {any} */ row) => html`<${Time} relative at=${row.nextAttemptAt} />` },
  ];
  const again = async (/** @type {any} */ row) => {
    await post(`${path}/messages/${row.messageId}/retry`);
    say("It is sent again.");
    list.reload();
  };
  // Of a message's attempts the newest: an earlier one may be of what has arrived since.
  const newest = (/** @type {any} */ row) => list.data?.items.find(({ messageId }) => messageId == row.messageId) == row;
  const named = (/** @type {any} */ row) => `${row.eventType}, attempt ${row.attempt}`;
  const actions = (/** @type {any} */ row) => failed(row) && newest(row) && html`<${Button} label=${`Send again: ${named(row)}`} onClick=${() => again(row)}>Send again<//>
    ${!row.nextAttemptAt && html`<${Button} label=${`Send again from here on: ${named(row)}`} onClick=${() => onRecover(made(row.messageId).toISOString())}>Send again from here on<//>`}`;
  const answered = (list.data?.items ?? []).filter((row) => !failed(row)).length;
  const empty = html`<${Empty} title="Nothing was sent yet"><p>Attempts stand here for 14 days. A test is none of them.</p><//>`;
  return html`${list.data && list.data.items.length > 0 && html`<p>${percent(answered / list.data.items.length)} of the attempts on this page have arrived.</p>`}
    <${Table} label="Attempts" list=${list} columns=${columns} id=${(/** @type {any} */ row) => row.id} actions=${actions} empty=${empty} />`;
}

/** @param {any} webhook */
const written = ({ url, eventTypes, active, description }) => ({ url, eventTypes, active, description });

/** @param {{ path: string, webhook: any, onSaved: (webhook: any) => void }} props */
function Settings({ path, webhook, onSaved }) {
  const draft = useDraft(`webhook.${webhook.id}`, written(webhook), webhook.version);
  const [save, dialog] = useSaving(path, onSaved, draft, written);
  return html`<${RestoredDraft} draft=${draft} />
    <${Form} label="Webhook" onSubmit=${() => save(difference(draft.base, draft.value), draft.version)} disabled=${!draft.changed} actions=${html`<${Discard} draft=${draft} />`}>
      <${Fields} value=${draft.value} onChange=${draft.set} />
    <//>
    ${dialog}`;
}

/** What came of a test. @param {{ result: any }} props */
const Tested = ({ result: { statusCode, latencyMs, error } }) => {
  const good = !error && statusCode >= 200 && statusCode < 300;
  return html`<${Notice} kind=${good ? "good" : "bad"}>The test was ${good ? "answered" : "not taken"}: ${statusCode ? `status ${statusCode}` : "no answer"} after ${number(latencyMs)} ms${error && `, ${error}`}.<//>`;
};

/** @param {{ params: Record<string, string>, query: Record<string, string> }} props */
export default function Webhook({ params, query }) {
  const path = inApp(`/push/webhooks/${params.webhookId}`);
  const { data: webhook, error, reload, set } = useResource(path);
  const [tested, setTested] = useState(/** @type {any} */ (undefined));
  const [recover, setRecover] = useState("");
  const [rotating, setRotating] = useState(false);
  const [secret, setSecret] = useState("");
  const back = { href: link("/apps/:appId/webhooks", params), title: "Webhooks" };
  usePolling(reload, query.recovering ? 3000 : 10_000);
  if (error && !webhook) return html`<${PageHead} title="Webhook" back=${back} /><${ErrorView} error=${error} retry=${reload} />`;
  if (!webhook) return html`<${Loading} />`;
  const lately = () => setRecover(new Date(Date.now() - DAY).toISOString());
  const enable = async () => {
    set(await post(`${path}/enable`));
    say("The webhook is enabled.");
    lately();
  };
  const remove = () => {
    const known = { version: webhook.version };
    confirm({
      title: "Delete the webhook?",
      text: `What was to be sent to ${webhook.url} goes with it. This can't be undone.`,
      action: "Delete",
      danger: true,
      run: async () => {
        await del(path, known);
        say("The webhook was deleted.");
        go(back.href);
      },
    });
  };
  const rotated = (/** @type {string} */ found) => {
    setRotating(false);
    setSecret(found);
  };
  const actions = html`
    <${Button} onClick=${async () => setTested(await post(`${path}/test`))}>Send a test<//>
    <${Button} onClick=${lately}>Recover<//>
    <${Button} onClick=${() => setRotating(true)}>Rotate the secret<//>
    <${Button} kind="danger" onClick=${remove}>Delete<//>`;
  const tabs = [
    { id: "attempts", title: "Attempts", render: () => html`<${Attempts} path=${path} onRecover=${setRecover} />` },
    { id: "settings", title: "Settings", render: () => html`<${Settings} path=${path} webhook=${webhook} onSaved=${set} />` },
  ];
  return html`<${PageHead} title=${webhook.url} back=${back} actions=${actions}><p><${HealthBadge} webhook=${webhook} /> <${Copy} short text=${webhook.id} label="id" /></p><${Health} health=${webhook.health} /><//>
    ${webhook.health.state == "disabled" && html`<${Notice} kind="bad" actions=${html`<${Button} onClick=${enable}>Enable it<//>`}>It was disabled because everything failed. What happens meanwhile is kept, and can be recovered.<//>`}
    ${tested && html`<${Tested} result=${tested} />`}
    ${query.recovering && html`<${Progress} key=${query.recovering} jobId=${query.recovering} label="Sending again" />`}
    <${Tabs} label="About the webhook" tabs=${tabs} />
    ${recover && html`<${Recover} path=${path} since=${recover} onClose=${() => setRecover("")} />`}
    ${rotating && html`<${Rotate} path=${path} onDone=${rotated} onClose=${() => setRotating(false)} />`}
    ${secret && html`<${Secret} title="The new secret" secret=${secret} onClose=${() => setSecret("")} />`}`;
}
