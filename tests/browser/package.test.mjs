// What `npm pack` makes, installed as anybody would: a plain page, a project of Vite, a strict consumer in TypeScript.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { browser, folder, Gate, holds, Server, site, until } from "./support.mjs";

const SDK = new URL("../../host/web-sdk/", import.meta.url).pathname;
const HERE = new URL(".", import.meta.url).pathname;
const run = (cwd, program, ...parts) => execFileSync(program, parts, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

/** The tarball, made once. */
const packing = mkdtempSync(join(tmpdir(), "nudge-package-"));
test.after(() => rmSync(packing, { recursive: true, force: true }));
test.before(() => void run(SDK, "npm", "pack", "--pack-destination", packing));

/** A project that installed the package from its tarball. What it is built with comes from the tests' own packages. */
function project(t, files) {
  const path = folder(t);
  const manifest = JSON.stringify({ type: "module", name: "consumer", private: true });
  for (const [name, text] of Object.entries({ "package.json": manifest, ...files })) writeFileSync(join(path, name), text);
  const [filename] = readdirSync(packing);
  // It depends on nothing, so that no registry is asked.
  run(path, "npm", "install", "--offline", "--no-audit", "--no-fund", join(packing, filename));
  for (const [from, names] of [
    [HERE, ["vite"]],
    [SDK, ["react", "react-dom", "scheduler", "@types", "csstype", "typescript"]],
  ]) {
    for (const name of names) symlinkSync(join(from, "node_modules", name), join(path, "node_modules", name));
  }
  return { path, packed: join(path, "node_modules/@nudge/web") };
}

test("the package has what it says and no more", (t) => {
  const { packed } = project(t, {});
  const { exports } = JSON.parse(readFileSync(join(packed, "package.json"), "utf8"));
  const named = Object.values(exports).flatMap((entry) => (typeof entry == "string" ? [entry] : Object.values(entry)));
  for (const path of named) assert.ok(existsSync(join(packed, path)), path);
  assert.deepEqual(readdirSync(packed).sort(), ["CHANGELOG.md", "LICENSE", "README.md", "lib", "package.json", "src"]);
  for (const name of ["nudge.mjs", "surveys.mjs", "react.mjs", "worker.js"]) {
    const map = JSON.parse(readFileSync(join(packed, "lib", `${name}.map`), "utf8"));
    for (const source of map.sources) assert.ok(existsSync(join(packed, "lib", source)), source);
  }
  assert.equal(JSON.parse(readFileSync(join(packed, "package.json"), "utf8")).dependencies, undefined);
});

test("importing in a server that renders pages does nothing", (t) => {
  const { path } = project(t, {
    "server.js": `
      import { createElement as h, StrictMode } from "react";
      import { renderToString } from "react-dom/server";
      import { Nudge } from "@nudge/web";
      import { NudgeProvider, useNudge } from "@nudge/web/react";
      const nudge = Nudge.init({ writeKey: "wk_none" });
      await nudge.flush();
      const Page = () => h("h1", null, useNudge().push.state);
      const html = renderToString(h(StrictMode, null, h(NudgeProvider, { writeKey: "wk_none" }, h(Page))));
      console.log(JSON.stringify([nudge.track("nothing_done", {}), await nudge.push.subscribe(), html]));`,
  });
  const [id, state, html] = JSON.parse(run(path, "node", "server.js"));
  assert.match(id, /^[0-9a-f-]{36}$/);
  assert.equal(state, "unsupported");
  assert.equal(html, "<h1>unsupported</h1>");
});

test("a strict consumer in TypeScript compiles", (t) => {
  const { path } = project(t, {
    "tsconfig.json": JSON.stringify({
      compilerOptions: { strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, module: "nodenext", target: "es2022", lib: ["es2022", "dom"], jsx: "react-jsx", noEmit: true, skipLibCheck: false, types: [] },
      files: ["page.ts", "app.tsx"],
    }),
    "page.ts": `
      import { Nudge, type Instruction, type NudgeError } from "@nudge/web";
      const nudge = Nudge.init({ writeKey: "wk", consent: "required", identity: async () => null, autoShow: false });
      const id: string = nudge.track("order_placed", { total: 42, items: [{ sku: "a" }], note: undefined });
      const off: () => void = nudge.on("instruction", (instruction: Instruction) => void nudge.present(instruction, {}));
      nudge.on("answered", ({ questionId, value }) => console.log(questionId, value));
      nudge.on("error", (error: NudgeError) => console.log(error.code));
      nudge.set({ plan: "pro", seats: 3, trial: false, gone: null });
      nudge.unset(["seats"]);
      nudge.consent({ analytics: true, messaging: false });
      const state: "unsupported" | "default" | "denied" | "subscribed" | "unsubscribed" = nudge.push.state;
      await nudge.flush();
      // @ts-expect-error: a key is needed
      Nudge.init({});
      // @ts-expect-error: there is no such event
      nudge.on("other", () => {});
      export { id, off, state };`,
    "app.tsx": `
      import { NudgeProvider, useNudge, useNudgeEvent } from "@nudge/web/react";
      function Buy() {
        const nudge = useNudge();
        useNudgeEvent("displayed", ({ instruction }) => console.log(instruction.campaignId));
        return <button onClick={() => nudge.track("order_placed")}>Buy</button>;
      }
      export const App = () => <NudgeProvider writeKey="wk" baseUrl="https://nudge.example"><Buy /></NudgeProvider>;`,
  });
  try {
    run(path, "node", join(SDK, "node_modules/typescript/bin/tsc"), "-p", ".");
  } catch (error) {
    assert.fail(error.stdout);
  }
});

test("a page built by Vite sends events, and React's strict mode makes one session", async (t) => {
  const server = await Server.start(t);
  const gate = await Gate.start(t, server);
  const { path } = project(t, {
    "index.html": '<!doctype html><html lang="en"><title>App</title><div id="root"></div><script type="module" src="/main.jsx"></script></html>',
    "main.jsx": `
      import { createElement as h, StrictMode, useEffect } from "react";
      import { createRoot } from "react-dom/client";
      import { NudgeProvider, useNudge } from "@nudge/web/react";
      const options = JSON.parse(decodeURIComponent(location.hash.slice(1)));
      function Page() {
        const nudge = useNudge();
        useEffect(() => { window.nudge = nudge; nudge.track("page_mounted"); }, [nudge]);
        return h("h1", null, "App");
      }
      createRoot(document.getElementById("root")).render(h(StrictMode, null, h(NudgeProvider, options, h(Page))));`,
  });
  run(path, "node", join(HERE, "node_modules/vite/bin/vite.js"), "build", "--mode", "development", "--minify", "false");
  const files = { "/index.html": readFileSync(join(path, "dist/index.html"), "utf8") };
  const assets = readdirSync(join(path, "dist/assets"));
  for (const name of assets) files[`/assets/${name}`] = readFileSync(join(path, "dist/assets", name), "utf8");
  // The surveys are a part of their own, which a page loads when it has something to show.
  assert.ok(assets.some((name) => name.startsWith("surveys")), assets.join());
  const app = await site(t, { files });
  const page = await (await (await browser(t)).newContext()).newPage();
  const options = { writeKey: server.access.writeKey, baseUrl: gate.base };
  await page.goto(`${app.url}index.html#${encodeURIComponent(JSON.stringify(options))}`);
  const user = await until("somebody", async () => (await server.users())[0]);
  await until("the event", async () => (await server.events(user.anonymousId)).some(({ name }) => name == "page_mounted"));
  await holds(async () => assert.equal((await server.users()).length, 1));
  assert.equal(gate.of("POST /v1/sdk/session").length, 1);
});

test("a plain page with a strict policy uses the module that the server serves", async (t) => {
  const server = await Server.start(t);
  const app = await site(t, {
    files: {
      "/": '<!doctype html><html lang="en"><title>Plain</title><script type="module" src="/main.js"></script></html>',
      "/main.js": `
        import { Nudge } from "${server.base}/sdk/v1/nudge.mjs";
        const nudge = Nudge.init({ writeKey: "${server.access.writeKey}" });
        nudge.track("page_viewed");`,
    },
    headers: { "content-security-policy": `default-src 'none'; script-src 'self' ${server.base}; style-src 'self'; connect-src ${server.base}; require-trusted-types-for 'script'; trusted-types 'none'` },
  });
  const page = await (await (await browser(t)).newContext()).newPage();
  const complaints = [];
  page.on("console", (message) => message.type() == "error" && complaints.push(message.text()));
  await page.goto(app.url);
  const user = await until("somebody", async () => (await server.users())[0]);
  await until("the event", async () => (await server.events(user.anonymousId)).some(({ name }) => name == "page_viewed"));
  assert.deepEqual(complaints, []);
});

test("a plain page uses the files of the package, and shows a survey with them", async (t) => {
  const server = await Server.start(t);
  await server.survey({ trigger: { kind: "event", eventName: "page_viewed", delaySeconds: 0, occurrence: { mode: "every" } } });
  const { packed } = project(t, {});
  const files = {
    "/": '<!doctype html><html lang="en"><title>Plain</title><script type="module" src="/main.js"></script></html>',
    "/main.js": `
      import { Nudge } from "/nudge/nudge.mjs";
      Nudge.init({ writeKey: "${server.access.writeKey}", baseUrl: "${server.base}" }).track("page_viewed");`,
  };
  for (const name of ["nudge.mjs", "surveys.mjs", "worker.js"]) files[`/nudge/${name}`] = readFileSync(join(packed, "lib", name), "utf8");
  const headers = { "content-security-policy": `default-src 'none'; script-src 'self'; style-src 'self'; connect-src ${server.base}` };
  const app = await site(t, { files, headers });
  const page = await (await (await browser(t)).newContext()).newPage();
  const complaints = [];
  page.on("console", (message) => message.type() == "error" && complaints.push(message.text()));
  await page.goto(app.url);
  const user = await until("somebody", async () => (await server.users())[0]);
  await until("the event", async () => (await server.events(user.anonymousId)).some(({ name }) => name == "page_viewed"));
  const title = page.locator("nudge-ui h2", { hasText: "How likely?" });
  await title.waitFor();
  await holds(async () => assert.equal(await page.locator("nudge-ui .root").evaluate((root) => getComputedStyle(root).position), "fixed"));
  assert.deepEqual(complaints.filter((text) => !text.includes("favicon")), []);
});
