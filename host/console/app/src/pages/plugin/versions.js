// The versions of a plugin: uploaded, brought into force, tried, and looked at.
import { bytes, del, html, link, post, request, route, say, setQuery, useLayoutEffect, useState, whole } from "../../lib/index.js";
import { Badge, Button, Checkbox, confirm, Copy, Dialog, Empty, ErrorView, FileDrop, Form, Input, Json, LinkButton, Notice, Select, Table, Time } from "../../ui/index.js";
import { ofOwner, pluginPage } from "./owner.js";

/** @type {Record<string, string>} */
const CHECKS = {
  component: "The file is a WebAssembly component; its SHA-256",
  world: "It exports one world, and so has a kind",
  imports: "It imports only what its world has",
  size: "It is small enough",
  compile: "It compiles in time",
  describe: "It says its name and version",
  "self-test": "It stands a test call",
  decision: "It decides about a made-up batch",
};

/** What was checked. @param {{ checks: any[] }} props */
export const Checks = ({ checks }) => html`<ul class="checks">${checks.map(({ name, passed, detail }) => html`<li>
  <${Badge} kind=${passed ? "good" : "bad"}>${passed ? "passed" : "failed"}<//> ${CHECKS[name] ?? name}${detail && html`: <span class="hint">${detail}</span>`}
</li>`)}</ul>`;

/** @param {{ onUploaded: () => unknown }} props */
export function Upload({ onUploaded }) {
  const [busy, setBusy] = useState("");
  const [error, setError] = useState(/** @type {Error | undefined} */ (undefined));
  const [version, setVersion] = useState(/** @type {any} */ (undefined));
  const upload = async (/** @type {File} */ file) => {
    setBusy(`Checking ${file.name}, ${bytes(file.size)} …`);
    setError(undefined);
    setVersion(undefined);
    try {
      const uploaded = await request("POST", ofOwner("/plugins"), { body: new Blob([file], { type: "application/wasm" }) });
      setVersion(uploaded);
      say(`${uploaded.name} ${uploaded.version} is ready.`);
      await onUploaded();
    } catch (thrown) {
      setError(/** @type {Error} */ (thrown));
    } finally {
      setBusy("");
    }
  };
  return html`<section aria-label="Upload">
    <${FileDrop} label="Drop a component here, or choose it" accept=".wasm,application/wasm" busy=${Boolean(busy)} onFile=${upload}
      hint=${html`The file that <code>nudge plugin build</code> made. It decides nothing before it is activated.`} />
    ${busy && html`<p role="status">${busy}</p>`}
    ${error && html`<${ErrorView} error=${error} />`}
    ${version && html`<${Notice} kind="good" actions=${route.value.params.name !== version.name && html`<a class="button" href=${pluginPage(version.name)}>Show ${version.name}</a>`}>
      <strong>${version.name} ${version.version}</strong> passed all checks.<${Checks} checks=${version.checks} />
    <//>`}
  </section>`;
}

// Which version decides, which one is tried, and the ways from one to the other.

/** What a strategy does. @type {Record<string, string>} */
export const STRATEGIES = {
  instant: "at once: it decides about everybody from now on",
  shadow: "as a shadow: it sees everything, is compared, and decides nothing",
  canary: "as a canary: it decides about some people",
};

/** How many of a hundred people. @param {{ percent: number, onInput: (percent: number) => void, hint?: any }} props */
const Percent = ({ percent, onInput, hint }) =>
  html`<${Input} type="range" label=${`Share of people: ${percent} %`} at="/percent" hint=${hint} value=${String(percent)} onInput=${(/** @type {string} */ value) => onInput(Number(value))} rest=${{ min: 1, max: 100, "aria-valuetext": `${percent} percent` }} />`;

/** Asks how a version comes into force. @param {{ plugin: any, version: string, onDone: () => unknown, onClose: () => void }} props */
export function Activate({ plugin, version, onDone, onClose }) {
  const first = !plugin.activeVersion;
  const [strategy, setStrategy] = useState(first ? "instant" : "shadow");
  const [percent, setPercent] = useState(10);
  const [slot, setSlot] = useState(false);
  const submit = async () => {
    await post(ofOwner(`/plugins/${plugin.name}/activate`), { version, strategy, ...(strategy == "canary" && { percent }), ...(slot && { slot }) });
    say(strategy == "instant" ? `${version} decides.` : `${version} is tried as a ${strategy}.`);
    onClose();
    await onDone();
  };
  const options = Object.entries(STRATEGIES).filter(([name]) => !first || name == "instant");
  return html`<${Dialog} title=${`Activate ${version}`} onClose=${onClose}>
    <${Form} onSubmit=${submit} submit="Activate" actions=${html`<${Button} onClick=${onClose}>Cancel<//>`}>
      <${Select} label="How" at="/strategy" value=${strategy} options=${options} onChange=${setStrategy} hint=${first ? "A plugin's first version has none to be compared with." : undefined} />
      ${strategy == "canary" && html`<${Percent} percent=${percent} onInput=${setPercent} />`}
      ${!plugin.slot && html`<${Checkbox} label=${`Put it into the ${plugin.kind} slot too`} at="/slot" hint="It then decides wherever no plugin is named." checked=${slot} onChange=${setSlot} />`}
    <//>
  <//>`;
}

