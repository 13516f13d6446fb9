// Nothing lost, nothing twice: what becomes of events whatever happens to tabs, browsers, networks and servers.
import assert from "node:assert/strict";
import test from "node:test";
import { Backend, begin, browser, folder, Gate, holds, killBrowser, open, profile, Server, shiftClock, site, sleep, until } from "./support.mjs";

const custom = (events, prefix) => events.filter(({ name }) => name.startsWith(prefix));

/** A server, a gate before it, and a site on another origin that has the SDK from it. */
async function setUp(t) {
  const server = await Server.start(t);
  const gate = await Gate.start(t, server);
  const shop = await site(t, { sdk: "/sdk/nudge.js" });
  const options = { writeKey: server.access.writeKey, baseUrl: gate.base };
  return { server, gate, shop, options };
}

/** The only person there is, once there is one. */
const somebody = (server) => until("somebody is known", async () => (await server.users())[0]);

/** Events of the only person there is, once there are enough of a name. */
async function arrived(server, prefix, count, seconds) {
  const { anonymousId } = await somebody(server);
  await until(`${count} events ${prefix}`, async () => custom(await server.events(anonymousId), prefix).length >= count, seconds);
  return server.events(anonymousId);
}

test("a thousand events tracked offline survive a killed browser, once and in order", async (t) => {
  const { server, gate, shop, options } = await setUp(t);
  gate.refuse = () => "drop";
  const path = folder(t);
  let context = await profile(t, path);
  const page = await open(context, shop.url, options);
  const ids = await page.evaluate(async () => {
    const ids = [];
    for (let n = 0; n < 1000; n++) ids.push(nudge.track("step_taken", { n }));
    await nudge.flush();
    return ids;
  });
  assert.equal(new Set(ids).size, 1000);
  killBrowser(path);
  await context.close().catch(() => {});
  gate.refuse = () => undefined;

  context = await profile(t, path);
  await open(context, shop.url, options);
  const events = custom(await arrived(server, "step_taken", 1000, 60), "step_taken");
  assert.deepEqual(events.map(({ eventId }) => eventId), ids);
  assert.deepEqual(events.map(({ properties }) => properties.n), ids.map((_, n) => n));
  await sleep(1000);
  await holds(async () => assert.equal(custom(await server.events((await somebody(server)).anonymousId), "step_taken").length, 1000));
});

test("an event before the tab closes is stored once, across origins", async (t) => {
  const { server, gate, shop, options } = await setUp(t);
  const context = await profile(t);
  await context.newPage();
  for (let n = 1; n <= 5; n++) {
    const page = await open(context, shop.url, options);
    await page.evaluate(() => nudge.flush());
    await page.evaluate((n) => void nudge.track("left_at", { n }), n);
    await page.close({ runBeforeUnload: false });
  }
  const events = custom(await arrived(server, "left_at", 5), "left_at");
  assert.deepEqual(events.map(({ properties }) => properties.n), [1, 2, 3, 4, 5]);
  assert.deepEqual(gate.of("OPTIONS /v1/sdk/beacon"), []);
  assert.ok(gate.of("POST /v1/sdk/beacon").some(({ status }) => status == 200));
});

test("ten tabs have one poller, one queue and one session", async (t) => {
  const { server, gate, shop, options } = await setUp(t);
  const context = await profile(t);
  const pages = [];
  for (let n = 0; n < 10; n++) pages.push(await open(context, shop.url, options));
  await Promise.all(pages.map((page, n) => page.evaluate((n) => void nudge.track("tab_used", { n }), n)));
  const events = await arrived(server, "tab_used", 10);
  await holds(async () => assert.equal((await server.users()).length, 1));
  assert.equal(custom(events, "tab_used").length, 10);
  for (const name of ["session_started", "app_installed", "app_opened"]) {
    assert.equal(custom(events, name).length, name == "app_opened" ? 10 : 1, name);
  }
  assert.equal(gate.of("POST /v1/sdk/session").length, 1);
  // A poll is kept open: one at a time.
  const polling = () => gate.of("GET /v1/sdk/instructions").filter(({ status }) => status === undefined).length;
  await until("a poll is open", () => polling() > 0);
  assert.equal(polling(), 1);

  // The tab that sends goes away: another does.
  await pages.shift().close();
  await pages[4].evaluate(() => void nudge.track("tab_left", {}));
  await arrived(server, "tab_left", 1);
});

