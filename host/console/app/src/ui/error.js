// What failed: in words, with the code and the request's id, by which it is found in the log.
import { ApiError } from "../lib/api.js";
import { html } from "../lib/preact.js";
import { Button } from "./button.js";
import { Copy } from "./copy.js";

/** @param {{ error: Error, retry?: () => unknown, errors?: import("../lib/api.js").FieldError[] }} props */
export function ErrorView({ error, retry, errors = error instanceof ApiError ? error.errors : [] }) {
  const api = error instanceof ApiError ? error : undefined;
  return html`<div class="notice bad" role="alert">
    <p><strong>${error.message}</strong></p>
    ${errors.length > 0 && html`<ul>${errors.map(({ pointer, detail }) => html`<li>${pointer && html`<code>${pointer}</code> `}${detail}</li>`)}</ul>`}
    ${api?.retryAfter && html`<p>It may be tried again in ${api.retryAfter} s.</p>`}
    ${api && html`<p class="hint">Code <code>${api.code}</code>${api.requestId && html`, request <${Copy} text=${api.requestId} label="request id" />`}</p>`}
    ${retry && html`<p><${Button} onClick=${retry}>Try again<//></p>`}
  </div>`;
}
