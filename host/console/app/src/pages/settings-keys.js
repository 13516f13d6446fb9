// Keys: what SDKs, backends and tools call with; the public keys that identity tokens are checked with; and what the
// server sends push messages with. Secrets are shown once, or never.
import { del, html, inApp, post, route, say, shortId, useList, useState } from "../lib/index.js";
import { Badge, Button, confirm, Copy, Dialog, Empty, FileDrop, Form, Input, JsonField, PickSome, Secret, Select, Table, TextArea, Time } from "../ui/index.js";

/** @type {[string, string][]} */
const KINDS = [["write", "write key: public, for SDKs"], ["server", "server key: secret, for backends"], ["api", "API token: secret, for tools"]];

/** What keys of a kind may be allowed. @type {Record<string, [string, string][]>} */
const SCOPES = {
  server: [["events.write", "Send events"], ["push.transactional", "Send transactional push messages"]],
  api: [["users.properties.write", "Change people's properties"]],
};

/** @param {{ onMade: (key: any) => void, onClose: () => void }} props */
function NewKey({ onMade, onClose }) {
  const [kind, setKind] = useState("write");
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState(/** @type {string[]} */ ([]));
  const [day, setDay] = useState("");
  const submit = async () => onMade(await post(inApp("/keys"), {
    kind,
    name,
    ...(SCOPES[kind] ? { scopes } : {}),
    ...(day ? { expiresAt: `${day}T00:00:00.000Z` } : {}),
  }));
  return html`<${Dialog} title="New key" onClose=${onClose}>
    <${Form} label="New key" onSubmit=${submit} submit="Make the key" actions=${html`<${Button} onClick=${onClose}>Cancel<//>`}>
      <${Select} label="Kind" at="/kind" value=${kind} options=${KINDS} onChange=${(/** @type {string} */ next) => (setKind(next), setScopes([]))} />
      <${Input} label="Name" at="/name" value=${name} onInput=${setName} hint="By which you know it again." />
      ${SCOPES[kind] && html`<${PickSome} label="What it allows" options=${SCOPES[kind]} value=${scopes} onChange=${setScopes} />`}
      <${Input} type="date" label="Expires (UTC)" at="/expiresAt" value=${day} onInput=${setDay} hint="Without a day it holds until it is revoked." />
    <//>
  <//>`;
}

export function Keys() {
  const list = useList(inApp("/keys"), { cursor: route.value.query.cursor });
  const [adding, setAdding] = useState(false);
  const [made, setMade] = useState(/** @type {any} */ (undefined));
  const revoke = (/** @type {any} */ row) =>
    confirm({
      title: `Revoke the key “${row.name}”?`,
      text: "Whoever calls with it is refused from now on. It can't be undone.",
      action: "Revoke",
      danger: true,
      run: async () => {
        await del(inApp(`/keys/${row.id}`));
        say(`The key “${row.name}” is revoked.`);
        await list.reload();
      },
    });
  const columns = [
    { title: "Name", sort: "name", render: (/** @type {any} */ row) => row.name },
    { title: "Kind", sort: "kind", render: (/** @type {any} */ row) => html`<${Badge} kind=${row.kind == "write" ? "info" : "warn"}>${row.kind}<//>` },
    { title: "Allows", render: (/** @type {any} */ row) => row.scopes.join(", ") || "–" },
    { title: "Last used", sort: "lastUsedAt", render: (/** @type {any} */ row) => html`<${Time} relative at=${row.lastUsedAt} none="never" />` },
    { title: "Expires", sort: "expiresAt", render: (/** @type {any} */ row) => html`<${Time} at=${row.expiresAt} none="never" />` },
    { title: "Made", sort: "createdAt", render: (/** @type {any} */ row) => html`<${Time} at=${row.createdAt} />` },
    { title: "Id", render: (/** @type {any} */ row) => html`<${Copy} short text=${row.id} label="id of the key" />` },
  ];
  const actions = (/** @type {any} */ row) => html`<${Button} kind="danger" label=${`Revoke ${row.name} (${row.kind}, ${shortId(row.id)})`} onClick=${() => revoke(row)}>Revoke<//>`;
  const create = html`<${Button} kind="primary" onClick=${() => setAdding(true)}>New key<//>`;
  const show = async (/** @type {any} */ key) => {
    setAdding(false);
    setMade(key);
    await list.reload();
  };
  return html`<p class="actions">${create}</p>
    <${Table} label="Keys" list=${list} columns=${columns} id=${(/** @type {any} */ row) => row.id} actions=${actions} empty=${html`<${Empty} title="There is no key"><p>SDKs need a write key, backends a server key.</p><//>`} />
    ${adding && html`<${NewKey} onMade=${show} onClose=${() => setAdding(false)} />`}
    ${made && html`<${Secret} title=${`The key “${made.name}”`} secret=${made.key} onClose=${() => setMade(undefined)}>${made.kind == "write" ? html`<p>It is public: it may stand in a page or an app.</p>` : html`<p>It is secret: keep it out of pages, apps and repositories.</p>`}<//>`}`;
}

/** @param {{ onMade: () => Promise<void>, onClose: () => void }} props */
function NewIdentityKey({ onMade, onClose }) {
  const [kid, setKid] = useState("");
  const [text, setText] = useState("");
  const submit = async () => {
    const trimmed = text.trim();
    // A JWK is an object, a PEM a text.
    let publicKey = /** @type {any} */ (trimmed);
    if (trimmed.startsWith("{")) publicKey = JSON.parse(trimmed);
    await post(inApp("/identity-keys"), { kid, publicKey });
    await onMade();
  };
  return html`<${Dialog} wide title="New identity key" onClose=${onClose}>
    <${Form} label="New identity key" onSubmit=${submit} submit="Register it" actions=${html`<${Button} onClick=${onClose}>Cancel<//>`}>
      <${Input} label="Key id" at="/kid" value=${kid} onInput=${setKid} hint=${html`The <code>kid</code> in the header of the tokens that your backend signs.`} />
      <${TextArea} label="Public key" at="/publicKey" rows=${8} value=${text} onInput=${setText} rest=${{ class: "code", spellcheck: false }} hint="A PEM text (BEGIN PUBLIC KEY), or a JWK. ES256, EdDSA or RS256. Never paste the private key." />
    <//>
  <//>`;
}

