// The book: read on small and large screens, searched by keyboard, in light and dark.
import assert from "node:assert/strict";
import test from "node:test";
import { accessible, settled, tab } from "./console.mjs";
import { browser, holds, Server } from "./support.mjs";

test("the book", async (t) => {
  const server = await Server.start(t);
  const chromium = await browser(t);

  /** A tab at a page of the book. */
  async function open(place) {
    const opened = await tab(chromium);
    await opened.page.goto(`${server.base}/docs/book/${place}`);
    await settled(opened.page);
    return opened;
  }

  await t.test("everybody can read its pages", async () => {
    const { page, complaints } = await open("");
    await holds(async () => assert.equal(await page.title(), "Nudge · Nudge"));
    await accessible(page, "the first page");
    for (const place of ["runbook.html", "reference/configuration.html", "guides/console.html"]) {
      await page.goto(`${server.base}/docs/book/${place}`);
      await accessible(page, place);
    }
    assert.deepEqual(complaints, []);
  });

  await t.test("words are found by keyboard, and lead to their place", async () => {
    const { page, complaints } = await open("tutorials/survey.html");
    await page.keyboard.press("/");
    await page.keyboard.type("disk full");
    await page.getByRole("heading", { name: /^Found: \d+$/ }).waitFor();
    await accessible(page, "what was found");
    await page.getByRole("link", { name: "NudgeDiskFull" }).first().press("Enter");
    await page.waitForURL(/\/docs\/book\/runbook\.html#nudgediskfull$/);
    await page.getByRole("heading", { name: "NudgeDiskFull" }).waitFor();

    await page.getByRole("searchbox").fill("quagga xylophone");
    await page.getByRole("heading", { name: "Nothing has all of these words" }).waitFor();
    await page.getByRole("searchbox").press("Escape");
    await page.getByRole("heading", { name: "NudgeDiskFull" }).waitFor();
    assert.deepEqual(complaints, []);
  });

  await t.test("without scripts it is all there but the search", async () => {
    const context = await chromium.newContext({ javaScriptEnabled: false });
    const page = await context.newPage();
    await page.goto(`${server.base}/docs/book/`);
    await holds(async () => assert.equal(await page.getByRole("searchbox").count(), 0));
    await page.getByRole("navigation", { name: "Contents" }).getByRole("link", { name: "The runbook" }).click();
    await page.getByRole("heading", { name: "NudgeDiskFull" }).waitFor();
    await context.close();
  });
});