test("a tab that does not answer holds nothing up", async (t) => {
  const { server, shop, options } = await setUp(t);
  const context = await profile(t);
  const first = await open(context, shop.url, options);
  await first.evaluate(() => nudge.flush());
  const second = await open(context, shop.url, options);
  // As a tab that is frozen or hangs: it leads, and hears nothing.
  let hangs = true;
  const hung = first.evaluate(() => {
    for (const end = Date.now() + 20_000; Date.now() < end; );
  });
  void hung.then(() => (hangs = false));
  await sleep(200);
  await second.evaluate(() => void nudge.track("other_hung", {}));
  assert.equal(custom(await arrived(server, "other_hung", 1), "other_hung").length, 1);
  assert.ok(hangs, "it arrived before the other tab came back");
  await hung;
  await first.evaluate(() => void nudge.track("came_back", {}));
  await arrived(server, "came_back", 1);
});

test("a server that answers 503 for a minute gets everything later, once, and is asked as seldom as it says", async (t) => {
  const { server, gate, shop, options } = await setUp(t);
  const page = await open(await profile(t), shop.url, options);
  await page.evaluate(() => nudge.flush());
  const begun = Date.now();
  const refusals = [];
  gate.refuse = ({ route, at }) => {
    if (route != "POST /v1/sdk/ingest" || at > begun + 60_000) return undefined;
    // The first answers say when to come again; what follows is the SDK's own patience.
    const seconds = refusals.length < 4 ? 4 : 0;
    refusals.push({ at, seconds });
    return { status: 503, headers: seconds ? { "retry-after": `${seconds}` } : {} };
  };
  let tracked = 0;
  const track = () => page.evaluate((n) => void nudge.track("patience_shown", { n }), tracked++);
  while (Date.now() < begun + 60_000) {
    await track();
    await sleep(500);
  }
  await track();
  const events = custom(await arrived(server, "patience_shown", tracked, 120), "patience_shown");
  assert.deepEqual(events.map(({ properties }) => properties.n), [...Array(tracked).keys()]);
  await holds(async () => assert.equal((await server.users()).length, 1));
  // From one refusal to the next, and to the request that the server took.
  const taken = gate.of("POST /v1/sdk/ingest").find(({ at, status }) => at > begun && status == 200);
  const times = [...refusals.map(({ at }) => at), taken.at];
  refusals.forEach(({ at, seconds }, failures) => {
    const least = Math.max(1000 * seconds, Math.min(60_000, 500 * 2 ** failures) / 2);
    const pause = times[failures + 1] - at;
    // Between an answer and its arrival in the page lie milliseconds.
    assert.ok(pause > least - 20, `${pause} ms after ${failures} failures, of which the last asked for ${seconds} s`);
  });
  assert.ok(refusals.length >= 4, `${refusals.length} refusals`);
  const complaints = await page.evaluate(() => errors);
  assert.deepEqual(complaints.map(({ status }) => status), [503], "the page is told once");
});

test("a request that is never answered holds nothing up", async (t) => {
  const { server, gate, shop, options } = await setUp(t);
  const context = await profile(t);
  // A minute is over sooner here.
  await context.addInitScript(() => {
    const real = window.setTimeout;
    window.setTimeout = (what, after, ...rest) => real(what, after == 60_000 ? 2000 : after, ...rest);
  });
  const page = await open(context, shop.url, options);
  await page.evaluate(() => nudge.flush());
  let held = 0;
  gate.refuse = ({ route }) => (route == "POST /v1/sdk/ingest" && held++ < 1 ? "hold" : undefined);
  await page.evaluate(() => void nudge.track("held_up", { n: 1 }));
  await until("the request is made", () => held);
  await page.evaluate(() => void nudge.track("held_up", { n: 2 }));
  const events = custom(await arrived(server, "held_up", 2, 30), "held_up");
  assert.deepEqual(events.map(({ properties }) => properties.n), [1, 2]);
});

