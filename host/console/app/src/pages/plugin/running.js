// How a plugin runs: its statistics, and what it logs.
import { bytes, get, html, number, percent, route, setQuery, time, useList, useLoaded, usePolling, useState, whole, words, zone } from "../../lib/index.js";
import { Badge, Button, Chart, Empty, ErrorView, Loading, Select, Table, Time } from "../../ui/index.js";
import { ofOwner } from "./owner.js";

const MINUTE = 60_000;
/** Counts are kept for seven days, by the minute. @type {Record<string, { title: string, minutes: number }>} */
const RANGES = { hour: { title: "the last hour", minutes: 60 }, day: { title: "the last day", minutes: 1440 }, week: { title: "the last week", minutes: 10_080 } };
const WINDOWS = 12;

/** The statistics of a range and of its twelfths. @param {string} path @param {number} minutes @param {AbortSignal} signal */
async function statistics(path, minutes, signal) {
  const to = Math.ceil(Date.now() / MINUTE) * MINUTE;
  const step = (minutes / WINDOWS) * MINUTE;
  const begins = Array.from({ length: WINDOWS }, (_, index) => to - (WINDOWS - index) * step);
  const ask = (/** @type {number} */ from, /** @type {number} */ until) => get(path, { from: new Date(from).toISOString(), to: new Date(until).toISOString() }, signal);
  const [all, ...parts] = await Promise.all([ask(begins[0] ?? to, to), ...begins.map((from) => ask(from, from + step))]);
  return { all, parts, begins };
}

/** @param {number} at @param {number} minutes */
const label = (at, minutes) => new Date(at).toLocaleString(undefined, { timeZone: zone.value || undefined, hour: "2-digit", ...(minutes > 1440 ? { weekday: "short" } : { minute: "2-digit" }) });

const failures = (/** @type {any} */ row) => Object.entries(row.failures).filter(([, count]) => Number(count) > 0).map(([name, count]) => `${words(name)}: ${number(Number(count))}`).join(", ");
const micros = (/** @type {number} */ value) => (value < 1000 ? `${number(value)} µs` : `${number(value / 1000)} ms`);

/** @param {{ name: string }} props */
export function Statistics({ name }) {
  const { range = "day" } = route.value.query;
  const { minutes, title } = RANGES[range] ?? { title: "the last day", minutes: 1440 };
  const path = ofOwner(`/plugins/${name}/metrics`);
  const found = useLoaded(`${path} ${minutes}`, (signal) => statistics(path, minutes, signal));
  const filter = html`<div class="filters"><${Select} label="Time" value=${range} options=${Object.entries(RANGES).map(([key, { title }]) => [key, title])} onChange=${(/** @type {string} */ value) => setQuery({ range: value == "day" ? "" : value })} /><p class="field"><${Button} onClick=${found.reload}>Ask again<//></p></div>`;
  if (found.error && !found.data) return html`<${ErrorView} error=${found.error} retry=${found.reload} />`;
  if (!found.data) return html`<${Loading} />`;
  const { all, parts, begins } = found.data;
  const versions = all.versions.filter((/** @type {any} */ version) => version.calls > 0);
  const labels = begins.map((at) => label(at, minutes));
  const series = (/** @type {(version: any) => number | null} */ value) => versions.map(({ version: name = "" }) => ({
    name,
    values: parts.map(({ versions }) => value(versions.find((/** @type {any} */ { version = "" }) => version == name) ?? { calls: 0, failures: {}, latencyMicros: { p50: 0, p95: 0 } })),
  }));
  const columns = [
    { title: "Version", render: (/** @type {any} */ row) => row.version },
    { title: "Calls", end: true, render: (/** @type {any} */ row) => number(row.calls) },
    { title: "Decisions", end: true, render: (/** @type {any} */ row) => number(row.items) },
    { title: "Failed", end: true, render: (/** @type {any} */ row) => html`${percent(row.failureRate)} ${failures(row) && html`<span class="hint">${failures(row)}</span>`}` },
    ...["p50", "p95", "p99", "max"].map((name) => ({ title: name, end: true, render: (/** @type {any} */ row) => micros(row.latencyMicros[name]) })),
    { title: "Most memory", end: true, render: (/** @type {any} */ row) => bytes(row.memoryPeakBytes) },
    { title: "Batches tried in parts, calls made again", end: true, render: (/** @type {any} */ row) => `${number(row.takenApart)}, ${number(row.retried)}` },
  ];
  const empty = html`<${Empty} title=${`It was not called in ${title}`}><p>A plugin is called once it is active and in a slot, or named by a campaign, a definition or a variant.</p><//>`;
  const failed = (/** @type {any} */ version) => Object.values(version.failures).reduce((sum, count) => sum + count, 0);
  return html`${filter}
    <${Table} label="By version" list=${whole(versions)} columns=${columns} id=${(/** @type {any} */ row) => row.version} empty=${empty} />
    ${versions.length > 0 && html`<p class="hint">From ${time(all.from)} to ${time(all.to)}; quantiles are rounded up by at most a fifth.</p>
      <${Chart} title="Latency (95 of 100 calls are faster), µs" head="From" labels=${labels} series=${series((version) => (version.calls ? version.latencyMicros.p95 : null))} />
      <${Chart} title="Latency (median), µs" head="From" labels=${labels} series=${series((version) => (version.calls ? version.latencyMicros.p50 : null))} />
      <${Chart} kind="bars" title="Calls" head="From" labels=${labels} series=${series((version) => version.calls)} />
      <${Chart} kind="bars" title="Failed calls" head="From" labels=${labels} series=${series(failed)} />`}`;
}

