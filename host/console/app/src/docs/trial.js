// An operation as a command, and sent from here: both are made of one call.
import { exchange } from "../lib/api.js";
import { save } from "../lib/download.js";
import { html, useEffect, useRef, useState } from "../lib/preact.js";
import { session } from "../lib/session.js";
import { Button } from "../ui/button.js";
import { CopyButton } from "../ui/copy.js";
import { confirm } from "../ui/dialog.js";
import { ErrorView } from "../ui/error.js";
import { Field, Form, Input, Select, TextArea } from "../ui/form.js";
import { Notice } from "../ui/notice.js";
import { app, curl, description, example, Prose, target } from "./model.js";

/** @typedef {import("./model.js").Operation} Operation */
/** @typedef {{ status: number, name: string, milliseconds: number, headers: [string, string][], text: string, more?: string, file?: Blob }} Answer */

/** A text longer than this is not shown to its end. */
const MOST_CHARACTERS = 200_000;
const PERSONS = "accessToken";

/** The header that carries a credential. @param {string} scheme @param {string} value @returns {Record<string, string>} */
function header(scheme, value) {
  const { type, name } = description.value?.credentials[scheme] ?? {};
  return type == "apiKey" ? { [name]: value } : { authorization: `Bearer ${value}` };
}

/** What a command sends to be let in: values that are typed here are in it, secrets of a session are not. @param {string[]} schemes @param {Record<string, string>} typed @param {string} method */
function admission(schemes, typed, method) {
  const of = (/** @type {string} */ scheme) => typed[scheme] || `$NUDGE_${scheme.replace(/[A-Z]/g, "_$&").toUpperCase()}`;
  if (!schemes.includes(PERSONS) || !session.value) return Object.assign({}, ...schemes.map((scheme) => header(scheme, of(scheme))));
  const cookie = { cookie: `${location.protocol == "https:" ? "__Host-" : ""}nudge=$NUDGE_SESSION` };
  return method == "GET" ? cookie : { ...cookie, origin: location.origin };
}

/** @param {Response} response @param {(answer: Partial<Answer>) => void} show */
async function read(response, show) {
  const type = response.headers.get("content-type") ?? "";
  if (/zip|octet-stream|wasm/.test(type)) return show({ file: await response.blob() });
  const reader = response.body?.pipeThrough(/** @type {any} */ (new TextDecoderStream())).getReader();
  let text = "";
  // A stream is shown as it comes; it ends when somebody stops it.
  for (let part; reader && text.length < MOST_CHARACTERS && !(part = await reader.read()).done; ) show({ text: (text += part.value) });
  if (text.length >= MOST_CHARACTERS) {
    await reader?.cancel();
    return show({ text: text.slice(0, MOST_CHARACTERS), more: "The rest is not shown." });
  }
  if (!/json/.test(type)) return;
  try {
    show({ text: JSON.stringify(JSON.parse(text), null, 2) });
  } catch {
    show({ more: "This is no JSON, although it says so." });
  }
}

