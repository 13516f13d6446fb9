// Leads to the first app; says what to do where there is none.
import { app, go, html, link, loadSession, request, route, session, useEffect, useState } from "../lib/index.js";
import { Empty, Form, Input, PageHead } from "../ui/index.js";

export default function Home() {
  const [name, setName] = useState("");
  const workspaceId = session.value?.workspaces.find(({ role }) => role == "admin")?.id;
  useEffect(() => {
    if (app.value && route.value.path == "/") go(link("/apps/:appId/start", { appId: app.value.id }), { replace: true });
  }, [app.value]);
  if (app.value) return null;
  const create = async () => {
    await request("POST", "/v1/apps", { body: { name, workspaceId } });
    await loadSession();
  };
  return html`<${PageHead} title="Welcome" />
    ${workspaceId
      ? html`<p>An app is what events, people and surveys belong to. This workspace has none yet.</p>
        <${Form} onSubmit=${create} submit="Create the app"><${Input} label="Name" at="/name" value=${name} onInput=${setName} /><//>`
      : html`<${Empty} title="There is no app yet"><p>An administrator of the workspace can create one.</p><//>`}`;
}
