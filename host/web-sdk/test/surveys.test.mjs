// Surveys' ways and answers, by the vectors that the server's code writes
// (`host/campaigns/src/surveys/flow/tests/vectors.rs`), and what needs no browser beside.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { root, source } from "./source.mjs";

const { flows, answers } = JSON.parse(await readFile(new URL("test/flow-vectors.json", root), "utf8"));
const { ahead, Attempt, check, directionOf, LANGUAGES, languageOf, positionOf, textsOf, themeRules, wayOf } = await source(
  ...["answers", "attempt", "flow", "texts", "theme"].map((name) => `surveys/${name}`),
);

test("ways end where the server's do", () => {
  let walked = 0;
  for (const { flow, walks } of flows) {
    for (const { answers, last, stops, end, next } of walks) {
      const way = wayOf(flow, new Map(Object.entries(answers)));
      const where = JSON.stringify({ flow, answers, last });
      assert.deepEqual(way.stops.map(({ question, fate }) => [question.id, fate]), stops, where);
      assert.deepEqual(way.end, end, where);
      assert.equal(positionOf(way, last ?? undefined)?.id ?? null, next, where);
      for (const [place, { question }] of way.stops.entries()) {
        assert.ok(ahead(flow, question.id) >= way.stops.length - 1 - place, "progress goes forward");
      }
      walked++;
    }
  }
  assert.ok(walked >= 500, `${walked} walks`);
  const text = JSON.stringify(flows);
  for (const operator of "equals not_equals one_of includes_any includes_all includes_none gt gte lt lte between contains starts_with ends_with answered skipped nps_bucket".split(" ")) {
    assert.ok(text.includes(`"operator":"${operator}"`), operator);
  }
  assert.equal(new Set(flows.flatMap(({ flow }) => flow.questions.map(({ type }) => type))).size, 18);
});

test("answers are refused where the server refuses them", () => {
  for (const { question, value, refused } of answers) {
    const problem = check(question, value);
    assert.equal(!!problem, refused !== null, JSON.stringify({ question, value, refused, problem }));
  }
});

test("every language has every text", () => {
  const count = LANGUAGES.en.split("|").length;
  const places = (text) => (text.match(/\{\d\}/g) ?? []).sort().join();
  for (const [language, all] of Object.entries(LANGUAGES)) {
    const list = all.split("|");
    assert.equal(list.length, count, language);
    list.forEach((text, place) => {
      assert.ok(text, `${language} ${place}`);
      assert.equal(places(text), places(LANGUAGES.en.split("|")[place]), `${language}: ${text}`);
    });
  }
  assert.equal(textsOf("en")("feedback"), "Feedback", "there are as many texts as names");
  assert.deepEqual(["de-AT", "de_DE", "xx", ""].map(languageOf), ["de", "de", "en", "en"]);
  assert.equal(textsOf("en")("moved", "A {1}", 2, 3), "A {1}: place 2 of 3");
  assert.deepEqual(["Hallo", "1. مرحبا", "שלום", "…", "日本"].map(directionOf), ["ltr", "rtl", "rtl", "ltr", "ltr"]);
});

test("nothing of a theme gets into a style sheet that is not of its form", () => {
  const rules = themeRules({ background: "red;}*{display:none", text: "#12345", primary: "#ABCDEF", radius: "1;}", font: "x", mode: "light", dark: [] });
  assert.ok(!rules.includes("display") && !rules.includes("#12345;") && !rules.includes("1;}"), rules);
  assert.ok(rules.includes("--primary:#ABCDEF"));
  const dark = themeRules({ background: "#000000", primary: "#ffee00", mode: "light" });
  assert.ok(dark.includes("--text:#ffffff") && dark.includes("--onPrimary:#000000"), "a colour has a partner that is read on it");
  assert.ok(themeRules({ radius: 99 }).includes("--radius:24px"));
  assert.ok(themeRules(null).includes("prefers-color-scheme"));
});

/** A server that keeps answers, and takes those that the way leads by; `begin` lets it answer. */
function taking(flow) {
  const taken = new Map();
  const requests = [];
  let begin;
  const begun = new Promise((done) => (begin = done));
  const drafts = [];
  const told = [];
  const host = {
    newId: () => "own",
    now: Date.now,
    tell: (_, { questionId, value }) => told.push([questionId, value]),
    keep: (_, draft) => drafts.push(draft),
    start: () => begun.then(() => ({ attemptId: "attempt" })),
    answer: async (_, answers) => {
      requests.push(answers.map(({ questionId }) => questionId));
      const after = new Map([...taken, ...answers.map(({ questionId, value }) => [questionId, value])]);
      const { stops } = wayOf(flow, after);
      const off = answers.findIndex(({ questionId }) => !stops.some(({ question }) => question.id === questionId));
      if (off >= 0) throw { status: 422, code: "invalid_answer", errors: [{ pointer: `/answers/${off}/questionId`, code: "not_reached", detail: "" }] };
      for (const [id, value] of after) taken.set(id, value);
    },
    complete: async () => requests.push("complete"),
  };
  return { begin, drafts, host, requests, taken, told };
}

