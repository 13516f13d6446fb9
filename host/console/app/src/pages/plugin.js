// One plugin: its versions, what is tried, how it fares, what it logs.
import { del, go, html, number, percent, say, useResource } from "../lib/index.js";
import { Badge, Button, confirm, ErrorView, Loading, Notice, PageHead, Tabs } from "../ui/index.js";
import { Logs, Statistics } from "./plugin/running.js";
import { Backtest, Shadow } from "./plugin/trials.js";
import { Rollout, Versions } from "./plugin/versions.js";
import { listPage, manages, ofOwner, ofServer, ownScope } from "./plugin/owner.js";

/** @type {Record<string, string>} */
const HEALTH = { healthy: "good", degraded: "warn", failing: "bad" };

/** @param {{ params: Record<string, string> }} props */
export default function Plugin({ params }) {
  const { data: plugin, error, reload } = useResource(ofOwner(`/plugins/${params.name}`));
  const back = { href: listPage(), title: ofServer() ? "Operator" : "Plugins" };
  if (error && !plugin) return html`<${PageHead} title=${params.name ?? ""} back=${back} /><${ErrorView} error=${error} retry=${reload} />`;
  if (!plugin) return html`<${Loading} />`;
  const { name, kind, scope, slot, health } = plugin;
  const admin = manages() && scope == ownScope();
  const remove = () => confirm({
    title: `Remove ${name}?`,
    text: "All its versions go. It is refused while something needs the plugin.",
    action: "Remove",
    danger: true,
    type: name,
    run: async () => {
      await del(ofOwner(`/plugins/${name}`));
      say(`${name} was removed.`);
      go(back.href);
    },
  });
  const tabs = [
    { id: "versions", title: "Versions", render: () => html`<${Versions} plugin=${plugin} admin=${admin} reload=${reload} />` },
    { id: "shadow", title: "Shadow", render: () => html`<${Shadow} plugin=${plugin} />` },
    // The server's plugins have one for each app.
    ...(ofServer() ? [] : [{ id: "backtest", title: "Backtest", render: () => html`<${Backtest} plugin=${plugin} />` }]),
    { id: "statistics", title: "Statistics", render: () => html`<${Statistics} name=${name} />` },
    { id: "logs", title: "Logs", render: () => html`<${Logs} plugin=${plugin} />` },
  ];
  return html`<${PageHead} title=${name} back=${back} actions=${admin && html`<${Button} kind="danger" onClick=${remove}>Remove<//>`}>
      <p><${Badge}>${kind}<//> ${scope != "app" && html`<${Badge}>${scope == "server" ? "the server's" : "built in"}<//>`} ${slot && html`<${Badge} kind="good">in the slot<//>`}
        <${Badge} kind=${HEALTH[health.state]}>${health.state}<//> ${number(health.calls)} calls in the last quarter of an hour${health.calls > 0 && `, ${percent(health.failureRate)} failed`}</p>
    <//>
    ${error && html`<${ErrorView} error=${error} retry=${reload} />`}
    ${scope == "server" && !ofServer() && html`<${Notice}>Operators change this plugin for all apps.<//>`}
    <${Rollout} plugin=${plugin} admin=${admin} reload=${reload} />
    <${Tabs} label="About the plugin" tabs=${tabs} />`;
}
