// The console's pages of definitions, settings, the audit log, and of operators.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { readFileSync } from "node:fs";
import test from "node:test";
import { accessible, consoleOf, signedIn, tab } from "./console.mjs";
import { browser, holds, Server, until } from "./support.mjs";

/** Sends events as the backend of a customer does. */
async function send(server, events, key = server.access.serverKey) {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const body = JSON.stringify({ userId: "payer", events: events.map((event) => ({ eventId: crypto.randomUUID(), timestamp: new Date().toISOString(), ...event })) });
  const response = await fetch(`${server.base}/v1/sdk/ingest`, { method: "POST", headers, body });
  return { status: response.status, ...(await response.json()).data };
}

const wide = (page) => page.setViewportSize({ width: 1280, height: 800 });

test("definitions, settings, audit log and operators", async (t) => {
  const server = await Server.start(t);
  const chromium = await browser(t);
  const { appId } = server.access;

  await t.test("a definition is made of the events that came, tried, and rejects what breaks it", async (t) => {
    const console = consoleOf(server, { role: "editor" });
    const { page, complaints } = await tab(chromium);
    await send(server, [{ name: "paid", properties: { total: 42, currency: "EUR" } }, { name: "paid", properties: { total: 7, currency: "USD" } }]);
    await signedIn(page, console, server, "/definitions");
    await page.getByRole("heading", { name: "No event is defined" }).waitFor();
    await accessible(page, "no definition");
    await wide(page);
    await page.getByRole("link", { name: "New definition" }).first().click();
    await page.getByLabel("Name of the event").fill("paid");
    await page.getByRole("button", { name: "Propose the properties" }).click();
    await page.getByText("Proposed from 2 events.").waitFor();
    await page.getByRole("group", { name: "total" }).getByLabel("Least").fill("1");
    await page.reload();
    await page.getByText("This is your draft of an earlier visit.").waitFor();
    const total = page.getByRole("group", { name: "total" });
    await holds(async () => assert.equal(await total.getByLabel("Least").inputValue(), "1"));
    await total.getByLabel("Most").fill("0");
    await page.getByRole("button", { name: "Save the definition" }).click();
    await page.getByRole("alert").getByText("validation_failed").waitFor();
    await accessible(page, "a refused definition");
    await wide(page);
    await total.getByLabel("Most").fill("");
    await page.getByLabel("An event that breaks it").selectOption("enforce");
    await page.getByRole("button", { name: "Save the definition" }).click();
    await page.getByRole("heading", { name: "paid" }).waitFor();
    const [definition] = (await server.api("GET", "/event-definitions")).items;
    assert.deepEqual([definition.name, definition.enforcement, definition.properties.find(({ name }) => name == "total").minimum], ["paid", "enforce", 1]);
    assert.equal((await send(server, [{ name: "paid", properties: { total: 0, currency: "EUR" } }])).rejected, 1);

    await page.getByRole("tab", { name: "Try it" }).click();
    await page.getByRole("button", { name: "Try the events that came" }).click();
    await page.getByText("2 match, 1 break it.").waitFor();
    await page.getByLabel("Properties of one event").fill('{"total": "a lot"}');
    await page.getByRole("button", { name: "Try these properties" }).click();
    await page.getByText("0 match, 1 break it.").waitFor();
    await page.getByText("type mismatch").waitFor();
    await accessible(page, "a try");
    await wide(page);

    await page.getByRole("tab", { name: "Schema" }).click();
    await page.getByRole("group", { name: "currency" }).getByRole("button", { name: "Remove currency" }).click();
    await server.api("PATCH", `/event-definitions/${definition.id}`, { description: "By somebody else." });
    await page.getByRole("button", { name: "Save as a new version" }).click();
    const dialog = page.getByRole("dialog", { name: "Somebody else changed this" });
    await dialog.getByRole("button", { name: "Put mine over it" }).click();
    await page.getByText("Saved as version 3.").waitFor();
    const saved = await server.api("GET", `/event-definitions/${definition.id}`);
    assert.deepEqual([saved.description, saved.properties.map(({ name }) => name)], ["By somebody else.", ["total"]]);
    await accessible(page, "a definition");
    await wide(page);

    await page.getByRole("link", { name: "Its dead letters" }).click();
    await page.getByRole("table", { name: "Letters by reason" }).getByText("paid").waitFor();
    await page.goto(`${console.base}#/apps/${appId}/definitions`);
    await page.getByRole("button", { name: "Archive paid" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Archive" }).click();
    await page.getByText("archived", { exact: true }).waitFor();
    assert.equal((await send(server, [{ name: "paid", properties: { total: 0 } }])).accepted, 1);
    await page.getByRole("button", { name: "Bring paid back" }).click();
    await page.getByRole("button", { name: "Archive paid" }).waitFor();
    await accessible(page, "definitions");
    await wide(page);
    assert.equal((await send(server, [{ name: "paid", properties: { total: 0 } }])).rejected, 1);
    assert.deepEqual(complaints, []);
  });

  await t.test("a viewer reads definitions and changes none; only an admin has settings", async (t) => {
    const console = consoleOf(server, { role: "viewer" });
    const { page } = await tab(chromium);
    await server.api("POST", "/event-definitions", { name: "seen", enforcement: "observe", properties: [] });
    await signedIn(page, console, server, "/definitions");
    await page.getByRole("link", { name: "seen" }).click();
    await page.getByRole("region", { name: "Definition" }).waitFor();
    await holds(async () => assert.equal(await page.getByRole("button", { name: /Save|Archive|Propose|Try/ }).count(), 0));
    await holds(async () => assert.equal(await page.getByRole("navigation", { name: "Pages", exact: true }).getByRole("link", { name: "Settings" }).count(), 0));
    await page.goto(`${console.base}#/apps/${appId}/settings`);
    await page.getByRole("heading", { name: "This takes the role admin" }).waitFor();
    await page.goto(`${console.base}#/operator`);
    await page.getByRole("heading", { name: "This takes the role operator" }).waitFor();
  });

  await t.test("a key is shown once, works, and does not once it is revoked; the audit log has it", async (t) => {
    const console = consoleOf(server);
    const { page, complaints } = await tab(chromium);
    await signedIn(page, console, server, "/settings?tab=keys");
    await accessible(page, "keys");
    await wide(page);
    await page.getByRole("button", { name: "New key" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Kind").selectOption("server");
    await dialog.getByRole("button", { name: "Make the key" }).click();
    await dialog.getByRole("alert").waitFor();
    await dialog.getByLabel("Name").fill("Backend");
    await dialog.getByLabel("Send events").check();
    await accessible(page, "a new key");
    await wide(page);
    await dialog.getByRole("button", { name: "Make the key" }).click();
    const secret = page.getByRole("dialog", { name: "The key “Backend”" });
    const key = await secret.locator(".secret code").innerText();
    assert.match(key, /^sk_/);
    await secret.getByRole("button", { name: "I have kept it" }).click();
    assert.equal((await send(server, [{ name: "by_new_key" }], key)).status, 200);
    await page.getByRole("button", { name: /^Revoke Backend/ }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
    await page.getByText("The key “Backend” is revoked.").waitFor();
    assert.equal((await send(server, [{ name: "by_old_key" }], key)).status, 401);

    await page.getByRole("tab", { name: "Identity keys" }).click();
    await page.getByRole("heading", { name: "There is no identity key" }).waitFor();
    await page.getByRole("button", { name: "New identity key" }).click();
    await dialog.getByLabel("Key id").fill("shop");
    await dialog.getByLabel("Public key").fill("no key");
    await dialog.getByRole("button", { name: "Register it" }).click();
    await dialog.getByText(/must be a PEM text/).waitFor();
    const { publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    await dialog.getByLabel("Public key").fill(publicKey.export({ format: "pem", type: "spki" }));
    await dialog.getByRole("button", { name: "Register it" }).click();
    await page.getByRole("rowheader", { name: "shop" }).waitFor();
    await accessible(page, "identity keys");
    await wide(page);
    await page.getByRole("button", { name: "Remove shop" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
    await page.getByRole("heading", { name: "There is no identity key" }).waitFor();

    await page.getByRole("tab", { name: "Push credentials" }).click();
    await page.getByRole("button", { name: "New push credential" }).click();
    await dialog.getByLabel("Contact").fill("mailto:push@example.com");
    await accessible(page, "a new credential");
    await wide(page);
    await dialog.getByRole("button", { name: "Keep the credential" }).click();
    await page.getByRole("rowheader", { name: "Web Push" }).waitFor();
    await holds(async () => assert.equal((await server.api("GET", "/push/credentials"))[0].identity.subject, "mailto:push@example.com"));
    await accessible(page, "push credentials");
    await wide(page);
    await page.getByRole("button", { name: "Remove the credential of web" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
    await page.getByRole("heading", { name: "There is no push credential" }).waitFor();

    await page.goto(`${console.base}#/apps/${appId}/audit-log`);
    const log = page.getByRole("table", { name: "Audit log" });
    await log.getByText("key.revoked").or(log.getByText("key revoked")).first().waitFor();
    await accessible(page, "the audit log");
    await wide(page);
    await page.getByLabel("Action", { exact: true }).fill("key.created");
    await page.waitForURL(/action=key.created/);
    await until("only keys that were made", async () => (await log.locator("tbody tr").count()) == 1);
    await log.getByText("Backend").waitFor();
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "All of the filter as CSV" }).click()]);
    assert.equal(readFileSync(await download.path(), "utf8").trim().split("\r\n").length, 2);
    assert.deepEqual(complaints, []);
  });

  await t.test("rules: a draft, refusals at their fields, and two who save", async (t) => {
    const console = consoleOf(server);
    const { page, complaints } = await tab(chromium);
    await signedIn(page, console, server, "/settings?tab=rules");
    await page.getByLabel("Origins").fill("https://shop.example.com\nhttps://www.example.com");
    await page.getByRole("group", { name: "Surveys" }).getByLabel("At most so many").check();
    await page.getByRole("group", { name: "Surveys" }).getByLabel("How many", { exact: true }).fill("0");
    await page.getByLabel("There are hours in which nobody is disturbed").check();
    await page.getByRole("button", { name: "Save the rules" }).click();
    await page.getByText("must be 1 to 1000").waitFor();
    await page.locator("[aria-invalid=true]:focus").waitFor();
    await accessible(page, "refused rules");
    await wide(page);
    await page.reload();
    await page.getByText("This is your draft of an earlier visit.").waitFor();
    await page.getByRole("group", { name: "Surveys" }).getByLabel("How many", { exact: true }).fill("2");
    await server.api("PATCH", "/settings", { allowedOrigins: ["https://other.example.com"], consent: { required: true } });
    await page.getByRole("button", { name: "Save the rules" }).click();
    const dialog = page.getByRole("dialog", { name: "Somebody else changed this" });
    await dialog.getByText("https://other.example.com").waitFor();
    await dialog.getByRole("button", { name: "Put mine over it" }).click();
    await page.getByText("The settings are saved").waitFor();
    const settings = await server.api("GET", "/settings");
    assert.deepEqual(settings.allowedOrigins, ["https://shop.example.com", "https://www.example.com"]);
    assert.deepEqual([settings.frequency.surveys, settings.consent.required, settings.quietHours.onQuiet], [{ max: 2, windowDays: 7 }, true, "defer"]);
    // What has members stands as a whole.
    await page.getByLabel("From", { exact: true }).fill("23:00");
    await server.api("PATCH", "/settings", { quietHours: null });
    await page.getByRole("button", { name: "Save the rules" }).click();
    await dialog.getByRole("button", { name: "Put mine over it" }).click();
    await dialog.waitFor({ state: "detached" });
    assert.deepEqual((await server.api("GET", "/settings")).quietHours, { from: "23:00", to: "08:00", onQuiet: "defer" });
    await page.getByLabel("There are hours in which nobody is disturbed").uncheck();
    await page.getByRole("button", { name: "Save the rules" }).click();
    await until("quiet hours are gone", async () => !(await server.api("GET", "/settings")).quietHours);
    await page.goto(`${console.base}#/apps/${appId}/audit-log?action=settings.updated`);
    await page.getByRole("table", { name: "Audit log" }).getByText("frequency.surveys.max").waitFor();
    await page.getByText("removed").first().waitFor();
    assert.deepEqual(complaints, []);
  });

  await t.test("numbers, spans and lists are kept as they are typed", async (t) => {
    const console = consoleOf(server);
    const { page, complaints } = await tab(chromium);
    await server.api("PATCH", "/settings", { ingest: { pastWindowSeconds: 2_592_000, futureWindowSeconds: 3600 } });
    await signedIn(page, console, server, "/settings?tab=rules");
    const typed = async (field, text) => {
      await field.press("End");
      for (const _ of await field.inputValue()) await field.press("Backspace");
      await field.pressSequentially(text);
      await holds(async () => assert.equal(await field.inputValue(), text));
    };
    const share = page.getByLabel("Roll back above this share of failures");
    for (const text of ["10.5", "3.14", "1.05", "-0.5", "0.25"]) await typed(share, text);
    const past = page.getByLabel("How old an event may be", { exact: true });
    const unit = page.getByLabel("Unit of: How old an event may be");
    const shownUnit = () => unit.locator("option:checked").innerText();
    await holds(async () => assert.deepEqual([await past.inputValue(), await shownUnit()], ["30", "days"]));
    await typed(past, "7");
    await holds(async () => assert.equal(await shownUnit(), "days"));
    const ahead = page.getByLabel("How far ahead of the clock", { exact: true });
    await page.getByLabel("Unit of: How far ahead of the clock").selectOption("minutes");
    await typed(ahead, "605");
    const denied = page.getByLabel("Property keys that are never stored");
    await denied.focus();
    await page.keyboard.type("credit card\nssn\n");
    await holds(async () => assert.equal(await denied.inputValue(), "credit card\nssn\n"));
    await page.getByRole("button", { name: "Save the rules" }).click();
    await page.getByText("The settings are saved").waitFor();
    const { ingest, plugins, privacy } = await server.api("GET", "/settings");
    assert.deepEqual([ingest.pastWindowSeconds, ingest.futureWindowSeconds, plugins.maxFailureRate], [7 * 86_400, 605 * 60, 0.25]);
    assert.deepEqual(privacy.denyKeys, ["credit card", "ssn"]);

    // What is set from outside has the unit that suits it.
    await typed(past, "12");
    await unit.selectOption("hours");
    await page.getByRole("button", { name: "Discard the changes" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Discard", exact: true }).click();
    await holds(async () => assert.deepEqual([await past.inputValue(), await shownUnit()], ["7", "days"]));
    const origins = page.getByLabel("Origins");
    await origins.press("Control+A");
    await page.keyboard.type("https://shop.example.com\nno origin");
    await page.getByRole("button", { name: "Save the rules" }).click();
    await page.locator(".field", { has: origins }).getByText(/^2\. .*an origin in lower case/).waitFor();
    await holds(async () => assert.equal(await origins.getAttribute("aria-invalid"), "true"));
    assert.deepEqual(complaints, []);
  });

  await t.test("an app is made, renamed and deleted", async (t) => {
    const console = consoleOf(server);
    const { page, complaints } = await tab(chromium);
    await signedIn(page, console, server, "/settings");
    await accessible(page, "settings");
    await wide(page);
    await page.getByLabel("Name of another app").fill("Tests");
    await page.getByRole("button", { name: "Make the app" }).click();
    await page.getByRole("heading", { name: "Start", exact: true }).waitFor();
    await until("one is in the new app", async () => !page.url().includes(appId));
    const made = /apps\/([^/]+)/.exec(page.url())[1];
    await page.goto(`${console.base}#/apps/${made}/settings`);
    await page.getByRole("textbox", { name: "Name", exact: true }).fill("Staging");
    await page.getByRole("button", { name: "Rename" }).click();
    await page.getByText("The app is renamed.").waitFor();
    await holds(async () => assert.equal(await page.locator(".switch option:checked").innerText(), "Staging"));
    await page.getByRole("button", { name: "Delete the app" }).click();
    await page.getByLabel("Type “Staging” to go on").press("Enter");
    await page.getByLabel("Type “Staging” to go on").fill("Staging");
    await page.getByLabel("Type “Staging” to go on").press("Enter");
    await page.getByText("The app “Staging” is deleted.").waitFor();
    const gone = await fetch(`${server.base}/v1/apps/${made}`, { headers: { authorization: `Bearer ${server.access.adminToken}` } });
    assert.equal(gone.status, 404);
    assert.deepEqual(complaints, []);
  });

  await t.test("an operator uploads a plugin of the server, puts it into a slot, and reads health and log", async (t) => {
    const console = consoleOf(server, { operator: true });
    const { page, complaints } = await tab(chromium);
    await signedIn(page, console, server, "#/operator");
    await page.getByRole("rowheader", { name: "default-trigger" }).waitFor();
    const name = "versioned-plugin-0000";
    await page.getByLabel("Drop a component here, or choose it").setInputFiles({ name: "versioned.wasm", mimeType: "application/wasm", buffer: readFileSync(process.env.NUDGE_PLUGIN) });
    await page.getByText("passed all checks").waitFor();
    await accessible(page, "server plugins");
    await wide(page);
    await page.getByRole("link", { name: `Show ${name}` }).click();
    await page.getByRole("heading", { name }).waitFor();
    await page.getByRole("button", { name: /^Activate/ }).first().click();
    await page.getByRole("dialog").getByRole("button", { name: "Activate" }).click();
    await page.getByText("decides.").first().waitFor();
    await accessible(page, "a server plugin");
    await wide(page);
    await holds(async () => assert.ok((await server.api("GET", "/plugins")).items.some((plugin) => plugin.name == name && plugin.scope == "server" && plugin.activeVersion), "apps see it"));
    await page.goto(`${console.base}#/operator?tab=slots`);
    await page.getByLabel("Plugin for the trigger slot").selectOption(name);
    await page.getByRole("button", { name: "Put it into the trigger slot" }).click();
    await until("it decides", async () => (await server.api("GET", "/plugin-slots")).some((slot) => slot.plugin == name));
    await accessible(page, "server slots");
    await wide(page);
    await page.getByRole("button", { name: "Empty the trigger slot" }).click();
    await until("the built-in decides", async () => (await server.api("GET", "/plugin-slots")).every((slot) => slot.scope == "builtin"));
    await page.getByRole("tab", { name: "Apps" }).click();
    await page.getByRole("rowheader", { name: "Demo" }).waitFor();
    await page.getByRole("tab", { name: "Health" }).click();
    await page.getByText("nudge_plugin_calls_total").first().waitFor();
    await until("both are well", async () => (await page.getByText("ok", { exact: true }).count()) == 2);
    await accessible(page, "health");
    await wide(page);
    await page.getByRole("tab", { name: "Audit log" }).click();
    await page.getByRole("table", { name: "Audit log" }).getByText(name).first().waitFor();
    await accessible(page, "the server's audit log");
    assert.deepEqual(complaints, []);
  });
});
