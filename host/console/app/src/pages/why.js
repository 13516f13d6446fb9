// Why a campaign fired or did not: for any person, campaign and event. Each gate that was checked, in its order, and the
// decision once more.
import { can, html, inApp, link, post, route, setQuery, time, useList, useResource, useState, words } from "../lib/index.js";
import { Badge, Button, Copy, Empty, ErrorView, Icon, Input, LinkButton, Loaded, Notice, PageHead, Search, Select, Table, Time } from "../ui/index.js";
import { nameOf, place, useCampaigns, usePerson } from "./find.js";
import { Again } from "./person-timeline.js";

/** @type {Record<string, ["good" | "bad" | "warn" | "info", string]>} */
const OUTCOMES = {
  fired: ["good", "It fired."],
  not_fired: ["bad", "It did not fire: a gate below was closed."],
  suppressed: ["warn", "It would have fired. Consent, the schedule or a cap kept it from having an effect."],
  deferred: ["warn", "It fires later: when quiet hours or a pause are over."],
  waiting: ["info", "It waits: for its delay, or for what its plugin has set a timer for."],
  processing: ["info", "The event is not processed yet. Look again in a moment."],
  unknown_event: ["bad", "This person has no such event: the id is another's, or the event was removed since."],
};

/** Who. @param {{ person: import("../lib/load.js").Loaded<any> }} props */
function Who({ person }) {
  const { params, query } = route.value;
  const searched = query.who ?? "";
  const list = useList(!query.subject && searched ? inApp("/users") : null, { q: searched, limit: 10 });
  const columns = [
    { title: "Person", render: nameOf },
    { title: "Last seen", render: (/** @type {any} */ row) => html`<${Time} relative at=${row.lastSeenAt} />` },
  ];
  const choose = (/** @type {any} */ row) => html`<${Button} label=${`Choose ${nameOf(row)}`} onClick=${() => setQuery({ subject: row.subjectId, who: "", event: "" })}>Choose<//>`;
  if (query.subject) {
    return html`<p>${person.data ? html`<a href=${link("/apps/:appId/people/:personId", { ...params, personId: person.data.profile.subjectId })}>${nameOf(person.data.profile)}</a>` : html`<code>${query.subject}</code>`}
        ${" "}<${Button} label="Choose another person" onClick=${() => setQuery({ subject: "", event: "" })}>Another<//></p>
      ${person.error && html`<${ErrorView} error=${person.error} retry=${person.reload} />`}`;
  }
  return html`<${Search} label="Search a person" hint="An id, or a part of a property." value=${searched} onInput=${(/** @type {string} */ value) => setQuery({ who: value }, { replace: true })} />
    ${searched && html`<${Table} label="People" list=${list} columns=${columns} id=${(/** @type {any} */ row) => row.subjectId} actions=${choose} empty=${html`<p>Nobody is like that.</p>`} />`}`;
}

/** Which event of the person. @param {{ profile: any }} props */
function Which({ profile }) {
  const { query } = route.value;
  const [typed, setTyped] = useState("");
  const { path, query: kind } = place(profile);
  const list = useList(query.event ? null : `${path}/events`, { ...kind, name: query.name, limit: 10, cursor: query.cursor });
  if (query.event) return html`<p><${Copy} text=${query.event} label="event id" /> <${Button} label="Choose another event" onClick=${() => setQuery({ event: "" })}>Another<//></p>`;
  const columns = [
    { title: "Event", render: (/** @type {any} */ row) => row.name },
    { title: "Properties", render: (/** @type {any} */ row) => html`<code>${JSON.stringify(row.properties).slice(0, 120)}</code>` },
    { title: "Happened", render: (/** @type {any} */ row) => html`<${Time} at=${row.timestamp} />` },
  ];
  const choose = (/** @type {any} */ row) => html`<${Button} label=${`Choose ${row.name} of ${time(row.timestamp)}`} onClick=${() => setQuery({ event: row.eventId })}>Choose<//>`;
  return html`<div class="filters">
      <${Search} label="Only events of the name" value=${query.name ?? ""} onInput=${(/** @type {string} */ value) => setQuery({ name: value }, { replace: true })} />
      <${Input} presses label="Or the event's id" value=${typed} onInput=${setTyped} />
      <p><${Button} disabled=${!typed.trim()} onClick=${() => setQuery({ event: typed.trim() })}>Take this id<//></p>
    </div>
    <${Table} label="Events of the person" list=${list} columns=${columns} id=${(/** @type {any} */ row) => row.eventId} actions=${choose} empty=${html`<${Empty} title="No event is like that"><p>A name must be the whole name.</p><//>`} />`;
}

