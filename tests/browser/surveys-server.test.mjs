// Surveys from a real server: triggered by an event of the page, shown, answered, and read back.
import assert from "node:assert/strict";
import test from "node:test";
import { begin, browser, folder, Gate, holds, open, profile, Server, shiftClock, site, sleep, until } from "./support.mjs";
import { tabTo } from "./surveys/harness.mjs";
import { QUESTIONS, question } from "./surveys/payloads.mjs";
import { WAYS } from "./surveys/ways.mjs";

const heading = (page, text) => page.locator("nudge-ui h2", { hasText: text }).waitFor();
const event = (eventName) => ({ kind: "event", eventName, delaySeconds: 0, occurrence: { mode: "every" } });
const nps = (id) => ({ id, type: "nps", title: `Question ${id}`, required: true });

/** A server with a survey, and a shop that uses the SDK. */
async function setUp(t, survey) {
  const server = await Server.start(t);
  const shop = await site(t, { sdk: "/sdk/nudge.js" });
  const made = await server.survey(survey);
  const options = { writeKey: server.access.writeKey, baseUrl: server.base };
  const attempts = async () => {
    const { items } = await server.api("GET", `/surveys/${made.id}/attempts`);
    return Promise.all(items.map(({ attemptId }) => server.api("GET", `/surveys/${made.id}/attempts/${attemptId}`)));
  };
  const completed = () => until("an attempt is complete", async () => (await attempts()).find(({ state }) => state == "completed"));
  return { server, shop, options, made, attempts, completed };
}

const order = (page) => page.evaluate(() => void nudge.track("order_placed", {}));
const values = (attempt) => Object.fromEntries(attempt.answers.map(({ questionId, answerValue, value }) => [questionId, answerValue ?? value ?? null]));

test("an event brings a survey of all types, and the server has what was answered", async (t) => {
  const all = Object.keys(QUESTIONS);
  const picture = "https://shop.example/picture.png";
  const questions = all.map((type) => JSON.parse(JSON.stringify(question(type)).replaceAll("{origin}/picture.svg", picture)));
  const flow = { questions, branches: [], endScreens: [{ id: "end", title: "Thank you" }], progressStyle: "percent", backNavigation: true };
  const { server, shop, options, made, completed } = await setUp(t, { flow, settings: { presentation: "modal" } });
  const context = await (await browser(t)).newContext({ locale: "en-US" });
  const page = await open(context, shop.url, options);
  await page.evaluate(() => window.addEventListener("nudge:action", (event) => event.preventDefault()));
  await order(page);
  for (const type of all) {
    await heading(page, `About ${type.replace("_", " ")}?`);
    for (const step of WAYS[type][0]) {
      if (typeof step === "string") await page.keyboard.press(step);
      else await step(page);
    }
  }
  await heading(page, "Thank you");
  const attempt = await completed();
  assert.deepEqual(values(attempt), Object.fromEntries(all.map((type) => [type, WAYS[type][1]])));
  await tabTo(page, "Close");
  await page.keyboard.press("Enter");
  await holds(async () => assert.equal(await page.locator("nudge-ui").count(), 0));
  const recipients = await until("the instruction is complete", async () => {
    const { items } = await server.api("GET", `/surveys/${made.id}/recipients`);
    return items.some(({ state }) => state == "completed") && items;
  });
  assert.equal(recipients.length, 1);
  await holds(async () => assert.deepEqual(await page.evaluate(() => window.errors), []));
});

test("what the server refuses is shown at its question", async (t) => {
  const site = { id: "site", type: "short_text", title: "Your site", required: true, format: "url" };
  const flow = { questions: [site, nps("two")], branches: [], endScreens: [{ id: "end", title: "Thank you" }], backNavigation: false };
  const { shop, options, completed } = await setUp(t, { flow, settings: { presentation: "modal" } });
  const page = await open(await (await browser(t)).newContext(), shop.url, options);
  await order(page);
  await heading(page, "Your site");
  // An address by its form; what browsers and the server make of it is none.
  await page.keyboard.type("https://a%zz/");
  await page.keyboard.press("Enter");
  await page.locator("nudge-ui .error", { hasText: "not accepted" }).waitFor();
  await page.locator("nudge-ui .text").fill("https://shop.example/");
  await page.keyboard.press("Enter");
  await heading(page, "Question two");
  await page.keyboard.press("Space");
  await page.keyboard.press("Enter");
  await heading(page, "Thank you");
  await holds(async () => assert.deepEqual(values(await completed()), { site: "https://shop.example/", two: 0 }));
});

