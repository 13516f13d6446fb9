// What became of a message: each delivery with its way, who was to get it, and the numbers.
import { downloadCsv, everyDay, html, inApp, link, number, percent, route, setQuery, shortId, useList, useResource, utcDay, whole, words } from "../../lib/index.js";
import { Badge, Button, Chart, Copy, Day, Dialog, Empty, ErrorView, Funnel, Json, LinkButton, Loading, Search, Select, Table, Time } from "../../ui/index.js";
import { variantName } from "./kinds.js";

/** @param {{ id: string, name?: string }} props */
const Person = ({ id, name }) => html`<a href=${link("/apps/:appId/people/:personId", { ...route.value.params, personId: id })}>${name ?? shortId(id)}</a>`;

const STATUSES = ["queued", "sent", "delivered", "displayed", "opened", "clicked", "dismissed", "failed", "bounced", "skipped", "cancelled"];
/** @type {Record<string, string>} */
const KINDS = { delivered: "good", displayed: "good", opened: "good", clicked: "good", failed: "bad", bounced: "bad", skipped: "warn", cancelled: "warn" };

/** @param {{ status: string, reason?: string }} props */
const State = ({ status, reason }) => html`<${Badge} kind=${KINDS[status]}>${words(status)}<//> ${reason && words(reason)}`;

/** @param {{ id: string, campaign: any, onClose: () => void }} props */
function Delivery({ id, campaign, onClose }) {
  const { data: delivery, error, reload } = useResource(inApp(`/push/deliveries/${id}`));
  return html`<${Dialog} wide title="Delivery" onClose=${onClose}>
    ${error && html`<${ErrorView} error=${error} retry=${reload} />`}
    ${!error && !delivery && html`<${Loading} />`}
    ${delivery && html`<p><${Copy} text=${delivery.deliveryId} label="id of the delivery" /></p>
      <p><${State} ...${delivery} /> ${variantName(campaign, delivery.variantId)}, ${delivery.attempts} attempts ${delivery.test && html`<${Badge}>test<//>`}</p>
      <ol>${delivery.transitions.map((/** @type {any} */ one) => html`<li>${words(one.status)} <${Time} at=${one.at} /></li>`)}</ol>
      ${delivery.content ? html`<${Json} value=${delivery.content} label="What it says" />` : html`<p class="hint">What it says was not resolved.</p>`}`}
  <//>`;
}

/** @param {{ campaign: any }} props */
export function Deliveries({ campaign }) {
  const { status = "", subjectId = "", from = "", to = "", cursor = "", delivery } = route.value.query;
  const { path, query } = route.value;
  const filter = { campaignId: campaign.id, status, subjectId, from, to };
  const list = useList(inApp("/push/deliveries"), { ...filter, cursor });
  const set = (/** @type {string} */ name) => (/** @type {string} */ value) => setQuery({ [name]: value }, { replace: true });
  const columns = [
    { title: "Made", render: (/** @type {any} */ row) => html`<${Time} at=${row.createdAt} />` },
    { title: "Person", render: (/** @type {any} */ row) => html`<${Person} id=${row.subjectId} />` },
    { title: "Variant", render: (/** @type {any} */ row) => html`${variantName(campaign, row.variantId)} ${row.test && html`<${Badge}>test<//>`}` },
    { title: "State", render: (/** @type {any} */ row) => html`<${State} ...${row} />` },
    { title: "Way", render: (/** @type {any} */ row) => row.transitions.map((/** @type {any} */ one) => words(one.status)).join(" → ") },
    { title: "Attempts", end: true, render: (/** @type {any} */ row) => row.attempts },
  ];
  const filtered = status || subjectId || from || to;
  const empty = filtered
    ? html`<${Empty} title="No delivery is like that" actions=${html`<${Button} onClick=${() => setQuery({ status: "", subjectId: "", from: "", to: "" })}>Show all<//>`} />`
    : html`<${Empty} title="Nothing was sent yet"><p>${campaign.status == "active" ? "Deliveries appear here once it is sent to somebody." : "Activate the message, or send a test."}</p><//>`;
  return html`<div class="filters">
      <${Select} label="State" value=${status} options=${[["", "all"], ...STATUSES.map((one) => [one, one])]} onChange=${set("status")} />
      <${Search} label="Subject id" value=${subjectId} onInput=${set("subjectId")} />
      <${Day} label="From (UTC)" value=${from} onInput=${set("from")} />
      <${Day} label="To (UTC)" value=${to} onInput=${set("to")} />
      <p class="field"><${Button} onClick=${() => downloadCsv(inApp("/push/deliveries"), filter, "deliveries.csv")}>All of the filter as CSV<//></p>
    </div>
    <${Table} label="Deliveries" list=${list} columns=${columns} id=${(/** @type {any} */ row) => row.deliveryId} actions=${(/** @type {any} */ row) => html`<${LinkButton} href=${link(path, {}, { ...query, delivery: row.deliveryId })} rest=${{ "aria-label": `Show the delivery of ${row.createdAt}` }}>Show<//>`} empty=${empty} />
    ${delivery && html`<${Delivery} key=${delivery} id=${delivery} campaign=${campaign} onClose=${() => setQuery({ delivery: "", cursor }, { replace: true })} />`}`;
}

/** @type {Record<string, string>} */
const RECIPIENTS = { displayed: "good", clicked: "good", completed: "good", suppressed: "warn", expired: "warn" };
const STATES = ["issued", "displayed", "clicked", "completed", "dismissed", "expired", "suppressed"];

/** @param {{ campaign: any }} props */
export function Recipients({ campaign }) {
  const { state = "", cursor = "" } = route.value.query;
  const path = inApp(`/campaigns/${campaign.id}/recipients`);
  const list = useList(path, { state, cursor });
  const columns = [
    { title: "Person", render: (/** @type {any} */ row) => html`<${Person} id=${row.subjectId} name=${row.externalId ?? row.anonymousId} />` },
    { title: "State", render: (/** @type {any} */ row) => html`<${Badge} kind=${RECIPIENTS[row.state]}>${words(row.state)}<//>` },
    { title: "Held back by", render: (/** @type {any} */ row) => (row.suppressedBy ? html`${words(row.suppressedBy)} <a href=${link("/apps/:appId/why", route.value.params, { subject: row.subjectId, campaign: campaign.id })}>Why?</a>` : "–") },
    { title: "At", render: (/** @type {any} */ row) => html`<${Time} at=${row.at} />` },
  ];
  const empty = state
    ? html`<${Empty} title="No recipient is in this state" actions=${html`<${Button} onClick=${() => setQuery({ state: "" })}>Show all<//>`} />`
    : html`<${Empty} title="It has reached nobody yet"><p>Who was to get it stands here, also if it was held back, with the reason.</p><//>`;
  return html`<div class="filters">
      <${Select} label="State" value=${state} options=${[["", "all"], ...STATES.map((one) => [one, one])]} onChange=${(/** @type {string} */ value) => setQuery({ state: value })} />
      <p class="field"><${Button} onClick=${() => downloadCsv(path, { state }, "recipients.csv")}>All of the filter as CSV<//></p>
    </div>
    <${Table} label="Recipients" list=${list} columns=${columns} id=${(/** @type {any} */ row) => `${row.subjectId} ${row.at} ${row.state}`} empty=${empty} />`;
}

