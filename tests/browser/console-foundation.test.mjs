// What every page of the console stands on: signing in, roles, lists, edits, drafts, refusals, and that anybody can use it.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { accessible, consoleOf, settled, signedIn, tab } from "./console.mjs";
import { browser, holds, Server, until } from "./support.mjs";

test("the console's foundation", async (t) => {
  const server = await Server.start(t);
  const chromium = await browser(t);
  const { appId } = server.access;

  await t.test("whoever is not signed in is asked to, and comes back to where they were", async (t) => {
    const console = consoleOf(server);
    const { page, complaints } = await tab(chromium);
    // As a server answers that has providers too.
    const signIn = { link: true, issuers: ["https://login.example.com"] };
    await page.route("**/console/session", (route) => (route.request().method() == "GET" ? route.fulfill({ status: 401, json: { code: "invalid_credentials", signIn } }) : route.continue()));
    const answer = await page.goto(`${console.base}#/apps/${appId}/surveys?status=active`);
    assert.match(answer.headers()["content-security-policy"], /default-src 'none'/);
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await holds(async () => assert.equal(await page.getByRole("link", { name: "Sign in with login.example.com" }).getAttribute("href"), `/console/login?issuer=https%3A%2F%2Flogin.example.com&return=${encodeURIComponent(`/apps/${appId}/surveys?status=active`)}`));
    await accessible(page, "sign-in");

    await page.goto(`${console.base}#error=login_refused`);
    await page.getByRole("alert").getByText("The provider did not sign you in.").waitFor();
    await page.getByLabel("Link or code").fill("bad");
    await page.getByRole("button", { name: "Sign in" }).click();
    const refusal = page.getByRole("alert").filter({ hasText: "invalid_credentials" });
    await refusal.getByText("invalid_credentials").waitFor();
    await holds(async () => assert.match(await refusal.innerText(), /request/));
    await accessible(page, "sign-in refused");

    // A browser that keeps no cookie: the code is good, and nobody is signed in.
    await page.getByLabel("Link or code").fill(console.link());
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("alert").getByText("This browser kept no cookie").waitFor();

    await page.unroute("**/console/session");
    await page.context().clearCookies();
    await page.getByLabel("Link or code").fill(console.link());
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Surveys" }).waitFor();
    await holds(async () => assert.ok(page.url().endsWith(`#/apps/${appId}/surveys?status=active`), page.url()));
    await holds(async () => assert.equal(await page.getByLabel("Status").inputValue(), "active"));
    assert.deepEqual(complaints, []);
  });

  await t.test("a link signs in once and leaves no code in the address; signing out ends it", async (t) => {
    const console = consoleOf(server);
    const { page, complaints } = await tab(chromium);
    const link = console.link();
    await page.goto(link);
    await page.getByRole("heading", { name: "Start", exact: true }).waitFor();
    await holds(async () => assert.ok(!page.url().includes("login"), page.url()));
    await page.locator("summary").first().click();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await page.goto("about:blank");
    await page.goto(link);
    await page.getByText(/the link was used/).waitFor();
    // One that was mangled on its way.
    await page.goto("about:blank");
    await page.goto(`${console.base}#login=abc%`);
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await page.getByRole("log", { name: "Messages" }).getByText("invalid_credentials").waitFor();
    assert.deepEqual(complaints, []);
  });

  await t.test("a session that ends on the way asks to sign in", async (t) => {
    const console = consoleOf(server);
    const { page, context } = await tab(chromium);
    await signedIn(page, console, server, "/surveys");
    await context.clearCookies();
    await page.reload();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
  });

  await t.test("the first steps: a key, an event that arrives, a sample survey", async (t) => {
    const console = consoleOf(server);
    const { page, complaints } = await tab(chromium);
    await signedIn(page, console, server);
    await accessible(page, "start");
    await page.getByRole("button", { name: "Make a write key for these lines" }).click();
    const lines = page.getByRole("region", { name: "Lines for a page" });
    await until("the lines have a key", async () => /wk_\w{20,}/.test(await lines.innerText()));
    await page.getByRole("button", { name: "Make the sample survey" }).click();
    await page.getByRole("log").getByText("The sample survey is active.").waitFor();

    const key = /wk_\w+/.exec(await lines.innerText())[0];
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const session = await fetch(`${server.base}/v1/sdk/session`, { method: "POST", headers, body: JSON.stringify({ anonymousId: "somebody" }) });
    const { subjectToken } = (await session.json()).data;
    const body = JSON.stringify({ context: { anonymousId: "somebody" }, events: [{ name: "first_event", timestamp: new Date().toISOString() }] });
    const ingest = await fetch(`${server.base}/v1/sdk/ingest`, { method: "POST", headers: { ...headers, "x-service-subject-token": subjectToken }, body });
    assert.equal(ingest.status, 200, await ingest.text());
    await page.getByRole("rowheader", { name: "first_event" }).waitFor();
    await accessible(page, "start with an event");
    await page.reload();
    await lines.getByText(key).waitFor();

    const [shop] = await Promise.all([page.waitForEvent("popup"), page.getByRole("link", { name: "Open the shop" }).click()]);
    await shop.getByRole("button", { name: "Add Tea to cart" }).click();
    await shop.getByRole("heading", { name: "How likely are you to recommend us?" }).waitFor();
    assert.deepEqual(complaints, []);
  });

  await t.test("the list of surveys sorts, filters, acts on rows, and keeps it all in the address", async (t) => {
    const console = consoleOf(server);
    const { page, complaints } = await tab(chromium);
    for (const [name, status] of [["Alpha", "draft"], ["Beta", "active"], ["Gamma", "draft"]]) await server.survey({ name, status });
    await signedIn(page, console, server, "/surveys");
    const names = () => page.locator("tbody th").allInnerTexts();
    await page.getByRole("button", { name: /^Name/ }).click();
    await page.getByRole("button", { name: /^Name/ }).click();
    await until("descending", async () => (await names())[0] == "Sample: after the cart has changed");
    await holds(async () => assert.ok(page.url().endsWith("sort=-name"), page.url()));
    await page.getByLabel("Name", { exact: true }).fill("a");
    await page.getByLabel("Status").selectOption("draft");
    await until("filtered", async () => (await names()).join() == "Gamma,Alpha");
    await page.reload();
    await until("the same after a reload", async () => (await names()).join() == "Gamma,Alpha");
    await accessible(page, "surveys");

    await page.getByRole("button", { name: "Activate Gamma" }).click();
    await page.getByText("“Gamma” is active.").waitFor();
    await until("it is no draft any longer", async () => (await names()).join() == "Alpha");
    await page.getByRole("button", { name: "Delete Alpha" }).click();
    const dialog = page.getByRole("dialog", { name: "Delete the survey?" });
    await dialog.waitFor();
    await accessible(page, "a question");
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    await until("the focus is where it was", () => page.evaluate(() => document.activeElement?.getAttribute("aria-label") == "Delete Alpha"));
    await page.getByRole("button", { name: "Delete Alpha" }).click();
    await dialog.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("heading", { name: "No survey is like that" }).waitFor();
    // The row is gone, and its button with it.
    await page.locator("#main:focus").waitFor();

    // Somebody else was faster: that is said, and the next press has to do with what there is now.
    await page.getByRole("button", { name: "Show all" }).click();
    const { id } = (await server.api("GET", "/surveys")).find(({ name }) => name == "Beta");
    await page.getByRole("button", { name: "Pause Beta" }).waitFor();
    await server.api("PATCH", `/surveys/${id}`, { description: "By somebody else." });
    await page.getByRole("button", { name: "Pause Beta" }).click();
    await page.getByText("Somebody else changed this meanwhile.").waitFor();
    await page.getByRole("button", { name: "Pause Beta" }).click();
    await page.getByText("“Beta” is paused.").waitFor();

    // What is archived is not shown to people by one press, and a refusal says what is wrong where.
    for (const status of ["completed", "archived"]) await server.api("PATCH", `/surveys/${id}`, { status });
    await server.survey({ name: "Delta", status: "draft", trigger: null });
    await page.reload();
    await page.getByRole("button", { name: "Activate Beta" }).click();
    await page.getByRole("dialog", { name: "Activate the survey?" }).getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Activate Delta" }).click();
    const refusal = page.getByRole("log").getByRole("listitem").filter({ hasText: "/trigger" });
    await refusal.waitFor();
    await accessible(page, "a refusal");
    assert.equal((await server.api("GET", `/surveys/${id}`)).status, "archived");
    assert.deepEqual(complaints, []);
  });

  await t.test("a viewer sees no button that would be refused", async (t) => {
    const console = consoleOf(server, { role: "viewer" });
    const { page } = await tab(chromium);
    await signedIn(page, console, server, "/surveys");
    await page.getByRole("rowheader", { name: "Beta" }).waitFor();
    await holds(async () => assert.equal(await page.getByRole("button", { name: /^(Activate|Pause|Delete)/ }).count(), 0));
    await page.goto(`${console.base}#/apps/${appId}/start`);
    await page.getByText("an administrator can make one").waitFor();
    await holds(async () => assert.equal(await page.getByRole("button", { name: /^Make/ }).count(), 0));
  });

  await t.test("a draft survives a reload, errors name their place, and two editors see each other", async (t) => {
    const console = consoleOf(server);
    const { page, complaints } = await tab(chromium);
    const survey = await server.survey({ name: "Shared", status: "draft" });
    await signedIn(page, console, server, `/surveys/${survey.id}?tab=json`);
    const field = page.getByLabel("Definition");
    const edit = async (change) => field.fill(JSON.stringify(Object.assign(JSON.parse(await field.inputValue()), change), null, 2));
    await edit({ name: "Mine", mode: "sometimes" });
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("alert").getByText("validation_failed").waitFor();
    await edit({ mode: "triggered" });
    await page.reload();
    await page.getByText("This is your draft of an earlier visit.").waitFor();
    await holds(async () => assert.equal(JSON.parse(await field.inputValue()).name, "Mine"));
    await field.fill('{\n"name": \n}');
    await page.getByText(/^Line 3:/).waitFor();
    // A text that is no survey stays, and what is written elsewhere can be saved meanwhile.
    await field.fill('{"flow": {"questions": null}}');
    await page.getByText("flow.questions has to be a list of objects.").waitFor();
    await page.getByRole("tab", { name: "Questions" }).click();
    await until("it can be saved", () => page.getByRole("button", { name: "Save", exact: true }).isEnabled());
    await page.getByRole("tab", { name: "JSON" }).click();
    await holds(async () => assert.equal(await field.inputValue(), '{"flow": {"questions": null}}'));
    await until("it can't be saved", () => page.getByRole("button", { name: "Save", exact: true }).isDisabled());
    await page.reload();
    await settled(page);

    await server.api("PATCH", `/surveys/${survey.id}`, { name: "Theirs", description: "By somebody else." });
    await page.getByRole("button", { name: "Save", exact: true }).click();
    const dialog = page.getByRole("dialog", { name: "Somebody else changed this" });
    await dialog.getByText("Theirs", { exact: true }).waitFor();
    // Saved once more meanwhile: what is there now is decided about.
    await server.api("PATCH", `/surveys/${survey.id}`, { name: "Theirs anew" });
    await dialog.getByRole("button", { name: "Put mine over it" }).click();
    await dialog.getByText("Theirs anew").waitFor();
    await accessible(page, "a conflict");
    await dialog.getByRole("button", { name: "Put mine over it" }).click();
    await page.getByRole("heading", { name: "Mine" }).waitFor();
    const { name, description } = await server.api("GET", `/surveys/${survey.id}`);
    assert.deepEqual([name, description], ["Mine", "By somebody else."]);
    await accessible(page, "a survey");
    await page.setViewportSize({ width: 1280, height: 800 });

    // What is typed while it is saved stays, as a change of what was saved.
    await page.getByRole("tab", { name: "Questions" }).click();
    const purpose = page.getByLabel("What it is for");
    let release;
    const held = new Promise((done) => (release = done));
    await page.route(`**/surveys/${survey.id}`, async (route) => {
      if (route.request().method() == "PATCH") await held;
      await route.continue();
    });
    await purpose.fill("Sent");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await purpose.fill("Typed meanwhile");
    release();
    await page.getByText("Saved.").last().waitFor();
    await until("it was sent", async () => (await server.api("GET", `/surveys/${survey.id}`)).description == "Sent");
    await holds(async () => assert.equal(await purpose.inputValue(), "Typed meanwhile"));
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await until("the rest is saved too", async () => (await server.api("GET", `/surveys/${survey.id}`)).description == "Typed meanwhile");
    assert.deepEqual(complaints, []);
  });

  await t.test("drafts go with whoever signs out; one that can't be shown is forgotten; a browser without storage says so", async (t) => {
    const console = consoleOf(server);
    const { page, context } = await tab(chromium);
    const [broken, other] = [await server.survey({ name: "Broken", status: "draft" }), await server.survey({ name: "Other", status: "draft" })];
    const drafts = () => page.evaluate(() => Object.keys(localStorage).filter((key) => key.includes("draft")));
    const at = (path) => page.goto(`${console.base}#/apps/${appId}${path}`);
    const purpose = page.getByLabel("What it is for");
    await signedIn(page, console, server, `/surveys/${broken.id}`);
    await purpose.fill("Secret");
    await until("it is kept", async () => (await drafts()).length == 1);
    // In another tab something is written, too: it asks to sign in, and writes nothing back.
    const second = await context.newPage();
    await second.goto(page.url());
    await second.getByLabel("What it is for").fill("Secret of another tab");
    await page.locator(".menu summary").click();
    await page.getByRole("button", { name: "Sign out" }).click();
    const question = page.getByRole("dialog", { name: "Sign out?" });
    await question.getByRole("button", { name: "Cancel" }).click();
    assert.equal(await purpose.inputValue(), "Secret");
    await page.locator(".menu summary").click();
    await page.getByRole("button", { name: "Sign out" }).click();
    await question.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await second.getByRole("heading", { name: "Sign in" }).waitFor();
    await second.close({ runBeforeUnload: true });
    await holds(async () => assert.deepEqual(await drafts(), []));
    await page.reload();
    await holds(async () => assert.deepEqual(await drafts(), []));

    await signedIn(page, console, server, `/surveys/${broken.id}`);
    await holds(async () => assert.equal(await purpose.inputValue(), ""));
    // Another tab, in which nothing is written, takes nothing away when it goes.
    const twin = await context.newPage();
    await twin.goto(page.url());
    await twin.getByRole("heading", { name: "Broken" }).waitFor();
    await purpose.fill("Kept");
    await until("it is kept", async () => (await drafts()).length == 1);
    await twin.goto("about:blank");
    await at("/surveys");
    await page.getByRole("heading", { name: "Surveys" }).waitFor();
    const [key] = await drafts();
    await page.evaluate((key) => {
      const draft = JSON.parse(localStorage.getItem(key));
      draft.value.flow.questions = null;
      localStorage.setItem(key, JSON.stringify(draft));
    }, key);
    await at(`/surveys/${broken.id}`);
    await page.getByRole("button", { name: "Forget the draft" }).waitFor();
    await at(`/surveys/${other.id}`);
    await page.getByRole("heading", { name: "Other" }).waitFor();
    await at(`/surveys/${broken.id}`);
    await page.getByRole("button", { name: "Forget the draft" }).click();
    await page.getByRole("heading", { name: "Broken" }).waitFor();
    await holds(async () => assert.deepEqual(await drafts(), []));

    await page.evaluate(() => (Storage.prototype.setItem = () => { throw new Error("full"); }));
    await purpose.fill("Not kept");
    await page.getByText("This browser keeps no drafts.").waitFor();
  });

  await t.test("whoever leaves while it is saved is led nowhere, and has no draft of it; what is discarded is asked", async (t) => {
    const { page, complaints } = await tab(chromium);
    await signedIn(page, consoleOf(server), server, "/surveys/new");
    const drafts = () => page.evaluate(() => Object.keys(localStorage).filter((key) => key.includes("draft")));
    let held, release;
    const hold = () => (held = new Promise((done) => (release = done)));
    await page.route(/\/surveys(\/[0-9a-f-]+)?$/, async (route) => {
      if (["POST", "PATCH"].includes(route.request().method())) await held;
      await route.continue();
    });
    const leave = async (button) => {
      hold();
      await page.getByRole("button", { name: button, exact: true }).click();
      await page.getByRole("link", { name: "Start" }).click();
      await page.getByRole("heading", { name: "Start", exact: true }).waitFor();
      await until("it is kept", async () => (await drafts()).length == 1);
      release();
    };
    await page.getByLabel("Name", { exact: true }).fill("Left");
    await page.getByRole("tab", { name: "Who and when" }).click();
    await page.getByLabel("Event", { exact: true }).fill("order_placed");
    await leave("Make the survey");
    await page.getByText("“Left” was made.").waitFor();
    await until("nothing is kept", async () => (await drafts()).length == 0);
    assert.match(page.url(), /\/start$/);
    const { id } = (await server.api("GET", "/surveys")).find(({ name }) => name == "Left");

    const purpose = page.getByLabel("What it is for");
    await page.goto(page.url().replace(/start$/, `surveys/${id}`));
    await purpose.fill("Saved by the way");
    await leave("Save");
    await page.getByText("Saved.", { exact: true }).waitFor();
    await until("nothing is kept", async () => (await drafts()).length == 0);
    await page.goBack();
    await holds(async () => assert.equal(await purpose.inputValue(), "Saved by the way"));
    await purpose.fill("Not this");
    await page.getByRole("button", { name: "Discard the changes" }).press("Enter");
    const dialog = page.getByRole("dialog", { name: "Discard the changes?" });
    await dialog.getByRole("button", { name: "Cancel" }).click();
    assert.equal(await purpose.inputValue(), "Not this");
    await page.getByRole("button", { name: "Discard the changes" }).press("Enter");
    await dialog.getByRole("button", { name: "Discard", exact: true }).click();
    await holds(async () => assert.equal(await purpose.inputValue(), "Saved by the way"));
    await page.locator("#main:focus").waitFor();
    await server.api("DELETE", `/surveys/${id}`);
    assert.deepEqual(complaints, []);
  });

  await t.test("colours stay; home without an app, and addresses of nothing", async (t) => {
    const console = consoleOf(server);
    const { page, complaints } = await tab(chromium);
    await signedIn(page, console, server, "/surveys");
    await page.locator(".menu summary").click();
    await page.getByLabel("Colours").selectOption("dark");
    await page.reload();
    await page.locator("html[data-theme=dark]").waitFor();
    await settled(page);
    await page.locator(".menu summary").click();
    await holds(async () => assert.equal(await page.getByLabel("Colours").inputValue(), "dark"));
    await page.getByLabel("Colours").selectOption("system");
    for (const address of ["#/nowhere", "#/apps/%E0%A4%A/surveys"]) {
      await page.goto(console.base + address);
      await page.getByRole("heading", { name: "There is no such page" }).waitFor();
    }
    await accessible(page, "no such page");
    // An app of another tab is there as soon as it is asked for.
    const made = await page.evaluate(async (appId) => {
      const root = document.querySelector("script[type=module]").src.replace(/main\.js$/, "");
      const { request } = await import(`${root}lib/api.js`);
      const { session } = await import(`${root}lib/session.js`);
      const { workspaceId } = session.value.apps.find(({ id }) => id == appId);
      return request("POST", "/v1/apps", { body: { name: "Of another tab", workspaceId } });
    }, appId);
    await page.goto(`${console.base}#/apps/${made.id}/surveys`);
    await page.getByRole("heading", { name: "Surveys" }).waitFor();
    await page.goto(`${console.base}#/apps/${made.id.replace(/.{4}$/, "0000")}/surveys`);
    await page.getByRole("heading", { name: "There is no such app" }).waitFor();
    const session = await (await page.request.get(`${server.base}/console/session`)).json();
    await page.route("**/console/session", (route) => route.fulfill({ json: { data: { ...(session.data ?? session), apps: [] } } }));
    // From elsewhere: the page that is open still has an app, to which home leads.
    await page.goto("about:blank");
    await page.goto(`${console.base}#/`);
    await page.getByRole("heading", { name: "Welcome" }).waitFor();
    await accessible(page, "home without an app");
    assert.deepEqual(complaints, []);
  });

  await t.test("dead letters: by reason, mended and replayed, one and all of a filter", async (t) => {
    const console = consoleOf(server);
    const { page, complaints } = await tab(chromium);
    await server.api("POST", "/event-definitions", { name: "paid", enforcement: "enforce", properties: [{ name: "total", type: "number", required: true }] });
    const headers = { authorization: `Bearer ${server.access.serverKey}`, "content-type": "application/json" };
    const events = Array.from({ length: 110 }, () => ({ name: "paid", timestamp: new Date().toISOString(), properties: { total: "42" } }));
    const ingest = await fetch(`${server.base}/v1/sdk/ingest`, { method: "POST", headers, body: JSON.stringify({ userId: "payer", events: events.map((event) => ({ ...event, eventId: crypto.randomUUID() })) }) });
    assert.equal((await ingest.json()).data.rejected, 110);

    await signedIn(page, console, server, "/dead-letters");
    await page.getByRole("cell", { name: "110", exact: true }).waitFor();
    await accessible(page, "letters by reason");
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.getByRole("rowheader").getByRole("link", { name: "paid" }).click();
    const fix = page.getByRole("button", { name: "Fix and replay paid" });
    await until("a page of letters", async () => (await fix.count()) == 50);
    const next = page.getByRole("link", { name: "Next page" });
    const first = await next.getAttribute("href");
    await next.click();
    await until("the second page", async () => (await next.getAttribute("href")) != first);
    await next.click();
    await until("the rest of them", async () => (await fix.count()) == 10);
    await accessible(page, "letters");
    await page.setViewportSize({ width: 1280, height: 800 });

    // A letter is an address of its own; the list stays on its page.
    const rest = page.url();
    await page.getByRole("link", { name: "Show paid" }).first().click();
    await page.getByRole("dialog", { name: "paid" }).getByText("type_mismatch").waitFor();
    await page.reload();
    await page.getByRole("dialog", { name: "paid" }).getByText("type_mismatch").waitFor();
    await holds(async () => assert.match(page.url(), /letter=/));
    await page.getByRole("button", { name: "Close" }).click();
    await until("the list is as it was", () => page.url() == rest);

    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "All of the filter as CSV" }).click()]);
    assert.equal(download.suggestedFilename(), "dead-letters.csv");
    assert.equal(readFileSync(await download.path(), "utf8").trim().split("\r\n").length, 111);

    await fix.first().click();
    await page.getByRole("dialog").getByRole("button", { name: "Replay", exact: true }).click();
    await page.getByRole("dialog").getByText("It still fails.").waitFor();
    await page.getByLabel("Change of the properties").fill('{"total": 42}');
    await page.getByRole("dialog").getByRole("button", { name: "Replay", exact: true }).click();
    await page.getByText("The event was replayed.").waitFor();

    await page.getByRole("button", { name: "Replay all of the filter" }).click();
    await page.getByText("event paid").waitFor();
    await page.getByLabel("Change of the properties").fill('{"total": 42}');
    await page.getByRole("dialog").getByRole("button", { name: "Replay", exact: true }).click();
    await page.getByText("Replaying letters: done, 109.").waitFor();
    await page.getByRole("heading", { name: "No letter is like that" }).waitFor();
    await holds(async () => assert.equal((await server.events("payer")).length, 110));
    assert.deepEqual(complaints, []);
  });

  await t.test("charts have their numbers, secrets are shown once, and streams go on after a pause", async (t) => {
    const console = consoleOf(server);
    const { page, complaints } = await tab(chromium);
    await signedIn(page, console, server, "/surveys");
    await page.evaluate(async () => {
      const root = document.querySelector("script[type=module]").src.replace(/main\.js$/, "");
      const { html, render } = await import(`${root}lib/preact.js`);
      const { Chart, Funnel, Secret } = await import(`${root}ui/index.js`);
      const labels = ["Monday", "Tuesday", "Wednesday"];
      const series = [{ name: "accepted", values: [3, 140, 90] }, { name: "rejected", values: [0, 2, 1] }];
      const place = document.querySelector("main");
      const close = () => render(null, document.querySelector("#secret"));
      render(html`<h1>Charts</h1><${Chart} title="Events" labels=${labels} series=${series} head="Day" /><${Chart} kind="bars" title="Bars" labels=${labels} series=${series} />
        <${Funnel} title="Way" steps=${[{ label: "shown", value: 200 }, { label: "completed", value: 50 }]} /><div id="secret"></div>`, place);
      window.ask = () => render(html`<${Secret} title="The key" secret="sk_0123" onClose=${close} />`, document.querySelector("#secret"));
      window.listen = (await import(`${root}lib/events.js`)).listen;
    });
    for (const summary of await page.locator(".numbers summary").all()) await summary.click();
    await page.getByRole("cell", { name: "140" }).first().waitFor();
    await accessible(page, "charts");
    await page.evaluate(() => window.ask());
    await page.getByRole("dialog", { name: "The key" }).getByText("sk_0123").waitFor();
    await accessible(page, "a secret");
    await page.getByRole("button", { name: "I have kept it" }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });

    const headers = { authorization: `Bearer ${server.access.serverKey}`, "content-type": "application/json" };
    const send = (name) => fetch(`${server.base}/v1/sdk/ingest`, { method: "POST", headers, body: JSON.stringify({ userId: "streamer", events: [{ name, eventId: crypto.randomUUID(), timestamp: new Date().toISOString() }] }) });
    const begin = (after) => page.evaluate(([path, after]) => {
      window.seen ??= [];
      const message = (event, data) => event == "event" && window.seen.push(data.name);
      window.stream = window.listen(path, { verdict: "accepted" }, { after, message, state: (name) => (window.state = name) });
    }, [`/v1/apps/${appId}/events/stream`, after]);
    const seen = (names) => until(`seen: ${names}`, async () => (await page.evaluate(() => window.seen.join())) == names, 15);
    await begin();
    await page.waitForFunction(() => window.state == "open");
    await send("before_pause");
    await seen("before_pause");
    const after = await page.evaluate(() => window.stream.close());
    assert.ok(after, "the stream says where to go on");
    await send("in_pause");
    await begin(after);
    await seen("before_pause,in_pause");
    assert.deepEqual(complaints, []);
  });

  await t.test("by keyboard: the skip link, the navigation, and the focus on another page", async (t) => {
    const console = consoleOf(server);
    const { page } = await tab(chromium);
    await signedIn(page, console, server, "/surveys");
    await page.reload();
    await settled(page);
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.locator("#main:focus").waitFor();
    await page.getByRole("link", { name: "Start" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Start", exact: true }).waitFor();
    await page.locator("#main:focus").waitFor();
  });
});
