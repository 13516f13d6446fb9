// What failed: in words, with the code and the request's id, by which it is found in the log.
import { ApiError } from "../lib/api.js";
import { html } from "../lib/preact.js";
import { Button } from "./button.js";
import { Copy } from "./copy.js";

/** The code of what the server refused, and the request's id. @param {{ error?: Error }} props */
export const Code = ({ error }) => error instanceof ApiError && html`<p class="hint">Code <code>${error.code}</code>${error.requestId && html`, request <${Copy} text=${error.requestId} label="request id" />`}</p>`;

/** @param {{ error: Error, retry?: () => unknown, errors?: import("../lib/api.js").FieldError[], kind?: "bad" | "warn", children?: any }} props children: what is said before */
export function ErrorView({ error, retry, errors = error instanceof ApiError ? error.errors : [], kind = "bad", children }) {
  const api = error instanceof ApiError ? error : undefined;
  const rest = errors.filter(({ detail }) => detail != error.message);
  return html`<div class=${`notice ${kind}`} role=${kind == "bad" ? "alert" : "status"}><div>
    ${children}
    <p><strong>${error.message.replace("; see errors", "")}</strong></p>
    ${rest.length > 0 && html`<ul>${rest.map(({ pointer, detail }) => html`<li>${pointer && html`<code>${pointer}</code> `}${detail}</li>`)}</ul>`}
    ${api?.retryAfter && html`<p>It may be tried again in ${api.retryAfter} s.</p>`}
    <${Code} error=${error} />
    ${retry && html`<p><${Button} onClick=${retry}>Try again<//></p>`}
  </div></div>`;
}

/** Why lists to choose from, or names, are not there. @param {{ of: { error?: Error, reload: () => unknown }[] }} props what hooks of `lib/load.js` have found */
export const Failed = ({ of }) => of.map(({ error, reload }) => error && html`<${ErrorView} error=${error} retry=${reload} />`);