test("whatever a server says of when to come again, it is not asked sooner", async (t) => {
  const { gate, shop, options } = await setUp(t);
  const chromium = await browser(t);
  for (const after of ["2592000", new Date(Date.now() + 120_000).toUTCString()]) {
    const page = await open(await chromium.newContext(), shop.url, options);
    await page.evaluate(() => nudge.flush());
    let asked = 0;
    gate.refuse = ({ route }) => (route == "POST /v1/sdk/ingest" && ++asked ? { status: 503, headers: { "retry-after": after } } : undefined);
    await page.evaluate(() => void nudge.track("patience_shown"));
    await until("it is asked", () => asked);
    await sleep(4000);
    assert.equal(asked, 1, after);
    gate.refuse = () => undefined;
    await page.context().close();
  }
});

test("polls that are answered oddly are neither the last ones nor made without a pause", async (t) => {
  const { server, gate, shop, options } = await setUp(t);
  await server.survey();
  const chromium = await browser(t);
  for (const odd of [{ status: 200, text: "{}" }, { status: 401, code: "subject_token_expired" }]) {
    let polls = 0;
    gate.refuse = ({ route }) => (route == "GET /v1/sdk/instructions" && ++polls ? odd : undefined);
    const page = await open(await chromium.newContext(), shop.url, options);
    const faults = [];
    page.on("pageerror", (error) => faults.push(error));
    await page.evaluate(() => void nudge.on("instruction", () => (window.offered = true)));
    await until("there is another poll", () => polls > 1);
    await sleep(3000);
    assert.ok(polls < 12, `${polls} polls`);
    gate.refuse = () => undefined;
    await page.evaluate(() => (nudge.track("order_placed"), nudge.flush()));
    await until("the instruction", () => page.evaluate(() => window.offered));
    assert.deepEqual(faults, []);
    await page.context().close();
  }
});

test("an answer that is lost leaves one event", async (t) => {
  const { server, gate, shop, options } = await setUp(t);
  const page = await open(await profile(t), shop.url, options);
  await page.evaluate(() => nudge.flush());
  let lost = 0;
  gate.refuse = ({ route }) => (route == "POST /v1/sdk/ingest" && lost++ < 2 ? "lose" : undefined);
  await page.evaluate(() => void nudge.track("answer_lost", {}));
  await until("it was sent again", () => gate.of("POST /v1/sdk/ingest").filter(({ text }) => text.includes("answer_lost")).length >= 3);
  await sleep(500);
  assert.equal(custom(await arrived(server, "answer_lost", 1), "answer_lost").length, 1);
});

test("a token that is revoked amid a batch costs a session and no event", async (t) => {
  const { server, gate, shop, options } = await setUp(t);
  const page = await open(await profile(t), shop.url, options);
  await page.evaluate(() => nudge.flush());
  const token = gate.of("POST /v1/sdk/ingest").at(-1).headers["x-service-subject-token"];
  await page.evaluate(() => {
    for (let n = 0; n < 250; n++) nudge.track("batch_sent", { n });
  });
  let revoked = false;
  gate.refuse = (request) => {
    if (revoked || request.route != "POST /v1/sdk/ingest" || !request.text.includes("batch_sent")) return;
    revoked = true;
    const headers = { authorization: `Bearer ${server.access.writeKey}`, "x-service-subject-token": token };
    void fetch(`${server.base}/v1/sdk/session`, { method: "DELETE", headers });
  };
  const events = custom(await arrived(server, "batch_sent", 250), "batch_sent");
  assert.deepEqual(events.map(({ properties }) => properties.n), [...Array(250).keys()]);
  await holds(async () => assert.equal((await server.users()).length, 1));
  assert.ok(gate.of("POST /v1/sdk/session").length >= 2);
});

