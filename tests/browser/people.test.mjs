// Who somebody is and what they consented to, and what the server offers to show them.
import assert from "node:assert/strict";
import test from "node:test";
import { Backend, begin, browser, Gate, holds, open, profile, Server, site, sleep, until } from "./support.mjs";

async function setUp(t) {
  const server = await Server.start(t);
  const gate = await Gate.start(t, server);
  const shop = await site(t, { sdk: "/sdk/nudge.js" });
  const options = { writeKey: server.access.writeKey, baseUrl: gate.base, autoShow: false };
  return { server, gate, shop, options };
}

/** What the browser keeps for a site. */
const kept = (page) =>
  page.evaluate(async () => ({
    databases: (await indexedDB.databases()).length,
    local: localStorage.length,
    session: sessionStorage.length,
    cookies: document.cookie,
  }));

/** The subject tokens that the browser keeps. */
const tokens = (page, writeKey) =>
  page.evaluate(
    (key) =>
      new Promise((done) => {
        const open = indexedDB.open(`nudge:${key}`);
        open.onsuccess = () => {
          const values = open.result.transaction("values").objectStore("values").getAll();
          values.onsuccess = () => done(values.result.map((value) => value.token).filter(Boolean));
        };
      }),
    writeKey,
  );

const NOTHING = { databases: 0, local: 0, session: 0, cookies: "" };

test("without consent nothing is stored and nothing is asked", async (t) => {
  const { server, gate, shop, options } = await setUp(t);
  const context = await profile(t);
  const waiting = { ...options, consent: "required" };
  const page = await open(context, shop.url, waiting);
  await page.evaluate(async () => {
    nudge.track("before_consent", {});
    nudge.set({ plan: "free" });
    nudge.consent({ analytics: false, messaging: false });
    nudge.identify("x");
    nudge.reset();
    await nudge.flush();
  });
  await sleep(1000);
  assert.deepEqual(gate.requests, []);
  await holds(async () => assert.deepEqual(await kept(page), NOTHING));
  // Nor does a page that goes leave anything behind.
  await page.evaluate(() => void nudge.track("before_consent", {}));
  await page.reload();
  assert.deepEqual(gate.requests, []);
  await holds(async () => assert.deepEqual(await kept(page), NOTHING));
  await begin(page, waiting);

  await page.evaluate(async () => {
    nudge.consent({ analytics: true });
    nudge.track("after_consent", {});
    await nudge.flush();
  });
  const user = await until("somebody", async () => (await server.users())[0]);
  await until("events", async () => (await server.events(user.anonymousId)).some(({ name }) => name == "after_consent"));
  const routes = gate.requests.map(({ route }) => route).filter((route) => !route.startsWith("OPTIONS"));
  assert.deepEqual(routes.slice(0, 3), ["POST /v1/sdk/session", "POST /v1/sdk/consent", "POST /v1/sdk/ingest"]);
  const names = (await server.events(user.anonymousId)).map(({ name }) => name);
  assert.ok(!names.includes("before_consent"), names.join());
  const { profile: of } = await server.api("GET", `/users/${user.anonymousId}`);
  assert.equal(of.consent.analytics, true);

  // The next page knows.
  await page.reload();
  await begin(page, waiting);
  await page.evaluate(() => void nudge.track("consent_remembered", {}));
  await until("it is remembered", async () => {
    await page.evaluate(() => void nudge.track("consent_remembered", {}));
    return (await server.events(user.anonymousId)).some(({ name }) => name == "consent_remembered");
  });

  // Withdrawn: what happens afterwards is nobody's business.
  await page.evaluate(async () => {
    nudge.consent({ analytics: false });
    nudge.track("after_withdrawal", {});
    await nudge.flush();
  });
  await sleep(500);
  const after = (await server.events(user.anonymousId)).map(({ name }) => name);
  assert.ok(!after.includes("after_withdrawal"));
});

