// What tests of the console have in common: somebody who is signed in, and what must hold on every page.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { axe } from "./axe.mjs";
import { holds } from "./support.mjs";

/**
 * Where the console of a server is.
 * @returns {{ base: string, link: () => string }} `link` makes a link that signs in once, with the role
 */
export function consoleOf({ access, data, listen, base }, { role = "admin", operator = false } = {}) {
  const options = ["console-link", "--workspace", access.workspaceId, "--role", role, ...(operator ? ["--operator"] : []), "--data-dir", data, "--listen", listen];
  return { base: `${base}/console/`, link: () => execFileSync(process.env.NUDGE_PROGRAM, options, { encoding: "utf8" }).trim() };
}

/** Notes what a page asked of the server with success, where somebody wants to know it (`NUDGE_ASKED`). */
function note(response) {
  const file = process.env.NUDGE_ASKED;
  if (!file || response.status() >= 400) return;
  appendFileSync(file, `${response.request().method()} ${new URL(response.url()).pathname}\n`);
}

/** Whether something is asked of another machine than the server's. Pictures of push messages are where their authors have them. */
function isElsewhere(request, page) {
  const { protocol, hostname } = new URL(request.url());
  const isPicture = request.resourceType() == "image" && page.url().includes("/messages/");
  return hostname != "127.0.0.1" && !["data:", "blob:"].includes(protocol) && !isPicture;
}

/** A tab whose complaints are kept: what the console of the browser says, every breach of the policy, and each request to another machine. */
export async function tab(browser, options = {}) {
  const context = await browser.newContext({ locale: "en", viewport: { width: 1280, height: 800 }, ...options });
  context.on("response", note);
  const page = await context.newPage();
  const complaints = [];
  // Browsers complain of each answer that is no success; which are expected, tests say themselves.
  page.on("console", (message) => message.type() == "error" && !message.text().startsWith("Failed to load resource") && complaints.push(message.text()));
  context.on("request", (request) => isElsewhere(request, page) && complaints.push(`asks ${request.url()}`));
  page.on("pageerror", (error) => complaints.push(String(error)));
  return { page, complaints, context };
}

/** Signs in, and goes to a page: `/surveys` of the app, unless it begins with `#`. */
export async function signedIn(page, console, server, path = "/start") {
  await page.goto(console.link());
  await page.waitForURL(/\/start$/);
  await page.goto(`${console.base}${path.startsWith("#") ? path : `#/apps/${server.access.appId}${path}`}`);
  await settled(page);
}

/** Waits until nothing is being loaded. */
export async function settled(page) {
  await page.locator("main h1, main h2, main [role=alert]").first().waitFor();
  await page.locator(".loading").waitFor({ state: "detached" });
}

/** What is smaller than the 24 pixels of WCAG 2.5.8, and what makes the page scroll sideways. */
const misfits = (page) =>
  page.evaluate(() => {
    const wrong = [];
    if (document.documentElement.scrollWidth > innerWidth) wrong.push(`the page is ${document.documentElement.scrollWidth} wide`);
    for (const target of document.querySelectorAll("button, a, input, select, textarea, summary, [role=tab]")) {
      const { width, height } = target.getBoundingClientRect();
      const inText = target.matches("p a, li > a") && getComputedStyle(target).display == "inline";
      if (width && !inText && !target.matches(".skip") && (width < 24 || height < 24)) wrong.push(`${width} × ${height}: ${target.outerHTML}`);
    }
    return wrong;
  });

/** The pages of which the README has pictures, made with `NUDGE_PICTURES=host/docs/pictures`. */
const PICTURES = new Map([["questions", "survey.png"], ["why", "why.png"], ["live events", "events.png"], ["a canary", "plugin.png"], ["a preview of an in-app message", "message.png"]]);

/** Takes a picture of a page for the README, where that is asked for. */
async function picture(page, what) {
  const [folder, name] = [process.env.NUDGE_PICTURES, PICTURES.get(what)];
  if (!folder || !name) return;
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.evaluate(() => scrollTo(0, 0));
  await page.screenshot({ path: join(folder, name) });
}

/** axe finds nothing, in light and dark, at 320 and 1280 pixels; nothing sticks out or is too small. */
export async function accessible(page, what) {
  for (const width of [320, 1280]) {
    await page.setViewportSize({ width, height: 800 });
    await holds(async () => assert.deepEqual(await misfits(page), [], `${what}, ${width}`));
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      await holds(async () => {
        const { violations } = await axe(page, { ofColours: colorScheme == "dark" });
        const found = violations.flatMap(({ id, nodes }) => nodes.map(({ html, any, all, none }) => `${id}: ${html}: ${[...any, ...all, ...none].map(({ message }) => message)}`));
        assert.deepEqual(found, [], `${what}, ${colorScheme}, ${width}`);
      });
    }
  }
  await picture(page, what);
}
