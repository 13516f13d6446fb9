// What a message says to somebody, where each value comes from, and sending it to them.
import { post } from "../../lib/api.js";
import { words } from "../../lib/format.js";
import { whole } from "../../lib/load.js";
import { html, useState } from "../../lib/preact.js";
import { link, route, setQuery } from "../../lib/router.js";
import { can, inApp } from "../../lib/session.js";
import { Badge, Copy, Empty, Form, Input, JsonField, Notice, Select, Table, Time } from "../../ui/index.js";
import { letter } from "./kinds.js";

/** @type {Record<string, string>} */
const SOURCES = { user_property: "the person's property", send_data: "the data of the request", trigger_event: "the event that caused it", latest_event: "the newest such event", fallback: "the fallback" };

/** The message as it is read. @param {{ content: any, image?: string }} props */
const Message = ({ content, image = content.imageUrl }) => html`<div class=${`message ${content.layout ?? "push"}`} role="region" aria-label="The message">
  ${image && html`<img src=${image} alt="" referrerpolicy="no-referrer" />`}
  ${content.title && html`<p><strong>${content.title}</strong></p>`}
  ${content.body && html`<p>${content.body}</p>`}
  ${content.buttons?.length > 0 && html`<p class="actions">${content.buttons.map((/** @type {any} */ button) => html`<span class=${`button ${button.style ?? "primary"}`}>${button.label}</span>`)}</p>`}
  ${content.openAction && html`<p class="hint">Opening it: ${words(content.openAction.action)} ${content.openAction.url && html`<code>${content.openAction.url}</code>`}${content.openAction.actionJson && html`<code>${JSON.stringify(content.openAction.actionJson)}</code>`}</p>`}
</div>`;

/** @param {{ bindings: any[] }} props */
function Bindings({ bindings }) {
  const columns = [
    { title: "Token", render: (/** @type {any} */ row) => html`<code>${row.id}</code>` },
    { title: "Value", render: (/** @type {any} */ row) => (row.value === null || row.value === undefined ? html`<${Badge} kind="warn">missing<//>` : html`${String(row.value)} <span class="hint">${row.type}</span>`) },
    { title: "Comes from", render: (/** @type {any} */ row) => html`${row.usedFallback ? html`<${Badge} kind="warn">the fallback<//>, instead of ` : ""}${SOURCES[row.source.kind] ?? words(row.source.kind)}
      ${row.source.eventId && html` <${Copy} short text=${row.source.eventId} label="id of the event" />`} ${row.source.timestamp && html`<${Time} at=${row.source.timestamp} />`}` },
  ];
  return html`<${Table} label="Where each value comes from" list=${whole(bindings)} columns=${columns} id=${(/** @type {any} */ row) => row.id} empty=${html`<${Empty} title="No token is in it" />`} />`;
}

/** @type {Record<string, string>} */
const STATES = { ready: "good", queued: "good", skipped: "warn" };

/** @param {{ result: any, image?: string }} props */
const Preview = ({ result: { status, content, bindings, issues }, image }) => html`<section aria-label="Preview">
  <p><${Badge} kind=${STATES[status] ?? "bad"}>${status}<//></p>
  ${issues.length > 0 && html`<${Notice} kind="warn"><ul>${issues.map((/** @type {any} */ issue) => html`<li>${issue.bindingId && html`<code>${issue.bindingId}</code>: `}${words(issue.code)}. ${issue.message}</li>`)}</ul><//>`}
  ${content && html`<${Message} content=${content} image=${image} />`}
  <${Bindings} bindings=${bindings} />
</section>`;

/** @param {{ result: any, campaign: any }} props */
const Sent = ({ result: { status, reason, devices, deliveryId }, campaign }) => html`<${Notice} kind=${STATES[status] ?? "bad"}>
  The test is ${status}${reason && `: ${words(reason)}`}${devices !== undefined && `, for ${devices} ${devices == 1 ? "device" : "devices"}`}${campaign.type == "in_app" && status == "queued" && ": the person's app shows it when it asks next"}.
  ${deliveryId && html` <a href=${link(route.value.path, {}, { tab: "deliveries", delivery: deliveryId })}>What becomes of it</a>`}
<//>`;

/** @param {{ campaign: any, variants: any[], image?: string, changed: boolean }} props */
export function Try({ campaign, variants, image, changed }) {
  const { person = "" } = route.value.query;
  const [who, setWho] = useState(person);
  const [by, setBy] = useState("anonymousId");
  const [chosen, setChosen] = useState("0");
  const [event, setEvent] = useState("");
  const [data, setData] = useState(/** @type {any} */ ({}));
  const [result, setResult] = useState(/** @type {any} */ (undefined));
  const [sent, setSent] = useState(/** @type {any} */ (undefined));
  const index = Math.min(Number(chosen), variants.length - 1);
  const variant = variants[index];
  const transactional = campaign.mode == "transactional";
  const preview = async () => {
    setResult(undefined);
    setQuery({ person: who.trim() }, { replace: true });
    const body = { surface: campaign.type, content: variant, [by]: who.trim(), ...(event && { triggerEventId: event.trim() }), ...(transactional && Object.keys(data).length > 0 && { data }) };
    setResult(await post(inApp("/personalization/preview"), body));
  };
  const send = async () => {
    setSent(undefined);
    setSent(await post(inApp(`/campaigns/${campaign.id}/test-send`), { anonymousId: who.trim(), ...(variant?.id && { variantId: variant.id }) }));
  };
  const options = variants.map((_, place) => [String(place), `Variant ${letter(place)}`]);
  return html`<aside aria-label="Try it">
    <h2>Try it</h2>
    <${Form} label="Preview" onSubmit=${preview} submit="Preview" disabled=${!who.trim() || !variant}>
      <div class="row">
        <${Select} label="Person by" value=${by} options=${[["anonymousId", "anonymous id"], ["externalId", "external id"], ["subjectId", "subject id"]]} onChange=${setBy} />
        <${Input} label="Person" at=${`/${by}`} value=${who} onInput=${setWho} />
        ${variants.length > 1 && html`<${Select} label="Variant to try" value=${String(index)} options=${options} onChange=${setChosen} />`}
      </div>
      <${Input} label="Id of the event that causes it" at="/triggerEventId" hint="Where values come from that event." value=${event} onInput=${setEvent} />
      ${transactional && html`<${JsonField} label="Data of the request" at="/data" rows=${4} value=${data} onChange=${(/** @type {any} */ next) => next !== undefined && setData(next)} />`}
    <//>
    ${result && html`<${Preview} result=${result} image=${image} />`}
    ${can("editor") && html`<${Form} label="Test" onSubmit=${send} submit="Send a test" disabled=${!who.trim() || by != "anonymousId" || !variant}>
      <p class="hint">${changed ? "Sends what is saved, without your changes," : "Sends it"} to the person with the anonymous id above, whatever the status. No limit is used up, and nothing is counted.</p>
    <//>`}
    ${sent && html`<${Sent} result=${sent} campaign=${campaign} />`}
  </aside>`;
}
