// What requests leave behind: nothing, however many a page makes.
import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { build } from "esbuild";

const root = new URL("../", import.meta.url);

/** A module of the core. */
async function source(name) {
  const made = await build({
    bundle: true,
    entryPoints: [new URL(`src/core/${name}.ts`, root).pathname],
    format: "esm",
    target: "es2022",
    write: false,
  });
  return import(`data:text/javascript;base64,${Buffer.from(made.outputFiles[0].text).toString("base64")}`);
}

const { ask } = await source("net");
const { pause } = await source("util");

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
