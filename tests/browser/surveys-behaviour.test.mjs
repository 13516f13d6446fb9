// What the renderer does: what it shows when, what it asks its host, what it leaves the page.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { holds } from "./support.mjs";
import { answers, calls, focus, launch, offer, open, present, press, serve, tabTo } from "./surveys/harness.mjs";
import { instruction, message, question, survey } from "./surveys/payloads.mjs";

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

const heading = (tab, text) => tab.locator("nudge-ui h2", { hasText: text }).waitFor();
const error = (tab) => tab.locator("nudge-ui .error").textContent();
const acks = async (tab) => (await calls(tab, "ack")).map(([, , status, actionId]) => (actionId ? `${status} ${actionId}` : status));
const next = (tab) => tab.locator("nudge-ui button.primary").click();
const shown = (tab) => tab.locator("nudge-ui h2").allTextContents();
const outcome = (tab, { instructionId }) =>
  tab.waitForFunction((id) => window.outcomes[id], instructionId).then((handle) => handle.jsonValue());
const done = (tab) => tab.context().close();
const nps = (id, more) => question("nps", { id, title: `Question ${id}`, ...more });

test("what the server does not take is shown at its question, and sent again with what followed", async () => {
  const tab = await open(browser, site.url);
  await tab.evaluate(() => {
    window.latency = 150;
    window.refusals = { mail: { pointer: "/value", code: "invalid_format", detail: "an e-mail address" } };
  });
  const one = instruction(survey([question("short_text", { id: "mail", title: "Your mail", format: undefined }), nps("two")]));
  await present(tab, one, { asked: true });
  await tab.keyboard.type("ada@");
  await next(tab);
  await heading(tab, "Question two");
  await heading(tab, "Your mail");
  await holds(async () => assert.match(await error(tab), /not accepted.*an e-mail address/));
  const control = tab.locator("nudge-ui .text");
  await holds(async () => assert.equal(await control.inputValue(), "ada@", "what was typed is still there"));
  await holds(async () => assert.equal(await control.getAttribute("aria-invalid"), "true"));
  const described = (await control.getAttribute("aria-describedby")).split(" ");
  await holds(async () => assert.ok(described.includes(await tab.locator("nudge-ui .error").getAttribute("id"))));
  await holds(async () => assert.equal((await focus(tab)).label, "Your mail"));
  await tab.keyboard.type("example.com");
  await next(tab);
  await heading(tab, "Question two");
  await tab.locator("nudge-ui input").nth(9).check({ force: true });
  await next(tab);
  await heading(tab, "Thank you");
  await holds(async () => assert.deepEqual(await answers(tab), { mail: "ada@example.com", two: 9 }));
  assert.deepEqual(tab.faults, []);
  await done(tab);
});

test("what is missing or odd is said before the server is asked", async () => {
  const tab = await open(browser, site.url);
  const cases = [
    [question("nps"), async () => {}, /answer this question/i],
    [question("multiple_choice"), () => tab.locator("nudge-ui input").first().check(), /At least 2/],
    [question("short_text"), () => tab.keyboard.type("ada"), /e-mail address, such as/],
    [question("long_text"), () => tab.keyboard.type("x"), /At least 3 characters/],
    [question("number"), () => tab.keyboard.type("11"), /At most 10/],
    [question("number"), () => tab.keyboard.type("1.3"), /steps of 0.5/i],
    [question("number"), () => tab.keyboard.type("e"), /enter a number/i],
    [question("date"), () => tab.keyboard.type("0101"), /whole date/i],
    [question("consent"), async () => {}, /tick the box/i],
    [question("matrix"), () => tab.locator("nudge-ui input").first().check({ force: true }), /each row/i],
    [question("contact_info"), () => tab.keyboard.type("Ada"), /fill in “E-mail”/i],
    [question("single_choice"), () => tab.locator("nudge-ui input").nth(3).check(), /answer this question/i],
    [question("link"), async () => {}, /answer this question/i],
    [question("short_text", { validation: { message: "Your work mail, please." } }), () => tab.keyboard.type("x"), /Your work mail, please\./],
  ];
  for (const [one, act, text] of cases) {
    await present(tab, instruction(survey([one])), { asked: true });
    await act();
    await next(tab);
    await holds(async () => assert.match(await error(tab), text, one.type));
    await tab.waitForFunction((text) => document.querySelector("nudge-ui").shadowRoot.querySelector("[role=status]").textContent === text, await error(tab));
    await tab.evaluate(() => window.renderer.clear());
  }
  await holds(async () => assert.deepEqual(await calls(tab, "answer"), []));
  await done(tab);
});

