// What failed: in words, with the code and the request's id, by which it is found in the log.
import { ApiError } from "../lib/api.js";
import { html } from "../lib/preact.js";
import { Button } from "./button.js";
import { Copy } from "./copy.js";

/** What is wrong where, and for whoever looks it up the code and the request's id. @param {{ error: Error, errors?: import("../lib/api.js").FieldError[] }} props */
export function Said({ error, errors }) {
  const api = error instanceof ApiError ? error : undefined;
  const rest = (errors ?? api?.errors ?? []).filter(({ detail }) => detail != error.message);
  return html`<p><strong>${error.message.replace("; see errors", errors && !rest.length ? "; see what is marked" : "")}</strong></p>
    ${rest.length > 0 && html`<ul>${rest.map(({ pointer, detail }) => html`<li>${pointer && html`<code>${pointer}</code> `}${detail}</li>`)}</ul>`}
    ${api?.retryAfter && html`<p>It may be tried again in ${api.retryAfter} s.</p>`}
    ${api && html`<p class="hint">Code <code>${api.code}</code>${api.requestId && html`, request <${Copy} text=${api.requestId} label="request id" />`}</p>`}`;
}

/** @param {{ error: Error, retry?: () => unknown, errors?: import("../lib/api.js").FieldError[], kind?: "bad" | "warn", children?: any }} props children: what is said before */
export const ErrorView = ({ error, retry, errors, kind = "bad", children }) => html`<div class=${`notice ${kind}`} role=${kind == "bad" ? "alert" : "status"}><div>
    ${children}
    <${Said} error=${error} errors=${errors} />
    ${retry && html`<p><${Button} onClick=${retry}>Try again<//></p>`}
  </div></div>`;

/** Why lists to choose from, or names, are not there. @param {{ of: { error?: Error, reload: () => unknown }[] }} props what hooks of `lib/load.js` have found */
export const Failed = ({ of }) => of.map(({ error, reload }) => error && html`<${ErrorView} error=${error} retry=${reload} />`);