/** @param {{ answer: Answer }} props */
const AnswerView = ({ answer: { status, name, milliseconds, headers, text, more, file } }) => html`
  <p role="status"><strong class=${status < 400 ? "fine" : "bad"}>${status} ${name}</strong> <span class="hint">after ${milliseconds} ms</span></p>
  <details><summary>Headers (${headers.length})</summary><div class="table"><table><thead><tr><th scope="col">Header</th><th scope="col">Value</th></tr></thead><tbody>
    ${headers.map(([name, value]) => html`<tr><th scope="row"><code>${name}</code></th><td><code>${value}</code></td></tr>`)}
  </tbody></table></div></details>
  ${file && html`<p><${Button} onClick=${() => save(file, "answer")}>Save the ${file.size} bytes<//></p>`}
  ${text && html`<div class="json"><pre tabindex="0" role="region" aria-label="Body">${text}</pre><${CopyButton} text=${text} label="Copy the body" /></div>`}
  ${more && html`<p class="hint">${more}</p>`}`;

/** @param {{ operation: Operation }} props */
export function Trial({ operation }) {
  const { method, parameters, body, credentials, path } = operation;
  const api = /** @type {import("./model.js").Description} */ (description.value);
  const isJson = Boolean(body && /json|text\/plain/.test(body.type));
  const [values, setValues] = useState(/** @type {Record<string, string>} */ ({}));
  const [typed, setTyped] = useState(/** @type {Record<string, string>} */ ({}));
  const [content, setContent] = useState(() => (body && isJson ? JSON.stringify(example(api, body.schema), null, 2) : ""));
  const [file, setFile] = useState(/** @type {File | undefined} */ (undefined));
  const [answer, setAnswer] = useState(/** @type {Answer | undefined} */ (undefined));
  const running = useRef(/** @type {AbortController | undefined} */ (undefined));
  const [pending, setPending] = useState(false);
  useEffect(() => () => running.current?.abort(), []);

  const given = /** @type {Record<string, string>} */ ({ appId: app.value?.id ?? "", ...values });
  const schemes = Object.keys(credentials[0] ?? {});
  /** @type {Record<string, string>} */
  const headers = Object.fromEntries(parameters.filter((one) => one.in == "header" && given[one.name]).map(({ name }) => [name, given[name] ?? ""]));
  if (body) headers["content-type"] = body.type;
  const address = target(operation, given);
  const command = curl({ method, address: location.origin + address, headers: { ...admission(schemes, typed, method), ...headers }, body: content, file: body && !isJson ? file?.name ?? "plugin.wasm" : undefined });

  const send = async () => {
    const controller = (running.current = new AbortController());
    const begun = performance.now();
    setAnswer(undefined);
    setPending(true);
    try {
      const own = schemes.filter((scheme) => scheme != PERSONS).map((scheme) => header(scheme, typed[scheme] ?? ""));
      const all = Object.assign({}, ...own, headers);
      const response = await exchange(address, { method, headers: all, body: body && (isJson ? content : file), signal: controller.signal });
      const first = { status: response.status, name: response.statusText, milliseconds: Math.round(performance.now() - begun), headers: /** @type {[string, string][]} */ ([...response.headers]), text: "" };
      setAnswer(first);
      await read(response, (more) => setAnswer((before) => ({ ...first, ...before, ...more })));
    } catch (error) {
      if (!controller.signal.aborted) throw error;
    } finally {
      setPending(false);
    }
  };
  const submit = async () => {
    const missing = [...parameters.filter(({ name, required }) => required && !given[name]).map(({ name }) => name), ...(body && !isJson && !file ? ["the file"] : [])];
    if (missing.length) throw new Error(`Fill in ${missing.join(", ")} first.`);
    if (method == "GET") return send();
    const text = html`This sends <code>${method} ${address}</code> to this server, as ${session.value && schemes.includes(PERSONS) ? session.value.subject : "the holder of the credential"}. What it changes is changed.`;
    confirm({ title: "Send the request?", text, action: "Send", danger: method == "DELETE", run: () => void submitSent() });
  };
  const [failed, setFailed] = useState(/** @type {Error | undefined} */ (undefined));
  const submitSent = () => {
    setFailed(undefined);
    return send().catch((/** @type {Error} */ error) => setFailed(error));
  };
  const set = (/** @type {string} */ name) => (/** @type {string} */ value) => setValues((before) => ({ ...before, [name]: value }));
  const closed = schemes.includes(PERSONS) && !session.value;
  return html`
    <h2>As a command</h2>
    <div class="json"><pre tabindex="0" role="region" aria-label="curl">${command}</pre><${CopyButton} text=${command} label="Copy the command" /></div>
    ${schemes.includes(PERSONS) && html`<p class="hint">${session.value
      ? html`<code>NUDGE_SESSION</code> is the value of your session's cookie, which scripts can't read: copy it from the browser's developer tools. An access token in <code>Authorization: Bearer</code> does the same.`
      : html`<code>NUDGE_ACCESS_TOKEN</code> is an access token. <a href="/console/">Sign in to the console</a>, and the command has your app and your session.`}</p>`}
    <h2>Try it</h2>
    ${closed && html`<${Notice}>This takes a session. <a href="/console/">Sign in to the console</a>, then come back.<//>`}
    <${Form} label="Try it" submit="Send" onSubmit=${submit} disabled=${closed || pending} actions=${pending && html`<${Button} onClick=${() => running.current?.abort()}>Stop<//>`}>
      ${schemes.filter((scheme) => scheme != PERSONS).map((scheme) => html`<${Input} key=${scheme} label=${scheme} hint=${api.credentials[scheme]?.description} value=${typed[scheme] ?? ""} onInput=${(/** @type {string} */ value) => setTyped((before) => ({ ...before, [scheme]: value }))} rest=${{ autocomplete: "off", spellcheck: false }} />`)}
      ${parameters.map((one) => {
        const props = { key: one.name, label: one.required ? `${one.name} (required)` : one.name, hint: one.description && html`<${Prose} text=${one.description} />`, value: given[one.name] ?? "" };
        const allowed = api.see(one.schema ?? {}).values;
        return allowed.length ? html`<${Select} ...${props} options=${["", ...allowed.map(String)]} onChange=${set(one.name)} />` : html`<${Input} ...${props} onInput=${set(one.name)} />`;
      })}
      ${body && isJson && html`<${TextArea} label="Body" value=${content} onInput=${setContent} rows=${Math.min(24, content.split("\n").length + 2)} rest=${{ class: "code", spellcheck: false }} />`}
      ${body && !isJson && html`<${Field} label=${`Body (${body.type})`}>${(/** @type {any} */ attributes) => html`<input ...${attributes} type="file" onChange=${(/** @type {any} */ event) => setFile(event.currentTarget.files[0])} />`}<//>`}
    <//>
    ${failed && html`<${ErrorView} error=${failed} />`}
    ${answer && html`<section aria-label="Answer"><${AnswerView} answer=${answer} /></section>`}
    ${path.startsWith("/v1/sdk") && html`<p class="hint">Routes of SDKs look at no session.</p>`}`;
}