test("a feedback survey that the page started goes on after a reload, beside no second button", async (t) => {
  const flow = { questions: ["one", "two"].map(nps), branches: [], endScreens: [{ id: "end", title: "Thank you" }], backNavigation: false };
  const { shop, options, made, attempts, completed } = await setUp(t, { mode: "on_demand", trigger: undefined, flow, settings: { presentation: "feedback_button" } });
  const page = await open(await profile(t, folder(t)), shop.url, options);
  const button = page.locator("nudge-ui .fab");
  await button.waitFor();
  await page.evaluate((id) => void nudge.startSurvey(id), made.id);
  await heading(page, "Question one");
  await page.locator("nudge-ui input").nth(5).check({ force: true });
  await page.locator("nudge-ui button.primary").click();
  await heading(page, "Question two");
  await until("the server has the first answer", async () => (await attempts())[0]?.answers.length == 1);
  await page.reload();
  await begin(page, options);
  await heading(page, "Question two");
  await button.first().waitFor();
  assert.equal(await button.count(), 1);
  await page.locator("nudge-ui input").nth(6).check({ force: true });
  await page.locator("nudge-ui button.primary").click();
  await heading(page, "Thank you");
  await holds(async () => assert.deepEqual(values(await completed()), { one: 5, two: 6 }));
  assert.equal((await attempts()).length, 1);
});

test("a feedback survey that is edited is answered as it is shown, and opens anew as it is", async (t) => {
  const flow = (id) => ({ questions: [nps(id)], branches: [], endScreens: [{ id: "end", title: "Thank you" }], backNavigation: false });
  const { server, shop, options, made, attempts } = await setUp(t, { mode: "on_demand", trigger: undefined, flow: flow("old"), settings: { presentation: "feedback_button" } });
  const page = await open(await (await browser(t)).newContext(), shop.url, options);
  await page.evaluate(() => {
    window.versions = [];
    nudge.on("instruction", ({ campaignVersion }) => window.versions.push(campaignVersion));
  });
  const button = page.locator("nudge-ui .fab");
  const answered = async (id) => {
    await heading(page, `Question ${id}`);
    await page.locator("nudge-ui input").nth(9).check({ force: true });
    await page.locator("nudge-ui button.primary").click();
    await heading(page, "Thank you");
    await page.keyboard.press("Escape");
    await page.locator("nudge-ui h2").waitFor({ state: "detached" });
  };
  await button.click();
  await heading(page, "Question old");
  await server.api("PATCH", `/surveys/${made.id}`, { flow: flow("new") });
  await until("the page is offered the new version", () => page.evaluate(() => window.versions.at(-1) == 2));
  assert.equal(await button.count(), 1);
  await answered("old");
  await button.click();
  await answered("new");
  await holds(async () => assert.deepEqual((await attempts()).map(({ state }) => state), ["completed", "completed"]));
  assert.deepEqual((await attempts()).map(values), [{ new: 9 }, { old: 9 }]);
  await holds(async () => assert.deepEqual(await page.evaluate(() => window.errors), []));
});

test("a clock that is wrong by more than a year keeps no survey away and dates no answer", async (t) => {
  const flow = { questions: [nps("one")], branches: [], endScreens: [{ id: "end", title: "Thank you" }], backNavigation: false };
  const { shop, options, made, completed } = await setUp(t, { mode: "on_demand", trigger: undefined, flow });
  const context = await (await browser(t)).newContext();
  await shiftClock(context, -400 * 24);
  const page = await open(context, shop.url, options);
  await page.evaluate((id) => void nudge.startSurvey(id), made.id);
  await heading(page, "Question one");
  await page.locator("nudge-ui input").nth(5).check({ force: true });
  await page.locator("nudge-ui button.primary").click();
  await heading(page, "Thank you");
  const [{ answeredAt }] = (await completed()).answers;
  assert.ok(Math.abs(Date.parse(answeredAt) - Date.now()) < 60_000, answeredAt);
});