test("a survey goes on where a closed tab left it, and nothing of it is lost", async () => {
  const tab = await open(browser, site.url);
  const one = instruction(survey([nps("one"), nps("two"), nps("three")]));
  await present(tab, one, { asked: true });
  await tab.locator("nudge-ui input").nth(3).check({ force: true });
  await next(tab);
  await heading(tab, "Question two");
  // The second answer is on its way when the tab closes.
  await tab.waitForFunction(() => window.calls.some(([name]) => name === "answer"));
  await tab.waitForFunction(() => JSON.parse(Object.values(localStorage)[0]).unsent === 0);
  await tab.evaluate(() => {
    window.latency = 60_000;
  });
  await tab.locator("nudge-ui input").nth(4).check({ force: true });
  await next(tab);
  await tab.reload();
  await tab.waitForSelector("html[data-ready]", { state: "attached" });
  await present(tab, one);
  await heading(tab, "Question three");
  await tab.waitForFunction(() => window.calls.some(([name]) => name === "answer"));
  await holds(async () => assert.deepEqual(await answers(tab), { two: 4 }, "what was not confirmed is sent again"));
  await holds(async () => assert.deepEqual(await calls(tab, "start"), [], "the attempt is the same"));
  await tab.locator("nudge-ui input").nth(5).check({ force: true });
  await next(tab);
  await heading(tab, "Thank you");
  await holds(async () => assert.equal(await tab.evaluate(() => localStorage.length), 0, "nothing stays behind"));
  await done(tab);
});

test("the end does not wait for a server that is away", async () => {
  const tab = await open(browser, site.url);
  await tab.evaluate(() => {
    window.offline = true;
  });
  await present(tab, instruction(survey([nps("one")])), { asked: true });
  await tab.locator("nudge-ui input").nth(3).check({ force: true });
  await next(tab);
  await heading(tab, "Thank you");
  await holds(async () => assert.equal(await tab.evaluate(() => localStorage.length), 1, "it is kept until the server has it"));
  await done(tab);
});

test("a modal keeps the focus, closes by Escape and gives the focus back", async () => {
  const tab = await open(browser, site.url);
  await tab.locator("#buy").focus();
  const one = instruction(survey([nps("one")], { settings: { presentation: "modal" } }));
  await present(tab, one);
  await holds(async () => assert.equal((await focus(tab)).type, "radio"));
  const seen = new Set();
  for (const key of [...Array(6).fill("Tab"), ...Array(6).fill("Shift+Tab")]) {
    await press(tab, key);
    const { tag, label } = await focus(tab);
    seen.add(`${tag} ${label}`);
  }
  assert.deepEqual([...seen].sort(), ["button Close", "button Send", "input 0"]);
  await press(tab, "Escape");
  assert.equal(await outcome(tab, one), "dismissed");
  await holds(async () => assert.equal((await focus(tab)).id, "buy"));
  await holds(async () => assert.deepEqual(await acks(tab), ["displayed", "dismissed"]));
  await holds(async () => assert.deepEqual(await calls(tab, "start"), [], "nothing was answered, and nothing begun"));
  await holds(async () => assert.deepEqual(await calls(tab, "dismiss"), []));
  await done(tab);
});

test("what can't be closed is not closed by keys, but at its end", async () => {
  const tab = await open(browser, site.url);
  const one = instruction(survey([nps("one")], { settings: { presentation: "modal", closeable: false } }));
  await present(tab, one);
  await holds(async () => assert.equal(await tab.locator("nudge-ui .close").count(), 0));
  await press(tab, "Escape", "Escape", "Escape");
  await holds(async () => assert.deepEqual(await shown(tab), ["Question one"]));
  await press(tab, "Space", "Enter");
  await heading(tab, "Thank you");
  await press(tab, "Escape");
  assert.equal(await outcome(tab, one), "completed");
  await done(tab);
});

