// What requests leave behind: nothing, however many a page makes; when they are made; and what is kept of their answers.
import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { runInNewContext } from "node:vm";
import { build } from "esbuild";

const root = new URL("../", import.meta.url);

/** What modules of the sources export. */
async function source(...names) {
  const contents = names.map((name) => `export * from "./${name}.ts";`).join("\n");
  const made = await build({
    bundle: true,
    define: { __VERSION__: '"0"' },
    format: "esm",
    logLevel: "error",
    stdin: { contents, resolveDir: new URL("src", root).pathname },
    target: "es2022",
    write: false,
  });
  return import(`data:text/javascript;base64,${Buffer.from(made.outputFiles[0].text).toString("base64")}`);
}

const { ask, memoryStore, pause, Poller, Sender, Shows } = await source("core/net", "core/poller", "core/sender", "core/shows", "core/store", "core/util");

const server = { baseUrl: "https://server.test", writeKey: "key" };
const timers = () => process.getActiveResourcesInfo().filter((name) => name == "Timeout").length;

test("a polling page keeps neither listeners nor timers of polls that have ended", async () => {
  globalThis.fetch = async () => new Response("{}", { headers: { "content-type": "application/json" } });
  const { signal } = new AbortController();
  const before = timers();
  for (let polls = 0; polls < 5; polls++) {
    assert.equal((await ask(server, "GET", "/v1/sdk/instructions", undefined, "token", signal)).status, 200);
    await pause(1, signal);
  }
  assert.ok(getEventListeners(signal, "abort").length < 2);
  assert.equal(timers(), before);
});

test("a request and a pause end when the signal says so", async () => {
  globalThis.fetch = (_, { signal }) =>
    new Promise((_, fail) => signal.addEventListener("abort", () => fail(signal.reason), { once: true }));
  const before = timers();
  const control = new AbortController();
  const asked = ask(server, "GET", "/v1/sdk/instructions", undefined, "token", control.signal);
  control.abort();
  assert.equal((await asked).status, 0);
  // At once, also where it has said so before.
  await pause(60_000, control.signal);
  const later = new AbortController();
  const paused = pause(60_000, later.signal);
  later.abort();
  await paused;
  assert.equal(timers(), before);
});

/** A server that answers as it is told, by route; notes when it is asked. */
function answering(t, answers) {
  t.mock.timers.enable({ apis: ["Date", "setTimeout"], now: 1_800_000_000_000 });
  const asked = [];
  globalThis.fetch = async (url, { method }) => {
    const route = `${method} ${new URL(url).pathname}`;
    asked.push(route);
    const [status, data, after] = answers[route] ?? [200, {}];
    return new Response(JSON.stringify({ data }), { status, headers: after ? { "retry-after": `${after}` } : {} });
  };
  const seconds = async (count) => {
    for (let tick = 0; tick < count * 2; tick++) {
      t.mock.timers.tick(500);
      for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
    }
  };
  return { times: (route) => asked.filter((one) => one == route).length, seconds };
}

const SESSION = [200, { subjectToken: "token", expiresAt: "2099-01-01T00:00:00Z", serverTime: "2027-01-15T08:00:00Z", subject: {} }];

/** A sender of one person, and a poller beside it. */
function sending() {
  const nothing = () => {};
  const store = memoryStore();
  const around = { ...server, store, aid: () => "ada", device: nothing, error: nothing, hold: nothing, person: nothing, answered: nothing };
  const sender = new Sender(around);
  return { store, sender, poller: new Poller(server, sender, nothing) };
}

const event = { kind: "event", aid: "ada", sid: "s", event: { eventId: "e", name: "x", timestamp: "2027-01-15T08:00:00Z", anonymousId: "ada" } };

test("sessions are asked for no sooner than the server says, whoever needs one", async (t) => {
  const { times, seconds } = answering(t, { "POST /v1/sdk/session": [503, null, 60] });
  const { store, sender, poller } = sending();
  await store.change([], () => ({ add: [event] }));
  void sender.send();
  poller.start("ada");
  await seconds(58);
  assert.equal(times("POST /v1/sdk/session"), 1);
  await seconds(63);
  assert.ok(times("POST /v1/sdk/session") > 1);
  poller.stop();
});

test("polls are made no sooner than the server says, however often somebody looks away", async (t) => {
  const { times, seconds } = answering(t, { "POST /v1/sdk/session": SESSION, "GET /v1/sdk/instructions": [429, null, 60] });
  const { poller } = sending();
  for (let look = 0; look < 5; look++) {
    poller.start("ada");
    await seconds(10);
    poller.stop();
  }
  assert.equal(times("GET /v1/sdk/instructions"), 1);
  poller.start("ada");
  await seconds(12);
  assert.equal(times("GET /v1/sdk/instructions"), 2);
  poller.stop();
});

test("a network that is back does not shorten what the server asked for", async (t) => {
  const answers = { "POST /v1/sdk/session": SESSION, "POST /v1/sdk/ingest": [503, null, 300] };
  const { times, seconds } = answering(t, answers);
  const { store, sender } = sending();
  await store.change([], () => ({ add: [event] }));
  void sender.send();
  await seconds(1);
  for (let online = 0; online < 4; online++) {
    sender.hurry();
    void sender.send();
    await seconds(10);
  }
  assert.equal(times("POST /v1/sdk/ingest"), 1);
  answers["POST /v1/sdk/ingest"] = [200, { errors: [] }];
  await seconds(262);
  assert.equal(times("POST /v1/sdk/ingest"), 2);
  assert.deepEqual(await store.head(9), []);
});

