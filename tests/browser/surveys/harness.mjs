// A page with the renderer in it, in a real Chromium.
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { chromium } from "playwright-core";

const here = new URL("./", import.meta.url);
const dist = new URL("../../../host/web-sdk/dist/", here);

/** The strictest policy that a page may have with scripts of its own. */
export const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const page = (lang, dir, style) => `<!doctype html>
<html lang="${lang}" dir="${dir}">
<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>A shop</title>
<link rel="stylesheet" href="/page.css?${style}">
<main><h1>A shop</h1><button id="buy">Buy</button><p>A page.</p><div id="place"></div></main>
<script type="module" src="/host.js"></script>`;

/** Rules that reach for whatever they can. */
const HOSTILE = `*,nudge-ui,div,dialog,button,input,label,h2{color:lime!important;background:red!important;font:40px/3 cursive!important;
display:inline!important;position:static!important;opacity:.3!important;transform:rotate(9deg)!important;letter-spacing:9px!important;
text-transform:uppercase!important;direction:rtl!important;visibility:hidden!important;pointer-events:none!important}
html{font-size:40px!important} :root{--text:red;--background:red;--primary:red;--radius:99px}`;

/** Serves the page; answers its address, and what ends it. */
export async function serve() {
  const server = createServer(async (request, response) => {
    const url = new URL(request.url, "http://localhost");
    const send = (type, body) => {
      response.writeHead(200, { "content-type": type, "content-security-policy": POLICY });
      response.end(body);
    };
    switch (url.pathname) {
      case "/":
        return send("text/html", page(url.searchParams.get("lang") ?? "en", url.searchParams.get("dir") ?? "ltr", url.searchParams.get("style") ?? ""));
      case "/page.css":
        return send("text/css", url.search === "?hostile" ? HOSTILE : "body{margin:1em;font-family:sans-serif}");
      case "/host.js":
        return send("text/javascript", await readFile(new URL("host.js", here)));
      case "/surveys.mjs":
        return send("text/javascript", await readFile(new URL("surveys.mjs", dist)));
      case "/picture.svg":
        return send("image/svg+xml", '<svg xmlns="http://www.w3.org/2000/svg" width="80" height="60"><rect width="80" height="60" fill="teal"/></svg>');
      case "/favicon.ico":
        return response.writeHead(204).end();
      default:
        return response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  return { url: `http://127.0.0.1:${port}/`, close: () => server.close() };
}

/** A browser. */
export const launch = () =>
  chromium.launch({
    executablePath: process.env.NUDGE_CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--disable-background-networking"],
  });

/** Opens the page; what the browser complains of is collected. */
export async function open(browser, url, { context = {}, lang = "en", dir = "ltr", style = "" } = {}) {
  const made = await browser.newContext(context);
  const tab = await made.newPage();
  tab.faults = [];
  tab.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) tab.faults.push(message.text());
  });
  tab.on("pageerror", (error) => tab.faults.push(`${error}`));
  await tab.goto(`${url}?${new URLSearchParams({ lang, dir, style })}`);
  await tab.waitForSelector("html[data-ready]", { state: "attached" });
  return tab;
}

/** Presents an instruction, and waits until it is shown. */
export async function present(tab, instruction, options) {
  await offer(tab, instruction, options);
  await tab.locator("nudge-ui .content > *, nudge-ui .fab").first().waitFor();
  await settled(tab);
}

/** Hands an instruction to the renderer. Pictures are the page's own. */
export async function offer(tab, instruction, options) {
  const origin = new URL(tab.url()).origin;
  const text = JSON.stringify(instruction).replaceAll("{origin}", origin);
  await tab.evaluate(([text, options]) => window.present(JSON.parse(text), options), [text, options]);
}

/** Waits until nothing moves any longer: colours are measured then. */
export const settled = (tab) =>
  tab.evaluate(() => {
    const roots = [...document.querySelectorAll("nudge-ui")].map((element) => element.shadowRoot);
    return Promise.all(roots.flatMap((root) => root.getAnimations().map((animation) => animation.finished)));
  });

/** Presses Tab until something has the focus. */
export async function tabTo(tab, wanted, key = "Tab") {
  for (let count = 0; count < 60; count++) {
    await tab.keyboard.press(key);
    const { label } = await focus(tab);
    if (label?.startsWith(wanted)) return;
  }
  throw new Error(`Tab does not come to ${wanted}`);
}

/** What the host was asked, by name. */
export const calls = (tab, name) => tab.evaluate((name) => window.calls.filter(([called]) => called === name), name);

/** The values that were answered, by question. */
export async function answers(tab) {
  const all = (await calls(tab, "answer")).flatMap(([, , answers]) => answers);
  return Object.fromEntries(all.map(({ questionId, value }) => [questionId, value]));
}

/** What has the focus, in whichever shadow root. */
export const focus = (tab) =>
  tab.evaluate(() => {
    let element = document.activeElement;
    while (element?.shadowRoot?.activeElement) element = element.shadowRoot.activeElement;
    const label = element?.getAttribute("aria-label") ?? element?.labels?.[0]?.textContent ?? element?.textContent;
    return { tag: element?.localName, type: element?.type, label: label?.trim(), id: element?.id };
  });

/** Presses keys, one after the other. */
export async function press(tab, ...keys) {
  for (const key of keys) await tab.keyboard.press(key);
}
