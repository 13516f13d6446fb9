// What a version would decide beside the active one: as a shadow, and over recorded events.
import { can, html, inApp, link, number, post, route, setQuery, usePolling, useResource, useState, whole, words } from "../../lib/index.js";
import { Badge, Copy, Empty, ErrorView, Failed, Form, Funnel, Input, Loading, Notice, Progress, Select, Table, Time } from "../../ui/index.js";
import { ofOwner } from "./owner.js";

/** What the active version did, and what the candidate would have done. @type {Record<string, Record<string, [string, string]>>} */
const SIDES = {
  trigger: { added: ["does not fire", "fires"], removed: ["fires", "does not fire"] },
  validation: { added: ["finds nothing wrong", "finds a violation"], removed: ["finds a violation", "finds nothing wrong"] },
  personalization: { added: ["makes no message", "makes a message"], removed: ["makes a message", "makes no message"] },
};
/** @type {Record<string, [string, string]>} */
const OTHERS = {
  violations: ["finds its violations", "finds others"],
  state: ["keeps its state", "keeps another"],
  timer: ["sets its timer", "sets another, or none"],
  content: ["writes its values", "writes others"],
  failed: ["decides", "fails"],
};

/** @param {string} kind @param {string} difference @returns {[string, string]} */
const sides = (kind, difference) => SIDES[kind]?.[difference] ?? OTHERS[difference] ?? ["decides", difference];

/** @param {{ plugin: any, version: any }} props */
function Comparison({ plugin, version: { version, shadow } }) {
  const { kind, activeVersion, rollout } = plugin;
  const current = rollout?.strategy == "shadow" && rollout.candidateVersion == version;
  const fires = sides(kind, "added")[1];
  const rows = [
    ["Both decide the same", shadow.same, shadow.same],
    [`Only one ${fires}`, shadow.removed, shadow.added],
    ["Values, states, timers or violations differ", shadow.changed, shadow.changed],
    ["It fails", null, shadow.failed],
  ];
  const columns = [
    { title: "Event", render: (/** @type {any} */ row) => html`<${Copy} short text=${row.eventId} label="id of the event" />` },
    { title: "Campaign", render: (/** @type {any} */ row) => (row.campaignId ? html`<${Copy} short text=${row.campaignId} label="id of the campaign" />` : "the event's definition") },
    { title: current ? `Active ${activeVersion}` : "Active", render: (/** @type {any} */ row) => sides(kind, row.difference)[0] },
    { title: `Candidate ${version}`, render: (/** @type {any} */ row) => html`<${Badge} kind=${row.difference == "failed" ? "bad" : "warn"}>${sides(kind, row.difference)[1]}<//>` },
    { title: "At", render: (/** @type {any} */ row) => html`<${Time} at=${row.at} />` },
  ];
  const none = html`<${Empty} title="Nothing differs so far"><p>${number(shadow.same)} decisions are the same.</p><//>`;
  return html`<section aria-label=${`Shadow ${version}`}><h2>${version} ${current && html`<${Badge} kind="warn">under way<//>`}</h2>
    <p>Since <${Time} at=${shadow.since} />: ${number(shadow.calls)} batches were shown to both${shadow.skipped > 0 && `, ${number(shadow.skipped)} only to the active one for want of time`}.</p>
    <div class="table" role="region" aria-label="Side by side" tabindex="0"><table>
      <caption class="hidden">Side by side</caption>
      <thead><tr><th scope="col">Decisions</th><th scope="col" class="end">${current ? `Active ${activeVersion}` : "Active"}</th><th scope="col" class="end">Candidate ${version}</th></tr></thead>
      <tbody>${rows.map(([name, active, candidate]) => html`<tr><th scope="row">${name}</th><td class="end">${number(active)}</td><td class="end">${number(candidate)}</td></tr>`)}</tbody>
    </table></div>
    <h3>The first differences</h3>
    <${Table} label=${`Differences of ${version}`} list=${whole(shadow.samples)} columns=${columns} id=${(/** @type {any} */ row) => `${row.eventId} ${row.campaignId} ${row.difference}`} empty=${none} />
  </section>`;
}

/** @param {{ plugin: any }} props */
export function Shadow({ plugin }) {
  const { data, error, reload } = useResource(ofOwner(`/plugins/${plugin.name}/metrics`));
  usePolling(reload, plugin.rollout?.strategy == "shadow" ? 3000 : null);
  if (error && !data) return html`<${ErrorView} error=${error} retry=${reload} />`;
  if (!data) return html`<${Loading} />`;
  const tried = data.versions.filter((/** @type {any} */ version) => version.shadow);
  if (!tried.length) return html`<${Empty} title="No version was tried as a shadow"><p>Activate a version as a shadow: it sees the same calls, and what it would have decided otherwise stands here.</p><//>`;
  return tried.map((/** @type {any} */ version) => html`<${Comparison} key=${version.version} plugin=${plugin} version=${version} />`);
}

// Recorded events through a version and the active one: what would have been decided.

const DAY = 86_400_000;