test("a survey that is closed amid it is dismissed on the server", async () => {
  const tab = await open(browser, site.url);
  const one = instruction(survey([nps("one"), nps("two")]), { payload: { survey: survey([nps("one"), nps("two")]), attempt: { attemptId: "mine", expiresAt: "2036-01-01T00:00:00.000Z" } } });
  await present(tab, one, { asked: true });
  await press(tab, "Space", "Enter");
  await heading(tab, "Question two");
  await press(tab, "Escape");
  assert.equal(await outcome(tab, one), "dismissed");
  await tab.waitForFunction(() => window.calls.some(([name]) => name === "dismiss"));
  await holds(async () => assert.deepEqual(await calls(tab, "dismiss"), [["dismiss", "mine"]]));
  await holds(async () => assert.deepEqual(await calls(tab, "start"), [], "the instruction came with the attempt"));
  await done(tab);
});

test("branches lead by the answers, and back; what is optional may be left", async () => {
  const tab = await open(browser, site.url);
  const questions = [nps("one"), question("long_text", { id: "bad", title: "What went wrong?", required: false }), question("long_text", { id: "good", title: "What went well?", required: false })];
  const branches = [
    { id: "x", from: "one", when: { questionId: "one", operator: "nps_bucket", value: "promoter" }, to: { questionId: "good" } },
    { id: "y", from: "bad", when: null, to: { endScreenId: "sorry" } },
  ];
  const endScreens = [{ id: "great", title: "Great" }, { id: "sorry", title: "Sorry", body: "We will do better." }];
  await present(tab, instruction(survey(questions, { flow: { branches, endScreens, backNavigation: true, progressStyle: "steps" } })), { asked: true });
  await holds(async () => assert.equal(await tab.locator("nudge-ui .count").textContent(), "Question 1 of 2"));
  await tab.locator("nudge-ui input").nth(10).check({ force: true });
  await next(tab);
  await heading(tab, "What went well?");
  await tab.keyboard.type("All");
  await tab.locator("nudge-ui .back").click();
  await heading(tab, "Question one");
  await holds(async () => assert.equal(await tab.locator("nudge-ui input:checked").getAttribute("value"), "10", "the answer is still there"));
  await tab.locator("nudge-ui input").nth(1).check({ force: true });
  await next(tab);
  await heading(tab, "What went wrong?");
  await tab.locator("nudge-ui .skip").click();
  await heading(tab, "Sorry");
  await holds(async () => assert.match(await tab.locator("nudge-ui").evaluate((ui) => ui.shadowRoot.textContent), /We will do better/));
  await holds(async () => assert.deepEqual(await answers(tab), { one: 1, bad: null }));
  await done(tab);
});

test("only what is modal dims the page and keeps it from being used", async () => {
  const tab = await open(browser, site.url);
  for (const [presentation, dimmed] of [["popover", false], ["modal", true]]) {
    await present(tab, instruction(survey([nps("one")], { settings: { presentation } })));
    const backdrop = await tab.locator("nudge-ui .root").evaluate((root) => getComputedStyle(root, "::backdrop").backgroundColor);
    assert.equal(backdrop !== "rgba(0, 0, 0, 0)", dimmed, backdrop);
    const reached = await tab.locator("#buy").evaluate((buy) => {
      const { x, y } = buy.getBoundingClientRect();
      return document.elementFromPoint(x + 5, y + 5) === buy;
    });
    assert.equal(reached, !dimmed);
    await tab.evaluate(() => window.renderer.clear());
  }
  await done(tab);
});

test("a double click answers one question", async () => {
  const tab = await open(browser, site.url);
  const optional = ["one", "two", "three"].map((id) => nps(id, { required: false }));
  await present(tab, instruction(survey(optional)), { asked: true });
  await tab.locator("nudge-ui .skip").dblclick();
  await tab.waitForTimeout(100);
  await holds(async () => assert.deepEqual(await shown(tab), ["Question two (optional)"]));
  await tab.locator("nudge-ui button.primary").dblclick();
  await tab.waitForTimeout(100);
  await holds(async () => assert.deepEqual(await shown(tab), ["Question three (optional)"]));
  await holds(async () => assert.deepEqual(await answers(tab), { one: null, two: null }));
  await done(tab);
});