const STEPS = ["recipients", "sent", "delivered", "displayed", "opened", "clicked", "completed"];
const OTHERS = ["dismissed", "failed", "suppressed"];
/** @type {Record<string, string>} */
const NAMES = { recipients: "made", suppressed: "held back" };
const title = (/** @type {string} */ name) => NAMES[name] ?? words(name);

/** The counts that this kind of message has. @param {string[]} names @param {any} counts */
const present = (names, counts) => names.filter((name) => counts[name] !== undefined && counts[name] !== null);

/** @param {{ campaign: any }} props */
export function Analytics({ campaign }) {
  const { from = "", to = "" } = route.value.query;
  const { data, error, reload } = useResource(inApp(`/campaigns/${campaign.id}/analytics`), { from, to });
  const set = (/** @type {string} */ name) => (/** @type {string} */ value) => setQuery({ [name]: value }, { replace: true });
  const filter = html`<div class="filters"><${Day} label="From (UTC)" value=${from} onInput=${set("from")} /><${Day} label="To (UTC)" value=${to} onInput=${set("to")} /></div>`;
  if (error && !data) return html`${filter}<${ErrorView} error=${error} retry=${reload} />`;
  if (!data) return html`${filter}<${Loading} />`;
  const { totals, perVariant, perAction, series } = data;
  const steps = present(STEPS, totals);
  const all = [...steps, ...present(OTHERS, totals)];
  if (!totals.recipients && !totals.suppressed) return html`${filter}<${Empty} title="There is nothing to count yet"><p>Numbers appear once it was made for somebody. Tests are not counted.</p><//>`;
  const columns = [
    { title: "Variant", render: (/** @type {any} */ row) => variantName(campaign, row.variantId) },
    ...all.map((name) => ({ title: title(name), end: true, render: (/** @type {any} */ row) => number(row[name]) })),
    { title: "Clicked of seen", end: true, render: (/** @type {any} */ row) => percent(row.displayed ? row.clicked / row.displayed : null) },
  ];
  const days = series.length ? everyDay(series, from, to) : [];
  const lines = all.filter((name) => series.some((/** @type {any} */ one) => one[name] > 0)).slice(0, 6).map((name) => ({ name: title(name), values: days.map((one) => one[name] ?? 0) }));
  return html`${filter}
    <${Funnel} title="In all" steps=${steps.map((name) => ({ label: title(name), value: totals[name] }))} name="Messages" />
    <p>${present(OTHERS, totals).map((name) => `${title(name)}: ${number(totals[name])}`).join(", ")}.</p>
    ${days.length > 0 && html`<${Chart} title="By the day (UTC)" head="Day" labels=${days.map(({ at }) => utcDay(at))} series=${lines} />`}
    <h2>By variant</h2>
    <${Table} label="By variant" list=${whole(perVariant)} columns=${columns} id=${(/** @type {any} */ row) => row.variantId} empty=${html`<${Empty} title="No variant has numbers" />`} />
    ${perAction.length > 0 && html`<${Chart} kind="bars" title="What was pressed" head="Button" labels=${perAction.map(({ actionId = "" }) => actionId)} series=${[{ name: "clicked", values: perAction.map(({ clicked = 0 }) => clicked) }]} />`}`;
}
