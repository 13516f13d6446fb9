// Surveys and segments in the console: composed, tried, activated, answered and read, with what the server has afterwards.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { accessible, consoleOf, settled, signedIn, tab } from "./console.mjs";
import { browser, holds, Server, until } from "./support.mjs";

const TYPES = ["nps", "rating", "csat", "ces", "thumbs", "single_choice", "multiple_choice", "picture_choice", "ranking", "matrix", "short_text", "long_text", "number", "date", "consent", "contact_info", "statement", "link"];

/** Asks an SDK route of a server, as a page does. */
const sdk = (server, token) => async (path, body) => {
  const headers = { authorization: `Bearer ${server.access.writeKey}`, "content-type": "application/json", ...(token ? { "x-service-subject-token": token } : {}) };
  const response = await fetch(`${server.base}/v1/sdk${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  const text = await response.text();
  assert.ok(response.ok, `${path}: ${text}`);
  return text ? JSON.parse(text).data : undefined;
};

/** Somebody answers a survey to its end. */
async function answer(server, surveyId, anonymousId, answers) {
  const { subjectToken } = await sdk(server)("/session", { anonymousId });
  const ask = sdk(server, subjectToken);
  const { attemptId } = await ask(`/surveys/${surveyId}/attempts`, { anonymousId });
  for (const [questionId, value] of Object.entries(answers)) await ask(`/attempts/${attemptId}/answers`, { anonymousId, answers: [{ questionId, value }] });
  await ask(`/attempts/${attemptId}/complete`, { anonymousId });
}

/** Events of somebody, by the app's backend. */
async function events(server, userId, ...names) {
  const headers = { authorization: `Bearer ${server.access.serverKey}`, "content-type": "application/json" };
  const body = JSON.stringify({ userId, events: names.map((name) => ({ name, eventId: crypto.randomUUID(), timestamp: new Date().toISOString() })) });
  const response = await fetch(`${server.base}/v1/sdk/ingest`, { method: "POST", headers, body });
  assert.equal(response.status, 200, await response.text());
}

test("surveys and segments in the console", async (t) => {
  const server = await Server.start(t);
  const chromium = await browser(t);
  const open = async (t, path, options) => {
    const console = consoleOf(server, options);
    const opened = await tab(chromium);
    await signedIn(opened.page, console, server, path);
    return { ...opened, console, tabOf: (name) => opened.page.getByRole("tab", { name, exact: true }).click() };
  };

  await t.test("a segment is made by conditions whose people are counted as one writes", async (t) => {
    for (let person = 0; person < 6; person++) await events(server, `buyer-${person}`, person < 4 ? "order_placed" : "cart_updated");
    const { page, complaints } = await open(t, "/segments");
    await page.getByRole("heading", { name: "There is no segment yet" }).waitFor();
    await accessible(page, "no segments");
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.getByRole("link", { name: "New segment" }).click();
    await page.getByLabel("Name", { exact: true }).fill("Buyers");
    await page.getByText("6 of 6 people").waitFor();
    const included = page.getByRole("group", { name: "Include who meets" });
    await included.getByRole("button", { name: "Add a condition" }).click();
    await page.getByLabel("The person").selectOption("event");
    await page.getByText("These conditions can't be counted yet.").waitFor();
    await page.getByLabel("Event", { exact: true }).fill("order_placed");
    await page.getByText("4 of 6 people").waitFor();
    await page.getByText("Some of them").click();
    await page.getByRole("link", { name: "buyer-0" }).waitFor();
    await accessible(page, "a new segment");
    await page.reload();
    await page.getByText("This is your draft of an earlier visit.").waitFor();
    await page.getByRole("button", { name: "Make the segment" }).click();
    await page.getByRole("heading", { name: "Buyers" }).waitFor();
    await holds(async () => assert.deepEqual(await page.evaluate(() => Object.keys(localStorage).filter((key) => key.includes("draft"))), []));
    const [segment] = (await server.api("GET", "/segments")).items;
    assert.deepEqual(segment.audience, { include: { all: [{ kind: "event", eventName: "order_placed", count: { operator: "gte", n: 1 }, withinDays: 30 }] } });

    await page.getByRole("tab", { name: "Members" }).click();
    await until("the members are there", async () => {
      if ((await page.getByRole("rowheader").count()) == 4) return true;
      await page.reload();
      await settled(page);
      return false;
    });
    await accessible(page, "members");
    await page.getByRole("tab", { name: "Size over time" }).click();
    await page.getByText("Numbers").click();
    await page.getByRole("cell", { name: "4", exact: true }).waitFor();
    await accessible(page, "size over time");

    const user = await server.survey({ name: "For buyers", status: "draft", audience: { include: { kind: "segment", segmentId: segment.id, in: true } } });
    await page.reload();
    await page.getByRole("tab", { name: "Used by 1" }).click();
    await page.getByRole("link", { name: "For buyers" }).waitFor();
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByText(/take it out of these first/).waitFor();
    await server.api("DELETE", `/surveys/${user.id}`);
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByRole("heading", { name: "There is no segment yet" }).waitFor();
    assert.deepEqual(complaints, []);
  });

  await t.test("values that have commas or lines stay whole while others are added to them", async (t) => {
    const filter = { property: "city", type: "string", operator: "in", value: ["Washington, DC", 'Paris "Centre"', "Two\nlines"] };
    const { id } = await server.api("POST", "/segments", { name: "Cities", audience: { include: { all: [{ kind: "user_property", filter }] } } });
    const { page, complaints } = await open(t, `/segments/${id}`);
    const values = page.getByLabel("Values");
    await holds(async () => assert.equal(await values.inputValue(), '"Washington, DC", "Paris ""Centre""", Twolines'));
    await values.press("End");
    await values.pressSequentially(', Rome, "Portland, ME"');
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved.").waitFor();
    const { audience } = await server.api("GET", `/segments/${id}`);
    assert.deepEqual(audience.include.all[0].filter.value, [...filter.value, "Rome", "Portland, ME"]);
    await server.api("DELETE", `/segments/${id}`);
    assert.deepEqual(complaints, []);
  });

  await t.test("a segment that somebody else changed meanwhile shows both, as wholes", async (t) => {
    const leaf = (name) => ({ kind: "event", eventName: name, withinDays: 5 });
    const { id } = await server.api("POST", "/segments", { name: "Shared", audience: { include: { all: [leaf("a")] } } });
    const { page } = await open(t, `/segments/${id}`);
    await page.getByRole("button", { name: "Add a condition" }).first().click();
    await page.getByRole("button", { name: "Add a condition" }).first().waitFor();
    await page.getByLabel("How they count").selectOption("any");
    await page.getByLabel("Property", { exact: true }).fill("plan");
    await page.getByLabel("Value", { exact: true }).fill("gold");
    await server.api("PATCH", `/segments/${id}`, { audience: { include: { all: [leaf("b")] } } });
    await page.getByRole("button", { name: "Save" }).click();
    const dialog = page.getByRole("dialog", { name: "Somebody else changed this" });
    await dialog.getByRole("button", { name: "Put mine over it" }).click();
    await page.getByText("Saved.").waitFor();
    const { audience } = await server.api("GET", `/segments/${id}`);
    assert.deepEqual(audience, { include: { any: [leaf("a"), { kind: "user_property", filter: { property: "plan", type: "string", operator: "equals", value: "gold" } }] } });

    // Whoever takes what somebody else has saved has saved nothing.
    const saved = page.getByText("Saved.", { exact: true });
    await saved.waitFor({ state: "detached" });
    await page.getByLabel("What it is for").fill("Mine");
    await server.api("PATCH", `/segments/${id}`, { description: "Theirs" });
    await page.getByRole("button", { name: "Save" }).click();
    await dialog.getByRole("button", { name: "Take theirs" }).click();
    await holds(async () => assert.equal(await page.getByLabel("What it is for").inputValue(), "Theirs"));
    await dialog.waitFor({ state: "detached" });
    assert.equal(await saved.count(), 0);

    await server.api("POST", "/segments", { name: "Another", audience: {} });
    await page.goto(page.url().replace(/segments\/.*/, "segments"));
    await page.getByRole("button", { name: /^Name/ }).click();
    await until("sorted by name", async () => (await page.locator("tbody th a").allInnerTexts()).join() == "Another,Shared");
    await accessible(page, "segments");
  });

  await t.test("questions of all types are composed, moved, doubled and deleted, and their errors stand where they are", async (t) => {
    const { page, complaints, tabOf } = await open(t, "/surveys");
    await page.getByRole("link", { name: "New survey" }).first().click();
    await page.getByLabel("Name", { exact: true }).fill("All types");
    for (const [before, type] of TYPES.slice(1).entries()) {
      await page.getByRole("button", { name: "Add a question" }).click();
      await page.getByLabel("Type", { exact: true }).nth(before + 1).selectOption(type);
    }
    await accessible(page, "questions");
    await page.setViewportSize({ width: 1280, height: 800 });
    await tabOf("Who and when");
    await page.getByLabel("Event", { exact: true }).fill("order_placed");
    await page.getByRole("button", { name: "Make the survey" }).click();
    // A picture has no address yet: the page goes to the question that says so.
    const pictures = page.getByLabel("Address of the picture");
    await pictures.first().waitFor();
    await until("the error is at the field", async () => (await pictures.first().getAttribute("aria-invalid")) == "true");
    for (const picture of await pictures.all()) await picture.fill("https://example.com/a.png");
    await page.reload();
    await page.getByText("This is your draft of an earlier visit.").waitFor();
    await page.getByRole("button", { name: "Make the survey" }).click();
    await page.getByRole("heading", { name: "All types" }).waitFor();
    await holds(async () => assert.deepEqual(await page.evaluate(() => Object.keys(localStorage).filter((key) => key.includes("draft"))), []));
    const [made] = await server.api("GET", "/surveys");
    assert.equal(made.status, "draft");
    assert.deepEqual(made.flow.questions.map(({ type }) => type), TYPES);

    await page.getByRole("button", { name: "Move question 2 up" }).press("Enter");
    await until("the focus goes on with the question", () => page.evaluate(() => document.activeElement?.getAttribute("aria-label") == "Move question 1 down"));
    await page.getByRole("button", { name: "Duplicate question 1", exact: true }).click();
    await page.getByRole("button", { name: "Delete question 18" }).click();
    await page.getByLabel("It must be answered").first().check();
    await page.getByLabel("At the low end").first().fill("Poor");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Saved.").waitFor();
    const saved = async () => (await server.api("GET", `/surveys/${made.id}`)).flow;
    const flow = await saved();
    assert.deepEqual(flow.questions.map(({ type }) => type).slice(0, 3), ["rating", "rating", "nps"]);
    const ids = new Set([...made.flow.questions, ...flow.questions].map(({ id }) => id));
    assert.deepEqual([ids.size, flow.questions[2].id], [19, "q1"]);
    assert.equal(flow.questions.length, 18);
    assert.deepEqual([flow.questions[0].required, flow.questions[0].lowLabel], [true, "Poor"]);
    assert.ok(!flow.questions.some(({ type }) => type == "statement"));
    // Answers of what was deleted are not those of what comes after it.
    await page.getByRole("button", { name: "Delete question 18" }).click();
    await page.getByRole("button", { name: "Add a question" }).click();
    await page.getByRole("button", { name: "Save", exact: true }).click();
    const last = await until("it is saved", async () => (await saved()).questions.find(({ type }, index) => index == 17 && type == "single_choice"));
    assert.ok(!ids.has(last.id), last.id);
    // The button can't be pressed any longer, and the focus is in the page.
    await page.locator("#main:focus").waitFor();
    assert.deepEqual(complaints, []);
  });

  const flow = {
    questions: [
      { id: "score", type: "nps", title: "How likely?", required: true },
      { id: "why", type: "single_choice", title: "Why?", required: false, options: [{ id: "price", label: "Price" }, { id: "speed", label: "Speed" }] },
      { id: "words", type: "long_text", title: "Tell us more", required: false },
    ],
    branches: [],
    endScreens: [{ id: "thanks", title: "Thank you!" }, { id: "sorry", title: "We are sorry" }],
    progressStyle: "bar",
    backNavigation: true,
  };

  await t.test("branches are drawn, reach and look are saved, and too little contrast is said before it is refused", async (t) => {
    const survey = await server.survey({ name: "Branched", status: "draft", flow });
    const { page, complaints, tabOf } = await open(t, `/surveys/${survey.id}?tab=ways`);
    await page.getByRole("button", { name: "Add a branch" }).click();
    await page.getByText("Nothing leads to “Why?”.").waitFor();
    await page.getByRole("button", { name: "Add a condition" }).click();
    await page.getByLabel("Its answer").selectOption("nps_bucket");
    await page.getByLabel("Go to").selectOption("screen:sorry");
    await page.getByText("Nothing leads to").waitFor({ state: "detached" });
    await page.getByText("In words").click();
    await page.getByText("If How likely? is a detractor: We are sorry").waitFor();
    await accessible(page, "branches");
    await page.setViewportSize({ width: 1280, height: 800 });
    // Another id goes wherever the old one stood.
    await tabOf("Questions");
    await page.getByText("More", { exact: true }).first().click();
    await page.getByLabel("Id", { exact: true }).first().fill("nps");

    await tabOf("Who and when");
    await page.getByLabel("How often it counts").selectOption("nth");
    await page.getByLabel("Wait before it fires", { exact: true }).fill("2");
    await page.getByRole("group", { name: "Include who meets" }).getByRole("button", { name: "Add a condition" }).click();
    await page.getByLabel("The person").selectOption("platform");
    await page.getByLabel("One of").fill("ios, web");
    await page.getByLabel("Share of them").fill("50");
    await page.getByLabel("monday").check();
    await page.getByLabel("Quiet hours").check();
    await page.getByLabel("At most so often a person").fill("2");
    await page.getByLabel("Priority").fill("7");
    await accessible(page, "who and when");
    await page.setViewportSize({ width: 1280, height: 800 });

    await tabOf("Look");
    await page.getByLabel("It comes as").selectOption("modal");
    await page.getByLabel("Background", { exact: true }).fill("#ffffff");
    await page.getByLabel("Text", { exact: true }).fill("#777777");
    await page.getByText("4.47:1").waitFor();
    await accessible(page, "look");
    await page.setViewportSize({ width: 1280, height: 800 });
    await tabOf("Questions");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText(/has a contrast of 4.47:1/).first().waitFor();
    await page.getByLabel("Text", { exact: true }).fill("#1a1a1a");
    await page.getByText("enough contrast").waitFor();
    await page.getByRole("button", { name: "Save and activate" }).click();
    await page.getByText("“Branched” is active.").waitFor();
    const saved = await server.api("GET", `/surveys/${survey.id}`);
    assert.deepEqual(saved.flow.branches, [{ id: saved.flow.branches[0].id, from: "nps", when: { all: [{ questionId: "nps", operator: "nps_bucket", value: "detractor" }] }, to: { endScreenId: "sorry" } }]);
    assert.deepEqual(saved.trigger, { kind: "event", eventName: "order_placed", delaySeconds: 120, occurrence: { mode: "nth", n: 2 } });
    assert.deepEqual(saved.audience, { include: { all: [{ kind: "platform", in: ["ios", "web"] }] }, samplePercent: 50 });
    assert.deepEqual(saved.schedule, { daysOfWeek: ["monday"], quietHours: { from: "22:00", to: "07:00", onQuiet: "defer" } });
    assert.deepEqual(saved.frequencyCap, { perSubject: { max: 2, windowDays: 30 } });
    assert.deepEqual([saved.theme, saved.settings, saved.priority, saved.status], [{ background: "#ffffff", text: "#1a1a1a" }, { presentation: "modal" }, 7, "active"]);
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByText("“Branched” is paused.").waitFor();
    await holds(async () => assert.equal((await server.api("GET", `/surveys/${survey.id}`)).status, "paused"));
    assert.deepEqual(complaints, []);
  });

  await t.test("an id that is typed is nobody else's on the way, and goes wherever the old one stood", async (t) => {
    const questions = Array.from({ length: 10 }, (_, index) => ({ id: `q${index + 1}`, type: "thumbs", title: `Question ${index + 1}`, required: false }));
    const branches = [{ id: "b1", from: "q2", when: { questionId: "q1", operator: "equals", value: "up" }, to: { questionId: "q10" } }];
    const translations = { de: { "questions/q1/title": "Frage 1", "questions/q10/title": "Frage 10" } };
    const survey = await server.survey({ name: "Ten", status: "draft", flow: { ...flow, questions, branches }, localization: { defaultLocale: "en", translations } });
    const { page, complaints } = await open(t, `/surveys/${survey.id}`);
    await page.getByText("More", { exact: true }).last().click();
    const id = page.getByLabel("Id", { exact: true }).last();
    const taken = page.getByText("It is taken.");
    await id.press("End");
    for (let count = 0; count < 3; count++) await id.press("Backspace");
    await page.keyboard.type("q1");
    await taken.waitFor();
    await page.keyboard.press("Tab");
    await holds(async () => assert.equal(await page.getByRole("button", { name: "Save", exact: true }).isDisabled(), true, "nothing is renamed"));
    await id.press("End");
    for (let count = 0; count < 2; count++) await id.press("Backspace");
    await page.keyboard.type("price");
    await taken.waitFor({ state: "detached" });
    await page.keyboard.press("Tab");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Saved.").waitFor();
    const saved = await server.api("GET", `/surveys/${survey.id}`);
    assert.deepEqual(saved.flow.questions.map(({ id }) => id), [...questions.slice(0, 9).map(({ id }) => id), "price"]);
    assert.deepEqual(saved.flow.branches, [{ ...branches[0], to: { questionId: "price" } }]);
    assert.deepEqual(saved.localization.translations, { de: { "questions/q1/title": "Frage 1", "questions/price/title": "Frage 10" } });

    // So does that of an option.
    const when = { questionId: "q1", operator: "equals", value: "a" };
    await server.api("PATCH", `/surveys/${survey.id}`, {
      flow: { questions: [{ id: "q1", type: "single_choice", title: "Which?", options: [{ id: "a", label: "A" }, { id: "b", label: "B" }] }, ...saved.flow.questions.slice(1)], branches: [{ ...branches[0], when, to: { questionId: "q3" } }] },
      localization: { translations: { de: { "questions/q1/options/a/label": "Ah" } } },
    });
    await page.reload();
    await page.getByLabel("Id", { exact: true }).first().fill("first");
    await page.keyboard.press("Tab");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    const after = await until("it is saved", async () => {
      const found = await server.api("GET", `/surveys/${survey.id}`);
      return found.flow.questions[0].options[0].id == "first" && found;
    });
    assert.equal(after.flow.branches[0].when.value, "first");
    assert.equal(after.localization.translations.de["questions/q1/options/first/label"], "Ah");
    assert.deepEqual(complaints, []);
  });

  await t.test("a change from nothing stays one, and a number that is emptied stays empty while it is typed", async (t) => {
    const trigger = { kind: "property_changed", key: "plan", from: "free", to: "pro", occurrence: { mode: "nth", n: 2 } };
    const frequencyCap = { perSubject: { max: 3, windowDays: "lifetime" } };
    const survey = await server.survey({ name: "Changed", status: "draft", flow, trigger, frequencyCap });
    const { page, complaints } = await open(t, `/surveys/${survey.id}?tab=reach`);
    const n = page.getByLabel("n", { exact: true });
    await n.press("End");
    await n.press("Backspace");
    await holds(async () => assert.equal(await n.inputValue(), ""));
    await n.press("Tab");
    await holds(async () => assert.equal(await n.inputValue(), "1", "what stands for no number"));
    await n.press("End");
    await n.press("Backspace");
    await page.keyboard.type("5");
    const most = page.getByLabel("At most so often a person");
    await most.press("End");
    await most.press("Backspace");
    await page.keyboard.type("4");
    await page.getByLabel("From", { exact: true }).first().selectOption("nothing");
    const read = () => server.api("GET", `/surveys/${survey.id}`);
    const save = async () => {
      const { version } = await read();
      const button = page.getByRole("button", { name: "Save", exact: true });
      await button.click();
      const saved = await until("it is saved", async () => {
        const saved = await read();
        return saved.version > version && saved;
      });
      // The page knows of it some time after the server does.
      await holds(async () => assert.ok(await button.isDisabled()));
      return saved;
    };
    const saved = await save();
    assert.deepEqual(saved.trigger, { ...trigger, from: null, occurrence: { mode: "nth", n: 5 } });
    assert.deepEqual(saved.frequencyCap, { perSubject: { max: 4, windowDays: "lifetime" } });
    await page.getByLabel("From", { exact: true }).first().selectOption("anything");
    await page.getByLabel("To", { exact: true }).first().selectOption("nothing");
    const { from: _, ...rest } = saved.trigger;
    assert.deepEqual((await save()).trigger, { ...rest, to: null });
    // A trigger of another kind becomes one of this at once.
    await server.api("PATCH", `/surveys/${survey.id}`, { trigger: null });
    await page.reload();
    await settled(page);
    await page.getByLabel("It waits for").selectOption("property_changed");
    await page.getByLabel("Property of the person").pressSequentially("plan");
    await page.getByLabel("From", { exact: true }).first().selectOption("nothing");
    assert.deepEqual((await save()).trigger, { kind: "property_changed", key: "plan", occurrence: { mode: "every" }, from: null });
    assert.deepEqual(complaints, []);
  });

  await t.test("a survey is translated beside its source, and tried in the SDK's own renderer without a record", async (t) => {
    const survey = await server.survey({ name: "Tried", mode: "link_only", flow });
    const { page, complaints, tabOf } = await open(t, `/surveys/${survey.id}?tab=languages`);
    const sent = [];
    page.on("request", (request) => request.method() != "GET" && sent.push(`${request.method()} ${new URL(request.url()).pathname}`));
    await page.getByLabel("Another language").fill("ar");
    await page.getByLabel("Another language").press("Enter");
    await page.getByText("7 of 7 are missing").waitFor();
    assert.deepEqual(sent, [], "Enter adds the language, and saves nothing");
    await page.getByLabel("questions/score/title in ar").fill("ما مدى احتمال ذلك؟");
    await page.getByText("6 of 7 are missing").waitFor();
    await accessible(page, "languages");
    await page.setViewportSize({ width: 1280, height: 800 });

    await tabOf("Preview");
    const preview = page.getByRole("region", { name: "Preview" });
    // It is shown in the language that is being translated into.
    await preview.getByRole("heading", { name: "ما مدى احتمال ذلك؟" }).waitFor();
    await holds(async () => assert.equal(await preview.locator("nudge-ui .root").getAttribute("dir"), "rtl"));
    await accessible(page, "preview");
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.getByLabel("Language").selectOption("en");
    await preview.getByRole("heading", { name: "How likely?" }).waitFor();
    await holds(async () => assert.equal(await preview.locator("nudge-ui .root").getAttribute("dir"), "ltr"));
    await page.getByLabel("From right to left").check();
    await until("mirrored", async () => (await preview.locator("nudge-ui .root").getAttribute("dir").catch(() => "")) == "rtl");
    await page.getByLabel("From right to left").uncheck();
    await page.getByLabel("Width").selectOption("desktop");
    await preview.getByRole("heading", { name: "How likely?" }).waitFor();
    await preview.getByRole("radio", { name: "9" }).check({ force: true });
    await preview.getByRole("button", { name: "Next" }).click();
    await preview.getByRole("heading", { name: "Why?" }).waitFor();
    await page.getByRole("log", { name: "What would be sent" }).getByText("score: 9").waitFor();
    await page.getByRole("button", { name: "Show it over this page" }).click();
    await page.getByRole("dialog", { name: "How likely?" }).waitFor();
    await page.getByRole("button", { name: "Take it away" }).click();
    await page.getByRole("dialog", { name: "How likely?" }).waitFor({ state: "detached" });
    assert.deepEqual(sent, []);
    await holds(async () => assert.deepEqual((await server.api("GET", `/surveys/${survey.id}/attempts`)).items, []));

    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("Saved.").waitFor();
    await holds(async () => assert.deepEqual((await server.api("GET", `/surveys/${survey.id}`)).localization, { defaultLocale: "en", translations: { ar: { "questions/score/title": "ما مدى احتمال ذلك؟" } } }));
    assert.deepEqual(complaints, []);
  });

  await t.test("results are a funnel and a chart for each question, of all or of those who gave an answer, and CSV", async (t) => {
    const survey = await server.survey({ name: "Answered", mode: "link_only", flow });
    const { page, complaints } = await open(t, `/surveys/${survey.id}/results`);
    await page.getByRole("heading", { name: "There is no answer yet" }).waitFor();
    await answer(server, survey.id, "one", { score: 9, why: { optionId: "speed" }, words: "=fast" });
    await answer(server, survey.id, "two", { score: 10, why: { optionId: "speed" }, words: null });
    await answer(server, survey.id, "three", { score: 2, why: { optionId: "price" }, words: "dear" });
    const score = page.getByRole("region", { name: "How likely?" });
    await until("the results are there", async () => {
      await page.getByRole("button", { name: "Reload" }).click();
      return (await score.innerText().catch(() => "")).includes("3 answers");
    });
    await holds(async () => assert.match(await score.innerText(), /NPS 33/));
    await page.getByRole("region", { name: "Tell us more" }).getByText("dear").waitFor();
    for (const summary of await page.locator(".numbers summary").all()) await summary.click();
    await page.getByText("Where they left").first().click();
    await accessible(page, "results");
    await page.setViewportSize({ width: 1280, height: 800 });

    await page.getByLabel("Only who answered").selectOption("why");
    await page.getByLabel("with", { exact: true }).selectOption('"speed"');
    await page.getByText("2 attempts answered “Speed”. All 3 attempts were looked through.").waitFor();
    await holds(async () => assert.match(await score.innerText(), /2 answers[^]*NPS 100/));
    await page.reload();
    await page.getByText("2 attempts answered “Speed”.").waitFor();

    // A day is typed by keyboard: its field stays while the results change.
    await page.getByLabel("From", { exact: true }).focus();
    await page.keyboard.type("01022024", { delay: 400 });
    await page.waitForURL(/from=2024-01-02/);
    await holds(async () => assert.equal(await page.getByLabel("From", { exact: true }).inputValue(), "2024-01-02"));
    await page.getByText("2 attempts answered “Speed”.").waitFor();

    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "All answers as CSV" }).click()]);
    const rows = readFileSync(await download.path(), "utf8").trim().split("\r\n");
    assert.equal(rows.length, 9, rows.join("\n"));
    assert.ok(rows.some((row) => row.includes("'=fast")), rows.join("\n"));

    await page.getByRole("tab", { name: "Answers" }).click();
    await page.getByText("Speed").first().waitFor();
    const time = page.getByRole("table", { name: "Attempts" }).locator("time").first();
    await holds(async () => assert.doesNotMatch(await time.innerText(), /UTC$/));
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.locator(".menu summary").click();
    await page.getByLabel("Times").selectOption("UTC");
    await until("times are those of UTC", async () => /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$/.test(await time.innerText()));
    await page.reload();
    await until("they stay so", async () => /UTC$/.test(await time.innerText()));
    await accessible(page, "answers");
    await page.getByRole("tab", { name: "Recipients" }).click();
    await settled(page);
    await accessible(page, "recipients");
    const why = await page.goto(page.url().replace(/\/results.*/, "")).then(() => page.getByRole("main").getByRole("link", { name: "Why?" }).getAttribute("href"));
    assert.equal(why, `#/apps/${server.access.appId}/why?campaign=${survey.id}`);
    assert.deepEqual(complaints, []);
  });

  await t.test("a survey is composed, saved and activated by keyboard alone", async (t) => {
    const { page } = await open(t, "/surveys");
    // Nothing is focused but by the keys that people have.
    const name = (element) => element?.labels?.[0]?.innerText ?? element?.getAttribute("aria-label") ?? element?.innerText;
    const reach = async (wanted) => {
      const passed = [];
      while (passed.length < 200) {
        await page.keyboard.press("Tab");
        const reached = await page.evaluate(`(${name})(document.activeElement)?.trim()`);
        if (reached == wanted) return;
        passed.push(reached);
      }
      assert.fail(`Tab does not lead to “${wanted}”, but to ${passed.join(", ")}`);
    };
    await page.evaluate(() => document.activeElement.blur());
    await reach("New survey");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "New survey" }).waitFor();
    // The tabs are one stop; arrows lead from one to the next.
    await reach("Questions");
    await reach("Name");
    await page.keyboard.type("By keys");
    while ((await page.evaluate("document.activeElement.getAttribute('role')")) != "tab") await page.keyboard.press("Shift+Tab");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    await page.getByRole("tab", { name: "Who and when", selected: true }).waitFor();
    await reach("Event");
    await page.keyboard.type("order_placed");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "By keys" }).waitFor();
    await reach("Activate");
    await page.keyboard.press("Enter");
    await page.getByText("“By keys” is active.").waitFor();
    const [made] = await server.api("GET", "/surveys");
    assert.deepEqual([made.name, made.status, made.trigger.eventName], ["By keys", "active", "order_placed"]);
  });

  await t.test("JSON goes in and out, a copy is a draft of its own, and what JSON has nobody loses", async (t) => {
    const survey = await server.survey({ name: "Whole", status: "draft", flow, theme: { mascot: { any: ["thing"] } }, audience: { include: { all: [{ kind: "platform", in: ["web"] }], any: [{ kind: "country", in: ["AT"] }] } } });
    const { page, tabOf } = await open(t, `/surveys/${survey.id}?tab=json`);
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save as a file" }).click()]);
    const text = readFileSync(await download.path(), "utf8");
    assert.equal(JSON.parse(text).theme.mascot.any[0], "thing");
    await page.goto(page.url().replace(/\/surveys\/.*/, `/surveys/new?from=${survey.id}`));
    await holds(async () => assert.equal(await page.getByLabel("Name", { exact: true }).inputValue(), "Whole (copy)"));
    await tabOf("JSON");
    await page.getByLabel("Read a file").setInputFiles({ name: "survey.json", mimeType: "application/json", buffer: Buffer.from(text.replace('"Whole"', '"Brought"')) });
    await page.getByText("“survey.json” was read. It is not saved yet.").waitFor();
    await page.getByRole("button", { name: "Make the survey" }).click();
    await page.getByRole("heading", { name: "Brought" }).waitFor();
    const [made] = await server.api("GET", "/surveys");
    const { id, version, createdAt, updatedAt, name, ...rest } = made;
    assert.notEqual(id, survey.id);
    const { id: _, version: __, createdAt: ___, updatedAt: ____, name: _____, ...source } = survey;
    assert.deepEqual(rest, source);
    await accessible(page, "JSON");
  });

  await t.test("a text that is no JSON is not saved, Enter renames what it saves, and a link waits for nothing", async (t) => {
    const survey = await server.survey({ name: "Careful", status: "draft", mode: "triggered", flow });
    const { page, tabOf } = await open(t, `/surveys/${survey.id}?tab=reach`);
    const saved = () => server.api("GET", `/surveys/${survey.id}`);
    const save = page.getByRole("button", { name: "Save", exact: true });
    const waits = page.getByLabel("It waits for");
    await waits.selectOption("plugin");
    await page.getByLabel("Its configuration").fill('{"n": ');
    for (const button of [save, page.getByRole("button", { name: "Save and activate" })]) {
      await button.click();
      await page.getByRole("alert").getByText("A field is no JSON.").first().waitFor();
    }
    assert.equal((await saved()).version, survey.version);
    await waits.selectOption("manual");
    await page.getByLabel("It finds its people").selectOption("link_only");
    await waits.selectOption("");
    await holds(async () => assert.equal(await waits.count(), 0));
    await tabOf("Questions");
    await page.getByText("More", { exact: true }).first().click();
    const id = page.getByLabel("Id", { exact: true }).first();
    await id.fill("renamed");
    await id.press("Enter");
    await until("it is saved", async () => (await saved()).version > survey.version);
    const { flow: kept, mode } = await saved();
    assert.deepEqual([kept.questions[0].id, mode], ["renamed", "link_only"]);
  });

  await t.test("a viewer tries a survey and reads results, and sees no button that would be refused", async (t) => {
    const survey = await server.survey({ name: "Read", mode: "link_only", flow });
    const segment = await server.api("POST", "/segments", { name: "Read", audience: { include: { all: [{ kind: "platform", in: ["web"] }] } } });
    const { page, complaints } = await open(t, `/surveys/${survey.id}`, { role: "viewer" });
    await page.getByRole("region", { name: "Preview" }).getByRole("heading", { name: "How likely?" }).waitFor();
    for (const path of [`/surveys/${survey.id}`, `/segments/${segment.id}`, "/segments", "/surveys/new", `/surveys/${survey.id}/results`]) {
      await page.goto(page.url().replace(/#.*/, `#/apps/${server.access.appId}${path}`));
      await settled(page);
      await holds(async () => assert.equal(await page.getByRole("button", { name: /^(Save$|Make|Activate|Pause|End|Archive|Delete)/ }).count(), 0, path));
      await holds(async () => assert.equal(await page.getByRole("link", { name: /^(New|Duplicate)/ }).count(), 0, path));
    }
    assert.deepEqual(complaints, []);
  });
});