// What a plugin logs, as it comes.

const LEVELS = ["debug", "info", "warn", "error"];
/** @type {Record<string, string>} */
const KINDS = { warn: "warn", error: "bad" };

/** @param {{ plugin: any }} props */
export function Logs({ plugin }) {
  const { level = "", version = "", cursor = "" } = route.value.query;
  const [paused, setPaused] = useState(false);
  const list = useList(ofOwner(`/plugins/${plugin.name}/logs`), { level, version, cursor });
  // The lines of an older page do not change.
  usePolling(list.reload, paused || cursor ? null : 2000);
  const columns = [
    { title: "At", render: (/** @type {any} */ row) => html`<${Time} at=${row.at} />` },
    { title: "Level", render: (/** @type {any} */ row) => html`<${Badge} kind=${KINDS[row.level] ?? "info"}>${row.level}<//>` },
    { title: "Version", render: (/** @type {any} */ row) => `${row.version}${row.kind == "decision" ? "" : ` · ${row.kind}`}` },
    { title: "Message", render: (/** @type {any} */ row) => html`<code>${row.message}</code>` },
  ];
  const versions = plugin.versions.map((/** @type {any} */ { version = "" }) => [version, version]);
  const empty = level || version
    ? html`<${Empty} title="No line is like that" actions=${html`<${Button} onClick=${() => setQuery({ level: "", version: "" })}>Show all<//>`} />`
    : html`<${Empty} title="It has logged nothing"><p>What a plugin logs appears here within seconds.</p><//>`;
  return html`<div class="filters">
      <${Select} label="From level" value=${level} options=${[["", "all"], ...LEVELS.map((one) => [one, one])]} onChange=${(/** @type {string} */ value) => setQuery({ level: value })} />
      <${Select} label="Version" value=${version} options=${[["", "all"], ...versions]} onChange=${(/** @type {string} */ value) => setQuery({ version: value })} />
      <p class="field">${cursor ? html`<span class="hint">Older lines: new ones come on the first page.</span>` : html`<${Button} onClick=${() => setPaused(!paused)}>${paused ? "Go on" : "Pause"}<//> <span class="hint" role="status">${paused ? "paused" : "new lines appear by themselves"}</span>`}</p>
    </div>
    <${Table} label="Log" list=${list} columns=${columns} id=${(/** @type {any} */ row) => `${row.at} ${row.version} ${row.kind} ${row.message}`} empty=${empty} />`;
}
