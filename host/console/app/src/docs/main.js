// The pages of the API at `/docs`: `#/` has all operations, `#/op/<operationId>` one, `#/schema/<name>` a schema.
import { html, render, signal, useEffect, useLayoutEffect, useRef, useState } from "../lib/preact.js";
import { go, link, match, route } from "../lib/router.js";
import { loadSession, session } from "../lib/session.js";
import { Button } from "../ui/button.js";
import { Questions } from "../ui/dialog.js";
import { ErrorView } from "../ui/error.js";
import { Loading } from "../ui/facts.js";
import { Search } from "../ui/form.js";
import { Icon } from "../ui/icon.js";
import { Empty, Toasts } from "../ui/notice.js";
import { ThemeSelect } from "../ui/theme.js";
import { app, chooseApp, description, loadDescription } from "./model.js";
import { OperationPage, Overview, SchemaPage, title } from "./pages.js";

const failure = signal(/** @type {Error | undefined} */ (undefined));

async function begin() {
  failure.value = undefined;
  try {
    await Promise.all([loadDescription(), askWhoIsSignedIn()]);
  } catch (error) {
    failure.value = /** @type {Error} */ (error);
  }
}

/** Who reads needs no session: without an answer nobody is signed in. */
const askWhoIsSignedIn = () => loadSession().catch(() => (session.value = null));

/** @param {string} pattern @param {string} name */
const named = (pattern, name) => match(pattern, route.value.path)?.[name];

/** @param {{ open: boolean, onGo: () => void }} props */
function Navigation({ open, onGo }) {
  const here = named("/op/:id", "id");
  return html`<nav id="navigation" aria-label="Operations" class=${open ? "open" : ""}>
    ${description.value?.groups.map(({ tag, operations }) => html`<details key=${tag} open=${operations.some(({ id }) => id == here)}>
      <summary>${tag} <span class="hint">${operations.length}</span></summary>
      <ul>${operations.map((one) => html`<li key=${one.id}><a href=${link("/op/:id", { id: one.id })} aria-current=${one.id == here ? "page" : undefined} onClick=${onGo}>${title(one)}</a></li>`)}</ul>
    </details>`)}
  </nav>`;
}

function AppSelect() {
  const apps = session.value?.apps ?? [];
  if (!apps.length) return null;
  return html`<label class="switch">App <select value=${app.value?.id} onChange=${(/** @type {any} */ event) => chooseApp(event.currentTarget.value)}>
    ${apps.map(({ id, name }) => html`<option value=${id} selected=${id == app.value?.id}>${name}</option>`)}
  </select></label>`;
}

function Page() {
  const [operationId, schema] = [named("/op/:id", "id"), named("/schema/:name", "name")];
  const { path, query } = route.value;
  const api = description.value;
  if (failure.value) return html`<${ErrorView} error=${failure.value} retry=${begin} />`;
  // Examples have the app and the session of who is signed in: both are known before anything is shown.
  if (!api || session.value === undefined) return html`<${Loading} />`;
  const operation = api.operations.find(({ id }) => id == operationId);
  if (operation) return html`<${OperationPage} key=${operation.id} operation=${operation} />`;
  if (schema && api.schemas[schema]) return html`<${SchemaPage} key=${schema} name=${schema} />`;
  if (path == "/") return html`<${Overview} q=${query.q ?? ""} />`;
  return html`<${Empty} title="The description has no such thing"><p>It may be of another version of the server. <a href="#/">All operations</a></p><//>`;
}

/** Whether somebody types. @param {EventTarget | null} target */
const isField = (target) => target instanceof Element && target.matches("input, textarea, select");

function Docs() {
  const [open, setOpen] = useState(false);
  const { path, query } = route.value;
  const seen = useRef(path);
  useLayoutEffect(() => {
    if (seen.current !== path && !isField(document.activeElement)) {
      document.getElementById("main")?.focus();
      scrollTo(0, 0);
    }
    seen.current = path;
  }, [path]);
  useEffect(() => {
    const jump = (/** @type {KeyboardEvent} */ event) => {
      if (event.key != "/" || event.ctrlKey || event.metaKey || isField(event.target)) return;
      event.preventDefault();
      /** @type {HTMLElement | null} */ (document.querySelector(".top [type=search]"))?.focus();
    };
    // Somebody may have signed in elsewhere meanwhile.
    const ask = () => session.value ?? askWhoIsSignedIn();
    addEventListener("keydown", jump);
    addEventListener("focus", ask);
    return () => (removeEventListener("keydown", jump), removeEventListener("focus", ask));
  }, []);
  const skip = (/** @type {Event} */ event) => {
    event.preventDefault();
    document.getElementById("main")?.focus();
  };
  const find = (/** @type {string} */ q) => go(link("/", {}, { q }), { replace: path == "/" });
  return html`
    <a class="skip" href="#main" onClick=${skip}>Skip to the content</a>
    <header class="top">
      <${Button} kind="plain" rest=${{ class: "button plain burger", "aria-expanded": open ? "true" : "false", "aria-controls": "navigation" }} label="Operations" onClick=${() => setOpen(!open)}><${Icon} name="menu" /><//>
      <a class="brand" href="#/">Nudge API</a>
      <${Search} label="Search" value=${query.q ?? ""} onInput=${find} rest=${{ "aria-keyshortcuts": "/", placeholder: "Operations, schemas" }} />
      <${AppSelect} />
      <${ThemeSelect} />
      <a class="out" href="/docs/book/">Book</a>
      <a class="out" href="/console/">${session.value ? "Console" : "Sign in"}</a>
    </header>
    <div class="body">
      <${Navigation} open=${open} onGo=${() => setOpen(false)} />
      <main id="main" tabindex="-1"><${Page} /></main>
    </div>
    <${Questions} />
    <${Toasts} />`;
}

const root = document.getElementById("root");
if (root) render(html`<${Docs} />`, root);
void begin();
