// Who is signed in, and what they may do.
import { address, ApiError, get, hooks, request } from "./api.js";
import { computed, signal } from "./preact.js";
import { go, link, route } from "./router.js";
import { forget, keep, unseal } from "./storage.js";

/** @typedef {"viewer" | "editor" | "admin"} Role */
/** @typedef {{ id: string, name: string, workspaceId: string }} App */
/** @typedef {{ subject: string, workspaces: { id: string, role: Role }[], operator: boolean, apps: App[] }} Session */
/** @typedef {{ link: boolean, issuers: string[] }} WaysIn by a link of the server, or with OpenID providers */

const ORDER = ["viewer", "editor", "admin"];
const RETURN = "nudge.return";
/** By it other tabs hear that somebody has signed out. */
const OUT = "out";

/** The session; null: nobody is signed in; undefined: it is not known yet. */
export const session = signal(/** @type {Session | null | undefined} */ (undefined));

/** How one may sign in; the refusal of who is not signed in says it. */
export const waysIn = signal(/** @type {WaysIn} */ ({ link: true, issuers: [] }));

/** @returns {App | undefined} the app that the page is about, or else the first one */
function appHere() {
  const { appId } = route.value.params;
  const apps = session.value?.apps ?? [];
  return appId ? apps.find(({ id }) => id == appId) : apps[0];
}

/** The app that the page is about. */
export const app = computed(appHere);

/** The role in the workspace of that app. */
export const role = computed(() => {
  const workspaces = session.value?.workspaces ?? [];
  return workspaces.find(({ id }) => id == app.value?.workspaceId)?.role;
});

/**
 * Whether one may do here what takes a role. Show no button that would be refused: `can("editor") && html…`.
 * @param {Role | "operator"} wanted
 */
export function can(wanted) {
  if (wanted == "operator") return session.value?.operator ?? false;
  return role.value !== undefined && ORDER.indexOf(role.value) >= ORDER.indexOf(wanted);
}

/**
 * The path of a route of the app that the page is about: `inApp("/surveys")`.
 * @param {string} path
 */
export const inApp = (path) => `/v1/apps/${app.value?.id ?? route.value.params.appId}${path}`;

/** Asks who is signed in. Nobody is no failure; a server that is not reached is. */
export async function loadSession() {
  try {
    const found = await get("/console/session");
    session.value = found?.subject ? { workspaces: [], apps: [], operator: false, ...found } : null;
    if (session.value) unseal();
  } catch (error) {
    if (!(error instanceof ApiError) || error.status != 401) throw error;
    waysIn.value = { link: true, issuers: [], ...error.problem.signIn };
    session.value = null;
  }
}

/** Remembers where one is, and asks to sign in. */
function askToSignIn() {
  if (route.value.page?.open) return;
  sessionStorage.setItem(RETURN, location.hash);
  session.value = null;
  go(link("/sign-in"), { replace: true });
}
hooks.unauthorized = askToSignIn;

/** Leads to the sign-in page whoever needs it. */
export function requireSession() {
  if (session.value === null) askToSignIn();
}

/** Goes back to where one was when asked to sign in. */
export function goBack() {
  const target = sessionStorage.getItem(RETURN);
  sessionStorage.removeItem(RETURN);
  // Whoever is at a page already stays there.
  if (!route.value.page?.open && route.value.path != "/") return;
  go(target?.startsWith("#/") ? target : link("/"), { replace: true });
}

/**
 * Signs in with the code of a link, which is good once.
 * @param {string} code
 */
export async function signIn(code) {
  await request("POST", "/console/session", { body: { code } });
  await loadSession();
  // Browsers keep no `Secure` cookie of plain HTTP, except of their own machine.
  if (!session.value) throw new Error("This browser kept no cookie. Open the console by https.");
}

/** Nobody is signed in any longer, and no draft is kept: the next person at this browser is to see none. */
function leave() {
  forget("draft.");
  session.value = null;
}

/** Ends the session, in all tabs. */
export async function signOut() {
  await request("DELETE", "/console/session");
  leave();
  keep(OUT, Date.now());
  go(link("/sign-in"), { replace: true });
}
addEventListener("storage", ({ key }) => key == `nudge.${OUT}` && leave());

/**
 * The address that signs in with a provider, who leads back to where one was.
 * @param {string} issuer
 */
export const loginAddress = (issuer) => address("/console/login", { issuer, return: sessionStorage.getItem(RETURN)?.slice(1) });

/** Why a provider has signed nobody in: `#error=<name>` becomes the sign-in page's own address. */
export function takeError() {
  const found = /^#error=(\w+)$/.exec(location.hash);
  if (found) go(link("/sign-in", {}, { error: found[1] }), { replace: true });
}

/**
 * Takes the code out of the address, where it would stay in the history.
 * @returns {string | undefined} the code of `#login=<code>`
 */
export function takeCode() {
  const found = /^#login=(.+)$/.exec(location.hash);
  if (!found?.[1]) return;
  go(link("/sign-in"), { replace: true });
  // It has letters and digits alone. What a mangled link has instead is refused by the server.
  return found[1];
}