test("a clock that is wrong by a day is set right", async (t) => {
  const { server, shop, options } = await setUp(t);
  for (const hours of [-24, 24]) {
    const context = await (await browser(t)).newContext();
    await shiftClock(context, hours);
    const page = await open(context, shop.url, options);
    const name = hours < 0 ? "was_late" : "was_early";
    await page.evaluate((name) => (nudge.track(name, {}), nudge.flush()), name);
    const found = await until(name, async () => {
      for (const { anonymousId } of await server.users()) {
        const events = custom(await server.events(anonymousId), name);
        if (events.length) return events;
      }
    });
    assert.equal(found.length, 1);
    assert.ok(Math.abs(Date.parse(found[0].timestamp) - Date.now()) < 60_000, found[0].timestamp);
    await holds(async () => assert.deepEqual(await page.evaluate(() => errors), []));
  }
});

test("without a database events go by memory, and the page is told once", async (t) => {
  const { server, shop, options } = await setUp(t);
  const context = await (await browser(t)).newContext();
  await context.addInitScript(() => {
    indexedDB.open = () => {
      throw new DOMException("private mode", "InvalidStateError");
    };
    for (const name of ["localStorage", "sessionStorage"]) {
      Object.defineProperty(window, name, {
        get() {
          throw new DOMException("private mode", "SecurityError");
        },
      });
    }
  });
  const page = await open(context, shop.url, options);
  await page.evaluate(() => {
    for (let n = 0; n < 10; n++) nudge.track("kept_nowhere", { n });
  });
  assert.equal(custom(await arrived(server, "kept_nowhere", 10), "kept_nowhere").length, 10);
  const errors = await page.evaluate(() => errors);
  assert.deepEqual(errors.map(({ code }) => code), ["storage_unavailable"]);
});

test("a sandboxed page, which may ask for no storage, locks or workers, sends its events", async (t) => {
  const { server, options } = await setUp(t);
  const headers = { "content-security-policy": "sandbox allow-scripts" };
  const shop = await site(t, { sdk: "/sdk/nudge.js", headers });
  const page = await open(await (await browser(t)).newContext(), shop.url, options);
  await page.evaluate(() => {
    for (let n = 0; n < 10; n++) nudge.track("boxed_in", { n });
  });
  assert.equal(custom(await arrived(server, "boxed_in", 10), "boxed_in").length, 10);
  assert.equal(await page.evaluate(() => nudge.push.state), "unsupported");
  await page.evaluate(() => nudge.reset());
  await sleep(500);
  assert.equal(await page.evaluate(() => nudge.push.state), "unsupported", "nobody's reset makes it more");
  const errors = await page.evaluate(() => errors);
  assert.deepEqual(errors.map(({ code }) => code), ["storage_unavailable"]);
});

test("a page where every object has a member more keeps its events in the database", async (t) => {
  const { server, gate, shop, options } = await setUp(t);
  gate.refuse = () => "drop";
  const page = await open(await profile(t), shop.url, options);
  await page.evaluate(async () => {
    Object.prototype.more = () => {};
    nudge.track("had_more", {});
    await nudge.flush();
    delete Object.prototype.more;
  });
  assert.deepEqual(await page.evaluate(() => errors), []);
  gate.refuse = () => undefined;
  await page.reload();
  await begin(page, options);
  assert.equal(custom(await arrived(server, "had_more", 1), "had_more").length, 1);
});

test("a full disk loses no event of the page", async (t) => {
  const { server, shop, options } = await setUp(t);
  const page = await open(await profile(t), shop.url, options);
  await page.evaluate(() => nudge.flush());
  await page.evaluate(() => {
    IDBObjectStore.prototype.add = () => {
      throw new DOMException("full", "QuotaExceededError");
    };
    for (let n = 0; n < 10; n++) nudge.track("disk_full", { n });
  });
  assert.equal(custom(await arrived(server, "disk_full", 10), "disk_full").length, 10);
  await holds(async () => assert.equal((await server.users()).length, 1));
  await holds(async () => assert.deepEqual((await page.evaluate(() => errors)).map(({ code }) => code), ["storage_unavailable"]));
});