export function IdentityKeys() {
  const list = useList(inApp("/identity-keys"), { cursor: route.value.query.cursor });
  const [adding, setAdding] = useState(false);
  const remove = (/** @type {any} */ row) =>
    confirm({
      title: `Remove the identity key “${row.kid}”?`,
      text: "Tokens that were signed with it are refused from now on.",
      action: "Remove",
      danger: true,
      run: async () => {
        await del(inApp(`/identity-keys/${encodeURIComponent(row.kid)}`));
        say(`The identity key “${row.kid}” is removed.`);
        await list.reload();
      },
    });
  const columns = [
    { title: "Key id", render: (/** @type {any} */ row) => row.kid },
    { title: "Algorithm", render: (/** @type {any} */ row) => row.algorithm },
    { title: "Fingerprint", render: (/** @type {any} */ row) => html`<${Copy} short text=${row.fingerprint} label="fingerprint" />` },
    { title: "Registered", render: (/** @type {any} */ row) => html`<${Time} at=${row.createdAt} />` },
  ];
  const actions = (/** @type {any} */ row) => html`<${Button} kind="danger" label=${`Remove ${row.kid}`} onClick=${() => remove(row)}>Remove<//>`;
  const added = async () => {
    setAdding(false);
    say("The identity key is registered.");
    await list.reload();
  };
  return html`<p>Your backend signs who somebody is; the server checks it with these. An app has up to five.</p>
    <p class="actions"><${Button} kind="primary" onClick=${() => setAdding(true)}>New identity key<//></p>
    <${Table} label="Identity keys" list=${list} columns=${columns} id=${(/** @type {any} */ row) => row.kid} actions=${actions} empty=${html`<${Empty} title="There is no identity key"><p>Without one nobody can be identified by an SDK.</p><//>`} />
    ${adding && html`<${NewIdentityKey} onMade=${added} onClose=${() => setAdding(false)} />`}`;
}

/** @type {[string, string][]} */
const PLATFORMS = [["ios", "iOS (APNs)"], ["android", "Android (FCM)"], ["web", "Web Push"]];

/** @param {{ onMade: () => Promise<void>, onClose: () => void }} props */
function NewCredential({ onMade, onClose }) {
  const [platform, setPlatform] = useState("web");
  const [values, setValues] = useState(/** @type {Record<string, any>} */ ({ environment: "production", generate: "yes", serviceAccount: {} }));
  const set = (/** @type {string} */ name) => (/** @type {any} */ value) => setValues((before) => ({ ...before, [name]: value }));
  const generate = values.generate == "yes";
  const submit = async () => {
    const { p8, keyId, teamId, bundleId, environment, serviceAccount, subject, publicKey, privateKey } = values;
    /** @type {Record<string, any>} */
    const bodies = {
      ios: { platform, p8, keyId, teamId, bundleId, environment },
      android: { platform, serviceAccount },
      web: { platform, vapid: generate ? { generate: true, subject } : { publicKey, privateKey, subject } },
    };
    await post(inApp("/push/credentials"), bodies[platform]);
    await onMade();
  };
  const line = (/** @type {string} */ name, /** @type {string} */ label, /** @type {string} */ at, hint = "") => html`<${Input} label=${label} at=${at} hint=${hint} value=${values[name] ?? ""} onInput=${set(name)} rest=${{ autocomplete: "off", spellcheck: false }} />`;
  return html`<${Dialog} wide title="New push credential" onClose=${onClose}>
    <${Form} label="New push credential" onSubmit=${submit} submit="Keep the credential" actions=${html`<${Button} onClick=${onClose}>Cancel<//>`}>
      <${Select} label="Platform" at="/platform" value=${platform} options=${PLATFORMS} onChange=${setPlatform} />
      ${platform == "ios" && html`
        <${FileDrop} label="Drop Apple's .p8 file here, or choose it" accept=".p8" onFile=${async (/** @type {File} */ file) => set("p8")(await file.text())} />
        <${TextArea} label="Or its text" at="/p8" rows=${5} value=${values.p8 ?? ""} onInput=${set("p8")} rest=${{ class: "code", spellcheck: false }} />
        ${line("keyId", "Key id", "/keyId")}${line("teamId", "Team id", "/teamId")}${line("bundleId", "Bundle id", "/bundleId")}
        <${Select} label="Environment" at="/environment" value=${values.environment} options=${["production", "sandbox"]} onChange=${set("environment")} />`}
      ${platform == "android" && html`<${JsonField} label="Service account" at="/serviceAccount" rows=${10} value=${values.serviceAccount} onChange=${set("serviceAccount")} hint="The JSON file as Google gives it." />`}
      ${platform == "web" && html`
        ${line("subject", "Contact", "/vapid/subject", "mailto: or https:, for browsers' services to reach you.")}
        <${Select} label="Key" value=${values.generate} options=${[["yes", "the server makes it"], ["no", "one that I have"]]} onChange=${set("generate")} />
        ${!generate && html`${line("publicKey", "Public key", "/vapid/publicKey")}${line("privateKey", "Private key", "/vapid/privateKey")}`}`}
    <//>
  <//>`;
}

