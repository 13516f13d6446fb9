// The page that a newcomer sees first: somebody signs in, buys, is asked, and sees why.
import assert from "node:assert/strict";
import test from "node:test";
import { browser, holds, Server, until } from "./support.mjs";

test("the shop sells, asks, and shows what was decided and why", async (t) => {
  const server = await Server.start(t);
  // The first address that the server prints.
  const address = await until("the server introduces itself", () => /http:\S+/.exec(server.output)?.[0]);
  assert.equal(address, `${server.base}/demo/`);
  const page = await (await (await browser(t)).newContext({ locale: "en" })).newPage();
  const complaints = [];
  // A poll that is open while somebody signs in ends with its token, of which browsers complain.
  page.on("console", (message) => message.type() == "error" && !message.location().url.includes("/instructions") && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.goto(address);
  await page.getByLabel("Your name").fill("Ada");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("Ada has signed in.").waitFor();

  const decisions = page.locator("#decisions > li");
  await page.getByRole("button", { name: "Add Tea to cart" }).click();
  await page.getByRole("button", { name: "Buy" }).click();
  await decisions.first().waitFor();
  await holds(async () => assert.equal(await page.locator("nudge-ui").count(), 0));
  await holds(async () => assert.ok(await decisions.first().locator(".no").count(), "a small order says what failed"));

  await page.getByRole("button", { name: "Add Teapot to cart" }).click();
  await page.getByRole("button", { name: "Buy" }).click();
  await page.getByRole("heading", { name: "How likely are you to recommend this shop?" }).waitFor();
  await until("the decision", async () => (await decisions.count()) == 2);
  await holds(async () => assert.equal(await decisions.first().locator(".no").count(), 0));
  await holds(async () => assert.ok((await page.locator("#requests").innerText()).includes("order_placed")));

  const ada = (await server.users()).find(({ externalId }) => externalId == "Ada");
  assert.equal(ada.topProperties.name, "Ada");
  assert.deepEqual(complaints, []);
});

test("whoever signs in before the shop is open has signed in once it is", async (t) => {
  const server = await Server.start(t);
  const page = await (await (await browser(t)).newContext({ locale: "en" })).newPage();
  await page.route("**/demo/opening", async (route) => {
    await new Promise((done) => setTimeout(done, 500));
    await route.continue();
  });
  await page.goto(`${server.base}/demo/`);
  await page.getByLabel("Your name").fill("Ada");
  await page.getByLabel("Your name").press("Enter");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("Ada has signed in.").waitFor({ timeout: 20_000 });
  assert.equal(page.url(), `${server.base}/demo/`);
});

test("only the page itself is told keys", async (t) => {
  const server = await Server.start(t);
  const status = async (path, headers, init) => (await fetch(server.base + path, { headers, ...init })).status;
  assert.equal(await status("/demo/opening", {}), 200);
  assert.equal(await status("/demo/opening", { "sec-fetch-site": "cross-site" }), 404);
  // A name that somebody else makes lead to this machine.
  const { hostname, port } = new URL(server.base);
  const { default: http } = await import("node:http");
  const rebound = await new Promise((done) => http.get({ hostname, port, path: "/demo/opening", headers: { host: "shop.example" } }, (answer) => done(answer.statusCode)));
  assert.equal(rebound, 404);
  const body = JSON.stringify({ name: "" });
  assert.equal(await status("/demo/sign-in", { "content-type": "application/json" }, { method: "POST", body }), 422);
  const { writeKey } = (await (await fetch(`${server.base}/demo/opening`)).json()).data;
  assert.match(writeKey, /^wk_/);
});