test("what is kept in memory is none of what a database had under way", async () => {
  const store = memoryStore();
  const items = ["one", "two", "three"].map((path) => ({ kind: "call", aid: "ada", method: "POST", path }));
  await store.change([], () => ({ add: items }));
  await store.change([], () => ({ remove: [0, 1, 2, 3] }));
  const rows = await store.head(9);
  assert.deepEqual(rows.map(([, item]) => item), items);
  await store.change([], () => ({ remove: [rows[0][0]] }));
  assert.deepEqual((await store.head(9)).map(([, { path }]) => path), ["two", "three"]);
});

/** Instructions in a page, and what it is asked. */
function showing(values, load) {
  const told = [];
  const asked = [];
  const page = {
    autoShow: false,
    locale: "en",
    now: Date.now,
    aid: () => "bob",
    maySee: () => true,
    request: async (...request) => (asked.push(request), { attemptId: "attempt" }),
    acknowledge() {},
    change: async (key, change) => void (values[key] = change(values[key])),
    get: async (key) => values[key],
    emit: (name, { instructionId }) => told.push([name, instructionId]),
    load,
  };
  return { shows: new Shows(page), asked, told };
}

test("a page that comes back shows nothing that has ended meanwhile", async () => {
  const values = {};
  const { shows, told } = showing(values);
  values.ended = ["seen"];
  await shows.recall();
  const offer = (instructionId) => ({ instructionId, campaignVersion: 1, expiresAt: "2099-01-01T00:00:00Z" });
  shows.offer([offer("seen"), offer("new")]);
  assert.deepEqual(told, [["instruction", "new"]]);
});

test("answers of somebody who is gone are sent as theirs, and their session ends after that", async (t) => {
  const instruction = {
    instructionId: "i",
    kind: "survey",
    campaignId: "c",
    campaignVersion: 1,
    payload: { survey: { id: "c", flow: { questions: [{ id: "q", type: "nps", title: "?" }] } } },
  };
  const answers = [{ questionId: "q", value: 3, answeredAt: "2027-01-15T08:00:00Z" }];
  const values = { drafts: { i: { aid: "ada", instruction, clientAttemptId: "own", answers, unsent: 1, at: 0 } } };
  const { store, sender } = sending();
  await store.change([], () => ({ add: [{ kind: "end", aid: "ada" }], put: { drafts: values.drafts, "person:ada": { client: "c", token: "t" } } }));
  const surveys = await source("surveys/index");
  const { times } = answering(t, {});
  await sender.send();
  assert.equal(times("DELETE /v1/sdk/session"), 0);
  const { shows, asked } = showing(values, async () => surveys);
  await shows.resume();
  for (let turn = 0; turn < 500 && values.drafts.i; turn++) await new Promise(setImmediate);
  assert.deepEqual(asked, [
    ["POST", "/v1/sdk/surveys/c/attempts", { instructionId: "i", clientAttemptId: "own" }, "ada"],
    ["POST", "/v1/sdk/attempts/attempt/answers", { answers }, "ada"],
  ]);
  assert.deepEqual(values.drafts, {});
  await store.change([], () => ({ put: { drafts: values.drafts } }));
  await sender.send();
  assert.equal(times("DELETE /v1/sdk/session"), 1);
});

test("what a click asks of the app reaches the page that it opens", async () => {
  const made = await build({ bundle: true, entryPoints: [new URL("src/worker/index.ts", root).pathname], format: "iife", write: false });
  const click = async (openAction, pages = []) => {
    const listeners = {};
    const heard = [];
    const page = (url) => ({ url, focus: async () => {}, postMessage: (message) => heard.push(structuredClone(message)) });
    const opened = [];
    const self = {
      location: { search: "?key=key&server=https://server.test", origin: "https://shop.test" },
      addEventListener: (name, listener) => (listeners[name] = listener),
      clients: {
        matchAll: async () => pages.map(page),
        openWindow: async (url) => (opened.push(url), page(url)),
      },
    };
    runInNewContext(made.outputFiles[0].text, { self, URL, URLSearchParams });
    let done;
    const notification = { data: { deliveryId: "d", openAction }, close() {} };
    listeners.notificationclick({ notification, action: "", waitUntil: (promise) => (done = promise) });
    await done;
    return { heard, opened };
  };
  const home = "https://shop.test/";
  for (const action of [{ action: "json", actionJson: { a: 1 } }, { action: "deep_link", url: "shop://cart" }, { action: "open_app" }]) {
    assert.deepEqual(await click(action), { heard: [{ nudge: action }], opened: [home] });
    assert.deepEqual(await click(action, [home]), { heard: [{ nudge: action }], opened: [] });
  }
  // A window that the link leads is where it leads.
  const link = { action: "deep_link", url: `${home}cart` };
  assert.deepEqual(await click(link), { heard: [], opened: [link.url] });
});