test("a tab that keeps its events in memory holds up no other", async (t) => {
  const { server, shop, options } = await setUp(t);
  const context = await profile(t);
  const page = await open(context, shop.url, options);
  await page.evaluate(() => nudge.flush());
  const other = await open(context, shop.url, options);
  await page.evaluate(() => {
    IDBObjectStore.prototype.add = () => {
      throw new DOMException("full", "QuotaExceededError");
    };
    nudge.track("in_memory", {});
  });
  assert.equal(custom(await arrived(server, "in_memory", 1), "in_memory").length, 1);
  await other.evaluate(async () => {
    nudge.track("in_database", {});
    await nudge.flush();
  });
  assert.equal(custom(await arrived(server, "in_database", 1), "in_database").length, 1);
  await holds(async () => assert.equal((await server.users()).length, 1));
});

test("one event that spoils its request takes no others along, nor does what something between answers", async (t) => {
  const { server, gate, shop, options } = await setUp(t);
  const page = await open(await profile(t), shop.url, options);
  await page.evaluate(() => nudge.flush());
  await page.evaluate(() => {
    const deep = { leaf: 1 };
    let outer = deep;
    for (let n = 0; n < 70; n++) outer = { outer };
    for (let n = 0; n < 20; n++) nudge.track("was_good", { n });
    nudge.track("was_deep", outer);
    for (let n = 20; n < 40; n++) nudge.track("was_good", { n });
  });
  const events = custom(await arrived(server, "was_good", 40), "was_good");
  assert.deepEqual(events.map(({ properties }) => properties.n), [...Array(40).keys()]);
  await holds(async () => assert.equal((await page.evaluate(() => errors)).length, 1));

  // A proxy that knows no such place for a while.
  let refused = 0;
  gate.refuse = ({ route }) => (route == "POST /v1/sdk/ingest" && refused++ < 2 ? { status: [403, 404][refused - 1], text: "<html>" } : undefined);
  await page.evaluate(() => void nudge.track("was_between", {}));
  assert.equal(custom(await arrived(server, "was_between", 1), "was_between").length, 1);
  assert.ok(refused > 2);

  // One that refuses a method for good: who was here is as gone as can be, and who comes is heard. Long pauses are short here.
  gate.refuse = ({ route }) => (route == "DELETE /v1/sdk/session" ? { status: 405, text: "<html>" } : undefined);
  await page.evaluate(() => {
    const later = window.setTimeout;
    window.setTimeout = (done, milliseconds) => later(done, milliseconds > 1000 ? milliseconds / 50 : milliseconds);
    nudge.reset();
    nudge.track("was_next", {});
  });
  await until("the next person's event", async () => {
    for (const { anonymousId } of await server.users()) if (custom(await server.events(anonymousId), "was_next").length) return true;
  });
  assert.equal(gate.of("DELETE /v1/sdk/session").length, 10);
});

test("a reset amid a flight parts the two people's events", async (t) => {
  const { server, gate, shop, options } = await setUp(t);
  const page = await open(await profile(t), shop.url, options);
  await page.evaluate(() => nudge.flush());
  gate.refuse = ({ route, text }) => (route == "POST /v1/sdk/ingest" && text.includes("before_reset") && gate.refused++ < 1 ? { status: 503, headers: { "retry-after": "1" } } : undefined);
  gate.refused = 0;
  await page.evaluate(() => {
    for (let n = 0; n < 5; n++) nudge.track("before_reset", { n });
    nudge.reset();
    for (let n = 0; n < 5; n++) nudge.track("after_reset", { n });
  });
  await until("two people", async () => (await server.users()).length == 2);
  const of = async (name) => {
    const found = [];
    for (const { anonymousId } of await server.users()) found.push(custom(await server.events(anonymousId), name).length);
    return found.sort();
  };
  await until("all events", async () => (await of("before_reset"))[1] == 5 && (await of("after_reset"))[1] == 5);
  await holds(async () => assert.deepEqual(await of("before_reset"), [0, 5]));
  await holds(async () => assert.deepEqual(await of("after_reset"), [0, 5]));
  assert.equal(gate.of("DELETE /v1/sdk/session").at(-1).status, 204);
});

const BUTTON = { mode: "on_demand", trigger: undefined, settings: { presentation: "feedback_button" } };
const ASKED = { "by a button": BUTTON, "by an event": {}, "in a tab that does not lead": {} };