test("who consented before is heard from the first call on, and so is who withdraws", async (t) => {
  const { server, shop, options } = await setUp(t);
  const waiting = { ...options, consent: "required" };
  const page = await open(await profile(t), shop.url, waiting);
  await page.evaluate(async () => {
    nudge.track("too_early", {});
    nudge.consent({ analytics: true, messaging: true });
    nudge.track("first_page", {});
    await nudge.flush();
  });
  const user = await until("somebody", async () => (await server.users())[0]);
  const names = async () => (await server.events(user.anonymousId)).map(({ name }) => name);
  await until("the first page", async () => (await names()).includes("first_page"));
  const visit = async (calls) => {
    await page.reload();
    await page.evaluate(
      ([options, calls]) => {
        window.nudge = Nudge.init(options);
        new Function("nudge", calls)(nudge);
        return nudge.flush();
      },
      [waiting, calls],
    );
  };
  await visit(`nudge.track("second_page", {})`);
  await until("the second page", async () => (await names()).includes("second_page"));
  await visit(`nudge.consent({ analytics: false, messaging: false }); nudge.track("third_page", {})`);
  await until("the withdrawal", async () => (await server.api("GET", `/users/${user.anonymousId}`)).profile.consent.analytics === false);
  await visit(`nudge.track("fourth_page", {})`);
  await sleep(500);
  await holds(async () => assert.deepEqual((await names()).filter((name) => /early|third|fourth/.test(name)), []));
});

/** What the server has of the only person's consent. */
const consentOf = async (server) => {
  const [{ anonymousId }] = await server.users();
  const { analytics, messaging } = (await server.api("GET", `/users/${anonymousId}`)).profile.consent;
  return { analytics, messaging };
};

test("a withdrawal that a page could not send is sent by the next one, and then nothing is asked", async (t) => {
  const { server, gate, shop, options } = await setUp(t);
  const waiting = { ...options, consent: "required" };
  const page = await open(await profile(t), shop.url, waiting);
  // What a page leaves at once is noted elsewhere than what it had time to write.
  for (const pause of [1000, 0]) {
    await page.evaluate(() => (nudge.consent({ analytics: true, messaging: true }), nudge.flush()));
    await until("the consent", async () => (await server.users()).length && (await consentOf(server)).messaging);
    gate.refuse = () => "drop";
    await page.evaluate(async (pause) => {
      nudge.consent({ analytics: false, messaging: false });
      if (pause) await new Promise((done) => setTimeout(done, pause));
      else location.reload();
    }, pause);
    if (pause) await page.reload();
    else await page.waitForFunction(() => !window.nudge);
    gate.refuse = () => undefined;
    await begin(page, waiting);
    await holds(async () => assert.deepEqual(await consentOf(server), { analytics: false, messaging: false }));
    await page.evaluate(() => nudge.flush());
    await page.reload();
    const before = gate.requests.length;
    await begin(page, waiting);
    await sleep(500);
    assert.equal(gate.requests.length, before);
  }
});

test("consent and its withdrawal hold for tabs that were open before", async (t) => {
  const { server, gate, shop, options } = await setUp(t);
  const waiting = { ...options, consent: "required" };
  const context = await profile(t);
  const page = await open(context, shop.url, waiting);
  const other = await open(context, shop.url, waiting);
  const deaf = await context.newPage();
  await deaf.addInitScript(() => delete window.BroadcastChannel);
  await deaf.goto(shop.url);
  await begin(deaf, waiting);
  await sleep(500);
  assert.deepEqual(gate.requests, []);
  await page.evaluate(() => (nudge.consent({ analytics: true, messaging: true }), nudge.flush()));
  const user = await until("somebody", async () => (await server.users())[0]);
  const names = async () => (await server.events(user.anonymousId)).map(({ name }) => name);
  await until("another tab's event", async () => {
    await other.evaluate(() => void nudge.track("other_tab"));
    return (await names()).includes("other_tab");
  });
  await other.evaluate(() => nudge.consent({ analytics: false, messaging: false }));
  await holds(async () => assert.deepEqual(await consentOf(server), { analytics: false, messaging: false }));
  await page.evaluate(() => {
    nudge.track("after_withdrawal");
    nudge.set({ email: "ada@shop.example" });
    return nudge.flush();
  });
  await sleep(500);
  assert.ok(!(await names()).includes("after_withdrawal"));
  assert.deepEqual(gate.of("POST /v1/sdk/user-properties"), []);
  // A tab that hears of nothing looks up what is kept.
  await page.evaluate(() => nudge.consent({ analytics: true, messaging: true }));
  await holds(async () => assert.deepEqual(await consentOf(server), { analytics: true, messaging: true }));
  await deaf.evaluate(() => nudge.consent({ analytics: false, messaging: false }));
  await holds(async () => assert.deepEqual(await consentOf(server), { analytics: false, messaging: false }));
  await holds(async () => assert.equal((await server.users()).length, 1));
});