export function Credentials() {
  const list = useList(inApp("/push/credentials"));
  const [adding, setAdding] = useState(false);
  const remove = (/** @type {any} */ row) =>
    confirm({
      title: "Remove the credential?",
      text: `Nothing is sent by ${row.provider} with it any more. Browsers that have subscribed with a removed web key must subscribe again.`,
      action: "Remove",
      danger: true,
      run: async () => {
        await del(inApp(`/push/credentials/${row.id}`));
        say("The credential is removed.");
        await list.reload();
      },
    });
  const columns = [
    { title: "Platform", sort: "platform", render: (/** @type {any} */ row) => PLATFORMS.find(([id]) => id == row.platform)?.[1] ?? row.platform },
    { title: "Identity", render: (/** @type {any} */ row) => Object.entries(row.identity).map(([name, value]) => html`<div>${name}: <code>${String(value)}</code></div>`) },
    { title: "Status", sort: "status", render: (/** @type {any} */ row) => html`<${Badge} kind=${row.status == "active" ? "good" : "bad"}>${row.status}<//> ${row.statusReason}` },
    { title: "Fingerprint", render: (/** @type {any} */ row) => html`<${Copy} short text=${row.fingerprint} label="fingerprint" />` },
    { title: "Made", sort: "createdAt", render: (/** @type {any} */ row) => html`<${Time} at=${row.createdAt} />` },
  ];
  const actions = (/** @type {any} */ row) => html`<${Button} kind="danger" label=${`Remove the credential of ${row.platform}`} onClick=${() => remove(row)}>Remove<//>`;
  const added = async () => {
    setAdding(false);
    say("The credential is kept. It can't be shown again.");
    await list.reload();
  };
  return html`<p class="actions"><${Button} kind="primary" onClick=${() => setAdding(true)}>New push credential<//></p>
    <${Table} label="Push credentials" list=${list} columns=${columns} id=${(/** @type {any} */ row) => row.id} actions=${actions} empty=${html`<${Empty} title="There is no push credential"><p>Push messages need one for each platform. For browsers the server makes one.</p><//>`} />
    ${adding && html`<${NewCredential} onMade=${added} onClose=${() => setAdding(false)} />`}`;
}
