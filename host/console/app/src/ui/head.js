// The head of a page.
import { html, useLayoutEffect } from "../lib/preact.js";
import { app } from "../lib/session.js";

/**
 * The head of a page: its name, which is also the window's, and what one can do.
 * @param {{ title: string, actions?: any, children?: any, back?: { href: string, title: string } }} props back: the list that it is of
 */
export function PageHead({ title, actions, children, back }) {
  useLayoutEffect(() => {
    document.title = `${title} · ${app.value ? `${app.value.name} · ` : ""}Nudge`;
  }, [title, app.value?.name]);
  return html`<div class="head"><div>${back && html`<a class="back" href=${back.href}>${back.title}</a>`}<h1>${title}</h1>${children}</div>${actions && html`<div class="actions">${actions}</div>`}</div>`;
}
