// The console's pages of events and people: what comes in, who it is about, and why something came or did not.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { accessible, consoleOf, settled, signedIn, tab } from "./console.mjs";
import { browser, holds, Server, sleep, until } from "./support.mjs";

/** Sends events as the backend of a customer does. */
async function send(server, userId, events) {
  const headers = { authorization: `Bearer ${server.access.serverKey}`, "content-type": "application/json" };
  const body = JSON.stringify({ userId, events: events.map((event) => ({ eventId: crypto.randomUUID(), timestamp: new Date().toISOString(), ...event })) });
  const response = await fetch(`${server.base}/v1/sdk/ingest`, { method: "POST", headers, body });
  const answer = await response.json();
  assert.equal(response.status, 200, JSON.stringify(answer));
  return answer.data;
}

/** The subject id of somebody. */
const subjectOf = async (server, externalId) => (await server.users()).find((user) => user.externalId == externalId)?.subjectId;

const wide = (page) => page.setViewportSize({ width: 1280, height: 800 });

test("events, people and why", async (t) => {
  const server = await Server.start(t);
  const chromium = await browser(t);
  const { appId } = server.access;

  await t.test("events show as they come, filtered, paused and opened in place; rejected ones say why", async (t) => {
    const console = consoleOf(server);
    const { page, complaints } = await tab(chromium);
    await signedIn(page, console, server, "/events");
    await page.getByText("live", { exact: true }).waitFor();
    await page.getByRole("heading", { name: "Waiting for events" }).waitFor();
    const rows = page.getByRole("list", { name: "Live events" }).locator("> li");
    // Nothing is lost in a pause before the first event either.
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByText("paused", { exact: true }).waitFor();
    await send(server, "ann", [{ name: "first_of_all" }]);
    await page.getByRole("button", { name: "Go on" }).click();
    await rows.filter({ hasText: "first_of_all" }).waitFor();

    const eventId = crypto.randomUUID();
    await send(server, "ann", [{ name: "order_placed", eventId, properties: { total: 42 } }, { name: "page_viewed" }]);
    const order = rows.filter({ hasText: "order_placed" });
    await order.locator("summary").click();
    await order.getByText('"total": 42').waitFor();
    await order.getByText(eventId).waitFor();
    await accessible(page, "live events");
    await wide(page);

    // Characters that end a line elsewhere.
    await send(server, "ann", [{ name: "note_taken", properties: { note: "one\u2028two\u2029three" } }]);
    await rows.filter({ hasText: "note_taken" }).waitFor();

    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByText("paused", { exact: true }).waitFor();
    await send(server, "ann", [{ name: "while_paused" }]);
    await page.waitForTimeout(1000);
    await holds(async () => assert.equal(await rows.filter({ hasText: "while_paused" }).count(), 0));
    await page.getByRole("button", { name: "Go on" }).click();
    await rows.filter({ hasText: "while_paused" }).waitFor();
    await holds(async () => assert.equal(await order.getByText('"total": 42').isVisible(), true, "what is open stays open"));

    await page.getByLabel("Without the name").fill("page_viewed");
    await page.waitForURL(/excludeName=page_viewed/);
    await page.getByText("live", { exact: true }).waitFor();
    const { rejected } = await send(server, "ann", [{ name: "page_viewed" }, { name: "kept" }, { name: "too_old", timestamp: "2020-01-01T00:00:00.000Z" }]);
    assert.equal(rejected, 1);
    await rows.filter({ hasText: "kept" }).waitFor();
    const late = rows.filter({ hasText: "too_old" });
    await late.getByText("rejected: timestamp out of window").waitFor();
    await late.locator("summary").click();
    await late.getByText("timestamp out of window:").or(late.locator("li")).first().waitFor();
    await holds(async () => assert.equal(await rows.filter({ hasText: "page_viewed" }).count(), 0));

    for (let batch = 0; batch < 3; batch++) await send(server, "burst", Array.from({ length: 400 }, () => ({ name: "burst" })));
    await page.getByText(/this is a sample, lately of \d/).waitFor();
    assert.deepEqual(complaints, []);
  });

  await t.test("the feed by time goes on by cursor, and says what a filter does not see", async (t) => {
    const console = consoleOf(server, { role: "viewer" });
    const { page, complaints } = await tab(chromium);
    await send(server, "bob", Array.from({ length: 60 }, (_, index) => ({ name: "many", properties: { index } })));
    await signedIn(page, console, server, "/events?tab=feed&name=many");
    const rows = page.getByRole("list", { name: "Events", exact: true }).locator("> li");
    await until("a page", async () => (await rows.count()) == 50);
    await page.getByRole("link", { name: "Next page" }).click();
    await until("the rest", async () => (await rows.count()) == 10);
    await page.reload();
    await until("the same after a reload", async () => (await rows.count()) == 10);
    await page.getByText("What a filter does not see").click();
    await page.getByText("Rejected events are kept for an hour.").waitFor();
    await rows.first().locator("summary").focus();
    await page.keyboard.press("Enter");
    await rows.first().getByRole("link", { name: "Why?" }).waitFor();
    await accessible(page, "the feed");
    await wide(page);
    await page.getByLabel("Only the name").fill("nothing");
    await page.getByRole("heading", { name: "No event is like that" }).waitFor();
    await page.getByRole("button", { name: "Show all" }).click();
    await page.getByLabel("Verdict").selectOption("rejected");
    await rows.filter({ hasText: "too_old" }).waitFor();
    await until("nothing else", async () => (await rows.count()) == 1);
    assert.deepEqual(complaints, []);
  });

  await t.test("a person is found by a property, with their ids, devices, consent and one timeline", async (t) => {
    const console = consoleOf(server);
    const { page, complaints } = await tab(chromium);
    const survey = await server.survey({ name: "After the order" });
    const update = { subject: { externalId: "ann" }, update: { mutationId: crypto.randomUUID(), set: { plan: "gold", age: 30 } } };
    const patched = await fetch(`${server.base}/v1/apps/${appId}/users/properties`, { method: "PATCH", headers: { authorization: `Bearer ${server.access.apiToken}`, "content-type": "application/json" }, body: JSON.stringify(update) });
    assert.equal(patched.status, 200);
    await send(server, "ann", [{ name: "order_placed", properties: { total: 7 } }]);
    const subjectId = await subjectOf(server, "ann");
    await until("it was decided", async () => (await server.api("GET", `/decisions?subjectId=${subjectId}&campaignId=${survey.id}`)).items.length > 0);

    await signedIn(page, console, server, "/people");
    await page.getByRole("link", { name: "bob" }).waitFor();
    await accessible(page, "people");
    await wide(page);
    await page.getByLabel("Search").fill("gold");
    await until("only one is found", async () => (await page.locator("tbody th").allInnerTexts()).join() == "ann");
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "All of the search as CSV" }).click()]);
    assert.match(readFileSync(await download.path(), "utf8"), /ann/);
    await page.getByRole("link", { name: "ann" }).click();
    await page.getByRole("heading", { name: "ann" }).waitFor();
    const entries = page.getByRole("list", { name: "Timeline" }).locator("> li");
    await entries.filter({ hasText: "while_paused" }).waitFor();
    const decision = entries.filter({ hasText: "default-trigger" }).first();
    await decision.getByText("Fired 1").waitFor();
    await decision.locator("summary").first().click();
    await decision.getByRole("button", { name: "Run the decision again" }).click();
    await decision.getByText("The same was decided again.").waitFor();
    await decision.getByRole("link", { name: "Why? After the order" }).waitFor();
    await accessible(page, "a timeline");
    await wide(page);
    const before = await entries.count();
    await page.getByLabel("Decisions").uncheck();
    await until("only events", async () => (await entries.filter({ hasText: "default-trigger" }).count()) == 0 && (await entries.count()) < before);
    await holds(async () => assert.match(page.url(), /without=decisions/));

    await page.getByRole("tab", { name: "Profile" }).click();
    await page.getByRole("rowheader", { name: "plan" }).waitFor();
    await page.getByText('"gold"').waitFor();
    await page.getByText(subjectId).first().waitFor();
    await accessible(page, "a profile");
    assert.deepEqual(complaints, []);
  });

  await t.test("a timeline of more than a page loses nothing and repeats nothing", async (t) => {
    const console = consoleOf(server, { role: "viewer" });
    const { page } = await tab(chromium);
    const subjectId = await subjectOf(server, "bob");
    await signedIn(page, console, server, `/people/${subjectId}?without=messages`);
    const entries = page.getByRole("list", { name: "Timeline" }).locator("> li");
    await until("a page", async () => (await entries.count()) == 50);
    const titles = async () => entries.locator("summary").evaluateAll((all) => all.map((one) => one.closest("details").querySelector("pre")?.textContent ?? one.textContent));
    const seen = await titles();
    await page.getByRole("link", { name: "Older" }).click();
    await page.waitForURL(/at=/);
    await until("the rest", async () => (await entries.count()) < 50 && (await entries.count()) >= 10);
    seen.push(...(await titles()));
    const events = seen.filter((text) => text.includes('"index"'));
    assert.equal(new Set(events).size, 60);
    assert.equal(events.length, 60);
    await holds(async () => assert.equal(await page.getByRole("tab", { name: "Privacy" }).count(), 0));
    await holds(async () => assert.equal(await page.getByRole("button", { name: /Run the decision|Forget/ }).count(), 0));
  });

  await t.test("why: a firing that did not come, gate by gate, and the decision again", async (t) => {
    const console = consoleOf(server);
    const { page, complaints } = await tab(chromium);
    const trigger = { kind: "event", eventName: "order_placed", filters: { all: [{ property: "total", type: "number", operator: "gt", value: 10 }] }, delaySeconds: 0, occurrence: { mode: "every" } };
    const survey = await server.survey({ name: "Large orders", trigger });
    await send(server, "carl", [{ name: "order_placed", properties: { total: 2 } }]);
    const subjectId = await subjectOf(server, "carl");
    await until("it was decided", async () => (await server.api("GET", `/decisions?subjectId=${subjectId}&campaignId=${survey.id}`)).items.length > 0);
    await signedIn(page, console, server, "/why");
    await accessible(page, "why, with nothing chosen");
    await wide(page);
    await page.getByLabel("Search a person").fill("carl");
    await page.getByRole("button", { name: "Choose carl" }).click();
    await page.getByLabel("Survey or message").selectOption({ label: "Large orders (survey, active)" });
    await page.getByRole("button", { name: /^Choose order_placed/ }).click();
    await page.getByText("It did not fire: a gate below was closed.").waitFor();
    const gates = page.getByRole("list", { name: "Gates" }).locator("> li");
    await gates.filter({ hasText: "total = 2; gt 10" }).getByText("closed").waitFor();
    await gates.filter({ hasText: /default-trigger \d+\.\d+\.\d+/ }).waitFor();
    await gates.filter({ hasText: "consent" }).getByText("passed").waitFor();
    await page.getByRole("button", { name: "Run it again" }).click();
    await page.getByText("The same was decided again.").waitFor();
    await accessible(page, "why");
    const { query } = Object.fromEntries([["query", new URLSearchParams(page.url().split("?")[1])]]);
    assert.deepEqual([query.get("subject"), query.get("campaign")], [subjectId, survey.id]);
    await page.reload();
    await page.getByText("It did not fire: a gate below was closed.").waitFor();
    assert.deepEqual(complaints, []);
  });

  await t.test("a copy comes over a slow line too, and who comes back to its page finds a link that is good", async (t) => {
    const console = consoleOf(server);
    const { page, complaints } = await tab(chromium);
    await page.clock.install();
    await signedIn(page, console, server, `/people/${await subjectOf(server, "carl")}?tab=privacy`);
    // An answer takes longer than the turns are apart in which it is asked for.
    const copies = "**/gdpr/exports/*";
    await page.route(copies, async (route) => {
      await sleep(1500);
      await route.continue().catch(() => {});
    });
    await page.getByRole("button", { name: "Make a copy" }).click();
    await page.getByRole("link", { name: "Download the copy" }).waitFor({ timeout: 30_000 });
    await page.unroute(copies);

    let asked = 0;
    page.on("request", (request) => (asked += Number(request.url().includes("/gdpr/exports/"))));
    const see = (hidden) =>
      page.evaluate((hidden) => {
        Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
        document.dispatchEvent(new Event("visibilitychange"));
      }, hidden);
    await see(true);
    await page.clock.fastForward("11:00");
    assert.equal(asked, 0, "nobody sees it");
    await see(false);
    await until("the link is asked for anew", () => asked > 0, 10);
    assert.deepEqual(complaints, []);
  });

  await t.test("a person's data is copied, downloaded and deleted, with its steps", async (t) => {
    const console = consoleOf(server);
    const { page, complaints } = await tab(chromium);
    const subjectId = await subjectOf(server, "carl");
    await signedIn(page, console, server, `/people/${subjectId}?tab=privacy`);
    await page.getByRole("button", { name: "Make a copy" }).click();
    const file = page.getByRole("link", { name: "Download the copy" });
    await file.waitFor();
    await holds(async () => assert.match(page.url(), /export=/));
    await page.reload();
    const [download] = await Promise.all([page.waitForEvent("download"), file.click()]);
    assert.equal(readFileSync(await download.path()).subarray(0, 2).toString(), "PK");
    await accessible(page, "privacy");
    await wide(page);

    await page.getByRole("button", { name: "Delete the person" }).click();
    const dialog = page.getByRole("dialog", { name: "Delete all data of carl?" });
    await holds(async () => assert.equal(await dialog.getByRole("button", { name: "Delete the person" }).isDisabled(), true));
    await dialog.getByLabel("Type “carl” to go on").fill("carl");
    await dialog.getByRole("button", { name: "Delete the person" }).click();
    await page.waitForURL(/tab=deletions&job=/);
    await page.getByRole("table", { name: "Steps" }).getByText("completed").first().waitFor();
    await page.getByRole("heading", { name: "Receipt" }).waitFor();
    await holds(async () => assert.equal(await subjectOf(server, "carl"), undefined));
    await until("the list has it", async () => (await page.getByRole("table", { name: "Deletions" }).getByText("completed").count()) > 0);
    await accessible(page, "deletions");
    await page.goto(`${console.base}#/apps/${appId}/people/${subjectId}`);
    await page.getByText("not_found").waitFor();
    await settled(page);
    assert.deepEqual(complaints, []);
  });
});
