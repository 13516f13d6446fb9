// axe finds nothing, whatever is shown, however the person has set the browser.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { axe } from "./axe.mjs";
import { holds } from "./support.mjs";
import { launch, open, present, serve, settled } from "./surveys/harness.mjs";
import { QUESTIONS, instruction, message, question, survey } from "./surveys/payloads.mjs";

const WIDTHS = [320, 1280];

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

/** What axe finds in what is ours. */
async function found(tab, ofColours = false) {
  await settled(tab);
  const { violations, incomplete } = await axe(tab, { ofColours, selector: "nudge-ui", fewest: 3 });
  // What axe can't measure is no pass, but for symbols, which it never measures.
  const unclear = incomplete.flatMap(({ id, nodes }) =>
    nodes.filter(({ any }) => id === "color-contrast" && any[0]?.data?.messageKey !== "nonBmp").map((node) => ({ id, nodes: [node] })),
  );
  const told = (node) => `${node.html}: ${[...node.any, ...node.all, ...node.none].map(({ message }) => message)}`;
  return [...violations, ...unclear].flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${told(node)}`));
}

/** What is smaller than the 24 pixels of WCAG 2.5.8, and what sticks out of the window. */
const misfits = (tab) =>
  tab.evaluate(() => {
    const wrong = [];
    for (const { shadowRoot } of document.querySelectorAll("nudge-ui")) {
      const targets = shadowRoot.querySelectorAll("button, a, .tile, .option, .text");
      for (const target of targets) {
        const { width, height, left, right } = target.getBoundingClientRect();
        if (!width) continue;
        if (width < 24 || height < 24) wrong.push(`${width} × ${height}: ${target.outerHTML}`);
        if (left < 0 || right > innerWidth) wrong.push(`${left} to ${right}: ${target.outerHTML}`);
      }
      for (const box of shadowRoot.querySelectorAll(".root, .content")) {
        if (box.scrollWidth > box.clientWidth + 1) wrong.push(`scrolls sideways: ${box.className}`);
      }
    }
    return wrong;
  });

/** Looks at something in both colour schemes and at both widths. */
async function everywhere(tab, what, schemes = ["light", "dark"]) {
  for (const width of WIDTHS) {
    await tab.setViewportSize({ width, height: 800 });
    assert.deepEqual(await misfits(tab), [], `${what}, ${width}`);
    for (const colorScheme of schemes) {
      await tab.emulateMedia({ colorScheme });
      await holds(async () => assert.deepEqual(await found(tab, colorScheme == "dark"), [], `${what}, ${colorScheme}, ${width}`));
    }
  }
}

const clear = (tab) => tab.evaluate(() => window.renderer.clear());

/** Questions that people may leave, with an error below, and with an answer. */
const variants = (type) => [question(type), question(type, { required: false, title: "A much longer title, which goes on for more than a line?" })];

for (const presentation of ["popover", "modal"]) {
  test(`all types in a ${presentation}`, async () => {
    const tab = await open(browser, site.url);
    for (const type of Object.keys(QUESTIONS)) {
      const flow = { progressStyle: "bar", backNavigation: true };
      const one = instruction(survey([...variants(type), question("nps")], { settings: { presentation }, flow }));
      await present(tab, one, { asked: true });
      await everywhere(tab, `${type} in a ${presentation}`);
      await tab.locator("nudge-ui button.primary").click();
      if (await tab.locator("nudge-ui .error:not(:empty)").count()) {
        await holds(async () => assert.deepEqual(await found(tab), [], `${type} with an error`));
        await tab.keyboard.press("Space");
        await holds(async () => assert.deepEqual(await found(tab), [], `${type} with an answer`));
      }
      await clear(tab);
    }
    await tab.context().close();
  });
}

test("messages in every layout, the feedback button, an end screen", async () => {
  const tab = await open(browser, site.url);
  const buttons = [{ id: "go", label: "Go", openAction: { action: "url", url: "https://example.com" } }, { id: "no", label: "No", style: "secondary" }];
  for (const layout of ["banner", "modal", "card", "fullscreen"]) {
    await present(tab, message({ layout, buttons, imageUrl: "{origin}/picture.svg" }), { asked: true });
    await everywhere(tab, layout);
    await clear(tab);
    await present(tab, message({ layout, title: null, body: "No title." }), { asked: true });
    await everywhere(tab, layout);
    await clear(tab);
  }
  await present(tab, instruction(survey([question("nps")], { settings: { presentation: "feedback_button" } }), { kind: "feedback" }));
  await everywhere(tab, "feedback button");
  await clear(tab);
  const endScreens = [{ id: "end", title: "Thanks", body: "Come again.", button: { label: "Shop on", action: "url", url: "https://example.com" } }];
  await present(tab, instruction(survey([question("statement")], { flow: { endScreens } })), { asked: true });
  await tab.locator("nudge-ui button.primary").click();
  await tab.locator("nudge-ui h2", { hasText: "Thanks" }).waitFor();
  await everywhere(tab, "end screen");
  await tab.context().close();
});

test("themes of one's own", async () => {
  const tab = await open(browser, site.url);
  const theme = { background: "#fdf6e3", text: "#3b2f2f", primary: "#7a1f5c", onPrimary: "#ffffff", radius: 24, font: "serif" };
  const dark = { background: "#101820", text: "#f0e6d2", primary: "#ffb703", onPrimary: "#101820" };
  for (const one of [theme, { ...theme, dark }, { mode: "dark" }, { background: "#202020" }, { primary: "#ffee00", dark: { primary: "#331100" } }, { mode: "light", radius: 0, font: "mono" }, { ...theme, font: "inherit" }, { background: "red;}*{display:none", primary: 7, radius: "x", font: "no" }]) {
    await present(tab, instruction(survey([question("rating")], { theme: one })), { asked: true });
    await tab.locator("nudge-ui input").nth(4).check({ force: true });
    await everywhere(tab, JSON.stringify(one));
    await clear(tab);
  }
  await tab.context().close();
});

test("right to left, in forced colours, with reduced motion", async () => {
  const tab = await open(browser, site.url, { lang: "ar", dir: "rtl", context: { reducedMotion: "reduce", forcedColors: "active" } });
  for (const type of Object.keys(QUESTIONS)) {
    const arabic = question(type, { title: "ما رأيك؟", description: "أخبرنا برأيك." });
    await present(tab, instruction(survey([arabic, arabic], { flow: { progressStyle: "steps" } })), { asked: true });
    await holds(async () => assert.equal(await tab.locator("nudge-ui .root").evaluate((root) => getComputedStyle(root).direction), "rtl"));
    const [close, heading] = await Promise.all(["button.close", "h2"].map((one) => tab.locator(`nudge-ui ${one}`).boundingBox()));
    assert.ok(close.x < heading.x + heading.width / 2, "it is closed on the left");
    assert.equal(await tab.locator("nudge-ui .root").evaluate((root) => root.getAnimations().length), 0);
    await everywhere(tab, `${type} in Arabic`, ["light"]);
    await clear(tab);
  }
  await tab.context().close();
});

test("text of twice the size, and spacing as people set it", async () => {
  const tab = await open(browser, site.url);
  await tab.setViewportSize({ width: 640, height: 800 });
  for (const type of Object.keys(QUESTIONS)) {
    await present(tab, instruction(survey([question(type)])), { asked: true });
    await tab.evaluate(() => {
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(".root{font-size:32px!important}*{line-height:1.5!important;letter-spacing:.12em!important;word-spacing:.16em!important}p{margin-bottom:2em!important}");
      document.querySelector("nudge-ui").shadowRoot.adoptedStyleSheets.push(sheet);
    });
    assert.deepEqual(await misfits(tab), [], type);
    await clear(tab);
  }
  await tab.context().close();
});

test("all of a long message can be seen on a small screen, and long words break", async () => {
  const tab = await open(browser, site.url, { context: { viewport: { width: 320, height: 480 } } });
  await present(tab, message({ layout: "fullscreen", title: "At the top", body: "All week long. ".repeat(64).slice(0, 950) }));
  const title = tab.locator("nudge-ui h2");
  await title.evaluate((title) => title.scrollIntoView());
  const { y, height } = await title.boundingBox();
  assert.ok(y >= 0 && y + height <= 480, `${y} to ${y + height}`);
  await clear(tab);
  const word = "Donaudampfschifffahrtsgesellschaftskapitaen".repeat(2);
  await present(tab, message({ buttons: [{ id: "go", label: word }] }));
  assert.deepEqual(await misfits(tab), [], "a button");
  await clear(tab);
  await present(tab, instruction(survey([question("nps", { lowLabel: word, highLabel: word })])), { asked: true });
  assert.deepEqual(await misfits(tab), [], "the ends of a scale");
  await clear(tab);
  await present(tab, instruction(survey([question("link", { buttonLabel: word })])), { asked: true });
  assert.deepEqual(await misfits(tab), [], "a link");
  await tab.context().close();
});
