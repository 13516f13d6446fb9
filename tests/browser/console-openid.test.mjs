// Signing in to the console with a real OpenID provider, which is another site for the browser.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import test from "node:test";
import { settled, tab } from "./console.mjs";
import { browser, holds, Server } from "./support.mjs";

const SECRET = "a-secret-of-this-test-and-no-other";

/** Starts the provider of `tests/oidc`; answers its issuer. */
async function provider(t, workspaceId) {
  const environment = { ...process.env, ISSUER_HOST: "localhost", WORKSPACE_ID: workspaceId, CLIENT_SECRET: SECRET };
  const options = { cwd: new URL("../oidc/", import.meta.url), env: environment, stdio: ["pipe", "pipe", "ignore"] };
  const started = spawn(process.execPath, ["provider.mjs"], options);
  t.after(() => started.kill());
  const [line] = await once(createInterface(started.stdout), "line");
  return JSON.parse(line).issuer;
}

/** Says at the provider who one is, and lets the console know. */
async function signIn(page, issuer, name) {
  await page.getByRole("link", { name: `Sign in with ${new URL(issuer).host}` }).click();
  await page.locator("input[name=login]").fill(name);
  await page.locator("input[name=password]").fill("x");
  await page.locator("button[type=submit]").click();
  await page.getByRole("button", { name: "Continue" }).click();
}

test("signing in with an OpenID provider", async (t) => {
  // The workspace is made with the first start, and known to the provider from then on.
  const server = await Server.start(t);
  const { appId, workspaceId } = server.access;
  const issuer = await provider(t, workspaceId);
  const file = join(server.data, "issuers.toml");
  writeFileSync(file, `[[auth.issuers]]
issuer = "${issuer}"
audience = "nudge"
clientId = "console"
clientSecret = "${SECRET}"
loginParameters = { resource = "urn:nudge:ES256" }
`);
  await server.kill();
  server.arguments = ["--config", file];
  await server.start();
  const chromium = await browser(t);
  const app = `${server.base}/console/#/apps/${appId}`;

  for (const role of ["viewer", "admin"]) {
    await t.test(`a ${role} comes back to where they were, and signs out`, async () => {
      const { page, complaints, context } = await tab(chromium);
      await page.goto(`${app}/surveys?status=active`);
      await page.getByRole("heading", { name: "Sign in" }).waitFor();
      await holds(async () => assert.equal(await page.getByLabel("Link or code").count(), 0, "nobody makes links here"));
      // Its pages ask for a font of another machine.
      await context.route(/googleapis/, (route) => route.abort());
      await signIn(page, issuer, role);
      await page.getByRole("heading", { name: "Surveys" }).waitFor();
      // Those of the provider are its own.
      complaints.length = 0;
      await holds(async () => assert.equal(page.url(), `${app}/surveys?status=active`));
      await settled(page);
      await holds(async () => assert.equal(await page.getByRole("link", { name: "New survey" }).count() > 0, role == "admin"));
      const cookies = await context.cookies(server.base);
      const session = cookies.find(({ name }) => name == "nudge");
      assert.deepEqual([session.httpOnly, session.sameSite], [true, "Strict"]);
      await page.reload();
      await page.getByRole("heading", { name: "Surveys" }).waitFor();

      await page.locator("summary").first().click();
      await page.getByRole("button", { name: "Sign out" }).click();
      await page.getByRole("heading", { name: "Sign in" }).waitFor();
      const answer = await page.request.get(`${server.base}/console/session`);
      assert.equal(answer.status(), 401);
      assert.deepEqual(complaints, []);
      await context.close();
    });
  }

  await t.test("whom the provider gives no token is told so", async () => {
    const { page, context } = await tab(chromium);
    await page.goto(`${server.base}/console/`);
    await page.getByRole("link", { name: /^Sign in with/ }).click();
    await page.getByRole("link", { name: /Cancel/ }).click();
    await page.getByRole("alert").getByText("The provider did not sign you in.").waitFor();
    await context.close();
  });
});
