// Events that broke their definition, or on which a plugin failed: grouped by reason, mended and replayed, one or all of
// a filter. All of the filter is what the server finds, never only the page.
import { can, del, downloadCsv, html, inApp, link, number, post, route, say, setQuery, shortId, useList, useResource, useState, words } from "../lib/index.js";
import { Badge, Button, confirm, Copy, Day, Dialog, Empty, Form, Json, JsonField, LinkButton, Loaded, Notice, PageHead, Progress, Search, Select, Table, Tabs, Time } from "../ui/index.js";

const STAGES = ["validation", "trigger", "personalization"];
const FILTERS = ["eventName", "reason", "stage", "from", "to"];

/** The filter that is in the URL. @returns {Record<string, string>} */
const filter = () => Object.fromEntries(FILTERS.flatMap((name) => (route.value.query[name] ? [[name, route.value.query[name] ?? ""]] : [])));

/** What a filter says, in words. */
function described() {
  const parts = Object.entries(filter()).map(([name, value]) => `${name.replace("Name", "")} ${value}`);
  return parts.length ? parts.join(", ") : "all letters";
}

/** A change of the properties, then the replay. @param {{ title: string, run: (patch: any) => Promise<void>, onClose: () => void, children?: any }} props */
function Replay({ title, run, onClose, children }) {
  const [patch, setPatch] = useState(/** @type {any} */ ({}));
  const submit = async () => {
    await run(Object.keys(patch).length ? patch : undefined);
    onClose();
  };
  return html`<${Dialog} wide title=${title} onClose=${onClose}>
    ${children}
    <${Form} onSubmit=${submit} submit="Replay" actions=${html`<${Button} onClick=${onClose}>Cancel<//>`}>
      <${JsonField} label="Change of the properties" at="/patch" rows=${6} value=${patch} onChange=${setPatch}
        hint=${html`A merge patch: <code>{"total": 42}</code> sets, <code>{"totl": null}</code> removes. Empty: the event as it was.`} />
    <//>
  <//>`;
}

/** Letters by event and reason. */
function Groups() {
  const list = useList(inApp("/dead-letters/summary"), { ...filter(), cursor: route.value.query.cursor });
  const columns = [
    { title: "Event", render: (/** @type {any} */ row) => html`<a href=${link(route.value.path, {}, { ...filter(), eventName: row.eventName, reason: row.reason, tab: "letters" })}>${row.eventName}</a>` },
    { title: "Reason", render: (/** @type {any} */ row) => words(row.reason) },
    { title: "Letters", end: true, render: (/** @type {any} */ row) => number(row.count) },
    { title: "First", render: (/** @type {any} */ row) => html`<${Time} relative at=${row.firstSeenAt} />` },
    { title: "Last", render: (/** @type {any} */ row) => html`<${Time} relative at=${row.lastSeenAt} />` },
  ];
  return html`<${Table} label="Letters by reason" list=${list} columns=${columns} id=${(/** @type {any} */ row) => `${row.eventName} ${row.reason}`} empty=${html`<${None} />`} />`;
}

const None = () =>
  Object.keys(filter()).length
    ? html`<${Empty} title="No letter is like that" actions=${html`<${Button} onClick=${() => setQuery(Object.fromEntries(FILTERS.map((name) => [name, ""])))}>Show all<//>`} />`
    : html`<${Empty} title="There is no dead letter"><p>An event that breaks its definition, or on which a plugin fails, is kept here for 30 days.</p><//>`;

/** One letter, over the list. @param {{ id: string }} props */
function Letter({ id }) {
  const found = useResource(inApp(`/dead-letters/${id}`));
  const { eventName = "Letter", violations, event } = found.data ?? {};
  const close = () => setQuery({ letter: "", cursor: route.value.query.cursor }, { replace: true });
  return html`<${Dialog} wide title=${eventName} onClose=${close}><p><${Copy} text=${id} label="id of the letter" /></p><${Loaded} of=${found}>${() => html`<${Json} value=${{ violations, event }} label="Letter" />`}<//><//>`;
}

