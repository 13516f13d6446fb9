// Notices in a page, and the short messages of `lib/notice.js` in a live region.
import { dismiss, toasts } from "../lib/notice.js";
import { html } from "../lib/preact.js";
import { Button } from "./button.js";
import { confirm } from "./dialog.js";
import { Said } from "./error.js";
import { Icon } from "./icon.js";

/** @param {{ kind?: "info" | "good" | "warn" | "bad", children: any, actions?: any }} props */
export const Notice = ({ kind = "info", children, actions }) =>
  html`<div class=${`notice ${kind}`} role=${kind == "bad" ? "alert" : "status"}><div>${children}</div>${actions && html`<div class="actions">${actions}</div>`}</div>`;

/** Asks, and goes back to what is saved. @param {{ draft: import("../lib/draft.js").Draft<any>, children?: string }} props */
export const Discard = ({ draft, children = "Discard the changes" }) =>
  draft.changed && html`<${Button} onClick=${() => confirm({ title: `${children}?`, text: "What was written and is not saved goes.", action: "Discard", danger: true, run: draft.discard })}>${children}<//>`;

/** Says that a draft of an earlier visit is shown. @param {{ draft: import("../lib/draft.js").Draft<any> }} props */
export const RestoredDraft = ({ draft }) =>
  draft.restored && draft.changed && html`<${Notice} actions=${html`<${Discard} draft=${draft}>Discard it<//>`}>This is your draft of an earlier visit. It is not saved yet.<//>`;

/** All that was said. */
export const Toasts = () => html`<div class="toasts" role="log" aria-live="polite" aria-label="Messages">
  ${toasts.value.map(({ id, kind, text, error }) => html`<div key=${id} class=${`notice ${kind}`}>
    <div>${error ? html`<${Said} error=${error} />` : text}</div>
    <${Button} kind="plain" label="Close the message" onClick=${() => dismiss(id)}><${Icon} name="close" /><//>
  </div>`)}
</div>`;

/** A state as a word in a box. @param {{ kind?: "info" | "good" | "warn" | "bad", children: any }} props */
export const Badge = ({ kind = "info", children }) => html`<span class=${`badge ${kind}`}>${children}</span>`;

/** What an empty page says: what this is for, and what to do. @param {{ title: string, children?: any, actions?: any }} props */
export const Empty = ({ title, children, actions }) => html`<div class="empty"><h2>${title}</h2>${children}${actions && html`<div class="actions">${actions}</div>`}</div>`;
