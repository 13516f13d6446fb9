// One message: what it says and to whom, its life, and what became of it.
import { can, difference, html, inApp, link, number, post, useDraft, useResource, useState } from "../lib/index.js";
import { Badge, Button, confirm, Copy, ErrorView, Json, Loading, PageHead, Tabs, Time, useSaving } from "../ui/index.js";
import { Editor } from "./message/editor.js";
import { fitting, STATUSES, TYPES, written } from "./message/kinds.js";
import { trialClass, Try } from "./message/preview.js";
import { Analytics, Deliveries, Recipients } from "./message/results.js";

/** What may come after a status: the next one, and the button's name. @type {Record<string, [string, string][]>} */
const NEXT = {
  draft: [["active", "Activate"]],
  active: [["paused", "Pause"], ["completed", "Complete"]],
  paused: [["active", "Activate"], ["draft", "Back to draft"], ["archived", "Archive"]],
  completed: [["active", "Activate again"], ["archived", "Archive"]],
  archived: [["draft", "Back to draft"]],
};

/** How many people are in an audience, as far as the server can tell. @param {any} audience */
async function reach({ samplePercent = 100, ...audience } = {}) {
  const found = await post(inApp("/segments/preview"), { audience }).catch(() => undefined);
  return found ? ` ${found.isEstimate || samplePercent < 100 ? "About " : ""}${number(Math.round((found.count * samplePercent) / 100))} of ${number(found.total)} people are in it now.` : "";
}

/**
 * Its status is saved together with what is written: as one change.
 * @param {{ campaign: any, draft: import("../lib/draft.js").Draft<any>, save: (change: any, version?: number, value?: any) => Promise<void>, fail: (error: Error) => void }} props
 */
function Life({ campaign, draft, save, fail }) {
  const sent = fitting(draft);
  const { mode, trigger, schedule, audience } = sent;
  const atOnce = mode == "broadcast" || (mode == "scheduled" && !trigger?.every && !schedule?.startAt);
  const turn = async (/** @type {string} */ status) => {
    try {
      await save({ ...difference(draft.base, sent), status }, draft.version, { ...sent, status });
    } catch (error) {
      // What keeps it from running stands in the page, point by point.
      fail(/** @type {Error} */ (error));
    }
  };
  const ask = async (/** @type {string} */ status) => status == "active" && atOnce
    ? confirm({ title: "Send it to its whole audience?", text: `It goes once to everybody in its audience: now, or when its schedule starts.${await reach(audience)}`, action: "Activate", run: () => turn(status) })
    : turn(status);
  return (NEXT[campaign.status] ?? []).map(([status, name], index) => html`<${Button} key=${index} kind=${index ? "secondary" : "primary"} onClick=${() => ask(status)}>${draft.changed ? `Save and ${name.toLowerCase()}` : name}<//>`);
}

/** @param {{ params: Record<string, string> }} props */
export default function MessagePage({ params }) {
  const { data: campaign, error, reload, set } = useResource(inApp(`/campaigns/${params.campaignId}`));
  const back = { href: link("/apps/:appId/messages", params), title: "Messages" };
  if (error && !campaign) return html`<${PageHead} title="Message" back=${back} /><${ErrorView} error=${error} retry=${reload} />`;
  if (!campaign) return html`<${Loading} />`;
  return html`<${Message} campaign=${campaign} set=${set} back=${back} />`;
}

/** @param {{ campaign: any, set: (campaign: any) => void, back: any }} props */
function Message({ campaign, set, back }) {
  const draft = useDraft(`campaign.${campaign.id}`, written(campaign), campaign.version);
  const [failed, setFailed] = useState(/** @type {Error | undefined} */ (undefined));
  const done = (/** @type {any} */ saved) => {
    set(saved);
    setFailed(undefined);
    return saved.status == campaign.status ? undefined : `“${saved.name}” is ${saved.status}.`;
  };
  const [saving, dialog] = useSaving(inApp(`/campaigns/${campaign.id}`), done, draft, written);
  const save = (/** @type {Parameters<typeof saving>} */ ...change) => {
    setFailed(undefined);
    return saving(...change);
  };
  const life = { campaign, draft, save };
  const push = campaign.type == "push";
  const viewed = () => html`<div class=${trialClass()}><${Json} value=${written(campaign)} label="Definition" /><${Try} campaign=${campaign} draft=${campaign} changed=${false} /></div>`;
  const tabs = [
    { id: "message", title: "Message", render: () => (can("editor") ? html`<${Editor} ...${life} failed=${failed} />` : viewed()) },
    ...(push ? [{ id: "deliveries", title: "Deliveries", render: () => html`<${Deliveries} campaign=${campaign} />` }] : []),
    { id: "recipients", title: "Recipients", render: () => html`<${Recipients} campaign=${campaign} />` },
    { id: "analytics", title: "Analytics", render: () => html`<${Analytics} campaign=${campaign} />` },
  ];
  return html`<${PageHead} title=${campaign.name} back=${back} actions=${can("editor") && html`<${Life} ...${life} fail=${setFailed} />`}>
      <p><${Badge} kind=${STATUSES[campaign.status]}>${campaign.status}<//> <${Badge}>${TYPES[campaign.type]}<//> version ${campaign.version} <${Copy} short text=${campaign.id} label="id" />
        ${campaign.activatedAt && html` last activated <${Time} relative at=${campaign.activatedAt} />`}</p>
    <//>
    ${failed && html`<${ErrorView} error=${failed} />`}
    <${Tabs} label="About the message" tabs=${tabs} />
    ${dialog}`;
}
