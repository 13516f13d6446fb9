// The plugins that an app can use, which one decides where, and what they keep of a person.
import { del, html, inApp, put, route, say, setQuery, useList, useResource, useState } from "../lib/index.js";
import { Badge, Button, Empty, ErrorView, Form, Input, PageHead, Table, Tabs, Time } from "../ui/index.js";
import { Kept } from "./plugin/kept.js";
import { Upload } from "./plugin/versions.js";
import { manages, ofOwner, ofServer, ownScope, pluginPage } from "./plugin/owner.js";

/** Where a plugin comes from. @type {Record<string, string>} */
const SCOPES = { app: "this app", server: "the server", builtin: "built in" };
/** What a kind of plugin does. @type {Record<string, string>} */
const KINDS = { trigger: "which events fire campaigns", personalization: "what a message says to a person", validation: "which events are accepted" };

/** All of an app, or of the server. */
export function AllPlugins() {
  const list = useList(ofOwner("/plugins"), { cursor: route.value.query.cursor });
  const columns = [
    { title: "Name", sort: "name", render: (/** @type {any} */ row) => html`<a href=${pluginPage(row.name)}>${row.name}</a>` },
    { title: "Kind", sort: "kind", render: (/** @type {any} */ row) => row.kind },
    { title: "From", sort: "scope", render: (/** @type {any} */ row) => SCOPES[row.scope] },
    { title: "Active", sort: "activeVersion", render: (/** @type {any} */ row) => row.activeVersion ?? html`<${Badge} kind="warn">none<//>` },
    { title: "Tried", render: (/** @type {any} */ { rollout }) => (rollout?.candidateVersion ? html`${rollout.candidateVersion} <${Badge} kind="warn">${rollout.strategy}${rollout.percent ? ` · ${rollout.percent} %` : ""}<//>` : "–") },
    { title: "Slot", render: (/** @type {any} */ row) => (row.slot ? html`<${Badge} kind="good">in the slot<//>` : "–") },
    { title: "Changed", sort: "updatedAt", render: (/** @type {any} */ row) => html`<${Time} relative at=${row.updatedAt} />` },
  ];
  return html`${manages() && html`<${Upload} onUploaded=${list.reload} />`}
    <${Table} label="Plugins" list=${list} columns=${columns} id=${(/** @type {any} */ row) => row.name} empty=${html`<${Empty} title="There is no plugin" />`} />`;
}

/** Which plugin decides where none is named. */
export function Slots() {
  const slots = useList(ofOwner("/plugin-slots"));
  const plugins = useResource(ofOwner("/plugins"), { limit: 200 });
  const fill = async (/** @type {string} */ kind, /** @type {string} */ plugin) => {
    await put(ofOwner(`/plugin-slots/${kind}`), { plugin });
    say(`${plugin} is in the ${kind} slot.`);
    await slots.reload();
  };
  const clear = async (/** @type {string} */ kind) => {
    await del(ofOwner(`/plugin-slots/${kind}`));
    say(`The ${kind} slot is empty: ${ofServer() ? "the built-in" : "the server's"} plugin decides.`);
    await slots.reload();
  };
  const usable = (/** @type {string} */ kind) => (plugins.data?.items ?? []).filter((/** @type {any} */ plugin) => plugin.kind == kind && plugin.activeVersion).map(({ name = "" }) => [name, name]);
  const columns = [
    { title: "Decides", render: (/** @type {any} */ row) => html`${KINDS[row.kind]} <span class="hint">${row.kind}</span>` },
    { title: "Plugin", render: (/** @type {any} */ row) => html`<a href=${pluginPage(row.plugin)}>${row.plugin}</a> ${row.version}` },
    { title: "From", render: (/** @type {any} */ row) => SCOPES[row.scope] },
  ];
  const actions = (/** @type {any} */ row) => html`<${Choice} slot=${row} options=${usable(row.kind)} fill=${fill} />
    ${row.scope == ownScope() && html`<${Button} label=${`Empty the ${row.kind} slot`} onClick=${() => clear(row.kind)}>Empty<//>`}`;
  return html`<p>A slot has the plugin that decides wherever a campaign, a definition or a variant names none.</p>
    ${plugins.error && html`<${ErrorView} error=${plugins.error} retry=${plugins.reload} />`}
    <${Table} label="Slots" list=${slots} columns=${columns} id=${(/** @type {any} */ row) => row.kind} actions=${manages() ? actions : undefined} empty=${html`<${Empty} title="There are no slots" />`} />`;
}

/** Another plugin for a slot. @param {{ slot: any, options: [string, string][], fill: (kind: string, plugin: string) => Promise<void> }} props */
function Choice({ slot, options, fill }) {
  const [chosen, setChosen] = useState("");
  const others = options.filter(([name]) => name != slot.plugin);
  if (!others.length) return html`<span class="hint">no other is active</span>`;
  return html`<select aria-label=${`Plugin for the ${slot.kind} slot`} value=${chosen} onChange=${(/** @type {any} */ event) => setChosen(event.currentTarget.value)}>
      <option value="">another plugin…</option>${others.map(([name]) => html`<option value=${name} selected=${name == chosen}>${name}</option>`)}
    </select>
    <${Button} label=${`Put it into the ${slot.kind} slot`} disabled=${!chosen} onClick=${() => fill(slot.kind, chosen)}>Put in<//>`;
}

function State() {
  const { person = "" } = route.value.query;
  const [text, setText] = useState(person);
  return html`<${Form} label="Person" submit="Show" onSubmit=${() => setQuery({ person: text.trim() })} disabled=${!text.trim()}>
      <${Input} label="Anonymous id or external id" value=${text} onInput=${setText} />
    <//>
    ${person && html`<${Kept} key=${person} path=${inApp(`/users/${encodeURIComponent(person)}/plugin-state`)} />`}`;
}

export default function Plugins() {
  const tabs = [
    { id: "plugins", title: "Plugins", render: () => html`<${AllPlugins} />` },
    { id: "slots", title: "Slots", render: () => html`<${Slots} />` },
    { id: "state", title: "State of a person", render: () => html`<${State} />` },
  ];
  return html`<${PageHead} title="Plugins"><p>Plugins decide which events are accepted, whom a campaign reaches, and what it says.</p><//><${Tabs} label="Views" tabs=${tabs} />`;
}
