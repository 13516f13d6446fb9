// The pages of the API: read without signing in, searched, opened, sent from, by whoever is signed in.
import assert from "node:assert/strict";
import test from "node:test";
import { accessible, consoleOf, settled, signedIn, tab } from "./console.mjs";
import { browser, holds, Server } from "./support.mjs";

test("the pages of the API", async (t) => {
  const server = await Server.start(t);
  const chromium = await browser(t);
  const description = await (await fetch(`${server.base}/openapi.json`)).json();
  const { appId } = server.access;

  /** A tab at an address of these pages. */
  async function open(place, options) {
    const opened = await tab(chromium);
    if (options) await signedIn(opened.page, consoleOf(server, options), server);
    await opened.page.goto(`${server.base}/docs${place}`);
    await settled(opened.page);
    return opened;
  }

  await t.test("somebody who is not signed in searches, reads, and sees a placeholder", async () => {
    const { page, complaints } = await open("");
    await holds(async () => assert.equal(await page.title(), "Nudge API · Nudge"));
    for (const tag of ["surveys", "sdk"]) await page.getByRole("heading", { name: tag, exact: true }).waitFor();
    await accessible(page, "all operations");
    await page.setViewportSize({ width: 1280, height: 800 });

    // By keyboard: the slash leads to the search, what is found is next.
    await page.locator("main").focus();
    await page.keyboard.press("/");
    await page.keyboard.type("create survey");
    await page.getByRole("heading", { name: "Search: create survey" }).waitFor();
    await holds(async () => assert.equal(await page.evaluate(() => document.activeElement?.getAttribute("type")), "search"));
    await page.getByRole("main").getByRole("link", { name: "Create survey", exact: true }).press("Enter");
    await page.getByRole("heading", { name: "Create survey", level: 1 }).waitFor();
    await holds(async () => assert.equal(new URL(page.url()).hash, "#/op/create_survey"));
    await holds(async () => assert.equal(await page.evaluate(() => document.activeElement?.id), "main"));

    const command = page.getByRole("region", { name: "curl" });
    await holds(async () => assert.match(await command.innerText(), /curl -X POST 'http:[^']+\/v1\/apps\/\{appId\}\/surveys'[^]*Authorization: Bearer \$NUDGE_ACCESS_TOKEN/i));
    await holds(async () => assert.ok(await page.getByRole("button", { name: "Send" }).isDisabled()));
    // The body is open, what is in it opens in place, with what is required and what is allowed.
    const body = page.locator("main");
    await body.locator("summary", { has: page.locator("code.name", { hasText: /^flow$/ }) }).first().click();
    await body.locator("code.name", { hasText: /^questions$/ }).first().waitFor();
    await body.locator("summary", { has: page.locator("code.name", { hasText: /^questions$/ }) }).first().click();
    await body.getByText('"nps"').first().waitFor();
    await accessible(page, "an operation");
    await page.setViewportSize({ width: 1280, height: 800 });
    await holds(async () => assert.match(await page.getByRole("main").innerText(), /422[^]*accessToken|accessToken[^]*422/));

    await page.goto(`${server.base}/docs#/?q=no%20such%20words`);
    await page.getByRole("heading", { name: "Nothing has all of these words" }).waitFor();
    await page.goto(`${server.base}/docs#/schema/Problem`);
    await page.getByRole("heading", { name: "Problem", exact: true }).waitFor();
    await accessible(page, "a schema");
    await page.goto(`${server.base}/docs#/op/nothing`);
    await page.getByRole("heading", { name: "The description has no such thing" }).waitFor();
    assert.deepEqual(complaints, []);
  });

  await t.test("every operation and every schema is shown", async () => {
    const { page, complaints } = await open("");
    const operations = Object.values(description.paths).flatMap((item) => Object.values(item)).map(({ operationId }) => operationId);
    const places = [...operations.map((id) => `#/op/${id}`), ...Object.keys(description.components.schemas).map((name) => `#/schema/${name}`)];
    const wrong = await page.evaluate(async (places) => {
      const wrong = [];
      for (const place of places) {
        location.hash = place;
        const name = place.split("/").pop();
        const title = place.startsWith("#/op/") ? name.replaceAll("_", " ").replace(/^./, (letter) => letter.toUpperCase()) : name;
        let tries = 200;
        while (document.querySelector("h1")?.textContent !== title && tries-- > 0) await new Promise((done) => setTimeout(done, 10));
        // All that can be opened, three levels deep.
        for (let level = 0; level < 3; level++) {
          for (const summary of document.querySelectorAll("main details:not([open]) > summary")) summary.click();
          await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
        }
        if (tries <= 0) wrong.push(place);
      }
      return wrong;
    }, places);
    assert.deepEqual(wrong, []);
    assert.deepEqual(complaints, []);
  });

  await t.test("somebody who is signed in has their app and session in commands, and sends", async () => {
    const { page, complaints } = await open("#/op/list_surveys", { role: "admin" });
    const command = page.getByRole("region", { name: "curl" });
    const text = await command.innerText();
    assert.ok(text.includes(`/v1/apps/${appId}/surveys`), text);
    assert.ok(text.includes("cookie: nudge=$NUDGE_SESSION"), text);
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText("200 OK").waitFor();
    const answer = page.getByRole("region", { name: "Answer" });
    await holds(async () => assert.ok("data" in JSON.parse(await answer.getByRole("region", { name: "Body" }).innerText())));
    await answer.getByText(/^Headers/).click();
    await answer.getByRole("rowheader", { name: "x-request-id" }).waitFor();
    await accessible(page, "an answer");
    await page.setViewportSize({ width: 1280, height: 800 });

    // What changes something is asked about first; a refusal is an answer like others.
    await page.goto(`${server.base}/docs#/op/create_segment`);
    await page.getByRole("heading", { name: "Create segment", level: 1 }).waitFor();
    const body = page.getByRole("textbox", { name: "Body" });
    await body.fill('{"name": ""}');
    await holds(async () => assert.ok((await command.innerText()).includes(`-d '{"name": ""}'`)));
    await page.getByRole("button", { name: "Send" }).click();
    const dialog = page.getByRole("dialog", { name: "Send the request?" });
    await accessible(page, "a question");
    await page.setViewportSize({ width: 1280, height: 800 });
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await holds(async () => assert.equal(await answer.count(), 0));
    await page.getByRole("button", { name: "Send" }).click();
    await dialog.getByRole("button", { name: "Send" }).click();
    await page.getByText("422 Unprocessable Entity").waitFor();
    const audience = { include: { kind: "event", eventName: "order_placed", withinDays: 5 } };
    await body.fill(JSON.stringify({ name: "Buyers", audience }));
    await page.getByRole("button", { name: "Send" }).click();
    await dialog.getByRole("button", { name: "Send" }).click();
    await page.getByText("201 Created").waitFor();
    const [segment] = (await server.api("GET", "/segments")).items;
    assert.equal(segment.name, "Buyers");

    // Parameters go into the path, the query and the command.
    await page.goto(`${server.base}/docs#/op/get_segment`);
    await page.getByRole("heading", { name: "Get segment", level: 1 }).waitFor();
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText("Fill in segmentId first.").waitFor();
    await page.getByLabel("segmentId (required)").fill(segment.id);
    await holds(async () => assert.ok((await command.innerText()).includes(`/segments/${segment.id}'`)));
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText("200 OK").waitFor();

    // A stream is shown as it comes, until somebody stops it.
    await page.goto(`${server.base}/docs#/op/stream_events`);
    await page.getByRole("heading", { name: "Stream events", level: 1 }).waitFor();
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText("200 OK").waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByRole("button", { name: "Stop" }).waitFor({ state: "detached" });
    assert.deepEqual(complaints, []);
  });

  await t.test("an SDK's route is tried with the keys that are typed", async () => {
    const { page, complaints } = await open("#/op/start_session");
    await page.getByLabel("writeKey").fill(server.access.writeKey);
    await page.getByRole("textbox", { name: "Body" }).fill('{"anonymousId": "docs"}');
    await holds(async () => assert.ok((await page.getByRole("region", { name: "curl" }).innerText()).includes(`Bearer ${server.access.writeKey}`)));
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Send" }).click();
    await page.getByText(/^20[01] /).waitFor();
    assert.deepEqual(complaints, []);
  });
});