/** The candidate's share of people. @param {{ plugin: any, change: (path: string, body: any, done: string) => Promise<void> }} props */
function Canary({ plugin, change }) {
  const { candidateVersion, percent: now = 10, strategy } = plugin.rollout;
  const [percent, setPercent] = useState(now);
  useLayoutEffect(() => setPercent(now), [now]);
  const running = strategy == "canary";
  const submit = () => change("activate", { version: candidateVersion, strategy: "canary", percent }, `${candidateVersion} decides about ${percent} % of people.`);
  return html`<${Form} label="Canary" onSubmit=${submit} submit=${running ? "Change the share" : "Make it a canary"} disabled=${running && percent === now}>
    <${Percent} percent=${percent} onInput=${setPercent} hint="Who is among them is a stable hash: a greater share keeps those of a smaller one." />
  <//>`;
}

/** @param {{ plugin: any, admin: boolean, reload: () => Promise<void> }} props */
export function Rollout({ plugin, admin, reload }) {
  const { name, activeVersion, rollout } = plugin;
  const change = async (/** @type {string} */ path, /** @type {any} */ body, /** @type {string} */ done) => {
    await post(ofOwner(`/plugins/${name}/${path}`), body);
    say(done);
    await reload();
  };
  if (!activeVersion) return html`<${Notice} kind="warn">No version is active: ${admin ? "activate one of those below." : "an administrator activates one."}<//>`;
  const candidate = rollout?.candidateVersion;
  if (!candidate) {
    const previous = rollout?.previousVersion;
    const back = () => confirm({
      title: `Roll back to ${previous}?`,
      text: `${activeVersion} stops deciding at once. What it is deciding now, it ends.`,
      action: "Roll back",
      danger: true,
      run: () => change("rollback", {}, `${previous} decides again.`),
    });
    return html`<p><strong>${activeVersion}</strong> decides${rollout && html` since <${Time} at=${rollout.since} />`}. ${admin && previous && html`<${Button} kind="danger" onClick=${back}>Roll back to ${previous}<//>`}</p>`;
  }
  const promote = () => confirm({
    title: `Promote ${candidate}?`,
    text: `It decides about everybody instead of ${activeVersion}, which can be brought back.`,
    action: "Promote",
    run: () => change("promote", {}, `${candidate} decides.`),
  });
  const giveUp = () => confirm({
    title: `Give ${candidate} up?`,
    text: `${activeVersion} decides about everybody again. ${candidate} can be tried again.`,
    action: "Roll back",
    danger: true,
    run: () => change("rollback", {}, `${candidate} was given up.`),
  });
  return html`<section aria-labelledby="rollout"><h2 id="rollout">Roll-out</h2>
    <p><strong>${activeVersion}</strong> decides. <strong>${candidate}</strong> is tried as a <${Badge}>${rollout.strategy}${rollout.percent ? ` · ${rollout.percent} %` : ""}<//> since <${Time} at=${rollout.since} />.
      A candidate that fails too often is given up by itself.</p>
    ${admin && html`<p class="actions"><${Button} kind="primary" onClick=${promote}>Promote ${candidate}<//><${Button} kind="danger" onClick=${giveUp}>Roll back: give ${candidate} up<//></p>
      <${Canary} plugin=${plugin} change=${change} />`}
  </section>`;
}

