// How long pages of the console take until they can be used, on a server that runs: not a test, but what BENCHMARKS.md is made with.
//
//   node console-times.mjs "$(nudge console-link --workspace ID --role admin --operator)" APP_ID [PERSON]
//
// A page can be used when its heading and all that it asks for are there. The browser has its files already, as it has after
// the first visit. Each page is opened
// anew five times, and gone to by a link from another page five times; what it asked for that took longest is printed too.
import { chromium } from "playwright-core";

const [link, appId, person = "person-0"] = process.argv.slice(2);
if (!appId) {
  console.error("say the link that signs in, and the app: node console-times.mjs LINK APP_ID [PERSON]");
  process.exit(2);
}
const TIMES = 5;
const browser = await chromium.launch({ executablePath: process.env.NUDGE_CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"] });
const page = await (await browser.newContext({ locale: "en", viewport: { width: 1280, height: 800 } })).newPage();
page.setDefaultTimeout(120_000);
const base = link.split("#")[0];
await page.goto(link);
await page.waitForURL(/\/start$/);

/** What there is of a kind, for the pages of one thing. */
const first = (path) => page.evaluate(async (path) => (await (await fetch(path)).json()).data, `/v1/apps/${appId}${path}`).then((data) => (data?.items ?? data)?.[0]?.id);
const [survey, campaign, segment, definition, webhook] = await Promise.all(["/surveys", "/campaigns", "/segments", "/event-definitions", "/push/webhooks"].map(first));
const paths = [
  "/start", "/surveys", survey && `/surveys/${survey}`, survey && `/surveys/${survey}/results`, survey && `/surveys/${survey}/results?tab=attempts`, survey && `/surveys/${survey}/results?tab=recipients`, "/messages", campaign && `/messages/${campaign}`, campaign && `/messages/${campaign}?tab=recipients`, campaign && `/messages/${campaign}?tab=analytics`,
  "/segments", segment && `/segments/${segment}`, segment && `/segments/${segment}?tab=members`, segment && `/segments/${segment}?tab=size`, "/events", "/events?tab=feed", "/events?tab=feed&name=event_name_07", "/people", "/people?q=person-77", "/people?q=fession", "/people?q=pany%2077", `/people/${person}`, `/people/${person}?tab=timeline`, `/why?subject=${person}`,
  "/definitions", definition && `/definitions/${definition}`, "/dead-letters", "/dead-letters?tab=letters", "/plugins", "/plugins/default-trigger", "/webhooks", webhook && `/webhooks/${webhook}`, "/settings", "/audit-log",
].filter(Boolean);

/** Waits until the page has all that it asked for. */
const settled = () => page.waitForFunction(() => document.querySelector("main h1, main h2, main [role=alert]") && !document.querySelector(".loading, [aria-busy=true]"));
/** What it has asked for since a time of its own, the slowest first. */
const asked = (since) => page.evaluate((since) => performance.getEntriesByType("resource").filter(({ name, startTime }) => startTime >= since && name.includes("/v1/") && !name.includes("/stream")).map(({ name, duration }) => [new URL(name).pathname + new URL(name).search, duration]).sort((one, other) => other[1] - one[1]), since);

/** Opens a page anew. */
async function opened(address) {
  await page.goto("about:blank");
  const begun = performance.now();
  await page.goto(address, { waitUntil: "commit" });
  await settled();
  return [performance.now() - begun, (await asked(0))[0]];
}

/** Goes to a page from another one, as by a link in the console. */
async function followed(address) {
  const elsewhere = address.includes("/audit-log") ? "/surveys" : "/audit-log";
  await page.goto(`${base}#/apps/${appId}${elsewhere}`);
  await page.waitForFunction((title) => document.querySelector("main h1")?.textContent == title, elsewhere == "/surveys" ? "Surveys" : "Audit log");
  await settled();
  const since = await page.evaluate(() => performance.now());
  const begun = performance.now();
  await page.evaluate(({ hash }) => {
    const before = document.querySelector("main h1")?.textContent;
    location.hash = hash;
    return new Promise((done) => {
      const look = () => {
        const heading = document.querySelector("main h1");
        if (heading && heading.textContent != before && !document.querySelector(".loading, [aria-busy=true]")) done(undefined);
        else requestAnimationFrame(look);
      };
      look();
    });
  }, new URL(address));
  return [performance.now() - begun, (await asked(since))[0]];
}

const middle = (times) => times.toSorted((one, other) => one - other)[TIMES >> 1];
const short = (text) => text.replace(`#/apps/${appId}`, "").replace(`/v1/apps/${appId}`, "").replace(/[0-9a-f-]{36}/, ":id");
console.log("| page | by a link, median | longest | opened anew, median | slowest request |\n|---|---|---|---|---|");
for (const path of [...paths.map((path) => `#/apps/${appId}${path}`), "#/operator"]) {
  const [byLink, anew] = [[], []];
  let slowest = ["", 0];
  for (let time = 0; time <= TIMES; time++) {
    for (const [way, times] of [[opened, anew], [followed, byLink]]) {
      const [took, request] = await way(base + path);
      // The first visit brings the page's files.
      if (!time) continue;
      times.push(took);
      if (request && request[1] > slowest[1]) slowest = request;
    }
  }
  console.log(`| \`${short(path)}\` | ${middle(byLink).toFixed(0)} ms | ${Math.max(...byLink).toFixed(0)} ms | ${middle(anew).toFixed(0)} ms | \`${short(slowest[0])}\` ${slowest[1].toFixed(0)} ms |`);
}
await browser.close();