test("somebody who signs in stays who they are, and a reset begins anew", async (t) => {
  const { server, shop, options } = await setUp(t);
  const backend = await Backend.of(server);
  const page = await open(await profile(t), shop.url, options);
  await page.evaluate((token) => {
    nudge.track("seen_before", {});
    nudge.identify(token);
    nudge.track("seen_after", {});
    nudge.set({ plan: "pro", seats: 3 });
    nudge.unset(["seats"]);
  }, backend.token("ada"));
  const ada = await until("ada", async () => (await server.users()).find(({ externalId, topProperties }) => externalId == "ada" && topProperties.plan == "pro"));
  await until("both events", async () => {
    const names = (await server.events(ada.anonymousId)).map(({ name }) => name);
    return names.includes("seen_before") && names.includes("seen_after");
  });
  await until("the property is gone", async () => !("seats" in (await server.users()).find(({ externalId }) => externalId == "ada").topProperties));
  await page.evaluate(() => {
    nudge.reset();
    nudge.track("seen_by_nobody", {});
  });
  const other = await until("another person", async () => (await server.users()).find(({ externalId }) => !externalId));
  await until("their event", async () => (await server.events(other.anonymousId)).some(({ name }) => name == "seen_by_nobody"));
  await holds(async () => assert.ok(!(await server.events(ada.anonymousId)).some(({ name }) => name == "seen_by_nobody")));
  // Somebody else signs in in the same browser: two people who are known never become one.
  await page.evaluate((token) => nudge.identify(token), backend.token("ben"));
  await until("ben", async () => (await server.users()).find(({ externalId }) => externalId == "ben"));
  await holds(async () => assert.equal((await server.users()).length, 2));
  await holds(async () => assert.deepEqual(await page.evaluate(() => errors), []));
});

/** A page whose person's backend has said who they are. */
async function signedIn(t) {
  const all = await setUp(t);
  const { server, shop, options } = all;
  const backend = await Backend.of(server);
  const context = await profile(t);
  const page = await open(context, shop.url, options);
  await page.evaluate((token) => nudge.identify(token), backend.token("ada"));
  const ada = await until("ada", async () => (await server.users()).find(({ externalId }) => externalId == "ada"));
  await page.evaluate(() => nudge.flush());
  return { ...all, backend, context, page, ada };
}

test("who comes back when the proof of who they are has ended signs in again, and nothing waits for ever", async (t) => {
  const { server, options, backend, page, ada } = await signedIn(t);
  const [token] = await tokens(page, options.writeKey);
  const headers = { authorization: `Bearer ${options.writeKey}`, "x-service-subject-token": token };
  const ended = await fetch(`${server.base}/v1/sdk/session`, { method: "DELETE", headers });
  assert.equal(ended.status, 204);
  await page.reload();
  await begin(page, options);
  await page.evaluate(
    ([bad, good]) => {
      nudge.track("came_back", {});
      nudge.identify(bad);
      nudge.identify(good);
    },
    ["no.proof.atall", backend.token("ada")],
  );
  await until("the event", async () => (await server.events(ada.anonymousId)).some(({ name }) => name == "came_back"));
  await holds(async () => assert.equal((await server.users()).length, 1));
});

test("who proves anew who they are waits no longer, and a server that asks for patience has it", async (t) => {
  const { server, gate, shop, options, backend, context, page, ada } = await signedIn(t);
  const other = await open(context, shop.url, options);
  // The first tab sends for both, whichever of them says it.
  for (const [n, tab] of [page, other].entries()) {
    // The proof itself goes after the events that waited for it.
    await page.evaluate(() => nudge.flush());
    const [token] = await tokens(page, options.writeKey);
    const headers = { authorization: `Bearer ${options.writeKey}`, "x-service-subject-token": token };
    assert.equal((await fetch(`${server.base}/v1/sdk/session`, { method: "DELETE", headers })).status, 204);
    await page.evaluate((n) => void nudge.track("has_waited", { n }), n);
    await until("the page is told", () => page.evaluate((n) => errors.length > n, n));
    await tab.evaluate((token) => nudge.identify(token), backend.token("ada"));
    const arrived = async () => (await server.events(ada.anonymousId)).filter(({ name }) => name == "has_waited").length > n;
    await until("what waited", arrived, 10);
  }
  const refusals = [];
  gate.refuse = ({ route, at }) => {
    if (route != "POST /v1/sdk/ingest" || refusals.length) return undefined;
    refusals.push(at);
    return { status: 503, headers: { "retry-after": "4" } };
  };
  await page.evaluate(() => void nudge.track("was_patient", {}));
  await until("a refusal", () => refusals.length);
  await page.evaluate((token) => nudge.identify(token), backend.token("ada"));
  const again = await until("it is sent again", () => gate.of("POST /v1/sdk/ingest").find(({ at, text }) => at > refusals[0] && text.includes("was_patient")));
  assert.ok(again.at - refusals[0] > 3980, `${again.at - refusals[0]} ms`);
});