test("a survey goes on after the tab was closed", async (t) => {
  const flow = { questions: ["one", "two", "three"].map(nps), branches: [], endScreens: [{ id: "end", title: "Thank you" }], backNavigation: false };
  const { shop, options, attempts, completed } = await setUp(t, { flow, settings: { presentation: "modal" } });
  const context = await profile(t, folder(t));
  let page = await open(context, shop.url, options);
  await order(page);
  await heading(page, "Question one");
  await page.keyboard.press("Space");
  await page.keyboard.press("Enter");
  await heading(page, "Question two");
  await until("the server has the first answer", async () => (await attempts())[0]?.answers.length == 1);
  await context.newPage();
  await page.close();
  page = await open(context, shop.url, options);
  await heading(page, "Question two");
  for (const next of ["Question three", "Thank you"]) {
    await page.keyboard.press("Space");
    await page.keyboard.press("Enter");
    await heading(page, next);
  }
  await holds(async () => assert.deepEqual(values(await completed()), { one: 0, two: 0, three: 0 }));
  await holds(async () => assert.equal((await attempts()).length, 1));
});

test("what was answered offline is sent, however late", async (t) => {
  const { shop, options, completed } = await setUp(t, {});
  const context = await (await browser(t)).newContext();
  let page = await open(context, shop.url, options);
  await order(page);
  await heading(page, "How likely?");
  await context.setOffline(true);
  await page.locator("nudge-ui input").nth(9).check({ force: true });
  await page.locator("nudge-ui button.primary").click();
  await heading(page, "Thank you");
  await page.close();
  await context.setOffline(false);
  await shiftClock(context, 0.6);
  page = await open(context, shop.url, options);
  await holds(async () => assert.deepEqual(values(await completed()), { q1: 9 }));
});

test("a survey that is open in a tab stays there, and goes on with the tab's next page", async (t) => {
  const flow = { questions: [nps("one"), { id: "why", type: "long_text", title: "Why?" }], branches: [], endScreens: [], backNavigation: false };
  const two = `<!doctype html><html lang="en"><head><title>Shop</title><script src="/sdk/nudge.js"></script></head><body><h1>Two</h1></body></html>`;
  const { options, made } = await setUp(t, { flow, mode: "on_demand", trigger: undefined });
  const shop = await site(t, { sdk: "/sdk/nudge.js", files: { "/two": two } });
  const context = await profile(t, folder(t), { ignoreDefaultArgs: ["--disable-back-forward-cache"] });
  const page = await open(context, shop.url, options);
  await page.evaluate((id) => void nudge.startSurvey(id), made.id);
  await heading(page, "Question one");
  await page.locator("nudge-ui input").nth(9).check({ force: true });
  await page.locator("nudge-ui button.primary").click();
  await heading(page, "Why?");
  await page.locator("nudge-ui textarea").fill("Because I said");
  const other = await open(context, shop.url, options);
  await sleep(3000);
  assert.equal(await other.locator("nudge-ui").count(), 0);
  assert.equal(await page.locator("nudge-ui textarea").inputValue(), "Because I said");
  await other.close();
  for (const leave of [() => page.goto(`${shop.url}two`), () => page.reload()]) {
    await leave();
    await begin(page, options);
    await heading(page, "Why?");
  }
});

test("what is offered before there is a body is shown once there is", async (t) => {
  const { options } = await setUp(t, { mode: "on_demand", trigger: undefined, settings: { presentation: "feedback_button" } });
  let finish;
  const late = new Promise((done) => (finish = done));
  const start = `Nudge.init(${JSON.stringify(options)}).on("instruction", () => (window.offered = true))`;
  const text = `<!doctype html><html lang="en"><head><title>Shop</title><script src="/sdk/nudge.js"></script><script>${start}</script><script src="/late.js"></script></head><body><h1>Shop</h1></body></html>`;
  const shop = await site(t, { files: { "/": text, "/late.js": () => late } });
  const page = await (await browser(t)).newPage();
  const faults = [];
  page.on("pageerror", (error) => faults.push(error));
  await page.goto(shop.url, { waitUntil: "commit" });
  await until("it is offered", () => page.evaluate(() => window.offered));
  await sleep(500);
  finish("");
  await page.locator("nudge-ui .fab").waitFor();
  assert.deepEqual(faults, []);
});

