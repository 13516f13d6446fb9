// Plugins in the console: uploaded, tried as shadow and canary, promoted, rolled back, and looked at.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { accessible, consoleOf, settled, signedIn, tab } from "./console.mjs";
import { browser, folder, holds, Server, until } from "./support.mjs";

const NAME = "versioned-plugin-0000";

/** A trigger plugin whose version stands in its bytes: each version is another file. */
const component = (number) => {
  const bytes = readFileSync(process.env.NUDGE_PLUGIN);
  const place = bytes.indexOf("1.0.1000000");
  assert.ok(place > 0);
  bytes.write(`1.0.1${String(number).padStart(6, "0")}`, place);
  return bytes;
};
const version = (number) => `1.0.1${String(number).padStart(6, "0")}`;

async function upload(server, number) {
  const response = await fetch(`${server.base}/v1/apps/${server.access.appId}/plugins`, { method: "POST", headers: { authorization: `Bearer ${server.access.adminToken}`, "content-type": "application/wasm" }, body: component(number) });
  assert.equal(response.status, 201, await response.text());
}

async function send(server, events) {
  const headers = { authorization: `Bearer ${server.access.serverKey}`, "content-type": "application/json" };
  const body = { userId: "ada", events: events.map((properties) => ({ name: "bought", eventId: crypto.randomUUID(), timestamp: new Date().toISOString(), properties })) };
  const response = await fetch(`${server.base}/v1/sdk/ingest`, { method: "POST", headers, body: JSON.stringify(body) });
  assert.equal((await response.json()).data.accepted, events.length);
}

const rollout = async (server) => (await server.api("GET", `/plugins/${NAME}`)).rollout ?? {};
const active = async (server) => (await server.api("GET", `/plugins/${NAME}`)).activeVersion;

