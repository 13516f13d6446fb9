// Webhooks in the console: made, tested, seen to fail, sent again, disabled and enabled, with another secret.
import assert from "node:assert/strict";
import test from "node:test";
import { accessible, consoleOf, signedIn, tab } from "./console.mjs";
import { browser, holds, Server, site, sleep, until } from "./support.mjs";

/** A device whose provider has no credential: what is sent to it fails, of which webhooks are told. */
async function person(server) {
  const { writeKey, base } = { ...server.access, base: server.base };
  const headers = { authorization: `Bearer ${writeKey}`, "content-type": "application/json" };
  const ask = async (path, body, more = {}) => {
    const response = await fetch(`${base}/v1/sdk/${path}`, { method: "POST", headers: { ...headers, ...more }, body: JSON.stringify(body) });
    assert.ok(response.ok, `${path}: ${response.status}`);
    return (await response.json()).data;
  };
  const { subjectToken } = await ask("session", { anonymousId: "ada", platform: "android" });
  await ask("push-tokens", { anonymousId: "ada", deviceId: "phone", provider: "fcm", token: "token-of-ada" }, { "x-service-subject-token": subjectToken });
}

test("webhooks in the console", async (t) => {
  const server = await Server.start(t, {
    NUDGE_WEBHOOKS__ALLOW_HTTP: "true",
    NUDGE_WEBHOOKS__ALLOW_PRIVATE_NETWORKS: "true",
    NUDGE_WEBHOOKS__RETRY_BASE_SECONDS: "0.001",
    NUDGE_WEBHOOKS__DISABLE_AFTER_SECONDS: "1",
  });
  const chromium = await browser(t);
  let well = false;
  const taken = [];
  const receiver = await site(t, { files: { "/hook": ({ headers }) => (well ? (taken.push(headers["webhook-id"]), "taken") : undefined) } });
  const url = `http://127.0.0.1:${receiver.port}/hook`;
  await person(server);
  const campaign = await server.api("POST", "/campaigns", { name: "Order", mode: "transactional", status: "active", variants: [{ title: "On its way", body: "Sent", weight: 1 }] });
  const send = async () => {
    const headers = { authorization: `Bearer ${server.access.serverKey}`, "content-type": "application/json" };
    const response = await fetch(`${server.base}/v1/apps/${server.access.appId}/push/transactional`, { method: "POST", headers, body: JSON.stringify({ campaignId: campaign.id, anonymousId: "ada" }) });
    assert.equal(response.status, 202, await response.text());
  };
  const console = consoleOf(server);
  const { page, complaints } = await tab(chromium);
  const wide = () => page.setViewportSize({ width: 1280, height: 800 });
  const log = page.getByRole("log", { name: "Messages" });
  const dialog = page.getByRole("dialog");
  const webhook = async () => (await server.api("GET", "/push/webhooks")).items[0];
  await signedIn(page, console, server, "/webhooks");

  await t.test("one is made, and its secret is shown once", async () => {
    await page.getByRole("heading", { name: "There is no webhook yet" }).waitFor();
    await accessible(page, "no webhooks");
    await wide();
    await page.getByRole("button", { name: "New webhook" }).first().click();
    await dialog.getByLabel("Address").fill("ftp://example.com");
    await dialog.getByRole("button", { name: "Create" }).click();
    await dialog.getByText("webhook_url_not_allowed").waitFor();
    await accessible(page, "a new webhook");
    await wide();
    await dialog.getByLabel("Address").fill(url);
    await dialog.getByLabel("Description").fill("Our receiver");
    await dialog.getByRole("button", { name: "Create" }).click();
    await page.getByRole("dialog", { name: "The webhook's secret" }).getByText(/^whsec_/).waitFor();
    await page.getByRole("button", { name: "I have kept it" }).click();
    await holds(async () => assert.equal((await webhook()).description, "Our receiver"));
    await accessible(page, "webhooks");
    await wide();
  });

  await t.test("a test says what was answered; the attempts are there in order", async () => {
    await page.getByRole("link", { name: url }).click();
    await page.getByRole("button", { name: "Send a test" }).click();
    await page.getByText(/The test was not taken: status 404/).waitFor();
    await send();
    await page.getByRole("cell", { name: "failed", exact: true }).first().waitFor();
    // Whoever fails for a second is disabled: the next failure sees it.
    await sleep(1500);
    await send();
    await page.getByText("It was disabled because everything failed.").waitFor();
    const attempts = (await page.getByRole("table", { name: "Attempts" }).locator("tbody tr td:nth-of-type(3)").allInnerTexts()).map(Number);
    assert.deepEqual(attempts, [...attempts].sort((one, other) => other - one));
    await accessible(page, "a disabled webhook");
    await wide();
  });

  await t.test("it is enabled, and what did not arrive is sent again", async () => {
    well = true;
    await page.getByRole("button", { name: "Enable it" }).click();
    await dialog.getByRole("button", { name: "Send again" }).click();
    await page.getByText(/Sending again: done/).waitFor();
    const { items } = await server.api("GET", `/push/webhooks/${(await webhook()).id}/attempts`);
    const failed = new Set(items.filter(({ statusCode }) => statusCode != 200).map(({ messageId }) => messageId));
    assert.ok(failed.size >= 2);
    await until("what failed has arrived", () => [...failed].every((id) => taken.includes(id)));
    await page.getByRole("cell", { name: "200" }).first().waitFor();
    await holds(async () => assert.equal((await webhook()).health.state, "healthy"));
    await page.getByText("healthy").waitFor();
    await page.reload();
    await page.getByText(/Sending again: done/).waitFor();
    await accessible(page, "a webhook");
    await wide();
  });

  await t.test("one message alone is sent again", async () => {
    well = false;
    const before = taken.length;
    await send();
    await page.getByRole("tab", { name: "Attempts" }).click();
    await page.getByRole("button", { name: /^Send again: failed, attempt 1$/ }).first().waitFor();
    well = true;
    const { items } = await server.api("GET", `/push/webhooks/${(await webhook()).id}/attempts`);
    await page.getByRole("button", { name: /^Send again: failed, attempt 1$/ }).first().click();
    await until("it has arrived, and nothing else", () => taken.length == before + 1 && taken.at(-1) == items[0].messageId);
    await log.getByText("It is sent again.").waitFor();
  });

  await t.test("another secret, other settings, two admins at once", async () => {
    await page.getByRole("button", { name: "Rotate the secret" }).click();
    await dialog.getByLabel(/^Hours/).fill("1000");
    await dialog.getByRole("button", { name: "Rotate" }).click();
    await dialog.locator("[aria-invalid=true]").waitFor();
    await dialog.getByLabel(/^Hours/).fill("1");
    await dialog.getByRole("button", { name: "Rotate" }).click();
    await page.getByRole("dialog", { name: "The new secret" }).getByText(/^whsec_/).waitFor();
    await page.getByRole("button", { name: "I have kept it" }).click();

    await page.getByRole("tab", { name: "Settings" }).click();
    await page.getByLabel("Description").fill("Mine");
    await page.getByRole("checkbox", { name: "opened" }).uncheck();
    await page.reload();
    await page.getByText("This is your draft of an earlier visit.").waitFor();
    await server.api("PATCH", `/push/webhooks/${(await webhook()).id}`, { description: "Theirs" });
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("dialog", { name: "Somebody else changed this" }).getByText('"Theirs"').waitFor();
    await page.getByRole("button", { name: "Put mine over it" }).click();
    await log.getByText("Saved.").waitFor();
    const saved = await webhook();
    assert.deepEqual([saved.description, saved.eventTypes.includes("opened")], ["Mine", false]);
    await accessible(page, "settings of a webhook");
    await wide();
    await page.getByRole("button", { name: "Delete" }).click();
    await dialog.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("heading", { name: "There is no webhook yet" }).waitFor();
    assert.deepEqual(complaints, []);
  });

  await t.test("they are admins'", async (t) => {
    const console = consoleOf(server, { role: "editor" });
    const { page } = await tab(chromium);
    await signedIn(page, console, server, "/webhooks");
    await page.getByRole("heading", { name: "This takes the role admin" }).waitFor();
    await holds(async () => assert.equal(await page.getByRole("link", { name: "Webhooks" }).count(), 0));
  });
});