test("an Enter that is held answers one question", async () => {
  const tab = await open(browser, site.url);
  const texts = ["one", "two", "three"].map((id) => question("short_text", { id, title: `Question ${id}`, required: false, format: undefined }));
  const long = question("long_text", { id: "long", title: "Question long", required: false, minLength: undefined });
  await present(tab, instruction(survey([...texts, long])), { asked: true });
  await tab.keyboard.type("ada");
  for (let count = 0; count < 5; count++) await tab.keyboard.down("Enter");
  await tab.keyboard.up("Enter");
  await heading(tab, "Question two");
  await holds(async () => assert.deepEqual(await answers(tab), { one: "ada" }));
  for (const next of ["Question three", "Question long"]) {
    await tab.keyboard.press("Enter");
    await heading(tab, next);
  }
  for (let count = 0; count < 3; count++) await tab.keyboard.down("Enter");
  await tab.keyboard.up("Enter");
  await holds(async () => assert.equal(await tab.locator("nudge-ui textarea").inputValue(), "\n\n\n", "lines are the person's own"));
  await done(tab);
});

test("what can't be shown holds up nothing", async () => {
  const tab = await open(browser, site.url);
  await tab.evaluate(() => {
    window.body = document.body;
    document.body.remove();
  });
  const one = instruction(survey([nps("one")]));
  await offer(tab, one, { asked: true });
  assert.equal(await outcome(tab, one), "withdrawn");
  assert.equal((await calls(tab, "tell"))[0][2].code, "show_failed");
  await tab.evaluate(() => document.documentElement.append(window.body));
  await present(tab, instruction(survey([nps("two")])), { asked: true });
  await holds(async () => assert.deepEqual(await shown(tab), ["Question two"]));
  await done(tab);
});

test("one at a time, by priority, after its delay, as long as it is on offer", async () => {
  const tab = await open(browser, site.url);
  const low = instruction(survey([nps("low")]), { priority: 1 });
  const high = instruction(survey([nps("high")]), { priority: 9 });
  const late = instruction(survey([nps("late")], { settings: { delaySeconds: 1 } }), { priority: 99 });
  const first = instruction(survey([nps("first")]));
  await present(tab, first);
  for (const one of [low, high, late, low]) await offer(tab, one);
  await holds(async () => assert.deepEqual(await shown(tab), ["Question first"]));
  await tab.waitForTimeout(1_200);
  for (const name of ["late", "high", "low"]) {
    await tab.locator("nudge-ui .close").click();
    await heading(tab, `Question ${name}`);
    await holds(async () => assert.deepEqual(await shown(tab), [`Question ${name}`]));
  }
  await tab.evaluate((id) => window.renderer.withdraw(id), low.instructionId);
  await holds(async () => assert.equal(await tab.locator("nudge-ui").count(), 0));
  await tab.evaluate(() => {
    window.onOffer = false;
  });
  const gone = instruction(survey([nps("gone")]));
  await offer(tab, gone);
  assert.equal(await outcome(tab, gone), "withdrawn");
  const displayed = (await calls(tab, "ack")).filter(([, , status]) => status === "displayed").map(([, id]) => id);
  assert.deepEqual(displayed, [first, late, high, low].map(({ instructionId }) => instructionId));
  await done(tab);
});

