// Messages in the console: written, previewed, tested, activated, and what became of them.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { accessible, consoleOf, signedIn, tab } from "./console.mjs";
import { browser, holds, Server, until } from "./support.mjs";

/** Somebody with a device whose provider has no credential: what is sent there fails, and says why. */
async function person(server) {
  const headers = { authorization: `Bearer ${server.access.writeKey}`, "content-type": "application/json" };
  const ask = async (path, body, more = {}) => {
    const response = await fetch(`${server.base}/v1/sdk/${path}`, { method: "POST", headers: { ...headers, ...more }, body: JSON.stringify(body) });
    assert.ok(response.ok, `${path}: ${response.status}`);
    return (await response.json()).data;
  };
  const { subjectToken } = await ask("session", { anonymousId: "ada", platform: "android" });
  const as = { "x-service-subject-token": subjectToken };
  await ask("push-tokens", { anonymousId: "ada", deviceId: "phone", provider: "fcm", token: "token-of-ada" }, as);
  await ask("user-properties", { anonymousId: "ada", mutationId: crypto.randomUUID(), set: { first_name: "Ada" } }, as);
  const track = (name, properties = {}) => {
    const event = { eventId: crypto.randomUUID(), name, timestamp: new Date().toISOString(), properties };
    return ask("ingest", { context: { anonymousId: "ada" }, events: [{ ...event, anonymousId: "ada" }] }, as).then(() => event.eventId);
  };
  return { ask: (path, body) => ask(path, { anonymousId: "ada", ...body }, as), track };
}

