// The first steps: a page that sends events, the first event, and a survey that it brings.
import { can, html, inApp, keep, link, post, recall, say, useList, usePolling, useResource, useState } from "../lib/index.js";
import { Badge, Button, Copy, CopyButton, Empty, ErrorView, Failed, LinkButton, PageHead, Table, Time } from "../ui/index.js";
import { SAMPLE } from "./sample-survey.js";

/** Lines for a page, with the button that they listen to. @param {string} key */
const lines = (key) => [
  '<button id="buy">Buy</button>',
  `<script src="${location.origin}/sdk/v1/nudge.js"></script>`,
  "<script>",
  `  const nudge = Nudge.init({ writeKey: "${key}" });`,
  '  nudge.screen("home");',
  '  document.getElementById("buy").onclick = () => nudge.track("order_placed", { total: 42 });',
  "  // When somebody signs in, with a token of your backend:",
  "  // nudge.identify(token);",
  "</script>",
].join("\n");

/** The lines with a key of this app. The server keeps no key, so the browser keeps the one that was made here. */
function Snippet({ appId = "" }) {
  const [kept, setKept] = useState(() => recall(`key.${appId}`));
  const admin = can("admin");
  const keys = useList(admin ? inApp("/keys") : null, { limit: 200 });
  const revoked = kept && keys.data && !keys.data.items.some(({ id }) => id == kept.id);
  const key = kept && !revoked ? kept.key : undefined;
  const create = async () => {
    const { id, key } = await post(inApp("/keys"), { kind: "write", name: "Start page" });
    keep(`key.${appId}`, { id, key });
    setKept({ id, key });
    await keys.reload();
  };
  const text = lines(key ?? "wk_…");
  return html`<section aria-labelledby="lines"><h2 id="lines">1. Send an event</h2>
    <p>Put these lines into a page. Other ways, for apps and servers, are in <a href="/docs">the API</a>.</p>
    <${Failed} of=${[keys]} />
    ${!key && (admin
      ? html`<p><${Button} kind="primary" onClick=${create}>Make a write key for these lines<//> <span class="hint">A write key is public: it may stand in a page.</span></p>`
      : html`<p class="hint">Put the app's write key in: an administrator can make one in the settings.</p>`)}
    <div class="json"><pre tabindex="0" role="region" aria-label="Lines for a page">${text}</pre><${CopyButton} text=${text} label="Copy the lines" /></div>
  </section>`;
}

/** The newest events, as they arrive. */
function FirstEvent() {
  const list = useList(inApp("/events"), { limit: 5 });
  usePolling(list.reload, 2000);
  const columns = [
    { title: "Event", render: (/** @type {any} */ row) => row.name ?? "–" },
    { title: "Verdict", render: (/** @type {any} */ row) => html`<${Badge} kind=${row.verdict == "accepted" ? "good" : "bad"}>${row.verdict}<//>` },
    { title: "Person", render: (/** @type {any} */ row) => html`<${Copy} short text=${row.anonymousId ?? row.subjectId} />` },
    { title: "Received", render: (/** @type {any} */ row) => html`<${Time} relative at=${row.receivedAt} />` },
  ];
  const empty = html`<${Empty} title="Waiting for the first event"><p>It appears here as soon as the server has it.</p><//>`;
  const page = list.data && { ...list.data, nextCursor: null };
  return html`<section aria-labelledby="first"><h2 id="first">2. See it arrive</h2>
    <${Table} label="Newest events" list=${{ ...list, data: page }} columns=${columns} id=${(/** @type {any} */ row) => row.eventId ?? row.receivedAt} empty=${empty} />
  </section>`;
}

/** A survey that is fired in the shop that comes with a server at home. */
function Sample({ appId = "" }) {
  const surveys = useResource(inApp("/surveys"));
  const sample = surveys.data?.find((/** @type {any} */ survey) => survey.name == SAMPLE.name && survey.status == "active");
  const create = async () => {
    await post(inApp("/surveys"), SAMPLE);
    say("The sample survey is active.");
    await surveys.reload();
  };
  return html`<section aria-labelledby="sample"><h2 id="sample">3. Ask somebody</h2>
    ${surveys.error && html`<${ErrorView} error=${surveys.error} retry=${surveys.reload} />`}
    <ol class="steps">
      <li>${sample
        ? html`<a href=${link("/apps/:appId/surveys/:surveyId", { appId, surveyId: sample.id })}>The sample survey</a> is active.`
        : can("editor") ? html`<${Button} kind="primary" disabled=${!surveys.data} onClick=${create}>Make the sample survey<//>` : "An editor makes the sample survey here."}</li>
      <li><${LinkButton} href="/demo/" rest=${{ target: "_blank", rel: "noopener" }}>Open the shop<//> <span class="hint">It comes with <code>nudge dev</code>; on another server, use a page with the lines above.</span></li>
      <li>There, add something to the cart: the event <code>cart_updated</code> brings the survey.</li>
    </ol>
  </section>`;
}

/** @param {{ params: Record<string, string> }} props */
export default function Start({ params }) {
  return html`<${PageHead} title="Start"><p>From nothing to an answer in three steps.</p><//>
    <${Snippet} appId=${params.appId} /><${FirstEvent} /><${Sample} appId=${params.appId} />`;
}
