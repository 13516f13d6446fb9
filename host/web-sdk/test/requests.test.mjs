// What requests leave behind: nothing, however many a page makes; when they are made; and what is kept of their answers.
import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { runInNewContext } from "node:vm";
import { build } from "esbuild";
import { root, source } from "./source.mjs";

const { ask, consented, idOf, memoryStore, pause, Poller, Sender, Shows, write } = await source(
  ...["net", "notes", "poller", "sender", "shows", "state", "store", "util"].map((name) => `core/${name}`),
);

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

/** A server that answers as it is told, by route and perhaps by the body; notes when it is asked. */
function answering(t, answers) {
  t.mock.timers.enable({ apis: ["Date", "setTimeout"], now: 1_800_000_000_000 });
  const asked = [];
  globalThis.fetch = async (url, { method, body }) => {
    const route = `${method} ${new URL(url).pathname}`;
    asked.push(route);
    const answer = answers[route] ?? [200, {}];
    const [status, data, after] = typeof answer == "function" ? answer(JSON.parse(body)) : answer;
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

/** A sender of one person, and a poller beside it. `error` hears of faults. */
function sending(error = () => {}) {
  const nothing = () => {};
  const store = memoryStore();
  const around = { ...server, store, aid: () => "ada", device: nothing, error, hold: nothing, person: nothing, answered: nothing };
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

test("a page hears of events that it tracked too long ago, and of no session that ended so", async (t) => {
  const DAY = 86_400_000;
  const sent = [];
  const take = ({ events }) => {
    const refused = { code: "timestamp_out_of_window", message: "too old", retryable: false };
    const errors = events.map(({ timestamp }, index) => Date.parse(timestamp) < Date.now() - 30 * DAY && { ...refused, index });
    sent.push(events.map(({ name }) => name));
    return [200, { errors: errors.filter(Boolean) }];
  };
  answering(t, { "POST /v1/sdk/session": SESSION, "POST /v1/sdk/ingest": take });
  const told = [];
  const { store, sender } = sending(({ eventId, code }) => told.push([eventId, code]));
  const before = Date.now() - 31 * DAY;
  const [old, now] = [before, Date.now()].map((at) => ({ kind: "event", tab: "t", at, id: idOf(at, 16), locale: "en" }));
  const me = { aid: "ada", device: "d", sid: "s", last: before };
  const { change } = write(me, [{ ...old, n: 1, name: "looked" }, { ...now, n: 2, name: "bought" }], true);
  await store.change([], () => change);
  await sender.send();
  assert.deepEqual(sent, [["looked", "session_ended"], ["session_started", "bought"]]);
  assert.deepEqual(told, [[old.id, "timestamp_out_of_window"]]);
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

/** Instructions in a page, and what it is asked; `answer` is the server's. */
function showing(values, load, answer = () => ({ attemptId: "attempt" })) {
  const told = [];
  const asked = [];
  const page = {
    autoShow: false,
    locale: "en",
    now: Date.now,
    aid: () => "bob",
    maySee: () => true,
    request: async (...request) => (asked.push(request), answer(...request)),
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

test("a feedback button comes anew with a later version and for longer, and not as it was", () => {
  const { shows, told } = showing({});
  const offer = (campaignVersion, day) => [
    { instructionId: "button", campaignVersion, expiresAt: `2099-01-${day}T00:00:00.000Z` },
  ];
  const times = (...offers) => {
    for (const items of offers) shows.offer(items);
    return told.splice(0).length;
  };
  assert.equal(times(offer(9, "08"), offer(9, "08")), 1);
  assert.equal(times(offer(9, "12"), offer(9, "12")), 1);
  assert.equal(times(offer(10, "12"), offer(10, "12")), 1);
  // What was under way from before.
  assert.equal(times(offer(9, "08"), offer(10, "08"), offer(9, "12")), 0);
});

/** What somebody who is gone answered and no page has sent yet, each question `3`; when that was. */
function leaving(ids, at) {
  const questions = ids.map((id) => ({ id, type: "nps", title: "?" }));
  const payload = { survey: { id: "c", flow: { questions } } };
  const instruction = { instructionId: "i", kind: "survey", campaignId: "c", campaignVersion: 1, payload };
  const answers = ids.map((questionId) => ({ questionId, value: 3, answeredAt: "2027-01-15T08:00:00Z" }));
  const drafts = { i: { aid: "ada", instruction, clientAttemptId: "own", answers, unsent: ids.length, at } };
  const put = { drafts, "person:ada": { client: "c", token: "t" } };
  return { answers, values: { drafts }, change: { add: [{ kind: "end", aid: "ada" }], put } };
}

test("answers of somebody who is gone are sent as theirs, and their session ends after that", async (t) => {
  const surveys = await source("surveys/index");
  const { times } = answering(t, {});
  const { answers, values, change } = leaving(["q"], 0);
  const { store, sender } = sending();
  await store.change([], () => change);
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

test("a session ends where nobody sends what was answered in it", async (t) => {
  const { times, seconds } = answering(t, {});
  const { store, sender } = sending();
  // The page has been open for longer.
  await seconds(90);
  await store.change([], () => leaving(["q"], Date.now()).change);
  for (const ended of [0, 1]) {
    await sender.send();
    assert.equal(times("DELETE /v1/sdk/session"), ended);
    await seconds(61);
  }
  assert.deepEqual(await store.head(9), []);
});

test("a session that waits for answers ends when their minute is over, without another call", async (t) => {
  const { times, seconds } = answering(t, {});
  const { store, sender } = sending();
  await seconds(90);
  await store.change([], () => leaving(["q"], Date.now() - 40_000).change);
  await sender.send();
  await seconds(18);
  assert.equal(times("DELETE /v1/sdk/session"), 0);
  await seconds(4);
  assert.equal(times("DELETE /v1/sdk/session"), 1);
  assert.deepEqual(await store.head(9), []);
});

test("drafts are read where a session is to end, and not with each request", async (t) => {
  answering(t, { "POST /v1/sdk/session": SESSION, "POST /v1/sdk/ingest": [200, { errors: [] }] });
  const { store, sender } = sending();
  const read = [];
  const { get } = store;
  store.get = (key) => (read.push(key), get(key));
  await store.change([], () => ({ add: [event, { ...event, sid: "later" }] }));
  await sender.send();
  assert.deepEqual(await store.head(9), []);
  assert.ok(!read.includes("drafts"));
  await store.change([], () => ({ add: [{ kind: "end", aid: "ada" }] }));
  await sender.send();
  assert.equal(read.filter((key) => key == "drafts").length, 1);
});

test("answers of somebody who is gone are sent without those that the server does not take", async () => {
  const surveys = await source("surveys/index");
  const finish = async (refuse) => {
    const { values } = leaving(["q1", "q2", "q3"], 0);
    const sent = [];
    const { shows } = showing(values, async () => surveys, (_, path, { answers }) => {
      if (!answers) return { attemptId: "attempt" };
      sent.push(answers.map(({ questionId }) => questionId));
      const refusal = refuse(answers);
      if (refusal) throw refusal;
      return { next: null };
    });
    await shows.resume();
    for (let turn = 0; turn < 500 && values.drafts.i; turn++) await new Promise(setImmediate);
    assert.deepEqual(values.drafts, {});
    return sent;
  };
  const refused = (answers) => {
    const place = answers.findIndex(({ questionId }) => questionId != "q2");
    return place >= 0 && { status: 422, code: "invalid_answer", errors: [{ pointer: `/answers/${place}/value`, code: "type", detail: "" }] };
  };
  assert.deepEqual(await finish(refused), [["q1", "q2", "q3"], ["q2", "q3"], ["q2"]]);
  // Nothing more is sent to an attempt that is gone.
  assert.deepEqual(await finish(() => ({ status: 404, code: "not_found" })), [["q1", "q2", "q3"]]);
});

/** A database in which each value is the same one, and nothing waits. */
function databaseOf(value) {
  const answered = (result) => {
    const request = { result };
    queueMicrotask(() => request.onsuccess());
    return request;
  };
  const known = { get: () => answered(value), getAll: () => answered([]), getAllKeys: () => answered([]) };
  return { open: () => answered({ transaction: () => ({ objectStore: () => known }), close() {} }) };
}

test("consent is found in the database where a page may not look into localStorage", async () => {
  const stubs = {
    indexedDB: { value: { databases: async () => [{ name: "nudge:key" }], ...databaseOf({ analytics: true }) } },
    localStorage: {
      get: () => {
        throw new Error("SecurityError");
      },
    },
  };
  const before = Object.keys(stubs).map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)]);
  for (const [name, stub] of Object.entries(stubs)) Object.defineProperty(globalThis, name, { ...stub, configurable: true });
  try {
    assert.equal(await consented("key"), true);
    assert.equal(await consented("other"), false);
  } finally {
    for (const [name, own] of before) {
      if (own) Object.defineProperty(globalThis, name, own);
      else delete globalThis[name];
    }
  }
});

/** What a worker does where somebody taps a message, or the button `action` of it: what pages hear, and is opened and sent. */
async function tapping(openAction, pages = [], action = "") {
  const made = await build({ bundle: true, entryPoints: [new URL("src/worker/index.ts", root).pathname], format: "iife", write: false });
  const listeners = {};
  const [heard, opened, sent] = [[], [], []];
  const page = (url) => ({ url, focus: async () => {}, postMessage: (message) => heard.push(structuredClone(message)) });
  const self = {
    location: { search: "?key=key&server=https://server.test", origin: "https://shop.test" },
    addEventListener: (name, listener) => (listeners[name] = listener),
    clients: {
      matchAll: async () => pages.map(page),
      openWindow: async (url) => (opened.push(url), page(url)),
    },
  };
  const fetch = async (_, { body }) => (sent.push(...JSON.parse(body).receipts), new Response());
  const indexedDB = databaseOf({ aid: "ada" });
  runInNewContext(made.outputFiles[0].text, { self, fetch, indexedDB, URL, URLSearchParams });
  let done;
  const notification = { data: { deliveryId: "d", openAction }, close() {} };
  listeners.notificationclick({ notification, action, waitUntil: (promise) => (done = promise) });
  await done;
  return { heard, opened, sent };
}

test("who taps a message has opened it, and who taps a button of it has clicked that", async () => {
  const receipts = async (...tap) => (await tapping(...tap)).sent.map(({ type, actionId }) => [type, actionId]);
  for (const action of ["url", "deep_link", "json", "open_app", "none"]) {
    assert.deepEqual(await receipts({ action, url: "https://shop.test/cart" }), [["opened", undefined]]);
  }
  assert.deepEqual(await receipts({ action: "open_app" }, [], "x"), [["opened", undefined], ["clicked", "x"]]);
});

// The stub's messages always arrive. In a browser they wait for a page whose SDK is made before `DOMContentLoaded`; after it,
// what comes before somebody listens is lost (see `follow` in `worker/index.ts`).
test("what a click asks of the app reaches the page that it opens", async () => {
  const click = async (...tap) => {
    const { heard, opened } = await tapping(...tap);
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
