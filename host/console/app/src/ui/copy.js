// An id, or anything else that people take elsewhere, with a button that copies it.
import { shortId } from "../lib/format.js";
import { html, useEffect, useRef, useState } from "../lib/preact.js";
import { Button } from "./button.js";
import { Icon } from "./icon.js";

/** @param {string} text */
async function copied(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    throw new Error("The browser does not let pages copy. Mark the text and copy it yourself.");
  }
}

/** Only the button. @param {{ text: string, label?: string, children?: any }} props */
export function CopyButton({ text, label = "Copy", children }) {
  const [done, setDone] = useState(false);
  const timer = useRef(0);
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = async () => {
    await copied(text);
    setDone(true);
    timer.current = window.setTimeout(() => setDone(false), 2000);
  };
  return html`<${Button} kind=${children ? "secondary" : "plain"} label=${done ? "Copied" : label} onClick=${copy}>${done ? html`<${Icon} name="check" />` : children ?? html`<${Icon} name="copy" />`}<//><span class="hidden" role="status">${done ? "Copied" : ""}</span>`;
}

/** @param {{ text: string, label?: string, short?: boolean }} props short: only the end of an id is shown */
export const Copy = ({ text, label = "id", short = false }) =>
  html`<span class="copy"><code title=${text}>${short ? shortId(text) : text}</code><${CopyButton} text=${text} label=${`Copy ${label}`} /></span>`;