for (const [how, fields] of Object.entries(ASKED)) test(`a reset amid the flight of what was asked ${how} parts the two people's answers`, async (t) => {
  const { server, gate, shop, options } = await setUp(t);
  const backend = await Backend.of(server);
  const survey = await server.survey(fields);
  const context = await profile(t);
  if (how.includes("tab")) await (await open(context, shop.url, options)).evaluate(() => nudge.flush());
  const page = await open(context, shop.url, options);
  await page.evaluate((token) => (nudge.identify(token), nudge.flush()), backend.token("ada"));
  if (fields.mode) await page.locator("nudge-ui .fab").click();
  else await page.evaluate(() => void nudge.track("order_placed"));
  await page.locator("nudge-ui input").nth(5).check({ force: true });
  // The network goes, and comes back for all but the answer.
  gate.refuse = () => "drop";
  await page.locator("nudge-ui button.primary").click();
  await until("the answer is tried", () => gate.requests.some(({ route }) => route.endsWith("/attempts")));
  await page.evaluate(() => (nudge.reset(), nudge.track("after_reset")));
  gate.refuse = ({ route }) => (route.includes("attempts") ? "drop" : undefined);
  const other = await until("another person", async () => (await server.users()).find(({ externalId }) => !externalId));
  await until("their event", async () => custom(await server.events(other.anonymousId), "after_reset").length > 0);
  assert.deepEqual(gate.of("DELETE /v1/sdk/session"), [], "a session lasts as long as something of its person is under way");
  gate.refuse = () => undefined;
  const answered = await until("the answer", () => gate.requests.find(({ route, status }) => route.endsWith("/answers") && status));
  assert.equal(answered.status, 200);
  await until("the session's end", () => gate.of("DELETE /v1/sdk/session").some(({ status }) => status == 204));
  const completed = await until("the attempt's end", () => gate.requests.find(({ route, status }) => route.endsWith("/complete") && status));
  assert.equal(completed.status, 200, "nor does it end between an answer and what follows that");
  const sent = gate.requests.filter(({ route }) => /^POST .*(attempts|answers)$/.test(route));
  assert.deepEqual(sent.filter(({ text }) => text.includes(other.anonymousId)), []);
  const { items } = await server.api("GET", `/surveys/${survey.id}/attempts`);
  assert.equal(items.length, 1);
  const [ada] = (await server.users()).filter(({ externalId }) => externalId == "ada");
  assert.equal(items[0].subjectId, ada.subjectId);
});

test("what the server refuses for good is dropped and told", async (t) => {
  const { server, shop, options } = await setUp(t);
  const page = await open(await profile(t), shop.url, options);
  const id = await page.evaluate(() => {
    const id = nudge.track("x".repeat(201), {});
    nudge.track("was_fine", {});
    const cycle = {};
    cycle.self = cycle;
    nudge.track("was_odd", cycle);
    // What no queue takes holds nothing up; what JSON has of anything else is taken.
    nudge.set({ big: 10n });
    nudge.set(new Proxy({ plan: "pro" }, {}));
    return id;
  });
  await until("the property", async () => (await server.users())[0]?.topProperties.plan == "pro");
  await arrived(server, "was_fine", 1);
  const errors = await until("errors", () => page.evaluate(() => (errors.length >= 2 ? errors : null)));
  assert.deepEqual(new Set(errors.map(({ code }) => code)), new Set(["invalid_name", "invalid_properties"]));
  assert.equal(errors.find(({ code }) => code == "invalid_name").eventId, id);
});

test("a reload loses nothing and goes on with the session", async (t) => {
  const { server, gate, shop, options } = await setUp(t);
  const page = await open(await profile(t), shop.url, options);
  for (let n = 0; n < 5; n++) {
    await page.evaluate((n) => void nudge.track("page_left", { n }), n);
    await page.reload();
    await begin(page, options);
  }
  const events = await arrived(server, "page_left", 5);
  assert.deepEqual(custom(events, "page_left").map(({ properties }) => properties.n), [0, 1, 2, 3, 4]);
  for (const name of ["session_started", "app_installed", "app_opened"]) assert.equal(custom(events, name).length, 1, name);
  const clients = gate.of("POST /v1/sdk/session").map(({ text }) => JSON.parse(text).clientId);
  assert.equal(new Set(clients).size, 1);
});

