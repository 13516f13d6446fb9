// What is around every page: where one may go, in which app one is, who one is.
import { html, useEffect, useRef, useState } from "../lib/preact.js";
import { go, link, route } from "../lib/router.js";
import { app, can, role, session, signOut } from "../lib/session.js";
import { shortId } from "../lib/format.js";
import { kept } from "../lib/storage.js";
import { Button } from "./button.js";
import { confirm, Questions } from "./dialog.js";
import { Icon } from "./icon.js";
import { Toasts } from "./notice.js";
import { ThemeSelect, TimesSelect } from "./theme.js";

/** @typedef {import("../lib/router.js").PageEntry} PageEntry */

/** Pages of the navigation by their group: those that one may see. @param {PageEntry[]} pages */
function groups(pages) {
  /** @type {Map<string, PageEntry[]>} */
  const found = new Map();
  for (const page of pages) {
    const usable = page.path.includes(":appId") ? app.value : true;
    if (!page.group || !usable || !can(page.role ?? "viewer")) continue;
    found.set(page.group, [...(found.get(page.group) ?? []), page]);
  }
  return [...found];
}

/** @param {{ pages: PageEntry[], open: boolean, onGo: () => void }} props */
const Navigation = ({ pages, open, onGo }) => html`<nav id="navigation" aria-label="Pages" class=${open ? "open" : ""}>
  ${groups(pages).map(([group, entries]) => html`<h2>${group}</h2><ul>${entries.map((page) => {
    const path = link(page.path, { appId: app.value?.id ?? "" });
    // A page of one survey stands below the list of all.
    const here = `#${route.value.path}`;
    return html`<li><a href=${path} aria-current=${here == path ? "page" : here.startsWith(`${path}/`) ? "true" : undefined} onClick=${onGo}>${page.title}</a></li>`;
  })}</ul>`)}
</nav>`;

/** Leads to the same page of another app, or to its start where the page is about one thing of this app. */
function AppSwitcher() {
  const { page } = route.value;
  const apps = session.value?.apps ?? [];
  const change = (/** @type {any} */ event) => go(link(page?.group && page.path.includes(":appId") ? page.path : "/apps/:appId/start", { appId: event.currentTarget.value }));
  if (!apps.length) return null;
  return html`<label class="switch"><span class="hidden">App</span><select value=${app.value?.id} onChange=${change}>
    ${apps.map(({ id, name }) => html`<option value=${id} selected=${id == app.value?.id}>${name}</option>`)}
  </select></label>`;
}

/** Signs out; asks first where something is written that is not saved. */
const leave = () => (kept("draft.").length ? confirm({ title: "Sign out?", text: "Something is written and not saved. This browser forgets it.", action: "Sign out", danger: true, run: signOut }) : signOut());

/** Who one is, how it looks, and the way out. */
function UserMenu() {
  const menu = useRef(/** @type {HTMLDetailsElement | null} */ (null));
  useEffect(() => {
    const close = (/** @type {Event} */ event) => {
      const leaves = event instanceof KeyboardEvent ? event.key == "Escape" : !menu.current?.contains(/** @type {Node} */ (event.target));
      if (leaves && menu.current?.open) {
        menu.current.open = false;
        if (event instanceof KeyboardEvent) menu.current.querySelector("summary")?.focus();
      }
    };
    for (const kind of ["keydown", "pointerdown"]) addEventListener(kind, close);
    return () => ["keydown", "pointerdown"].forEach((kind) => removeEventListener(kind, close));
  }, []);
  const { subject = "", operator = false } = session.value ?? {};
  return html`<details class="menu" ref=${menu}><summary>${subject}</summary><div>
    <p>${role.value && html`<strong>${role.value}</strong> in workspace <code title=${app.value?.workspaceId}>${shortId(app.value?.workspaceId ?? "")}</code>`}${operator && html`${role.value && ", "}<strong>operator</strong>`}</p>
    <p><${ThemeSelect} /></p><p><${TimesSelect} /></p>
    <p><a href="/docs">The API</a></p>
    <${Button} onClick=${leave}>Sign out<//>
  </div></details>`;
}

/** @param {{ pages: PageEntry[], children: any }} props */
export function Layout({ pages, children }) {
  const [open, setOpen] = useState(false);
  const signedIn = Boolean(session.value) && !route.value.page?.open;
  useEffect(() => {
    if (!open) return;
    const close = (/** @type {KeyboardEvent} */ { key }) => {
      if (key != "Escape") return;
      setOpen(false);
      /** @type {HTMLElement | null} */ (document.querySelector(".burger"))?.focus();
    };
    addEventListener("keydown", close);
    return () => removeEventListener("keydown", close);
  }, [open]);
  const skip = (/** @type {Event} */ event) => {
    // The address is where one is: a link to an anchor would leave the page.
    event.preventDefault();
    document.getElementById("main")?.focus();
  };
  return html`
    <a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
    <header class="top">
      ${signedIn && html`<${Button} kind="plain" rest=${{ class: "button plain burger", "aria-expanded": open ? "true" : "false", "aria-controls": "navigation" }} label="Pages" onClick=${() => setOpen(!open)}><${Icon} name="menu" /><//>`}
      <a class="brand" href="#/">Nudge</a>
      ${signedIn && html`<${AppSwitcher} /><${UserMenu} />`}
    </header>
    <div class=${signedIn ? "body" : "body alone"}>
      ${signedIn && html`<${Navigation} pages=${pages} open=${open} onGo=${() => setOpen(false)} />`}
      <main id="main" tabindex="-1">${children}</main>
    </div>
    <${Questions} />
    <${Toasts} />`;
}