test("plugins in the console", async (t) => {
  const server = await Server.start(t);
  const chromium = await browser(t);
  const files = folder(t);
  const file = (number) => {
    const path = join(files, `${number}.wasm`);
    writeFileSync(path, component(number));
    return path;
  };
  const console = consoleOf(server);
  const { page, complaints } = await tab(chromium);
  const log = page.getByRole("log", { name: "Messages" });

  await t.test("a file is dropped, and the checks are said in words", async () => {
    await signedIn(page, console, server, "/plugins");
    await page.getByRole("rowheader", { name: "default-trigger" }).waitFor();
    await accessible(page, "plugins");
    await page.setViewportSize({ width: 1280, height: 800 });
    const drop = page.getByLabel("Drop a component here, or choose it");
    await drop.setInputFiles({ name: "no.wasm", mimeType: "application/wasm", buffer: Buffer.from("no component") });
    const refusal = page.getByRole("alert").filter({ hasText: "plugin_rejected" });
    await refusal.getByText(/not a WebAssembly component/).first().waitFor();
    await drop.setInputFiles(file(1));
    await page.getByText("It compiles in time").waitFor();
    await page.getByText(`${NAME} ${version(1)} is ready.`).waitFor();
    await accessible(page, "an upload");
    await page.setViewportSize({ width: 1280, height: 800 });
    const dropped = await page.evaluateHandle((bytes) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([Uint8Array.from(atob(bytes), (one) => one.charCodeAt(0))], "two.wasm"));
      return transfer;
    }, component(2).toString("base64"));
    await page.locator(".drop").dispatchEvent("drop", { dataTransfer: dropped });
    await page.getByText(`${NAME} ${version(2)} is ready.`).waitFor();
    const { versions } = await server.api("GET", `/plugins/${NAME}`);
    assert.deepEqual(versions.map((one) => one.version).sort(), [version(1), version(2)]);
  });

  await t.test("it is activated, put into the slot, and the slot is emptied", async () => {
    await page.getByRole("link", { name: `Show ${NAME}` }).click();
    await page.getByText("No version is active").waitFor();
    await page.getByRole("button", { name: `Activate ${version(1)}` }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Put it into the trigger slot too").check();
    await dialog.getByRole("button", { name: "Activate" }).click();
    await log.getByText(`${version(1)} decides.`).waitFor();
    await holds(async () => assert.equal((await server.api("GET", "/plugin-slots")).find(({ kind }) => kind == "trigger").plugin, NAME));
    await page.goto(`${console.base}#/apps/${server.access.appId}/plugins?tab=slots`);
    await page.getByRole("button", { name: "Empty the trigger slot" }).click();
    await page.getByRole("rowheader", { name: /which events fire/ }).waitFor();
    await until("the slot is empty", async () => (await server.api("GET", "/plugin-slots")).find(({ kind }) => kind == "trigger").plugin == "default-trigger");
    await page.getByLabel("Plugin for the trigger slot").selectOption(NAME);
    await page.getByRole("button", { name: "Put it into the trigger slot" }).click();
    await log.getByText(`${NAME} is in the trigger slot.`).waitFor();
    await accessible(page, "slots");
    await page.setViewportSize({ width: 1280, height: 800 });
    await server.api("DELETE", "/plugin-slots/trigger");
  });

  await t.test("a shadow's differences stand side by side", async () => {
    const trigger = { kind: "plugin", plugin: NAME, config: { events: ["bought"], logs: true, passes: 1000002, keeps: 1000001 } };
    await server.survey({ name: "By plugin", trigger });
    await page.goto(`${console.base}#/apps/${server.access.appId}/plugins/${NAME}`);
    await page.getByRole("button", { name: `Activate ${version(2)}` }).click();
    const dialog = page.getByRole("dialog");
    await accessible(page, "activation");
    await page.setViewportSize({ width: 1280, height: 800 });
    await dialog.getByRole("button", { name: "Activate" }).click();
    await page.getByText(/is tried as a/).first().waitFor();
    await holds(async () => assert.equal((await rollout(server)).strategy, "shadow"));
    await send(server, [{ note: "a good one" }, { note: "a bad one", bad: true }]);
    await page.getByRole("tab", { name: "Shadow" }).click();
    await page.getByRole("columnheader", { name: `Candidate ${version(2)}` }).first().waitFor();
    await page.getByRole("table", { name: `Differences of ${version(2)}` }).getByText("does not fire").waitFor();
    await accessible(page, "a shadow");
    await page.setViewportSize({ width: 1280, height: 800 });
  });

  await t.test("the canary is a slider; promote; roll back", async () => {
    const slider = page.getByRole("slider");
    await slider.focus();
    for (let count = 0; count < 15; count++) await page.keyboard.press("ArrowRight");
    await page.getByRole("button", { name: "Make it a canary" }).click();
    await until("a canary of a quarter", async () => (await rollout(server)).percent == 25);
    await page.getByText("canary · 25 %").waitFor();
    await accessible(page, "a canary");
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.getByRole("button", { name: `Promote ${version(2)}` }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Promote" }).click();
    await page.getByRole("button", { name: `Roll back to ${version(1)}` }).waitFor();
    await holds(async () => assert.equal(await active(server), version(2)));
    await page.getByRole("button", { name: `Roll back to ${version(1)}` }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Roll back" }).click();
    await until("the version before decides", async () => (await active(server)) == version(1));
  });

  await t.test("a backtest shows samples, and its address brings it back", async () => {
    await page.getByRole("tab", { name: "Backtest" }).click();
    await page.getByLabel("Version", { exact: true }).selectOption(version(2));
    await page.getByRole("button", { name: "Run it" }).click();
    await page.getByRole("heading", { name: "Result" }).waitFor();
    await page.getByRole("table", { name: "Samples" }).getByText("bought").waitFor();
    await page.reload();
    await page.getByRole("table", { name: "Samples" }).getByText("bought").waitFor();
    await accessible(page, "a backtest");
    await page.setViewportSize({ width: 1280, height: 800 });
  });

  await t.test("statistics, logs as they come, and what is kept of a person", async () => {
    await page.getByRole("tab", { name: "Statistics" }).click();
    await page.getByRole("rowheader", { name: version(1) }).first().waitFor();
    await page.getByLabel("Time", { exact: true }).selectOption("hour");
    await page.getByRole("img", { name: /^Latency \(median\)/ }).waitFor();
    await accessible(page, "statistics");
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.getByRole("tab", { name: "Logs" }).click();
    await page.getByRole("cell", { name: "a bad one" }).first().waitFor();
    await send(server, [{ note: "while we look" }]);
    await page.getByRole("cell", { name: "while we look" }).waitFor();
    await page.getByLabel("From level").selectOption("error");
    await page.getByRole("heading", { name: "No line is like that" }).waitFor();
    await page.reload();
    await page.getByRole("heading", { name: "No line is like that" }).waitFor();
    await page.getByRole("button", { name: "Show all" }).click();
    await accessible(page, "logs");
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.goto(`${console.base}#/apps/${server.access.appId}/plugins?tab=state`);
    await page.getByLabel("Anonymous id or external id").fill("ada");
    await page.getByRole("button", { name: "Show" }).click();
    await page.getByRole("table", { name: "Kept of the person" }).getByText("later").waitFor();
    await accessible(page, "state of a person");
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.getByRole("button", { name: "Erase it" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Erase" }).click();
    await page.getByRole("heading", { name: "Plugins keep nothing of this person" }).waitFor();
    await holds(async () => assert.deepEqual((await server.api("GET", "/users/ada/plugin-state")).campaigns, []));
    assert.deepEqual(complaints, []);
  });

  await t.test("an editor changes no plugin", async (t) => {
    const console = consoleOf(server, { role: "editor" });
    const { page } = await tab(chromium);
    for (const path of ["/plugins", "/plugins?tab=slots", `/plugins/${NAME}`]) {
      await (path == "/plugins" ? signedIn(page, console, server, path) : page.goto(`${console.base}#/apps/${server.access.appId}${path}`));
      await page.reload();
      await settled(page);
      await page.getByRole("rowheader").first().waitFor();
      await holds(async () => assert.equal(await page.getByRole("button", { name: /^(Activate|Delete|Promote|Roll back|Remove|Put|Empty|Erase)/ }).count(), 0, path));
      await holds(async () => assert.equal(await page.locator("input[type=file]").count(), 0, path));
    }
  });

  await t.test("a viewer looks on", async (t) => {
    await upload(server, 3);
    const console = consoleOf(server, { role: "viewer" });
    const { page } = await tab(chromium);
    await signedIn(page, console, server, `/plugins/${NAME}`);
    await page.getByRole("rowheader", { name: version(3) }).waitFor();
    // What a version is has an address.
    await page.getByRole("link", { name: `Show ${version(3)}` }).click();
    await page.getByRole("dialog").getByText("It compiles in time").waitFor();
    await page.reload();
    await page.getByRole("dialog").getByText("It compiles in time").waitFor();
    await page.getByRole("button", { name: "Close" }).click();
    await holds(async () => assert.equal(await page.getByRole("button", { name: /^(Activate|Delete|Promote|Roll back|Remove)/ }).count(), 0));
    await holds(async () => assert.equal(await page.locator("input[type=file]").count(), 0));
    await page.goto(`${console.base}#/apps/${server.access.appId}/plugins/none`);
    await settled(page);
    await page.getByRole("alert").getByText("not_found").waitFor();
  });
});