test("a feedback button opens its survey as often as somebody likes", async () => {
  const tab = await open(browser, site.url);
  const one = instruction(survey([nps("one")], { settings: { presentation: "feedback_button", position: "bottom_left" } }), { kind: "feedback" });
  await present(tab, one);
  const button = tab.locator("nudge-ui .fab");
  await holds(async () => assert.equal(await button.getAttribute("aria-expanded"), "false"));
  const { x, y } = await button.boundingBox();
  assert.ok(x < 40 && y > tab.viewportSize().height - 90, `${x}, ${y}`);
  await holds(async () => assert.deepEqual(await acks(tab), [], "a button alone is not what was to be shown"));
  for (const round of [1, 2]) {
    await tabTo(tab, "Feedback");
    await press(tab, "Enter");
    await heading(tab, "Question one");
    await holds(async () => assert.equal(await button.getAttribute("aria-expanded"), "true"));
    await holds(async () => assert.equal((await focus(tab)).type, "radio"));
    await press(tab, "Space", "Enter");
    await heading(tab, "Thank you");
    await press(tab, "Escape");
    await holds(async () => assert.equal((await focus(tab)).label, "Feedback"));
    const started = await calls(tab, "start");
    assert.equal(started.length, round);
    await tab.locator("h1").click();
  }
  const ids = new Set((await calls(tab, "start")).map(([, , { clientAttemptId }]) => clientAttemptId));
  assert.equal(ids.size, 2, "each is an attempt of its own");
  await tab.evaluate((id) => window.renderer.withdraw(id), one.instructionId);
  await holds(async () => assert.equal(await tab.locator("nudge-ui").count(), 0));
  const once = instruction(survey([nps("one")], { settings: { presentation: "feedback_button", once: true } }), { kind: "feedback" });
  await present(tab, once);
  await button.click();
  await heading(tab, "Question one");
  await press(tab, "Space", "Enter");
  await heading(tab, "Thank you");
  await press(tab, "Escape");
  assert.equal(await outcome(tab, once), "completed");
  await holds(async () => assert.equal(await tab.locator("nudge-ui").count(), 0));
  await done(tab);
});

test("a feedback button goes once its survey is found to have ended", async () => {
  const tab = await open(browser, site.url);
  await tab.evaluate(() => {
    window.startRefusal = { status: 409, code: "survey_not_active", detail: "It is over." };
  });
  const over = instruction(survey([nps("one")], { settings: { presentation: "feedback_button" } }), { kind: "feedback" });
  await present(tab, over);
  await tab.locator("nudge-ui .fab").click();
  await heading(tab, "Question one");
  await press(tab, "Space", "Enter");
  await heading(tab, "This is no longer available.");
  await press(tab, "Escape");
  assert.equal(await outcome(tab, over), "discarded");
  await holds(async () => assert.equal(await tab.locator("nudge-ui").count(), 0));
  await done(tab);
});

test("messages tell of clicks, of being closed, and can't be closed unless they may", async () => {
  const tab = await open(browser, site.url);
  const openAction = { action: "deep_link", url: "shop://sale" };
  const buttons = [{ id: "go", label: "Go", style: "primary", openAction }, { id: "no", label: "No", style: "secondary", openAction: { action: "none" } }];
  const modal = message({ layout: "modal", buttons, dismissible: false });
  await present(tab, modal);
  await press(tab, "Escape");
  await holds(async () => assert.equal(await tab.locator("nudge-ui .close").count(), 0));
  await tabTo(tab, "Go");
  await press(tab, "Enter");
  assert.equal(await outcome(tab, modal), "completed");
  await holds(async () => assert.deepEqual(await acks(tab), ["displayed", "clicked go"]));
  await holds(async () => assert.deepEqual(await calls(tab, "open"), [["open", openAction]]));
  const banner = message({ layout: "banner", buttons });
  await present(tab, banner);
  await tab.locator("nudge-ui .close").click();
  assert.equal(await outcome(tab, banner), "dismissed");
  const bare = message({ layout: "fullscreen", buttons: [], dismissible: false });
  await present(tab, bare);
  await press(tab, "Escape");
  assert.equal(await outcome(tab, bare), "dismissed", "nobody is caught");
  const bad = message({ layout: "card", buttons: [{ id: "x", label: "X", openAction: { action: "deep_link", url: "javascript:alert(1)" } }], imageUrl: "javascript:alert(1)" });
  await present(tab, bad);
  await holds(async () => assert.equal(await tab.locator("nudge-ui img").count(), 0));
  await tab.locator("nudge-ui button", { hasText: "X" }).click();
  await holds(async () => assert.equal((await calls(tab, "open")).length, 1));
  await done(tab);
});