test("a page that knows who is signed in is asked when a session begins", async (t) => {
  const { server, shop, options } = await setUp(t);
  const backend = await Backend.of(server);
  const context = await profile(t);
  await context.exposeFunction("whoIsIt", () => backend.token("ada"));
  const page = await context.newPage();
  await page.goto(shop.url);
  const start = () =>
    page.evaluate((options) => {
      window.errors = [];
      window.nudge = Nudge.init({ ...options, identity: () => window.whoIsIt() });
      nudge.on("error", (error) => errors.push(error));
      nudge.track("came_by", {});
    }, options);
  await start();
  const ada = await until("ada", async () => (await server.users()).find(({ externalId }) => externalId == "ada"));
  // The token is revoked: the page is asked again, and nothing is lost. The server has her before the page has her token.
  await holds(async () => {
    const [token] = await tokens(page, options.writeKey);
    const headers = { authorization: `Bearer ${options.writeKey}`, "x-service-subject-token": token };
    const ended = await fetch(`${server.base}/v1/sdk/session`, { method: "DELETE", headers });
    assert.equal(ended.status, 204);
  });
  await page.reload();
  await start();
  await until("the second visit", async () => (await server.events(ada.anonymousId)).filter(({ name }) => name == "came_by").length == 2);
  await holds(async () => assert.equal((await server.users()).length, 1));
});

test("a page's function for who is signed in may answer at once, and fail at once", async (t) => {
  const { server, shop, options } = await setUp(t);
  const token = (await Backend.of(server)).token("ada");
  const started = await browser(t);
  for (const [proof, name] of [[token, "knew_at_once"], [undefined, "knew_nothing"]]) {
    const page = await (await started.newContext()).newPage();
    await page.goto(shop.url);
    await page.evaluate(({ options, token, name }) => {
      const identity = () => {
        if (!token) throw new Error("nobody can tell");
        return token;
      };
      window.nudge = Nudge.init({ ...options, identity });
      nudge.track(name, {});
    }, { options, token: proof, name });
    const found = await until(name, async () => {
      for (const user of await server.users()) if ((await server.events(user.anonymousId)).some((event) => event.name == name)) return user;
    }, 20);
    assert.equal(found.externalId, proof && "ada");
  }
});

test("what the server offers comes to one tab, once, at once where events call for it", async (t) => {
  const { server, gate, shop, options } = await setUp(t);
  const survey = await server.survey();
  const context = await profile(t);
  const pages = [];
  for (let n = 0; n < 3; n++) {
    const page = await open(context, shop.url, options);
    await page.evaluate(() => {
      window.offered = [];
      nudge.on("instruction", (instruction) => offered.push(instruction));
    });
    pages.push(page);
  }
  await pages[2].bringToFront();
  await pages[2].evaluate(() => nudge.flush());
  const begun = Date.now();
  await pages[1].evaluate(() => void nudge.track("order_placed", { total: 42 }));
  const all = () => Promise.all(pages.map((page) => page.evaluate(() => offered))).then((lists) => lists.flat());
  const [instruction] = await until("an instruction", async () => ((await all()).length ? all() : null));
  assert.ok(Date.now() - begun < 15_000);
  assert.equal(instruction.kind, "survey");
  assert.equal(instruction.campaignId, survey.id);
  const ingest = gate.of("POST /v1/sdk/ingest").find(({ text }) => text.includes("order_placed"));
  const { delivery, events } = JSON.parse(ingest.text);
  assert.deepEqual(delivery.eventIds, events.filter(({ name }) => name == "order_placed").map(({ eventId }) => eventId));
  assert.match(delivery.clientId, /^[0-9a-f-]{36}$/);
  await sleep(1500);
  await holds(async () => assert.equal((await all()).length, 1));

  // What nothing called for comes with the poll.
  await server.survey({ name: "Later", trigger: { kind: "event", eventName: "order_placed", delaySeconds: 1, occurrence: { mode: "every" } } });
  await sleep(1500);
  await pages[2].evaluate(() => void nudge.track("order_placed", { total: 1 }));
  await until("both surveys", async () => (await all()).length >= 3, 30);
  // Between two polls there is none.
  const polling = () => gate.of("GET /v1/sdk/instructions").filter(({ status }) => status === undefined).length;
  await until("a poll is open", () => polling() > 0);
  assert.equal(polling(), 1);
});