// The versions of a plugin. They never change: what differs has another version.

/** What a version is in the roll-out. @param {any} plugin @param {string} version @returns {[string, string] | undefined} */
function part({ activeVersion, rollout }, version) {
  if (version == activeVersion) return ["good", "active"];
  if (version == rollout?.candidateVersion) return ["warn", rollout.strategy];
  if (version == rollout?.previousVersion) return ["info", "the one before"];
}

/** @param {{ version: any }} props */
const Details = ({ version }) => html`<${Dialog} wide title=${`${version.name} ${version.version}`} onClose=${() => setQuery({ shown: "" }, { replace: true })}>
  ${version.description && html`<p>${version.description}</p>`}
  <p>SHA-256: <${Copy} text=${version.digest} label="digest" /></p>
  ${version.checks.length > 0 && html`<h3>Checks</h3><${Checks} checks=${version.checks} />`}
  <h3>Imports</h3><ul>${version.imports.map((/** @type {string} */ name) => html`<li><code>${name}</code></li>`)}</ul>
  ${version.configSchema && html`<h3>Configuration</h3><${Json} value=${version.configSchema} label="Schema of the configuration" />`}
<//>`;

/** @param {{ plugin: any, admin: boolean, reload: () => Promise<void> }} props */
export function Versions({ plugin, admin, reload }) {
  const { path, query } = route.value;
  const shown = plugin.versions.find((/** @type {any} */ { version }) => version == query.shown);
  const [activated, setActivated] = useState("");
  const remove = (/** @type {string} */ version) => confirm({
    title: `Delete version ${version}?`,
    text: "Its component goes; the same version can't be uploaded with other bytes.",
    action: "Delete",
    danger: true,
    run: async () => {
      await del(ofOwner(`/plugins/${plugin.name}/versions/${encodeURIComponent(version)}`));
      say(`Version ${version} was deleted.`);
      await reload();
    },
  });
  const columns = [
    { title: "Version", render: (/** @type {any} */ row) => {
      const found = part(plugin, row.version);
      return html`${row.version} ${found && html`<${Badge} kind=${found[0]}>${found[1]}<//>`}`;
    } },
    { title: "Uploaded", render: (/** @type {any} */ row) => html`<${Time} at=${row.uploadedAt} none="built in" />${row.uploadedBy && ` by ${row.uploadedBy}`}` },
    { title: "Size", end: true, render: (/** @type {any} */ row) => (row.sizeBytes ? bytes(row.sizeBytes) : "–") },
    { title: "SHA-256", render: (/** @type {any} */ row) => html`<${Copy} short text=${row.digest} label=${`digest of ${row.version}`} />` },
  ];
  const actions = (/** @type {any} */ { version }) => html`
    <${LinkButton} href=${link(path, {}, { ...query, shown: version })} rest=${{ "aria-label": `Show ${version}` }}>Show<//>
    ${admin && version != plugin.activeVersion && html`<${Button} label=${`Activate ${version}`} onClick=${() => setActivated(version)}>Activate<//>`}
    ${admin && !part(plugin, version) && html`<${Button} kind="danger" label=${`Delete ${version}`} onClick=${() => remove(version)}>Delete<//>`}`;
  return html`${admin && html`<${Upload} onUploaded=${reload} />`}
    <${Table} label="Versions" list=${whole(plugin.versions)} columns=${columns} id=${(/** @type {any} */ row) => row.version} actions=${actions} empty=${html`<${Empty} title="There is no version"><p>Upload one.</p><//>`} />
    ${shown && html`<${Details} version=${shown} />`}
    ${activated && html`<${Activate} plugin=${plugin} version=${activated} onDone=${reload} onClose=${() => setActivated("")} />`}`;
}