/** The gates, and the decisions that were made of it. @param {{ subject: string }} props */
function Answer({ subject }) {
  const { campaign = "", event = "" } = route.value.query;
  const found = useResource(inApp("/explain"), { campaignId: campaign, subjectId: subject, eventId: event });
  const decisions = useList(inApp("/decisions"), { campaignId: campaign, subjectId: subject, eventId: event, limit: 10 });
  const [again, setAgain] = useState(/** @type {{ id: string, result: any } | undefined} */ (undefined));
  const run = async (/** @type {string} */ id) => setAgain({ id, result: await post(inApp(`/decisions/${id}/rerun`)) });
  const columns = [
    { title: "Decided", render: (/** @type {any} */ row) => html`<${Time} at=${row.at} />` },
    { title: "By the plugin", render: (/** @type {any} */ row) => html`${row.plugin.name} ${row.plugin.version} <${Copy} short text=${row.plugin.digest} label="digest of the plugin" />` },
    { title: "The campaign's version", render: (/** @type {any} */ row) => row.campaigns.find((/** @type {any} */ one) => one.campaignId == campaign)?.version },
  ];
  const actions = (/** @type {any} */ row) => html`<${Button} onClick=${() => run(row.decisionId)}>Run it again<//>`;
  return html`<section aria-labelledby="answer"><h2 id="answer">Why?</h2>
      <${Loaded} of=${found}>${(/** @type {any} */ { outcome, steps }) => {
        const [kind, text] = OUTCOMES[outcome] ?? ["info", words(outcome)];
        return html`<${Notice} kind=${kind} actions=${html`<${Button} onClick=${() => Promise.all([found.reload(), decisions.reload()])}>Look again<//>`}><strong>${words(outcome)}</strong>. ${text}<//>
          <ol class="gates" aria-label="Gates">${steps.map((/** @type {any} */ { check, passed, detail }) => html`<li class=${passed ? "" : "closed"}>
            <${Badge} kind=${passed ? "good" : "bad"}><${Icon} name=${passed ? "check" : "close"} /> ${passed ? "passed" : "closed"}<//><strong>${words(check)}</strong><span>${detail}</span></li>`)}</ol>`;
      }}<//></section>
    <section aria-labelledby="decisions"><h2 id="decisions">Decisions about it</h2>
      <p>A trigger plugin decided. Running a decision again gives the same version the same events, configuration and answers; nothing takes effect.</p>
      <${Table} label="Decisions" list=${decisions} columns=${columns} id=${(/** @type {any} */ row) => row.decisionId} actions=${can("editor") ? actions : undefined}
        empty=${html`<${Empty} title="No decision is kept"><p>No plugin was asked about this event for this campaign, or it was too long ago.</p><//>`} />
      ${again && html`<h3>Once more: <${Copy} short text=${again.id} label="id of the decision" /></h3><${Again} again=${again.result} />`}
    </section>`;
}

export default function Why() {
  const { query } = route.value;
  const person = usePerson(query.subject);
  const campaigns = useCampaigns();
  const profile = query.subject ? person.data?.profile : undefined;
  // An address may have any id of the person; the routes take the subject's.
  const subject = profile?.subjectId;
  const options = (campaigns.data ?? []).map(({ id, name, kind, status }) => /** @type {[string, string]} */ ([id, `${name} (${kind}, ${status})`]));
  const known = !query.campaign || options.some(([id]) => id == query.campaign);
  const all = [["", "choose"], ...(known ? [] : [[query.campaign, query.campaign]]), ...options];
  const complete = subject && query.campaign && query.event;
  return html`<${PageHead} title="Why?"><p>Why a survey or a message came, or did not.</p><//>
    <section aria-labelledby="who"><h2 id="who">1. Which person?</h2><${Who} person=${person} /></section>
    <section aria-labelledby="what"><h2 id="what">2. Which campaign?</h2>
      ${campaigns.error && html`<${ErrorView} error=${campaigns.error} retry=${campaigns.reload} />`}
      ${campaigns.data && !options.length
        ? html`<${Empty} title="There is no campaign yet" actions=${html`<${LinkButton} href=${link("/apps/:appId/start", route.value.params)}>Begin with a sample<//>`} />`
        : html`<${Select} label="Survey or message" value=${query.campaign ?? ""} options=${all} onChange=${(/** @type {string} */ value) => setQuery({ campaign: value })} />`}
    </section>
    <section aria-labelledby="which"><h2 id="which">3. Which event?</h2>${profile ? html`<${Which} key=${subject} profile=${profile} />` : html`<p class="hint">Choose the person first.</p>`}</section>
    ${complete && html`<${Answer} key=${`${subject} ${query.campaign} ${query.event}`} subject=${subject} />`}`;
}