test("a tab that was closed is offered nothing, and nobody who looks there is polled for", async (t) => {
  const { server, gate, shop, options } = await setUp(t);
  await server.survey();
  const context = await profile(t);
  // Windows beside each other: that the one which was looked at last is closed says nothing to the other.
  const page = await open(context, shop.url, options);
  await page.evaluate(() => {
    window.offered = [];
    nudge.on("instruction", (instruction) => offered.push(instruction));
    return nudge.flush();
  });
  const other = await open(context, shop.url, options);
  await other.evaluate(() => nudge.flush());
  await other.close();
  await page.evaluate(() => void nudge.track("order_placed", {}));
  await until("the instruction", () => page.evaluate(() => offered.length), 20);

  // The tab that leads is not looked at, and the one that is goes away.
  const polling = () => gate.of("GET /v1/sdk/instructions").filter(({ status }) => status === undefined).length;
  const last = await open(context, shop.url, options);
  await page.evaluate(() => {
    Object.defineProperty(document, "hidden", { configurable: true, get: () => true });
    document.dispatchEvent(new Event("visibilitychange"));
  });
  await until("a poll for who looks", () => polling() > 0);
  await last.close();
  const before = gate.of("GET /v1/sdk/instructions").length;
  await sleep(1500);
  await page.evaluate(() => void nudge.track("order_placed", {}));
  await sleep(1500);
  assert.ok(gate.of("GET /v1/sdk/instructions").length <= before + 1);
});

test("what is offered while messaging is not consented to comes once it is", async (t) => {
  const { server, shop, options } = await setUp(t);
  await server.survey({ mode: "on_demand", trigger: undefined, settings: { presentation: "feedback_button" } });
  const page = await open(await profile(t), shop.url, { ...options, autoShow: true });
  const button = page.locator("nudge-ui .fab");
  await button.waitFor();
  await page.evaluate(() => nudge.consent({ messaging: false }));
  await button.waitFor({ state: "detached" });
  await holds(async () => assert.equal((await consentOf(server)).messaging, false));
  // Who comes back to the tab is offered what there is.
  await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await page.evaluate(() => nudge.flush());
  assert.equal(await button.count(), 0);
  // Not only with the poll after the next: the first one would be there before the consent.
  await page.evaluate(() => nudge.consent({ messaging: true }));
  await button.waitFor({ timeout: 20_000 });
});

test("a page that shows surveys itself is told of one that a reload interrupted", async (t) => {
  const { server, shop, options } = await setUp(t);
  const questions = ["one", "two"].map((id) => ({ id, type: "nps", title: `Question ${id}`, required: true }));
  await server.survey({ flow: { questions, branches: [], endScreens: [], backNavigation: false } });
  const page = await (await profile(t)).newPage();
  const start = () =>
    page.evaluate((options) => {
      window.nudge = Nudge.init(options);
      nudge.on("instruction", (instruction) => nudge.present(instruction));
    }, options);
  await page.goto(shop.url);
  await start();
  await page.evaluate(() => void nudge.track("order_placed", {}));
  await page.locator("nudge-ui h2", { hasText: "Question one" }).waitFor();
  await page.locator("nudge-ui input").nth(5).check({ force: true });
  await page.locator("nudge-ui button.primary").click();
  await page.locator("nudge-ui h2", { hasText: "Question two" }).waitFor();
  await page.reload();
  await start();
  await page.locator("nudge-ui h2", { hasText: "Question two" }).waitFor({ timeout: 20_000 });
});

