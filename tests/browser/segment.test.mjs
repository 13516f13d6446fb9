// Segment's client for browsers, as npm has it: a page that is built with it sends to `/v1/compat`, from another origin.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { browser, folder, Gate, holds, Server, site, until } from "./support.mjs";

const MODULES = new URL("node_modules", import.meta.url).pathname;

/** A page with the client in it, built by Vite: the files of its site. */
function built(t) {
  const path = folder(t);
  symlinkSync(MODULES, join(path, "node_modules"));
  const files = {
    "package.json": JSON.stringify({ type: "module", name: "shop", private: true }),
    "index.html": '<!doctype html><html lang="en"><title>Shop</title><script type="module" src="/main.js"></script></html>',
    "main.js": 'import { AnalyticsBrowser } from "@segment/analytics-next"; window.load = AnalyticsBrowser.load;',
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(path, name), text);
  execFileSync("node", [join(MODULES, "vite/bin/vite.js"), "build"], { cwd: path, stdio: ["ignore", "pipe", "pipe"] });
  const made = { "/": readFileSync(join(path, "dist/index.html"), "utf8") };
  for (const name of readdirSync(join(path, "dist/assets"))) made[`/assets/${name}`] = readFileSync(join(path, "dist/assets", name), "utf8");
  return made;
}

for (const strategy of ["standard", "batching"]) {
  test(`the client sends each message once, whatever fails (${strategy})`, async (t) => {
    const server = await Server.start(t);
    const { writeKey } = server.access;
    // A public key speaks for people who are known where the app says so.
    await server.api("PATCH", "/settings", { ingest: { allowUnverifiedServerEvents: true } });
    const gate = await Gate.start(t, server);
    const shop = await site(t, { files: built(t) });
    const page = await (await (await browser(t)).newContext()).newPage();
    await page.goto(shop.url);
    await page.waitForFunction(() => window.load);
    // One is refused before the server has it, one answer is lost after it has it. What the client sends again names
    // whoever is known by then, so that the first message of all is let through where it goes alone.
    const fates = strategy == "batching" ? [{ status: 503 }, "lose"] : [undefined, undefined, { status: 503 }, "lose"];
    const requests = [];
    gate.refuse = (request) => {
      if (!request.route.startsWith("POST /v1/compat/")) return undefined;
      requests.push(request);
      return (request.fate = fates.shift());
    };
    const anonymousId = await page.evaluate(
      async ({ writeKey, apiHost, strategy }) => {
        // Long enough for a page that is slow to fill a batch.
        const deliveryStrategy = strategy == "batching" ? { strategy, config: { size: 20, timeout: 3000 } } : undefined;
        const integrations = { "Segment.io": { apiHost, protocol: "http", deliveryStrategy } };
        const [analytics] = await window.load({ writeKey, cdnSettings: { integrations: { "Segment.io": { apiKey: writeKey } } } }, { integrations });
        // The server lists events by their time, which has milliseconds.
        const later = () => new Promise((done) => setTimeout(done, 5));
        const say = async (call, ...parts) => {
          void analytics[call](...parts);
          await later();
        };
        const id = analytics.user().anonymousId();
        await say("track", "Product Viewed", { n: 0 });
        await say("identify", "ada", { plan: "pro", address: { city: "Graz" } });
        await say("page", "Home");
        for (let n = 1; n <= 45; n++) await say("track", "Order Completed", { n });
        return id;
      },
      { writeKey, apiHost: `${gate.base.slice(7)}/v1/compat/v1`, strategy },
    );
    await until("the client knows that all messages arrived", () => {
      const answered = requests.filter(({ fate, status }) => !fate && status == 200);
      return answered.reduce((sum, { text }) => sum + (JSON.parse(text).batch?.length ?? 1), 0) >= 48;
    });
    const { items: all } = await server.api("GET", "/events?limit=200");
    // The feed is in the order of receipt; what failed at first came later.
    const events = all.sort((one, other) => Date.parse(one.timestamp) - Date.parse(other.timestamp));
    assert.deepEqual(events.map(({ name }) => name), ["product_viewed", "page_viewed", ...Array(45).fill("order_completed")]);
    assert.deepEqual(events.map(({ properties }) => properties.n).filter((n) => n !== undefined), [...Array(46).keys()]);
    assert.equal(events[2].properties.$original_name, "Order Completed");
    // A public key proves nothing: who was anonymous becomes nobody's by it, and what names somebody is theirs.
    const [ada, device] = await until("both people", async () => {
      const users = await server.users();
      const ada = users.find(({ externalId, topProperties }) => externalId == "ada" && topProperties.plan);
      const device = users.find((user) => user.anonymousId == anonymousId);
      return ada && device ? [ada, device] : undefined;
    });
    assert.deepEqual(ada.topProperties, { plan: "pro", "address.city": "Graz" });
    assert.equal(events[0].subjectId, device.subjectId);
    assert.ok(events.slice(1).every(({ subjectId }) => subjectId == ada.subjectId));
    await holds(async () => assert.equal((await server.users()).length, 2));

    // What failed was sent again, and is there once.
    assert.deepEqual(fates, []);
    const sent = requests.reduce((sum, { text }) => sum + (JSON.parse(text).batch?.length ?? 1), 0);
    assert.ok(sent >= 50, `${sent} messages were sent`);
    const paths = new Set(requests.map(({ route }) => route.split("/").pop()));
    assert.deepEqual([...paths].sort(), strategy == "batching" ? ["b"] : ["i", "p", "t"]);
    if (strategy == "batching") assert.ok(requests.some(({ text }) => JSON.parse(text).batch.length >= 20));
  });
}

test("a message without an id that a page sends twice counts once", async (t) => {
  const server = await Server.start(t);
  const shop = await site(t, {});
  const page = await (await (await browser(t)).newContext()).newPage();
  await page.goto(shop.url);
  const statuses = await page.evaluate(
    async ({ base, writeKey }) => {
      const message = { writeKey, anonymousId: "device", event: "Order Completed", timestamp: new Date().toISOString(), properties: { total: 42 } };
      const send = (headers) => fetch(`${base}/v1/compat/v1/t`, { method: "POST", headers: { "content-type": "text/plain", ...headers }, body: JSON.stringify(message) });
      // With the headers that the client has when it tries again, for which browsers ask the server first.
      const again = { authorization: `Basic ${btoa(`${writeKey}:`)}`, "x-retry-count": "1" };
      return [(await send()).status, (await send(again)).status];
    },
    { base: server.base, writeKey: server.access.writeKey },
  );
  assert.deepEqual(statuses, [200, 200]);
  const events = await until("the event", async () => {
    const events = await server.events("device").catch(() => []);
    return events.length ? events : undefined;
  });
  assert.deepEqual(events.map(({ name }) => name), ["order_completed"]);
});