for (const [what, leave] of [
  ["a sign-out", "nudge.reset()"],
  ["a withdrawal of consent", "nudge.consent({ analytics: false, messaging: false })"],
]) {
  test(`a page that is gone back to heeds ${what} on another`, async (t) => {
    const flow = { questions: ["one", "two"].map(nps), branches: [], endScreens: [{ id: "end", title: "Thank you" }], backNavigation: false };
    const { server, options } = await setUp(t, { flow });
    const gate = await Gate.start(t, server);
    const two = `<!doctype html><html lang="en"><head><title>Shop</title><script src="/sdk/nudge.js"></script></head><body><h1>Two</h1></body></html>`;
    const shop = await site(t, { sdk: "/sdk/nudge.js", files: { "/two": two } });
    const own = { ...options, baseUrl: gate.base };
    const context = await profile(t, folder(t), { ignoreDefaultArgs: ["--disable-back-forward-cache"] });
    const page = await open(context, shop.url, own);
    await order(page);
    await heading(page, "Question one");
    await page.evaluate(() => addEventListener("pageshow", ({ persisted }) => (window.wasKept = persisted)));
    const [{ anonymousId }] = await server.users();
    await page.evaluate(() => nudge.flush());
    await page.goto(`${shop.url}two`);
    await begin(page, own);
    await page.evaluate((leave) => (new Function("nudge", leave)(nudge), nudge.flush()), leave);
    const before = gate.requests.length;
    await page.goBack({ waitUntil: "commit" });
    await until("the page is back", () => page.evaluate(() => window.wasKept));
    await holds(async () => assert.equal(await page.locator("nudge-ui").count(), 0));
    await page.evaluate(() => (nudge.track("came_back"), nudge.flush()));
    await sleep(1000);
    const asked = gate.requests.slice(before).filter(({ route, text }) => route != "OPTIONS /v1/sdk/session" && text.includes(anonymousId));
    const polls = gate.requests.slice(before).filter(({ route }) => route == "GET /v1/sdk/instructions");
    assert.deepEqual(asked.map(({ route }) => route), [], "nothing is asked as who was here");
    if (leave.includes("consent")) assert.deepEqual(polls, []);
    assert.ok(!(await server.events(anonymousId)).some(({ name }) => name == "came_back"));
  });
}

test("what the page takes away is shown again where it is presented again", async (t) => {
  const flow = { questions: [nps("one")], branches: [], endScreens: [{ id: "end", title: "Thank you" }], backNavigation: false };
  const { shop, options, completed } = await setUp(t, { flow });
  const page = await open(await profile(t), shop.url, { ...options, autoShow: false });
  await page.evaluate(() => {
    nudge.on("instruction", (instruction) => (window.offered = instruction));
    nudge.track("order_placed", {});
    document.body.insertAdjacentHTML("beforeend", `<div id="first"></div><div id="second"></div>`);
  });
  await page.waitForFunction(() => window.offered);
  await page.evaluate(() => void nudge.present(offered, { container: "#first" }));
  await page.locator("#first nudge-ui h2").waitFor();
  await page.evaluate(() => {
    document.querySelector("#first").remove();
    void nudge.present(offered, { container: "#second" });
  });
  await page.locator("#second nudge-ui h2").waitFor();
  await page.locator("nudge-ui input").nth(5).check({ force: true });
  await page.locator("nudge-ui button.primary").click();
  await heading(page, "Thank you");
  await holds(async () => assert.deepEqual(values(await completed()), { one: 5 }));
  // All is said: it does not begin anew.
  await page.evaluate(() => {
    document.querySelector("#second").remove();
    document.body.insertAdjacentHTML("beforeend", `<div id="third"></div>`);
    return nudge.present(offered, { container: "#third" });
  });
  assert.equal(await page.locator("nudge-ui").count(), 0);
});
