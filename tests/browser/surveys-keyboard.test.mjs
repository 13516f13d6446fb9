// Every type of question is answered by keyboard alone.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { holds } from "./support.mjs";
import { answers, calls, focus, launch, open, present, press, serve, tabTo } from "./surveys/harness.mjs";
import { QUESTIONS, instruction, question, survey } from "./surveys/payloads.mjs";
import { WAYS } from "./surveys/ways.mjs";

let site;
let browser;
before(async () => {
  site = await serve();
  browser = await launch();
});
after(async () => {
  await browser.close();
  site.close();
});

for (const presentation of ["popover", "modal"]) {
  test(`all types are answered by keyboard alone in a ${presentation}`, async () => {
    const tab = await open(browser, site.url, { context: { locale: "en-US" } });
    await tab.locator("#buy").focus();
    const all = Object.keys(QUESTIONS);
    assert.equal(all.length, 18);
    const one = instruction(survey(all.map((type) => question(type)), { settings: { presentation } }));
    await present(tab, one);
    if (presentation === "popover") {
      await holds(async () => assert.equal((await focus(tab)).id, "buy", "what nobody asked for takes no focus"));
      await press(tab, "Tab");
      await holds(async () => assert.equal((await focus(tab)).label, "Close"));
      await press(tab, "Tab");
    }
    for (const type of all) {
      await tab.locator("nudge-ui h2", { hasText: `About ${type.replace("_", " ")}?` }).waitFor();
      for (const step of WAYS[type][0]) {
        if (typeof step === "string") await tab.keyboard.press(step);
        else await step(tab);
      }
    }
    await tab.locator("nudge-ui h2", { hasText: "Thank you" }).waitFor();
    const wanted = Object.fromEntries(all.map((type) => [type, WAYS[type][1]]));
    await holds(async () => assert.deepEqual(await answers(tab), wanted));
    await holds(async () => assert.deepEqual((await calls(tab, "open")).map(([, action]) => action), [{ action: "url", url: "https://example.com/terms" }]));
    await holds(async () => assert.equal((await calls(tab, "start")).length, 1));
    await holds(async () => assert.equal((await calls(tab, "complete")).length, 1));
    // The headline of the end has the focus; the next stop is its button.
    await tabTo(tab, "Close");
    await press(tab, "Enter");
    await holds(async () => assert.equal((await focus(tab)).id, "buy", "the focus is back"));
    const acks = (await calls(tab, "ack")).map(([, , status]) => status);
    assert.deepEqual(acks, ["displayed", "completed"]);
    await holds(async () => assert.equal(await tab.locator("nudge-ui").count(), 0));
    assert.deepEqual(tab.faults, []);
    await tab.context().close();
  });
}