test("what the way no longer leads by is not sent", async () => {
  const questions = ["q1", "a1", "a2", "b"].map((id) => ({ id, type: "nps", title: id, required: true }));
  const branches = [
    { id: "1", from: "q1", when: { questionId: "q1", operator: "lte", value: 5 }, to: { questionId: "b" } },
    { id: "2", from: "a2", to: { endScreenId: "end" } },
  ];
  const flow = { questions, branches, backNavigation: true };
  const subject = { instructionId: "i", campaignId: "c", kind: "survey", payload: { survey: { id: "c", flow } } };
  const refused = [];
  const listener = { refused: (one) => refused.push(one), gone: (one) => refused.push(one) };

  // Nothing is answered for until all is given, and, another time, the first answer is.
  for (const early of [false, true]) {
    const { begin, drafts, host, requests, taken, told } = taking(flow);
    const attempt = new Attempt(host, subject, listener, null);
    attempt.give("q1", 10);
    if (early) begin();
    await new Promise(setImmediate);
    attempt.give("a1", 3);
    attempt.give("q1", 1);
    attempt.give("b", 4);
    begin();
    assert.equal(await attempt.complete(), true);
    assert.deepEqual(refused, []);
    assert.equal(taken.get("q1"), 1);
    assert.equal(taken.get("b"), 4);
    assert.equal(requests.at(-1), "complete");
    assert.deepEqual(told.map(([id]) => id), early ? ["q1", "a1", "q1", "b"] : ["q1", "q1", "b"]);
    for (const [id] of told) assert.ok(taken.has(id), `${id} is told as answered, and was sent`);
    assert.equal(drafts.at(-1), null);
  }

  // A draft that was left so; the rest keeps its order, and what the server has stays.
  const { begin, drafts, host, requests, taken } = taking(flow);
  begin();
  taken.set("q1", 10).set("a1", 3);
  const answer = (questionId, value) => ({ questionId, value, answeredAt: "2027-01-15T08:00:00Z" });
  const answers = [answer("a1", 3), answer("a2", 2), answer("q1", 1), answer("b", 4)];
  const draft = { instruction: subject, clientAttemptId: "own", attemptId: "attempt", unsent: 3, at: 0, answers };
  const attempt = new Attempt(host, subject, listener, draft);
  assert.equal(await attempt.send(), true);
  assert.deepEqual(requests, [["q1", "b"]]);
  assert.deepEqual(refused, []);
  assert.deepEqual([...attempt.answers.keys()], ["a1", "q1", "b"]);
  assert.equal(drafts.at(-1).unsent, 0);
});

/** Runs a test in a page that has the DOM of a feedback button. `made`: the elements; `watches`: what looks at the page. */
async function inPage(run) {
  const made = [];
  const watches = new Set();
  class Element {
    listeners = {};
    constructor() {
      made.push(this);
    }
    get isConnected() {
      return this == globalThis.document.body || !!this.parent?.isConnected;
    }
    append(...children) {
      for (const child of children) if (child instanceof Element) child.parent = this;
    }
    remove() {
      this.parent = undefined;
    }
    attachShadow() {
      return new Element();
    }
    addEventListener(name, listener) {
      this.listeners[name] = listener;
    }
    setAttribute() {}
    toggleAttribute() {}
  }
  const stubs = {
    CSSStyleSheet: class {
      replaceSync() {}
    },
    MutationObserver: class {
      constructor(changed) {
        this.changed = changed;
      }
      observe() {
        watches.add(this.changed);
      }
      disconnect() {
        watches.delete(this.changed);
      }
    },
    addEventListener() {},
    navigator: {},
    document: { body: new Element(), documentElement: new Element(), createElement: () => new Element(), querySelector: () => null },
  };
  for (const [name, value] of Object.entries(stubs)) Object.defineProperty(globalThis, name, { value, configurable: true });
  try {
    await run({ Element, made, watches });
  } finally {
    for (const name of Object.keys(stubs)) delete globalThis[name];
  }
}

test("a feedback button moves to the body that takes the place of the page's", () =>
  inPage(async ({ Element, watches }) => {
    const { showFeedback } = await source("surveys/feedback");
    const { element, remove } = showFeedback("en", {}, () => {});
    assert.ok(element.isConnected);
    for (let visits = 0; visits < 2; visits++) {
      document.body = new Element();
      assert.ok(!element.isConnected);
      for (const changed of watches) changed();
      assert.ok(element.isConnected);
    }
    remove();
    assert.ok(!element.isConnected);
    assert.equal(watches.size, 0);
  }));

test("a feedback button that is offered for longer is the same one, and opens its survey until then", () =>
  inPage(async ({ made }) => {
    const { createRenderer } = await source("surveys/index");
    const [asked, acks] = [[], []];
    const host = {
      locale: "en",
      onOffer: ({ expiresAt }) => (asked.push(expiresAt), false),
      draft: async () => null,
      acknowledge: (_, status) => acks.push(status),
    };
    const { present } = createRenderer(host);
    const offer = (expiresAt) => ({ instructionId: "i", kind: "feedback", campaignVersion: 1, expiresAt, payload: { survey: {} } });
    const over = present(offer("2027-01-08T00:00:00.000Z"));
    await present(offer("2027-01-12T00:00:00.000Z"));
    const [button, ...others] = made.filter(({ listeners }) => listeners.click);
    assert.deepEqual([others, acks, asked], [[], [], []]);
    button.listeners.click();
    await over;
    assert.deepEqual([...new Set(asked)], ["2027-01-12T00:00:00.000Z"]);
    assert.deepEqual(acks, []);
  }));
