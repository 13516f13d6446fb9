// The console begins here: who is signed in, which page the address names, and what is around it.
import { html, render, signal, useEffect, useErrorBoundary, useLayoutEffect, useRef, useState } from "./lib/preact.js";
import { complain } from "./lib/notice.js";
import { current } from "./lib/draft.js";
import { route, useTable } from "./lib/router.js";
import { app, can, goBack, loadSession, requireSession, session, signIn, takeCode, takeError } from "./lib/session.js";
import { keep } from "./lib/storage.js";
import { pages } from "./pages/index.js";
import { Button, Empty, ErrorView, Layout, Loading } from "./ui/index.js";

/** Why the console can't begin. */
const failure = signal(/** @type {Error | undefined} */ (undefined));

useTable(pages);

/** Signs in by the link's code where the address has one; otherwise asks who is signed in. The address may say why not. */
async function begin() {
  failure.value = undefined;
  takeError();
  const code = takeCode();
  try {
    if (code) await signIn(code).catch(complain);
    if (!session.value) await loadSession();
    if (session.value) goBack();
  } catch (error) {
    failure.value = /** @type {Error} */ (error);
  }
}

/** A page of a thing. Where the thing breaks it, others of its kind are shown nevertheless. @param {{ component: any, params: any, query: any }} props */
function Thing({ component, ...props }) {
  useState(() => (current.key = ""));
  const [broken, reset] = useErrorBoundary();
  if (!broken) return html`<${component} ...${props} />`;
  const forget = () => {
    keep(current.key, undefined);
    reset();
  };
  return html`<${ErrorView} error=${broken} retry=${reset} />${current.key && html`<p><${Button} onClick=${forget}>Forget the draft<//></p>`}`;
}

/** A page, loaded when it is first needed. @param {{ entry: import("./lib/router.js").PageEntry }} props */
function Page({ entry }) {
  const [component, setComponent] = useState(/** @type {any} */ (undefined));
  const [error, setError] = useState(/** @type {Error | undefined} */ (undefined));
  const load = async () => {
    setError(undefined);
    try {
      const { default: loaded } = await entry.load();
      setComponent(() => loaded);
    } catch (thrown) {
      setError(/** @type {Error} */ (thrown));
    }
  };
  useEffect(() => void load(), []);
  if (error) return html`<${ErrorView} error=${new Error("The page could not be loaded. The server may have been updated: reload the window.")} retry=${load} />`;
  if (!component) return html`<${Loading} />`;
  const { params, query } = route.value;
  // Another app or another survey is another page: nothing of the one before stays.
  return html`<${Thing} key=${JSON.stringify(params)} component=${component} params=${params} query=${query} />`;
}

/** The app may have been made since the session was read, in another tab: it is read anew before it is said. */
function NoApp() {
  const [asked, setAsked] = useState(false);
  useEffect(() => void loadSession().catch(complain).then(() => setAsked(true)), []);
  return asked ? html`<${Empty} title="There is no such app"><p>It was deleted, or you have no role in its workspace. <a href="#/">Go to the start</a>.</p><//>` : html`<${Loading} />`;
}

function Console() {
  const { page, params, path } = route.value;
  const seen = useRef(path);
  useLayoutEffect(() => {
    // Whoever goes to another page by keyboard goes on in it.
    if (seen.current !== path) document.getElementById("main")?.focus();
    seen.current = path;
  }, [path]);
  useEffect(() => {
    if (page && !page.open) requireSession();
  }, [page, session.value]);
  if (failure.value) return html`<${ErrorView} error=${failure.value} retry=${begin} />`;
  if (session.value === undefined) return html`<${Loading} />`;
  if (!page) return html`<${Empty} title="There is no such page"><p>The address may be mistyped. <a href="#/">Go to the start</a>.</p><//>`;
  if (!page.open && !session.value) return null;
  if (params.appId && !app.value) return html`<${NoApp} key=${params.appId} />`;
  if (page.role && !can(page.role)) return html`<${Empty} title=${`This takes the role ${page.role}`}><p>Ask an administrator of the workspace for it.</p><//>`;
  return html`<${Page} key=${page.path} entry=${page} />`;
}

addEventListener("hashchange", () => {
  if (/^#(login|error)=/.test(location.hash)) void begin();
});

const root = document.getElementById("root");
if (root) render(html`<${Layout} pages=${pages}><${Console} /><//>`, root);
void begin();
