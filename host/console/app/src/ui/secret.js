// What is shown once: a key, a webhook's secret.
import { html } from "../lib/preact.js";
import { Button } from "./button.js";
import { CopyButton } from "./copy.js";
import { Dialog } from "./dialog.js";

/** @param {{ title: string, secret: string, children?: any, onClose: () => void }} props */
export const Secret = ({ title, secret, children, onClose }) =>
  html`<${Dialog} title=${title} onClose=${onClose} actions=${html`<${Button} kind="primary" onClick=${onClose}>I have kept it<//>`}>
    <p>Keep it now: it is never shown again.</p>
    <p class="secret"><code>${secret}</code><${CopyButton} text=${secret} label="Copy the secret">Copy<//></p>
    ${children}
  <//>`;