/** The letters of the filter. */
function Letters() {
  const list = useList(inApp("/dead-letters"), { ...filter(), cursor: route.value.query.cursor });
  const { path, query } = route.value;
  const [mended, setMended] = useState(/** @type {any} */ (undefined));
  const replay = async (/** @type {any} */ letter, /** @type {any} */ patch) => {
    const { status, violations = [] } = await post(inApp(`/dead-letters/${letter.id}/replay`), patch ? { patch } : {});
    if (status != "replayed") throw new Error(`It still fails. ${violations.map((/** @type {any} */ one) => `${one.property}: expected ${one.expected}`).join("; ")}`);
    say("The event was replayed.");
    await list.reload();
  };
  const acknowledge = (/** @type {any} */ letter) =>
    confirm({
      title: `Acknowledge the letter of ${letter.eventName}?`,
      text: "It goes, and can't be replayed any more.",
      action: "Acknowledge",
      danger: true,
      run: async () => {
        await del(inApp(`/dead-letters/${letter.id}`));
        say("The letter is acknowledged.");
        await list.reload();
      },
    });
  const columns = [
    { title: "Event", render: (/** @type {any} */ row) => row.eventName },
    { title: "Reason", render: (/** @type {any} */ row) => html`${words(row.reason)}${row.violations.map((/** @type {any} */ one) => html` <${Badge} kind="bad"><code>${one.property}</code> ${words(one.code)}<//>`)}` },
    { title: "Stage", render: (/** @type {any} */ row) => `${row.stage}${row.plugin ? ` · ${row.plugin.name} ${row.plugin.version}` : ""}` },
    { title: "Person", render: (/** @type {any} */ row) => html`<a href=${link("/apps/:appId/people/:personId", { ...route.value.params, personId: row.subjectId })}>${shortId(row.anonymousId ?? row.subjectId)}</a>` },
    { title: "Received", render: (/** @type {any} */ row) => html`<${Time} at=${row.receivedAt} />` },
  ];
  const actions = (/** @type {any} */ row) => html`
    <${LinkButton} href=${link(path, {}, { ...query, letter: row.id })} rest=${{ "aria-label": `Show ${row.eventName}` }}>Show<//>
    ${can("editor") && html`<${Button} label=${`Fix and replay ${row.eventName}`} onClick=${() => setMended(row)}>Fix and replay<//>
      <${Button} label=${`Acknowledge ${row.eventName}`} onClick=${() => acknowledge(row)}>Acknowledge<//>`}`;
  return html`<p class="actions"><${Button} onClick=${() => downloadCsv(inApp("/dead-letters"), filter(), "dead-letters.csv")}>All of the filter as CSV<//></p>
    <${Table} label="Letters" list=${list} columns=${columns} id=${(/** @type {any} */ row) => row.id} actions=${actions} empty=${html`<${None} />`} />
    ${query.letter && html`<${Letter} id=${query.letter} />`}
    ${mended && html`<${Replay} title=${`Fix and replay ${mended.eventName}`} run=${(/** @type {any} */ patch) => replay(mended, patch)} onClose=${() => setMended(undefined)}><${Json} value=${mended.event} label="Event" /><//>`}`;
}

export default function DeadLetters() {
  const { query } = route.value;
  // A job goes on without us: it is in the address, so that a reload shows how far it is.
  const job = query.replaying ?? query.acknowledging;
  const [replaying, setReplaying] = useState(false);
  const [ended, setEnded] = useState(0);
  const replayAll = async (/** @type {any} */ patch) => {
    const { jobId } = await post(inApp("/dead-letters/replay"), { filter: filter(), patch });
    setQuery({ replaying: jobId, acknowledging: "" });
  };
  const acknowledgeAll = () =>
    confirm({
      title: "Acknowledge all of the filter?",
      text: `These are ${described()}. They go, and can't be replayed any more.`,
      action: "Acknowledge",
      danger: true,
      run: async () => {
        const { jobId } = await post(inApp("/dead-letters/acknowledge"), { filter: filter() });
        setQuery({ acknowledging: jobId, replaying: "" });
      },
    });
  const end = () => {
    setEnded(ended + 1);
    setQuery({}, { replace: true });
  };
  const actions = can("editor") && html`<${Button} onClick=${() => setReplaying(true)}>Replay all of the filter<//><${Button} kind="danger" onClick=${acknowledgeAll}>Acknowledge all of the filter<//>`;
  const set = (/** @type {string} */ name) => (/** @type {string} */ value) => setQuery({ [name]: value }, { replace: true });
  return html`<${PageHead} title="Dead letters" actions=${actions}><p><a href=${link("/apps/:appId/definitions", route.value.params)}>Definitions</a> say what events must look like.</p><//>
    <div class="filters">
      <${Search} label="Event" value=${query.eventName ?? ""} onInput=${set("eventName")} />
      <${Search} label="Reason" value=${query.reason ?? ""} onInput=${set("reason")} />
      <${Select} label="Stage" value=${query.stage ?? ""} options=${[["", "all"], ...STAGES.map((one) => [one, one])]} onChange=${set("stage")} />
      <${Day} label="From (UTC)" value=${query.from} onInput=${set("from")} />
      <${Day} label="To (UTC)" value=${query.to} onInput=${set("to")} />
    </div>
    ${job && html`<${Progress} key=${job} jobId=${job} label=${query.replaying ? "Replaying letters" : "Acknowledging letters"} onEnd=${end} />`}
    <${Tabs} key=${ended} label="Views" tabs=${[{ id: "groups", title: "By reason", render: () => html`<${Groups} />` }, { id: "letters", title: "Letters", render: () => html`<${Letters} />` }]} />
    ${replaying && html`<${Replay} title="Replay all of the filter" run=${replayAll} onClose=${() => setReplaying(false)}><${Notice}>This is done to all letters of the filter, on every page: ${described()}.<//><//>`}`;
}