test("a survey without an instruction, and one within the page", async () => {
  const tab = await open(browser, site.url);
  const asked = survey([nps("asked")]);
  await tab.evaluate((one) => {
    window.survey = one;
    void window.renderer.startSurvey(one.id).then((outcome) => {
      window.outcomes.asked = outcome;
    });
  }, asked);
  await heading(tab, "Question asked");
  await tab.waitForFunction(() => document.activeElement?.localName === "nudge-ui");
  await press(tab, "Space", "Enter");
  await heading(tab, "Thank you");
  await holds(async () => assert.equal((await calls(tab, "start")).length, 1));
  await holds(async () => assert.deepEqual(await calls(tab, "ack"), [], "there is nothing to acknowledge"));
  await tab.locator("nudge-ui button.primary").click();
  const within = instruction(survey([nps("within")], { settings: { presentation: "inline" } }));
  await present(tab, within, { container: "#place" });
  await holds(async () => assert.equal(await tab.locator("#place nudge-ui").count(), 1));
  await tab.evaluate(() => window.renderer.clear());
  await tab.evaluate(() => {
    window.startRefusal = { status: 404, code: "not_found", detail: "There is no such survey." };
  });
  assert.equal(await tab.evaluate(() => window.renderer.startSurvey("x")), "discarded");
  await holds(async () => assert.equal((await calls(tab, "tell")).at(-1)[2].code, "not_found"));
  await done(tab);
});

test("what this version does not know is not shown, and the server is told", async () => {
  const tab = await open(browser, site.url);
  const later = instruction(survey([nps("one"), { id: "x", type: "hologram", title: "?", required: true }]));
  await offer(tab, later);
  assert.equal(await outcome(tab, later), "discarded");
  await holds(async () => assert.deepEqual(await acks(tab), ["discarded"]));
  assert.deepEqual(tab.faults, []);
  await done(tab);
});

test("a survey that is gone says so", async () => {
  const tab = await open(browser, site.url);
  await tab.evaluate(() => {
    window.startRefusal = { status: 409, code: "survey_not_active", detail: "The survey does not run." };
  });
  await present(tab, instruction(survey([nps("one"), nps("two")])), { asked: true });
  await press(tab, "Space", "Enter");
  await heading(tab, "This is no longer available.");
  await done(tab);
});

test("the page's styles, shortcuts and globals are its own", async () => {
  const look = (tab) =>
    tab.evaluate(() => {
      const { shadowRoot } = document.querySelector("nudge-ui");
      const names = ["color", "backgroundColor", "font", "display", "position", "opacity", "transform", "letterSpacing", "textTransform", "direction", "visibility", "pointerEvents", "width", "height", "borderRadius"];
      return [...shadowRoot.querySelectorAll("*")].map((element) => {
        const style = getComputedStyle(element);
        return [element.localName, ...names.map((name) => style[name])];
      });
    });
  for (const one of [survey([question("nps", { description: "x" })]), survey([question("single_choice")], { settings: { presentation: "modal" } })]) {
    const looks = [];
    for (const style of ["", "hostile"]) {
      const tab = await open(browser, site.url, { style });
      /** How the page looks, all of its elements and all that browsers know of them. */
      const pageLooks = () =>
        tab.evaluate(() =>
          [...document.querySelectorAll("html, body, main, main *")].flatMap((element) => {
            const style = getComputedStyle(element);
            const { x, y, width, height } = element.getBoundingClientRect();
            return [...[...style].map((name) => `${element.localName} ${name}: ${style.getPropertyValue(name)}`), `${element.localName} ${x} ${y} ${width} ${height}`];
          }),
        );
      const looked = await pageLooks();
      const before = await tab.evaluate(() => JSON.stringify([Object.keys(window), document.adoptedStyleSheets.length, document.head.innerHTML]));
      await tab.evaluate(() => {
        window.pressed = [];
        document.addEventListener("keydown", (event) => window.pressed.push(event.key));
      });
      await present(tab, instruction(one), { asked: true });
      looks.push(await look(tab));
      const looksNow = await pageLooks();
      assert.deepEqual(looksNow.filter((line, place) => line != looked[place]), [], "the page looks as before");
      await press(tab, "Space", "ArrowRight");
      await holds(async () => assert.deepEqual(await tab.evaluate(() => window.pressed), [], "keys are not the page's"));
      const now = await tab.evaluate(() => JSON.stringify([Object.keys(window).filter((name) => name !== "pressed"), document.adoptedStyleSheets.length, document.head.innerHTML]));
      assert.equal(now, before);
      const inline = await tab.evaluate(() => document.querySelector("nudge-ui").shadowRoot.querySelectorAll("[style], style").length);
      assert.equal(inline, 0);
      assert.deepEqual(tab.faults, [], "the policy is kept");
      await done(tab);
    }
    assert.deepEqual(looks[1], looks[0]);
  }
});

