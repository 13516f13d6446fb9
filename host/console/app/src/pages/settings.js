// Settings of the app: its name, its keys, what it sends push messages with, and its rules.
import { app, del, go, html, inApp, link, loadSession, request, say, useResource, useState } from "../lib/index.js";
import { Button, confirm, Copy, Facts, Form, Input, Loaded, PageHead, Tabs, Time, useSaving } from "../ui/index.js";
import { Credentials, IdentityKeys, Keys } from "./settings-keys.js";
import { Rules } from "./settings-rules.js";

/** @param {{ own: any, onSaved: (app: any) => void }} props own: the app */
function Name({ own, onSaved }) {
  const [name, setName] = useState(own.name);
  const [save, dialog] = useSaving(inApp(""), async (saved) => {
    setName(saved.name);
    onSaved(saved);
    await loadSession();
    return "The app is renamed.";
  });
  return html`<${Form} label="Name" onSubmit=${() => save({ name }, own.version)} submit="Rename" disabled=${name == own.name}><${Input} label="Name" at="/name" value=${name} onInput=${setName} /><//>${dialog}`;
}

/** Another app of the same workspace. */
function Another() {
  const [name, setName] = useState("");
  const create = async () => {
    const made = await request("POST", "/v1/apps", { body: { name, workspaceId: app.value?.workspaceId } });
    await loadSession();
    go(link("/apps/:appId/start", { appId: made.id }));
    say(`The app “${made.name}” is made.`);
  };
  return html`<${Form} label="Another app" onSubmit=${create} submit="Make the app" disabled=${!name}><${Input} label="Name of another app" at="/name" value=${name} onInput=${setName} /><//>`;
}

function OwnApp() {
  const found = useResource(inApp(""));
  const remove = (/** @type {any} */ own) =>
    confirm({
      title: `Delete the app “${own.name}”?`,
      text: "All its people, events, surveys, messages and keys go. SDKs and backends are refused from now on. It can't be undone.",
      action: "Delete the app",
      danger: true,
      type: own.name,
      run: async () => {
        await del(inApp(""));
        go(link("/"), { replace: true });
        await loadSession();
        say(`The app “${own.name}” is deleted. Its data goes in the background.`);
      },
    });
  return html`<${Loaded} of=${found}>${(/** @type {any} */ own) => html`
    <${Facts} facts=${[["App id", html`<${Copy} text=${own.id} label="app id" />`], ["Workspace id", html`<${Copy} text=${own.workspaceId} label="workspace id" />`], ["Made", html`<${Time} at=${own.createdAt} />`]]} />
    <${Name} own=${own} onSaved=${found.set} />
    <h2>Another app</h2>
    <p>An app has people, events and keys of its own: one for each product, or one for tests.</p>
    <${Another} />
    <h2>Delete</h2>
    <p><${Button} kind="danger" onClick=${() => remove(own)}>Delete the app<//></p>`}<//>`;
}

export default function Settings() {
  const tabs = [
    { id: "app", title: "App", render: () => html`<${OwnApp} />` },
    { id: "rules", title: "Rules", render: () => html`<${Rules} />` },
    { id: "keys", title: "Keys", render: () => html`<${Keys} />` },
    { id: "identity", title: "Identity keys", render: () => html`<${IdentityKeys} />` },
    { id: "credentials", title: "Push credentials", render: () => html`<${Credentials} />` },
  ];
  return html`<${PageHead} title="Settings" /><${Tabs} label="Settings" tabs=${tabs} />`;
}