test("silence of half an hour ends a session, in all tabs together", async (t) => {
  const { server, shop, options } = await setUp(t);
  const context = await (await browser(t)).newContext();
  await context.clock.install();
  const first = await open(context, shop.url, options);
  const second = await open(context, shop.url, options);
  const step = async (page, name, minutes) => {
    await context.clock.fastForward(minutes * 60_000);
    await page.evaluate((name) => void nudge.track(name, {}), name);
    await context.clock.runFor(1000);
  };
  await step(first, "first_did", 0);
  await step(second, "second_did", 20);
  await step(first, "first_did", 20);
  await step(first, "first_did", 31);
  const user = await until("somebody", async () => (await server.users())[0]);
  const names = await until("all events", async () => {
    // The server sets clocks right that run ahead; ids keep the order of the page.
    const events = (await server.events(user.anonymousId)).sort((a, b) => (a.eventId < b.eventId ? -1 : 1));
    const names = events.map(({ name }) => name);
    return names.filter((name) => name.endsWith("_did")).length == 4 ? names : undefined;
  });
  const order = names.filter((name) => !name.startsWith("app_"));
  assert.deepEqual(order, ["session_started", "first_did", "second_did", "first_did", "session_ended", "session_started", "first_did"]);
});

test("surveys come in the person's language, and in the survey's own where there is none", async (t) => {
  const { server, shop, options } = await setUp(t);
  const translations = { de: { "questions/q1/title": "Wie wahrscheinlich?" } };
  await server.survey({ localization: { defaultLocale: "en", translations } });
  for (const [locale, title] of [["de-AT", "Wie wahrscheinlich?"], ["fr", "How likely?"]]) {
    const page = await open(await (await browser(t)).newContext(), shop.url, { ...options, locale });
    await page.evaluate(() => {
      nudge.on("instruction", (instruction) => (window.offered = instruction));
      nudge.track("order_placed", {});
    });
    const { payload } = await until("an instruction", () => page.evaluate(() => window.offered));
    assert.equal(payload.survey.flow.questions[0].title, title);
  }
});

test("what is to be shown without consent is refused before anything is asked", async (t) => {
  const { server, gate, shop, options } = await setUp(t);
  const survey = await server.survey({ mode: "on_demand", trigger: undefined });
  const page = await open(await profile(t), shop.url, { ...options, consent: "required", autoShow: true });
  const loaded = [];
  page.on("request", (request) => loaded.push(request.url()));
  await page.evaluate((id) => nudge.startSurvey(id), survey.id);
  assert.deepEqual(await page.evaluate(() => errors.map(({ code }) => code)), ["consent_required"]);
  assert.deepEqual([loaded, gate.requests], [[], []]);
  await page.evaluate(() => nudge.consent({ analytics: true, messaging: true }));
  await page.evaluate((id) => void nudge.startSurvey(id), survey.id);
  await page.locator("nudge-ui h2").waitFor();
  // Who consented in an earlier visit is shown it from the first call on.
  await page.reload();
  await page.evaluate(([options, id]) => void Nudge.init(options).startSurvey(id), [{ ...options, consent: "required", autoShow: true }, survey.id]);
  await page.locator("nudge-ui h2").waitFor();
});

test("a page that loads the SDK twice has one", async (t) => {
  const { shop, options } = await setUp(t);
  const page = await open(await profile(t), shop.url, options);
  await page.addScriptTag({ url: "/sdk/nudge.js" });
  assert.ok(await page.evaluate((options) => Nudge.init(options) === nudge, options));
  assert.ok(await page.evaluate(async (options) => (await import("/sdk/nudge.mjs")).init(options) === nudge, options));
});

test("a renderer that can't be loaded is told of, and nothing of it is left unheard", async (t) => {
  const { shop, options } = await setUp(t);
  const context = await profile(t);
  const page = await open(context, shop.url, options);
  const thrown = [];
  page.on("pageerror", (error) => thrown.push(String(error)));
  let fail = () => {};
  const failing = new Promise((done) => (fail = done));
  await page.route("**/surveys.mjs*", async (route) => {
    await failing;
    await route.abort();
  });
  await page.evaluate(() => {
    window.told = [];
    nudge.on("error", ({ code }) => window.told.push(code));
    void nudge.startSurvey("any");
    // While it is loaded.
    nudge.reset();
  });
  fail();
  await until("it is told of", () => page.evaluate(() => window.told.includes("show_failed")));
  await sleep(100);
  assert.deepEqual(thrown, []);
});