test("own words are in the person's language", async () => {
  const tab = await open(browser, site.url, { lang: "de-AT" });
  await present(tab, instruction(survey([nps("eins", { required: false })])), { asked: true });
  await holds(async () => assert.deepEqual(await tab.locator("nudge-ui .actions button").allTextContents(), ["Überspringen", "Senden"]));
  await holds(async () => assert.equal(await tab.locator("nudge-ui .root").getAttribute("lang"), "de"));
  await done(tab);
});

test("what is shown names its language, and our own words are in it", async () => {
  const tab = await open(browser, site.url, { lang: "de-AT" });
  const languages = () =>
    tab.evaluate(() => {
      const { shadowRoot } = document.querySelector("nudge-ui");
      /** The language of what is at a place, as browsers look for it. */
      const of = (selector) => shadowRoot.querySelector(selector)?.closest("[lang]").lang;
      const { lang, dir } = shadowRoot.querySelector(".root");
      return { lang, dir, title: of("h2"), text: of(".option span, .body"), close: of(".close"), send: of("[type=submit]"), words: shadowRoot.querySelector("[type=submit]")?.textContent };
    });
  const shows = async (what, expected) => {
    await present(tab, what, { asked: true });
    await holds(async () => assert.deepEqual(await languages(), expected));
    await tab.evaluate(() => window.renderer.clear());
  };
  const of = (locale, title) => instruction(survey([question("single_choice", { title })], { locale }));
  // It fell back to English: so do our words. One of a language that we have no words in has them in English.
  await shows(of("en", "How?"), { lang: "en", dir: "ltr", title: "en", text: "en", close: "en", send: "en", words: "Send" });
  await shows(of("fr_CA", "Comment ?"), { lang: "fr", dir: "ltr", title: "fr-CA", text: "fr-CA", close: "fr", send: "fr", words: "Envoyer" });
  await shows(of("it", "Come?"), { lang: "en", dir: "ltr", title: "it", text: "it", close: "en", send: "en", words: "Send" });
  // Its first letter is a brand's, and its language is written from right to left.
  await shows(of("fa", "Nudge؟"), { lang: "en", dir: "rtl", title: "fa", text: "fa", close: "en", send: "en", words: "Send" });
  await shows(of("ar", "كيف؟"), { lang: "ar", dir: "rtl", title: "ar", text: "ar", close: "ar", send: "ar", words: "إرسال" });
  // Without translations nobody says which language it is: as the page's, and our words are in the person's.
  await shows(of(undefined, "Wie?"), { lang: "de", dir: "ltr", title: "de-AT", text: "de-AT", close: "de", send: "de", words: "Senden" });
  await shows(message({ locale: "ar", title: "Nudge تخفيض", body: "اليوم" }), { lang: "ar", dir: "rtl", title: "ar", text: "ar", close: "ar", send: undefined, words: undefined });
  // What is told to those who don't see it is in its language, too; the end that is ours is in ours.
  await present(tab, instruction(survey([nps("uno")], { locale: "it", flow: { endScreens: [] } })), { asked: true });
  await press(tab, "Space", "Enter");
  await heading(tab, "Thank you!");
  await tab.locator("nudge-ui [role=status][lang=en]", { hasText: "Thank you!" }).waitFor({ state: "attached" });
  await holds(async () => assert.equal((await languages()).title, "en"));
  await done(tab);
});

