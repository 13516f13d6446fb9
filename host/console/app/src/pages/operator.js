// What whoever runs the server looks after: its plugins, its apps, how it is, and what was done to it.
import { html, link, route, send, useList, useLoaded } from "../lib/index.js";
import { Badge, Button, Copy, Empty, Facts, Loaded, Notice, PageHead, Table, Tabs, Time } from "../ui/index.js";
import { AuditLog } from "./audit-log.js";
import { AllPlugins, Slots } from "./plugins.js";

/** Apps of the workspaces in which the operator has a role: there is no route for all of the server's. */
function Apps() {
  const list = useList("/v1/apps", { cursor: route.value.query.cursor });
  const columns = [
    { title: "Name", render: (/** @type {any} */ row) => html`<a href=${link("/apps/:appId/start", { appId: row.id })}>${row.name}</a>` },
    { title: "Your role", render: (/** @type {any} */ row) => html`<${Badge}>${row.role}<//>` },
    { title: "Id", render: (/** @type {any} */ row) => html`<${Copy} text=${row.id} label="app id" />` },
    { title: "Workspace", render: (/** @type {any} */ row) => html`<${Copy} short text=${row.workspaceId} label="workspace id" />` },
    { title: "Made", render: (/** @type {any} */ row) => html`<${Time} at=${row.createdAt} />` },
    { title: "Changed", render: (/** @type {any} */ row) => html`<${Time} relative at=${row.updatedAt} />` },
  ];
  return html`<p class="hint">Those of workspaces in which you have a role. Being an operator alone opens no app.</p>
    <${Table} label="Apps" list=${list} columns=${columns} id=${(/** @type {any} */ row) => row.id} empty=${html`<${Empty} title="You have a role in no workspace with an app" />`} />`;
}

/**
 * What a route for operators says, or undefined where this listener has none of them.
 * @param {string} path
 * @param {AbortSignal} signal
 */
async function asked(path, signal) {
  try {
    return (await (await send("GET", path, { signal, headers: { accept: "text/plain" } })).text()).trim();
  } catch (error) {
    const { status = 0 } = /** @type {any} */ (error);
    if (status == 503) return "not ready";
    if (status == 404) return undefined;
    throw error;
  }
}

/** Whether it is alive and ready; its metrics. */
function Health() {
  const found = useLoaded("/readyz", async (signal) => {
    const [live, ready, metrics] = await Promise.all(["/livez", "/readyz", "/metrics"].map((path) => asked(path, signal)));
    return { live, ready, metrics };
  });
  const state = (/** @type {string | undefined} */ text) => html`<${Badge} kind=${text == "ok" ? "good" : "bad"}>${text}<//>`;
  return html`<p><${Button} onClick=${found.reload}>Look again<//></p>
    <${Loaded} of=${found}>${(/** @type {any} */ { live, ready, metrics }) => (live === undefined
      ? html`<${Notice}>This server says how it is on a listener of its own, not here: <code>/livez</code>, <code>/readyz</code> and <code>/metrics</code> at <code>--ops-listen</code>, which is 127.0.0.1:9464 unless it was set.<//>`
      : html`<${Facts} facts=${[["Alive", state(live)], ["Ready", state(ready)]]} />
        <h2>Metrics</h2><div class="json"><pre tabindex="0" role="region" aria-label="Metrics">${metrics}</pre></div>`)}<//>`;
}

export default function Operator() {
  const tabs = [
    { id: "plugins", title: "Server plugins", render: () => html`<p>All apps see these, and follow the version that is active here.</p><${AllPlugins} />` },
    { id: "slots", title: "Slots", render: () => html`<${Slots} />` },
    { id: "apps", title: "Apps", render: () => html`<${Apps} />` },
    { id: "health", title: "Health", render: () => html`<${Health} />` },
    { id: "audit", title: "Audit log", render: () => html`<${AuditLog} path="/v1/operator/audit-log" name="server-audit-log.csv" />` },
  ];
  return html`<${PageHead} title="Operator" /><${Tabs} label="The server" tabs=${tabs} />`;
}
