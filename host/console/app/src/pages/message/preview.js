// What a message says to somebody, where each value comes from, and sending it to them.
import { can, html, inApp, link, post, route, setQuery, useEffect, useState, whole, words } from "../../lib/index.js";
import { Badge, Copy, Empty, Form, Input, JsonField, Notice, Select, Table, Time } from "../../ui/index.js";
import { askedFor, languagesOf, Stage } from "../stage.js";
import { localized } from "../survey/model.js";
import { letter } from "./kinds.js";

/** @type {Record<string, string>} */
const SOURCES = { user_property: "the person's property", send_data: "the data of the request", trigger_event: "the event that caused it", latest_event: "the newest such event", fallback: "the fallback" };

/** A push message as it is read; each system draws it in its own way. @param {{ content: any, image?: string }} props */
const Push = ({ content, image }) => html`<div class="message" role="region" aria-label="The message">
  ${image && html`<img src=${image} alt="" referrerpolicy="no-referrer" />`}
  <p><strong>${content.title}</strong></p>
  <p>${content.body}</p>
  <p class="hint">Opening it: ${words(content.openAction.action)} ${content.openAction.url && html`<code>${content.openAction.url}</code>`}${content.openAction.actionJson && html`<code>${JSON.stringify(content.openAction.actionJson)}</code>`}</p>
</div>`;

/** A variant as it is sent to SDKs, its tokens as they stand. @param {any} variant */
const unresolved = ({ id, weight, personalization, localization, ...message }) => ({ variantId: id ?? "preview", ...message });

/** A variant in the language that is asked for, as the server would choose its texts. @param {any} variant @param {string} locale */
function spoken(variant, locale) {
  if (!locale) return variant;
  const { localization, ...rest } = variant;
  return localized(localization, rest, locale);
}

/** An in-app message as people see it. @param {{ variant: any, content: any, theme: any }} props content: resolved for somebody, if it is */
function InApp({ variant, content, theme }) {
  const { locale: asked, mode } = askedFor();
  const source = variant.localization?.defaultLocale ?? "en";
  const message = { ...(content ?? unresolved(spoken(variant, asked || source))), theme: mode ? { ...theme, mode } : theme };
  const languages = /** @type {[string, string][]} */ ([["", content ? "the person's own" : "the one it is written in"], ...languagesOf(variant.localization)]);
  const tokens = !content && /\{\{/.test(JSON.stringify(message));
  return html`<p class="hint">The SDK's own renderer shows it, with what is written here. Nothing is recorded.${tokens && " Tokens stand as they are until you preview it for somebody."}</p>
    <${Stage} payload=${{ message }} locale=${asked || message.locale || source} chosen=${asked} languages=${languages} place=${message.layout} />`;
}

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

/** What came of resolving it. @param {{ result: any, children?: any }} props children: the message */
const Resolved = ({ result: { status, bindings, issues }, children }) => html`<section aria-label="For this person">
  <p><${Badge} kind=${STATES[status] ?? "bad"}>${status}<//></p>
  ${issues.length > 0 && html`<${Notice} kind="warn"><ul>${issues.map((/** @type {any} */ issue) => html`<li>${issue.bindingId && html`<code>${issue.bindingId}</code>: `}${words(issue.code)}. ${issue.message}</li>`)}</ul><//>`}
  ${children}
  <${Bindings} bindings=${bindings} />
</section>`;

/** @param {{ result: any, campaign: any }} props */
const Sent = ({ result: { status, reason, devices, deliveryId }, campaign }) => html`<${Notice} kind=${STATES[status] ?? "bad"}>
  The test is ${status}${reason && `: ${words(reason)}`}${devices !== undefined && `, for ${devices} ${devices == 1 ? "device" : "devices"}`}${campaign.type == "in_app" && status == "queued" && ": the person's app shows it when it asks next"}.
  ${deliveryId && html` <a href=${link(route.value.path, {}, { tab: "deliveries", delivery: deliveryId })}>What becomes of it</a>`}
<//>`;

/** Beside the editor, or below it where a desktop is shown. */
export const trialClass = () => (askedFor().width == "desktop" ? "trial below" : "trial");

/** @param {{ campaign: any, draft: any, changed: boolean }} props draft: what is written, saved or not */
export function Try({ campaign, draft, changed }) {
  const { variants = [], theme, options: delivery } = draft;
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
  const push = campaign.type == "push";
  const transactional = draft.mode == "transactional";
  const { locale } = askedFor();
  const content = push || !variant ? variant : spoken(variant, locale);
  // What was resolved is shown as long as it is what is written.
  const written = JSON.stringify(content);
  const resolve = async () => {
    const body = { surface: campaign.type, content, [by]: who.trim(), ...(event && { triggerEventId: event.trim() }), ...(transactional && Object.keys(data).length > 0 && { data }) };
    setResult({ written, ...(await post(inApp("/personalization/preview"), body)) });
  };
  const preview = async () => {
    setResult(undefined);
    setQuery({ person: who.trim() }, { replace: true });
    await resolve();
  };
  useEffect(() => {
    // In another language the values are the same, and the texts are not.
    if (!push && result) resolve().catch(() => setResult(undefined));
  }, [locale]);
  const send = async () => {
    setSent(undefined);
    setSent(await post(inApp(`/campaigns/${campaign.id}/test-send`), { anonymousId: who.trim(), ...(variant?.id && { variantId: variant.id }) }));
  };
  const options = variants.map((/** @type {any} */ _, /** @type {number} */ place) => [String(place), `Variant ${letter(place)}`]);
  return html`<aside aria-label="Try it">
    <h2>Try it</h2>
    <${Form} label="Preview" onSubmit=${preview} submit="Preview" disabled=${!who.trim() || !variant}>
      <div class="row">
        <${Select} label="Person by" value=${by} options=${[["anonymousId", "anonymous id"], ["externalId", "external id"], ["subjectId", "subject id"]]} onChange=${setBy} />
        <${Input} label="Person" at=${`/${by}`} value=${who} onInput=${setWho} />
        ${variants.length > 1 && html`<${Select} label="Variant to try" value=${String(index)} options=${options} onChange=${setChosen} />`}
      </div>
      <${Input} label="Id of the event that causes it" at="/triggerEventId" hint="Where values come from that event." value=${event} onInput=${setEvent} />
      ${transactional && html`<${JsonField} label="Data of the request" at="/data" rows=${4} value=${data} onChange=${setData} />`}
    <//>
    ${result && html`<${Resolved} result=${result}>${push && result.content && html`<${Push} content=${result.content} image=${delivery?.imageUrl} />`}<//>`}
    ${!push && variant && html`<${InApp} variant=${variant} content=${result?.written == written ? result.content : undefined} theme=${theme} />`}
    ${can("editor") && html`<${Form} label="Test" onSubmit=${send} submit="Send a test" disabled=${!who.trim() || by != "anonymousId" || !variant}>
      <p class="hint">${changed ? "Sends what is saved, without your changes," : "Sends it"} to the person with the anonymous id above, whatever the status. No limit is used up, and nothing is counted.</p>
    <//>`}
    ${sent && html`<${Sent} result=${sent} campaign=${campaign} />`}
  </aside>`;
}
