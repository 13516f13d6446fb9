// One journey from end to end: somebody signs in by a link, makes a survey, tries it, activates it, meets it in the shop,
// answers it there, and reads the answer in the console.
import assert from "node:assert/strict";
import test from "node:test";
import { consoleOf, settled, tab } from "./console.mjs";
import { browser, holds, Server, until } from "./support.mjs";

test("a survey is made, met and read", async (t) => {
  const server = await Server.start(t);
  const chromium = await browser(t);
  const console = consoleOf(server);
  const { page, complaints, context } = await tab(chromium);

  await page.goto(console.link());
  await page.waitForURL(/\/start$/);
  const narrow = () => page.setViewportSize({ width: 360, height: 740 });
  const wide = () => page.setViewportSize({ width: 1280, height: 800 });
  // The menu of a narrow screen closes by Escape, which leads back to its button.
  await narrow();
  const menu = page.getByRole("button", { name: "Pages", exact: true });
  await menu.press("Enter");
  await page.getByRole("link", { name: "Surveys", exact: true }).focus();
  await page.keyboard.press("Escape");
  await menu.and(page.locator(":focus")).waitFor();
  assert.equal(await menu.getAttribute("aria-expanded"), "false");
  await wide();
  await page.getByRole("link", { name: "Surveys", exact: true }).click();
  await page.getByRole("link", { name: "New survey" }).first().click();
  await page.getByLabel("Name", { exact: true }).fill("After the cart");
  await page.getByLabel("Question", { exact: true }).first().fill("What do you think of our tea?");
  // What is missing is marked in its own tab, and said once.
  await page.getByRole("button", { name: "Make the survey" }).click();
  await page.getByRole("alert").getByText("see what is marked").waitFor();
  await page.getByLabel("Event", { exact: true }).and(page.locator(":focus")).waitFor();
  assert.equal(await page.getByRole("alert").getByText("/trigger").count(), 0);
  await page.getByRole("tab", { name: "Who and when" }).click();
  await page.getByLabel("Event", { exact: true }).fill("cart_updated");

  await page.getByRole("tab", { name: "Preview" }).click();
  const preview = page.getByRole("region", { name: "Preview" });
  await preview.getByRole("heading", { name: "What do you think of our tea?" }).waitFor();
  await preview.getByRole("radio", { name: "3" }).check({ force: true });
  await page.getByRole("log", { name: "What would be sent" }).waitFor();

  await page.getByRole("button", { name: "Make the survey" }).click();
  await page.getByRole("heading", { name: "After the cart" }).waitFor();
  await page.getByRole("button", { name: "Activate", exact: true }).click();
  await page.getByText("“After the cart” is active.").waitFor();
  const survey = (await server.api("GET", "/surveys")).find(({ name }) => name == "After the cart");
  assert.equal(survey.status, "active");
  // Where a list is wider than the screen, its rows are no higher for it.
  await page.goto(`${console.base}#/apps/${server.access.appId}/surveys`);
  await narrow();
  const id = page.getByRole("row", { name: /After the cart/ }).locator(".copy code");
  await holds(async () => assert.ok((await id.boundingBox()).height < 40));
  await wide();
  await holds(async () => assert.deepEqual((await server.api("GET", `/surveys/${survey.id}/attempts`)).items, [], "the preview has recorded nothing"));

  const shop = await context.newPage();
  shop.on("pageerror", (error) => complaints.push(String(error)));
  await shop.goto(`${server.base}/demo/`);
  await shop.getByLabel("Your name").fill("Bea");
  await shop.getByRole("button", { name: "Sign in" }).click();
  await shop.getByText("Bea has signed in.").waitFor();
  await shop.getByRole("button", { name: "Add Tea to cart" }).click();
  await shop.getByRole("heading", { name: "What do you think of our tea?" }).waitFor();
  await shop.getByRole("radio", { name: "9" }).check({ force: true });
  await shop.getByRole("button", { name: /Next|Submit|Send|Done|Finish/ }).click();

  await page.bringToFront();
  await page.goto(`${console.base}#/apps/${server.access.appId}/surveys/${survey.id}/results`);
  await settled(page);
  const score = page.getByRole("region", { name: "What do you think of our tea?" });
  await until("the answer is there", async () => {
    await page.getByRole("button", { name: "Reload" }).click();
    return (await score.innerText().catch(() => "")).includes("1 answer");
  }, 90);
  await holds(async () => assert.match(await score.innerText(), /NPS 100/));
  assert.deepEqual(complaints, []);
});