test("messages in the console", async (t) => {
  const server = await Server.start(t);
  const chromium = await browser(t);
  const ada = await person(server);
  const console = consoleOf(server, { role: "editor" });
  const { page, complaints } = await tab(chromium);
  const wide = () => page.setViewportSize({ width: 1280, height: 800 });
  const log = page.getByRole("log", { name: "Messages" });
  const dialog = page.getByRole("dialog");
  const trying = page.getByRole("complementary", { name: "Try it" });
  const id = () => /messages\/([0-9a-f-]{36})/.exec(page.url())[1];
  const campaign = () => server.api("GET", `/campaigns/${id()}`);
  await signedIn(page, console, server, "/messages");

  await t.test("a push message is written, with a token, and previewed before it is saved", async () => {
    await page.getByRole("heading", { name: "There is no message yet" }).waitFor();
    await accessible(page, "no messages");
    await wide();
    await page.getByRole("button", { name: "New push message" }).click();
    await page.getByRole("heading", { name: "New push message" }).waitFor();
    await page.getByLabel("Name", { exact: true }).fill("Cart");
    const one = page.getByRole("group", { name: "Variant A", exact: true });
    await one.getByLabel("Title").fill("Hello {{p.name}}");
    await one.getByLabel("Body").fill("{{p.item}} waits for you");
    await one.getByRole("checkbox", { name: "Personalize it" }).check();
    await one.getByLabel("Property").fill("first_name");
    await one.getByRole("button", { name: "Add a source" }).click();
    await one.getByLabel("Where from").nth(1).selectOption("trigger_event");
    await one.getByRole("button", { name: "Add a token" }).click();
    await one.getByLabel("Token", { exact: true }).nth(1).fill("item");
    await one.getByLabel("Of source").nth(1).selectOption("source2");
    await one.getByLabel("Property").nth(1).fill("item");
    await one.getByRole("checkbox", { name: "Something else" }).nth(1).check();
    await one.getByLabel("Fallback").fill("Something");
    // Another name of a source goes to its tokens, and is no other source's on the way.
    const source = one.getByLabel("Source", { exact: true });
    await source.nth(1).press("Control+A");
    await source.nth(1).pressSequentially("person");
    await one.getByText("It is taken.").waitFor();
    await page.keyboard.press("Tab");
    await source.nth(1).press("Control+A");
    await source.nth(1).pressSequentially("cause");
    await page.keyboard.press("Tab");
    await holds(async () => assert.deepEqual(await one.getByLabel("Of source").evaluateAll((all) => all.map(({ value }) => value)), ["person", "cause"]));
    await one.getByRole("button", { name: "Move source cause up" }).click();
    await holds(async () => assert.equal(await source.first().inputValue(), "cause"));
    await holds(async () => assert.deepEqual(await one.getByLabel("Of source").evaluateAll((all) => all.map(({ value }) => value)), ["person", "cause"]));

    await trying.getByLabel("Person", { exact: true }).fill("ada");
    await trying.getByRole("button", { name: "Preview" }).click();
    await trying.getByText("Hello Ada").waitFor();
    await trying.getByText("Something waits for you").waitFor();
    await trying.getByRole("row", { name: /^item Something/ }).getByText("the fallback").waitFor();
    const eventId = await ada.track("cart_updated", { item: "Tea" });
    await trying.getByLabel("Id of the event that causes it").fill(eventId);
    await trying.getByRole("button", { name: "Preview" }).click();
    await trying.getByText("Tea waits for you").waitFor();
    await trying.getByRole("row", { name: /^name Ada/ }).getByText("the person's property").waitFor();
    await trying.getByRole("row", { name: /^item Tea/ }).getByText("the event that caused it").waitFor();
    await accessible(page, "the editor of a push message");
    await wide();
    await holds(async () => assert.equal((await campaign()).variants[0].title, ""));
  });

  await t.test("the draft survives a reload; what is wrong stands at its place; it is saved", async () => {
    const one = page.getByRole("group", { name: "Variant A", exact: true });
    await one.getByLabel("Body").fill("{{p.nothing}}");
    await page.reload();
    await page.getByText("This is your draft of an earlier visit.").waitFor();
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await until("the body is marked", async () => (await one.getByLabel("Body").getAttribute("aria-invalid")) == "true");
    await one.getByLabel("Body").fill("{{p.item}} waits for you");
    await page.getByLabel("It waits for").selectOption("event");
    await page.getByRole("combobox", { name: "Event", exact: true }).or(page.getByRole("textbox", { name: "Event", exact: true })).first().fill("cart_updated");
    await page.getByRole("button", { name: "Duplicate variant A" }).click();
    await page.getByRole("group", { name: "Variant B", exact: true }).getByLabel("Title").fill("Still there, {{p.name}}?");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await log.getByText("Saved.").waitFor();
    const saved = await campaign();
    assert.deepEqual([saved.name, saved.variants.length, saved.trigger.eventName], ["Cart", 2, "cart_updated"]);
    assert.deepEqual(saved.variants[0].personalization.bindings.map(({ id, fallback }) => [id, fallback]), [["name", undefined], ["item", "Something"]]);
  });

  await t.test("a test says what becomes of it", async () => {
    await trying.getByLabel("Person", { exact: true }).fill("ada");
    await trying.getByRole("button", { name: "Send a test" }).click();
    await trying.getByText("The test is queued, for 1 device.").waitFor();
    await trying.getByRole("link", { name: "What becomes of it" }).click();
    await dialog.getByRole("listitem").filter({ hasText: "queued" }).waitFor();
    await accessible(page, "a delivery");
    await wide();
    await dialog.getByRole("button", { name: "Close" }).click();
  });

  await t.test("it is activated, fires, and each delivery tells its way", async () => {
    await page.getByRole("tab", { name: "Message", exact: true }).click();
    await page.getByLabel("Description").fill("With its activation.");
    await page.getByRole("button", { name: "Save and activate" }).click();
    await log.getByText("“Cart” is active.").waitFor();
    const { status, description } = await campaign();
    assert.deepEqual([status, description], ["active", "With its activation."], "what is written goes with the status");
    await page.getByLabel("Description").fill("While it runs.");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await log.getByText("Saved.").last().waitFor();
    await until("saved without a conflict", async () => (await campaign()).description == "While it runs.");
    await ada.track("cart_updated", { item: "Milk" });
    await until("it has failed", async () => (await server.api("GET", `/push/deliveries?campaignId=${id()}&status=failed`)).items.some(({ test }) => !test));
    await page.getByRole("tab", { name: "Deliveries" }).click();
    await page.getByLabel("State").selectOption("failed");
    await page.getByRole("cell", { name: /^queued → .*failed$/ }).first().waitFor();
    await page.getByRole("cell", { name: /no credential/ }).first().waitFor();
    await accessible(page, "deliveries");
    await wide();
    const [csv] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "All of the filter as CSV" }).click()]);
    assert.match(readFileSync(await csv.path(), "utf8"), /no_credential/);

    await page.getByRole("tab", { name: "Analytics" }).click();
    await page.getByRole("img", { name: /^By the day/ }).waitFor();
    await page.getByText("failed: 1").waitFor();
    const west = await tab(chromium, { timezoneId: "Pacific/Honolulu" });
    await signedIn(west.page, console, server, `/messages/${id()}?tab=analytics`);
    await west.page.locator("figure", { hasText: "By the day" }).getByText("Numbers").click();
    const today = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeZone: "UTC" }).format(new Date());
    await west.page.getByRole("rowheader", { name: today, exact: true }).waitFor();
    await west.context.close();
    await accessible(page, "analytics");
    await wide();
    await page.getByRole("tab", { name: "Recipients" }).click();
    await page.getByRole("heading", { name: "It has reached nobody yet" }).or(page.getByRole("table", { name: "Recipients" })).first().waitFor();
    await page.getByRole("button", { name: "Pause" }).click();
    await log.getByText("“Cart” is paused.").waitFor();
  });

  await t.test("an in-app message: what keeps it from running is said; it is shown, and counted", async () => {
    await page.goto(`${console.base}#/apps/${server.access.appId}/messages`);
    await page.getByRole("button", { name: "New in-app message" }).click();
    await page.getByRole("heading", { name: "New in-app message" }).waitFor();
    await page.getByLabel("Name", { exact: true }).fill("Welcome");
    const one = page.getByRole("group", { name: "Variant A", exact: true });
    await one.getByLabel("Layout").selectOption("banner");
    await one.getByLabel("Title").fill("Welcome");
    await one.getByRole("button", { name: "Add a button" }).click();
    await one.getByLabel("Label").fill("Look around");
    await one.getByLabel("Pressing it").selectOption("open_app");
    const preview = trying.getByRole("region", { name: "Preview" });
    const shown = preview.locator("nudge-ui .root");
    const sent = [];
    const note = (request) => request.method() != "GET" && sent.push(`${request.method()} ${new URL(request.url()).pathname}`);
    page.on("request", note);
    // The SDK's own renderer shows it as it is written, in each language.
    await preview.getByRole("heading", { name: "Welcome" }).waitFor();
    await preview.getByRole("button", { name: "Look around" }).waitFor();
    await holds(async () => assert.equal(await shown.getAttribute("dir"), "ltr"));
    await one.getByText("Other languages").click();
    await one.getByLabel("Another language").fill("ar");
    await one.getByRole("button", { name: "Add the language" }).click();
    await one.getByText("2 of 2 are missing").waitFor();
    await one.getByLabel("title in ar").fill("أهلا وسهلا");
    await one.getByText("1 of 2 are missing").waitFor();
    // It is shown in the language that is being translated into.
    await preview.getByRole("heading", { name: "أهلا وسهلا" }).waitFor();
    await holds(async () => assert.equal(await shown.getAttribute("dir"), "rtl"));
    await page.getByText("Look and life").click();
    await page.getByLabel("Background", { exact: true }).fill("#102030");
    await page.getByLabel("Text", { exact: true }).fill("#405060");
    await page.getByText("too little: text needs 4.5:1").waitFor();
    await until("the theme is that of the draft", async () => (await shown.evaluate((root) => getComputedStyle(root).backgroundColor).catch(() => "")) == "rgb(16, 32, 48)");
    // What is too little in the theme is the message's, which is taken away while axe looks.
    await preview.locator("nudge-ui .close").click();
    await accessible(page, "languages and look of an in-app message");
    await wide();
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText(/has a contrast of/).first().waitFor();
    await page.getByLabel("Text", { exact: true }).fill("#ffffff");
    await page.getByText("enough contrast").waitFor();
    await trying.getByLabel("Language", { exact: true }).selectOption("en");
    await preview.getByRole("heading", { name: "Welcome" }).waitFor();
    await trying.getByLabel("From right to left").check();
    await until("mirrored", async () => (await shown.getAttribute("dir").catch(() => "")) == "rtl");
    await trying.getByLabel("From right to left").uncheck();
    await trying.getByLabel("Width").selectOption("desktop");
    await preview.getByRole("button", { name: "Look around" }).click();
    await trying.getByRole("log", { name: "What would be sent" }).getByText("acknowledged: clicked go").waitFor();
    await trying.getByText("Preview ended: completed").waitFor();
    await trying.getByRole("button", { name: "Begin again" }).click();
    await preview.getByRole("button", { name: "Look around" }).waitFor();
    await trying.getByRole("button", { name: "Show it over this page" }).click();
    await page.locator("body > nudge-ui").getByRole("region", { name: "Welcome" }).waitFor();
    await trying.getByRole("button", { name: "Take it away" }).click();
    await page.locator("body > nudge-ui").waitFor({ state: "detached" });
    await trying.getByLabel("Width").selectOption("phone");
    page.off("request", note);
    assert.deepEqual([...new Set(sent)], [`PATCH /v1/apps/${server.access.appId}/campaigns/${id()}`], "nothing but what was saved");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await log.getByText("Saved.").last().waitFor();
    const { theme, variants: [variant] } = await until("it is saved", async () => ((await campaign()).theme ? campaign() : undefined));
    assert.deepEqual([theme, variant.localization], [{ background: "#102030", text: "#ffffff" }, { defaultLocale: "en", translations: { ar: { title: "أهلا وسهلا" } } }]);
    await page.getByRole("button", { name: "Activate" }).click();
    await page.getByRole("alert").getByText("not_activatable").waitFor();
    await page.getByRole("alert").getByText("/trigger").waitFor();
    await page.getByLabel("It waits for").and(page.locator(":focus")).waitFor();
    await holds(async () => assert.equal(await page.getByLabel("It waits for").getAttribute("aria-invalid"), "true"));
    await accessible(page, "the editor of an in-app message");
    await wide();
    await page.getByLabel("It waits for").selectOption("event");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("alert").getByText("see what is marked").waitFor();
    // What was refused is not said of what is as it was again.
    await page.getByRole("button", { name: "Discard the changes" }).click();
    await dialog.getByRole("button", { name: "Discard", exact: true }).click();
    await holds(async () => assert.equal(await page.getByRole("alert").count(), 0));
    await page.getByLabel("It waits for").selectOption("event");
    await page.getByRole("combobox", { name: "Event", exact: true }).or(page.getByRole("textbox", { name: "Event", exact: true })).first().fill("arrived");
    await page.getByText("How often a person gets it").click();
    await page.getByLabel("At most so often a person").fill("1");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await until("saved", async () => (await campaign()).trigger?.eventName == "arrived");
    await until("the page knows it", () => page.getByRole("button", { name: "Save", exact: true }).isDisabled());
    await page.getByRole("button", { name: "Activate" }).click();
    await log.getByText("“Welcome” is active.").waitFor();
    await holds(async () => assert.equal(await page.getByRole("tab", { name: "Deliveries" }).count(), 0));

    await ada.track("arrived");
    const instruction = await until("it is offered", async () => (await server.api("GET", `/campaigns/${id()}/recipients`)).items[0]);
    assert.equal(instruction.state, "issued");
    await ada.track("arrived");
    await until("the second time is held back", async () => (await server.api("GET", `/campaigns/${id()}/recipients?state=suppressed`)).items[0]);
    await page.getByRole("tab", { name: "Recipients" }).click();
    await page.getByRole("table", { name: "Recipients" }).getByText("issued").waitFor();
    await holds(async () => assert.match(await page.getByRole("link", { name: "Why?" }).last().getAttribute("href"), new RegExp(`subject=[0-9a-f-]+&campaign=${id()}`)));
    await accessible(page, "recipients");
    await wide();
    const [csv] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "All of the filter as CSV" }).click()]);
    assert.match(readFileSync(await csv.path(), "utf8"), /issued/);
    await page.getByRole("tab", { name: "Analytics" }).click();
    await page.getByRole("table", { name: "By variant" }).getByText("Variant A").waitFor();
  });

  await t.test("an in-app message is tried out", async () => {
    await page.getByRole("tab", { name: "Message", exact: true }).click();
    await trying.getByLabel("Person", { exact: true }).fill("ada");
    await trying.getByRole("button", { name: "Send a test" }).click();
    await trying.getByText("The test is queued").waitFor();
    await trying.getByRole("button", { name: "Preview" }).click();
    await trying.getByRole("region", { name: "For this person" }).getByText("ready").waitFor();
    const preview = trying.getByRole("region", { name: "Preview" });
    await preview.getByRole("button", { name: "Look around" }).waitFor();
    await trying.getByLabel("Language", { exact: true }).selectOption("ar");
    await preview.getByRole("heading", { name: "أهلا وسهلا" }).waitFor();
    await trying.getByLabel("Language", { exact: true }).selectOption("");
    await preview.getByRole("heading", { name: "Welcome" }).waitFor();
    await accessible(page, "a preview of an in-app message");
    await wide();
  });

  await t.test("the list filters by type, sorts, doubles and deletes", async () => {
    await page.goto(`${console.base}#/apps/${server.access.appId}/messages`);
    const names = async () => (await page.locator("tbody th").allInnerTexts()).join();
    await until("both", async () => (await names()) == "Welcome,Cart");
    await page.getByRole("button", { name: /^Name/ }).click();
    await until("sorted", async () => (await names()) == "Cart,Welcome");
    await page.getByLabel("Type").selectOption("in_app");
    await until("of the type", async () => (await names()) == "Welcome");
    await page.reload();
    await until("the same after a reload", async () => (await names()) == "Welcome");
    await accessible(page, "messages");
    await wide();
    await page.getByRole("button", { name: "Duplicate Welcome" }).click();
    await page.getByRole("heading", { name: "Welcome (copy)" }).waitFor();
    await holds(async () => assert.deepEqual([(await campaign()).status, (await campaign()).type], ["draft", "in_app"]));
    await page.getByRole("link", { name: "Messages" }).last().click();
    await page.getByRole("button", { name: "Delete Welcome (copy)" }).click();
    await dialog.getByRole("button", { name: "Delete" }).click();
    await until("it is gone", async () => (await server.api("GET", "/campaigns")).length == 2);
    assert.deepEqual(complaints, []);
  });

  await t.test("a viewer reads and previews, and changes nothing", async (t) => {
    const [{ id: campaignId }] = await server.api("GET", "/campaigns?type=push");
    const console = consoleOf(server, { role: "viewer" });
    const { page } = await tab(chromium);
    await signedIn(page, console, server, `/messages/${campaignId}?person=ada`);
    await page.getByRole("region", { name: "Definition" }).waitFor();
    await holds(async () => assert.equal(await page.getByRole("button", { name: /^(Save|Activate|Pause|Send a test|Delete|Archive)/ }).count(), 0));
    await page.getByRole("button", { name: "Preview" }).click();
    await page.getByText("Hello Ada").waitFor();
    await accessible(page, "a message to a viewer");
  });

  await t.test("arrow keys over modes and triggers take nothing away, a broadcast asks first, and the focus stays", async () => {
    const named = { kind: "user_property", filter: { property: "first_name", type: "string", operator: "equals", value: "Ada" } };
    const written = { audience: { include: { all: [named] } }, schedule: { quietHours: { from: "22:00", to: "07:00", onQuiet: "drop" } } };
    const trigger = { kind: "event", eventName: "order_placed", occurrence: { mode: "every" }, delaySeconds: 60 };
    const variants = [{ title: "Hello", body: "You", weight: 1, openAction: { action: "open_app" } }];
    const made = await server.api("POST", "/campaigns", { type: "push", name: "Once", mode: "triggered", status: "draft", variants, trigger, ...written });
    await page.goto(`${console.base}#/apps/${server.access.appId}/messages/${made.id}`);
    await page.getByRole("heading", { name: "Once" }).waitFor();
    const keys = async (label, ...all) => {
      await page.getByLabel(label).focus();
      for (const key of all) await page.keyboard.press(key);
    };
    const unchanged = () => until("nothing is changed", () => page.getByRole("button", { name: "Save", exact: true }).isDisabled());
    await keys("It waits for", "ArrowDown");
    await page.getByLabel("Screen", { exact: true }).waitFor();
    await page.keyboard.press("ArrowUp");
    await holds(async () => assert.equal(await page.getByLabel("Event", { exact: true }).inputValue(), "order_placed"));
    await unchanged();
    await keys("It is sent by", "ArrowDown", "ArrowDown", "ArrowDown");
    await trying.getByLabel("Data of the request").waitFor();
    await page.getByText("For whom").waitFor({ state: "detached" });
    for (let count = 0; count < 3; count++) await page.keyboard.press("ArrowUp");
    await unchanged();
    await keys("It is sent by", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp");
    await holds(async () => assert.equal(await page.getByLabel("Value", { exact: true }).inputValue(), "Ada"));

    // What is written is what counts: it is saved as something that happens.
    const question = page.getByRole("dialog", { name: "Send it to its whole audience?" });
    await page.getByRole("button", { name: "Save and activate" }).click();
    await question.getByText(/ 1 of \d+ people are in it now/).waitFor();
    await page.keyboard.press("Escape");
    await question.waitFor({ state: "detached" });
    assert.equal((await campaign()).status, "draft");
    await page.keyboard.press("Enter");
    await question.getByRole("button", { name: "Activate" }).click();
    await log.getByText("“Once” is active.").waitFor();
    const { mode, status, audience, schedule, trigger: gone } = await campaign();
    assert.deepEqual({ mode, status, audience, schedule, gone }, { mode: "broadcast", status: "active", ...written, gone: undefined });
    const focused = (label) => until(`the focus is on ${label}`, () => page.evaluate((label) => document.activeElement?.textContent == label || document.activeElement?.id == label, label));
    await focused("Pause");
    await page.keyboard.press("Enter");
    await log.getByText("“Once” is paused.").waitFor();
    await focused("Activate");

    // A button that goes leaves the focus in the page.
    await server.api("PATCH", `/campaigns/${made.id}`, { mode: "triggered", trigger, status: "active" });
    await page.goto(`${console.base}#/apps/${server.access.appId}/messages`);
    await page.getByRole("button", { name: "Pause Once" }).press("Enter");
    await log.getByText("“Once” is paused.").last().waitFor();
    await focused("main");
    await log.getByRole("button", { name: "Close the message" }).last().press("Enter");
    await focused("main");
    await server.api("PATCH", `/campaigns/${made.id}`, { name: "n".repeat(200) });
    await page.reload();
    await page.getByRole("button", { name: "Duplicate nnn" }).click();
    await page.getByRole("heading", { name: `${"n".repeat(193)} (copy)` }).waitFor();
    assert.deepEqual(complaints, []);
  });

  const made = async (name, openAction) => {
    const variants = [{ title: "Hello", body: "You", weight: 1, openAction }];
    const trigger = { kind: "event", eventName: "order_placed", occurrence: { mode: "every" } };
    const { id } = await server.api("POST", "/campaigns", { type: "push", name, mode: "triggered", status: "draft", variants, trigger });
    await page.goto(`${console.base}#/apps/${server.access.appId}/messages/${id}`);
    await page.getByRole("heading", { name }).waitFor();
    return id;
  };

  await t.test("what is written over what somebody else has changed meanwhile stands as a whole", async () => {
    const path = `/campaigns/${await made("Shared", { action: "open_app" })}`;
    await page.getByLabel("It waits for").selectOption("screen_view");
    await page.getByLabel("Screen", { exact: true }).fill("Cart");
    const filters = { all: [{ property: "total", type: "number", operator: "gt", value: 10 }] };
    await server.api("PATCH", path, { trigger: { filters, delaySeconds: 60 } });
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await dialog.getByRole("button", { name: "Put mine over it" }).click();
    await dialog.waitFor({ state: "detached" });
    const { kind, screenName, filters: theirs, delaySeconds } = (await campaign()).trigger;
    assert.deepEqual([kind, screenName, theirs ?? null, delaySeconds ?? 0], ["screen_view", "Cart", null, 0]);

    // The status goes with it.
    await page.getByLabel("Description").fill("Mine");
    await server.api("PATCH", path, { description: "Theirs" });
    await page.getByRole("button", { name: "Save and activate" }).click();
    await dialog.getByRole("button", { name: "Put mine over it" }).click();
    await log.getByText("“Shared” is active.").waitFor();
    const { status, description } = await campaign();
    assert.deepEqual([status, description], ["active", "Mine"]);
    assert.deepEqual(complaints, []);
  });

  await t.test("a text that is no JSON stays over tabs, and nothing is saved before it is one", async () => {
    await made("Given", { action: "json", actionJson: { place: 1 } });
    const field = page.getByLabel("JSON for the app");
    const leave = async () => {
      await page.getByRole("tab", { name: "Recipients" }).click();
      await field.waitFor({ state: "detached" });
    };
    await field.fill('{"place": ');
    await leave();
    await page.getByRole("button", { name: "Activate" }).click();
    await page.getByRole("alert").getByText("A field of another part is no JSON.").waitFor();
    assert.equal((await campaign()).status, "draft");
    await page.getByRole("tab", { name: "Message", exact: true }).click();
    await holds(async () => assert.equal(await field.inputValue(), '{"place": '));
    await field.fill('{"place": 2}');
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("button", { name: "Activate", exact: true }).waitFor();
    assert.equal((await campaign()).variants[0].openAction.actionJson.place, 2);

    // A field that is taken out takes its text along.
    await field.fill("{");
    await page.getByLabel("Opening it").selectOption("open_app");
    await leave();
    await page.getByRole("button", { name: "Save and activate" }).click();
    await log.getByText("“Given” is active.").waitFor();
    assert.equal((await campaign()).variants[0].openAction.action, "open_app");
    assert.deepEqual(complaints, []);
  });
});