test("whoever does not see it is told what happens", async () => {
  const tab = await open(browser, site.url);
  const told = (text) => tab.locator("nudge-ui [role=status]", { hasText: new RegExp(`^${text}$`) }).waitFor({ state: "attached" });
  await tab.locator("#buy").focus();
  await present(tab, instruction(survey([nps("one", { title: "How likely?" }), question("ranking", { id: "two" }), nps("three", { required: true })])));
  await told("How likely\\?");
  await holds(async () => assert.equal((await focus(tab)).id, "buy", "nobody is taken away from what they do"));
  await tab.locator("nudge-ui .tile").first().click();
  await next(tab);
  await told("Question 2 of 3");
  await tab.locator("nudge-ui .ranking button:not([aria-disabled=true])").first().click();
  await told(".+: place \\d of \\d");
  await next(tab);
  await told("Question 3 of 3");
  await next(tab);
  await told("Answer this question\\.");
  await tab.locator("nudge-ui .tile").first().click();
  await next(tab);
  await told("Thank you");
  await tab.locator("nudge-ui button.primary").click();
  await present(tab, message({ layout: "banner", title: "A sale", body: "All week long." }));
  await told("A sale All week long\\.");
  await done(tab);
});

test("what the page takes away holds up nothing", async () => {
  const tab = await open(browser, site.url);
  const card = message({ title: "First" });
  await offer(tab, card);
  await heading(tab, "First");
  await tab.evaluate(() => {
    const body = document.createElement("body");
    body.append(...["one", "two"].map((id) => Object.assign(document.createElement("div"), { id })));
    document.body.replaceWith(body);
  });
  await offer(tab, message({ title: "Second" }));
  await heading(tab, "Second");
  assert.equal(await outcome(tab, card), "withdrawn");
  await tab.evaluate(() => window.renderer.clear());
  const within = instruction(survey([nps("within")]));
  await present(tab, within, { container: "#one" });
  await tab.evaluate(() => document.querySelector("#one").remove());
  await present(tab, within, { container: "#two" });
  await holds(async () => assert.equal(await tab.locator("#two nudge-ui h2").count(), 1));
  await tab.evaluate(() => window.renderer.clear());
  const feedback = instruction(survey([nps("one")], { settings: { presentation: "feedback_button" } }), { kind: "feedback" });
  await present(tab, feedback);
  await tab.locator("nudge-ui .fab").click();
  await heading(tab, "Question one");
  await tab.evaluate(() => document.body.replaceChildren());
  await present(tab, feedback);
  await tab.locator("nudge-ui .fab").click();
  await heading(tab, "Question one");
  await done(tab);
});

test("what is not modal waits until a modal dialog of the page's is closed", async () => {
  const tab = await open(browser, site.url);
  const show = () =>
    tab.evaluate(() => {
      const dialog = document.createElement("dialog");
      dialog.textContent = "The page's own.";
      document.body.append(dialog);
      dialog.showModal();
    });
  for (const close of ["close", "remove"]) {
    await show();
    for (const one of [message({ layout: "card" }), message({ layout: "banner" })]) {
      await offer(tab, one, { asked: true });
      await tab.waitForTimeout(700);
      assert.equal(await tab.locator("nudge-ui").count(), 0);
      await tab.evaluate((id) => window.renderer.withdraw(id), one.instructionId);
    }
    const card = message({ title: close });
    await offer(tab, card);
    await tab.waitForTimeout(1500);
    const before = (await calls(tab, "ack")).filter(([, id]) => id === card.instructionId);
    assert.deepEqual(before, [], "nobody has seen it");
    await tab.evaluate((close) => document.querySelector("dialog[open]")[close](), close);
    await heading(tab, close);
    await tab.locator("nudge-ui .close").click();
    await holds(async () => {
      const all = (await calls(tab, "ack")).filter(([, id]) => id === card.instructionId);
      assert.deepEqual(all.map(([, , status]) => status), ["displayed", "dismissed"]);
    });
  }
  // What is modal itself lies above, and what is within the page where the page has it.
  await show();
  await present(tab, message({ layout: "modal", title: "Above" }));
  await tab.locator("nudge-ui .close").click();
  await present(tab, instruction(survey([nps("within")])), { container: "dialog[open]" });
  await heading(tab, "Question within");
  await done(tab);
});