test("what a page says once it is told that it goes is stored once", async (t) => {
  const { server, shop, options } = await setUp(t);
  const page = await open(await profile(t), shop.url, options);
  const says = ["beforeunload", "pagehide", "visibilitychange"];
  for (let n = 0; n < 5; n++) {
    await page.evaluate(() => nudge.flush());
    // As libraries do that measure a page: what they know at its end they say when it is hidden.
    await page.evaluate(([says, n]) => {
      for (const name of says) (name == "visibilitychange" ? document : window).addEventListener(name, () => void nudge.track(`heard_${name}`, { n }));
    }, [says, n]);
    await page.reload();
    await begin(page, options);
  }
  const events = await arrived(server, "heard_visibilitychange", 5);
  for (const name of says) assert.deepEqual(custom(events, `heard_${name}`).map(({ properties }) => properties.n), [0, 1, 2, 3, 4], name);
});

test("a screen's name that is cut, or has half a character, spoils no event", async (t) => {
  const { server, gate, shop, options } = await setUp(t);
  await server.survey();
  const page = await open(await profile(t), shop.url, { ...options, autoShow: false });
  await page.evaluate(() => nudge.flush());
  await page.evaluate(() => {
    nudge.screen(`${"x".repeat(119)}😀 and more`);
    nudge.track("order_placed", { n: 0 });
  });
  await arrived(server, "order_placed", 1);
  assert.deepEqual(await page.evaluate(() => errors), []);
  await page.evaluate(() => {
    nudge.screen("half \ud83d");
    nudge.track("order_placed", { n: 1 });
    return nudge.flush();
  });
  await arrived(server, "order_placed", 2);
  assert.deepEqual(await page.evaluate(() => errors), []);
  const [{ anonymousId }] = await server.users();
  const names = (await server.events(anonymousId)).filter(({ name }) => name == "screen_viewed").map(({ properties }) => properties.screenName);
  assert.deepEqual(names, [`${"x".repeat(119)}😀 and more`, "half \ufffd"]);
  const screens = gate.of("POST /v1/sdk/ingest").filter(({ status }) => status == 200).map(({ text }) => JSON.parse(text).delivery?.screenName);
  assert.deepEqual(screens.filter(Boolean), [`${"x".repeat(119)}😀`, "half \ufffd"]);
});

test("what a page that goes leaves in two places counts once", async (t) => {
  const { server, shop, options } = await setUp(t);
  const page = await (await profile(t)).newPage();
  await page.goto(shop.url);
  /** Says something as the page goes, while the database is still taking it. */
  const go = async (says) => {
    await begin(page, options);
    await page.evaluate(async ({ says, writeKey }) => {
      for (const [method, ...parts] of says) nudge[method](...parts);
      dispatchEvent(new PageTransitionEvent("pagehide"));
      const done = (request) => new Promise((done) => (request.onsuccess = () => done(request.result)));
      const database = await done(indexedDB.open(`nudge:${writeKey}`));
      const last = says.at(-1)[1];
      for (;;) {
        const items = await done(database.transaction("queue").objectStore("queue").getAll());
        if (items.some(({ event }) => event?.name == last)) break;
      }
      database.close();
    }, { says, writeKey: options.writeKey });
    await holds(async () => assert.equal(await page.evaluate(() => Object.keys(localStorage).length), 1, "it is in both places"));
    await page.reload();
  };
  await go([["track", "left_twice"]]);
  await go([["reset"], ["track", "left_after_reset"]]);
  await begin(page, options);
  await page.evaluate(() => nudge.track("came_back"));
  await until("two people", async () => (await server.users()).length == 2);
  const of = async (name) => {
    for (const { anonymousId } of await server.users()) {
      const events = await server.events(anonymousId);
      if (custom(events, name).length) return events.map(({ name }) => name);
    }
    return [];
  };
  await until("the last event", async () => (await of("came_back")).length > 0);
  await holds(async () => assert.deepEqual(await of("left_twice"), ["session_started", "app_installed", "app_opened", "left_twice"]));
  await holds(async () => assert.deepEqual(await of("came_back"), ["session_started", "left_after_reset", "came_back"]));
});