/** @param {{ result: any }} props */
function Result({ result }) {
  const { samples, active = {}, candidate = {} } = result;
  const { params } = route.value;
  const name = (/** @type {any} */ side, /** @type {string} */ word) => `${word} ${side.version ?? ""}`.trim();
  const columns = [
    { title: "Event", render: (/** @type {any} */ row) => html`${row.name}${row.timer && html` <${Badge}>timer ${row.timer}<//>`} <${Copy} short text=${row.eventId} label="id of the event" />` },
    { title: "At", render: (/** @type {any} */ row) => html`<${Time} at=${row.timestamp} />` },
    { title: "Person", render: (/** @type {any} */ row) => (row.subjectId ? html`<${Copy} short text=${row.subjectId} label="id of the person" />${params.appId && html` <a href=${link("/apps/:appId/why", params, { subject: row.subjectId, campaign: row.campaignId, event: row.eventId })}>Why?</a>`}` : "–") },
    { title: "Campaign", render: (/** @type {any} */ row) => (row.campaignId ? html`<${Copy} short text=${row.campaignId} label="id of the campaign" />` : "–") },
    ...[["active", name(active, "Active")], ["candidate", name(candidate, "Candidate")]].map(([side, title]) => ({ title, render: (/** @type {any} */ row) => (row.only == side ? html`<${Badge} kind="good">fires<//>` : "does not") })),
  ];
  const steps = [["the same", result.same], ["only the active version", result.onlyActive], ["only the candidate", result.onlyCandidate], ["the candidate failed", result.failed], ["the active version failed", result.activeFailed]];
  return html`<section aria-label="Result"><h2>Result</h2>
    ${result.stopped && html`<${Notice} kind="warn">It ended before the time that was asked for: ${words(result.stopped)}.<//>`}
    ${result.approximate > 0 && html`<${Notice}>${number(result.approximate)} decisions are approximate: what was known of the person then is not recorded.<//>`}
    <${Funnel} title=${`${number(result.events)} events, ${number(result.timers)} timers`} head="Outcome" name="Events" steps=${steps.map(([label, value]) => ({ label, value, share: Number(value) / Math.max(1, result.events + result.timers) }))} />
    <h3>Samples that differ</h3>
    <${Table} label="Samples" list=${whole(samples)} columns=${columns} id=${(/** @type {any} */ row) => `${row.eventId} ${row.campaignId} ${row.timer} ${row.only}`} empty=${html`<${Empty} title="Nothing differs" />`} />
  </section>`;
}

/** @param {{ plugin: any }} props */
export function Backtest({ plugin }) {
  const { job, version: asked } = route.value.query;
  const others = plugin.versions.map((/** @type {any} */ { version = "" }) => version).filter((/** @type {string} */ version) => version != plugin.activeVersion);
  const [body, setBody] = useState(/** @type {Record<string, string>} */ ({ version: asked ?? others[0] ?? "", since: new Date(Date.now() - 7 * DAY).toISOString().slice(0, 10), until: "", campaignId: "", limit: "" }));
  const [ended, setEnded] = useState(/** @type {any} */ (undefined));
  const campaigns = useResource(plugin.kind == "validation" ? null : inApp("/campaigns"));
  const surveys = useResource(plugin.kind == "validation" ? null : inApp("/surveys"));
  const set = (/** @type {string} */ name) => (/** @type {string} */ value) => setBody((before) => ({ ...before, [name]: value }));
  const submit = async () => {
    const { version = "", since, until, campaignId, limit } = body;
    const { jobId } = await post(ofOwner(`/plugins/${plugin.name}/versions/${encodeURIComponent(version)}/backtest`), { since, ...(until && { until }), ...(campaignId && { campaignId }), ...(limit && { limit: Number(limit) }) });
    setEnded(undefined);
    setQuery({ job: jobId });
  };
  const targets = [...(campaigns.data ?? []), ...(surveys.data ?? [])].map(({ id = "", name = "" }) => [id, name]);
  const form = can("admin") && (plugin.activeVersion && others.length
    ? html`<${Form} label="Backtest" onSubmit=${submit} submit="Run it">
        <${Select} label="Version" value=${body.version ?? ""} options=${others} onChange=${set("version")} hint=${`It is compared with ${plugin.activeVersion}, which is active. Nothing takes effect.`} />
        <div class="row">
          <${Input} type="date" label="Events since (UTC)" at="/since" value=${body.since ?? ""} onInput=${set("since")} />
          <${Input} type="date" label="Until (UTC)" at="/until" hint="Empty: now." value=${body.until ?? ""} onInput=${set("until")} />
          <${Input} type="number" label="Events at the most" at="/limit" hint="Empty: 100,000." value=${body.limit ?? ""} onInput=${set("limit")} rest=${{ min: 1, max: 1_000_000 }} />
          ${targets.length > 0 && html`<${Select} label="Campaign" at="/campaignId" value=${body.campaignId ?? ""} options=${[["", "all that it decides about"], ...targets]} onChange=${set("campaignId")} />`}
        </div>
      <//>`
    : html`<${Empty} title="There is nothing to compare"><p>A backtest takes an active version and another one: upload it.</p><//>`);
  return html`<${Failed} of=${[campaigns, surveys]} />${form}
    ${job && html`<${Progress} key=${job} jobId=${job} label="Backtest" onEnd=${setEnded} />`}
    ${ended?.result && ended.jobId == job && html`<${Result} result=${ended.result} />`}
    ${!job && !can("admin") && html`<${Empty} title="No backtest is shown"><p>An administrator runs one and sends its address.</p><//>`}`;
}
