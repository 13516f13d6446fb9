// What needs no browser: changes as merge patches, addresses, formats.
import assert from "node:assert/strict";
import test from "node:test";

// The router reads the address when it is loaded.
Object.assign(globalThis, { location: { hash: "#/apps/a/surveys?status=active&cursor=c" }, addEventListener: () => {} });
const { address, ApiError, difference, send } = await import("../app/src/lib/api.js");
const { listen } = await import("../app/src/lib/events.js");
const { link, match, route, useTable } = await import("../app/src/lib/router.js");
process.env.TZ = "Pacific/Honolulu";
const { ago, bytes, copied, count, everyDay, shortId, utcDay } = await import("../app/src/lib/format.js");
const { joined, localOf, split } = await import("../app/src/ui/fields.js");
const { checkJson } = await import("../app/src/ui/form.js");
const { parse } = await import("../app/src/ui/json.js");
const { place } = await import("../app/src/pages/find.js");
const { fitting } = await import("../app/src/pages/message/kinds.js");
const { newQuestion, renamed } = await import("../app/src/pages/survey/model.js");
const { reportOf } = await import("../app/src/pages/survey/report.js");

test("a change is a merge patch", () => {
  const before = { name: "a", tags: [1, 2], theme: { mode: "dark", radius: 4 }, description: "x" };
  assert.deepEqual(difference(before, { name: "b", tags: [1], theme: { mode: "light", radius: 4 } }), { name: "b", tags: [1], theme: { mode: "light" }, description: null });
  assert.deepEqual(difference(before, structuredClone(before)), {});
  assert.deepEqual(difference({ theme: 1 }, { theme: { a: { b: 1 } }, tags: [{ c: null }] }), { theme: { a: { b: 1 } }, tags: [{ c: null }] });
});

test("a patch says in words of its own that a property had no value", () => {
  const trigger = { kind: "property_changed", key: "plan", from: null };
  assert.deepEqual(difference({}, { trigger }), { trigger: { kind: "property_changed", key: "plan", fromMissing: true } });
  assert.deepEqual(difference({ trigger }, { trigger: { ...trigger, key: "tier", to: null } }), { trigger: { key: "tier", toMissing: true } });
  assert.deepEqual(difference({ trigger: { ...trigger, from: "free" } }, { trigger }), { trigger: { fromMissing: true } });
  assert.deepEqual(difference({ trigger }, { trigger: { kind: "property_changed", key: "plan" } }), { trigger: { from: null } });
  assert.deepEqual(difference({ schedule: { from: 1 } }, { schedule: { from: null } }), { schedule: { from: null } });
});

test("a form says what to do about a text that is no JSON", () => {
  const form = (found) => ({ querySelector: () => found });
  assert.throws(() => checkJson(form({})), /Correct what is marked at it, then save again\.$/);
  assert.throws(() => checkJson(form(null), { texts: new Map([["/config", {}]]) }), /Correct it there, or discard the changes\.$/);
  checkJson(form(null), { texts: new Map() });
});

test("addresses name what is given, and are read as they were made", () => {
  assert.equal(address("/v1/apps", { q: "a b", cursor: undefined, limit: 5 }), "/v1/apps?q=a+b&limit=5");
  const made = link("/apps/:appId/users/:id", { appId: "a", id: "x/y?z" }, { tab: "", q: "ü&=" });
  assert.equal(made, "#/apps/a/users/x%2Fy%3Fz?q=%C3%BC%26%3D");
  assert.deepEqual(match("/apps/:appId/users/:id", "/apps/a/users/x%2Fy%3Fz"), { appId: "a", id: "x/y?z" });
  assert.equal(match("/apps/:appId/users/:id", "/apps/a/users/"), undefined);
  const page = { path: "/apps/:appId/surveys", title: "Surveys", load: async () => ({ default: null }) };
  useTable([page]);
  assert.deepEqual({ ...route.value }, { path: "/apps/a/surveys", page, params: { appId: "a" }, query: { status: "active", cursor: "c" } });
});

test("a refusal tells its code, its fields, its request and when to come back", async () => {
  const problem = { code: "rate_limited", detail: "Too many.", errors: [{ pointer: "/name", code: "x", detail: "y" }] };
  globalThis.fetch = async () => new Response(JSON.stringify(problem), { status: 429, headers: { "retry-after": "7", "x-request-id": "r1" } });
  await assert.rejects(send("GET", "/v1/apps"), (error) => {
    assert.ok(error instanceof ApiError);
    assert.deepEqual([error.status, error.code, error.message, error.retryAfter, error.requestId, error.errors], [429, "rate_limited", "Too many.", 7, "r1", problem.errors]);
    return true;
  });
  globalThis.fetch = async () => { throw new TypeError("failed"); };
  await assert.rejects(send("GET", "/v1/apps"), { code: "unreachable" });
});

test("a stream's messages are whole, whichever characters they have", async () => {
  const text = "a\u2028b\u2029c\u0085d";
  const message = `id: 1\nevent: event\ndata: ${JSON.stringify({ text })}\n\n`;
  globalThis.fetch = async () => new Response(message, { headers: { "content-type": "text/event-stream" } });
  const data = await new Promise((done) => {
    const { close } = listen("/v1/stream", {}, { message: (_, data) => (close(), done(data)), state: (state, error) => state == "waiting" && (close(), done(error)) });
  });
  assert.deepEqual(data, { text });
});

test("a stream that is interrupted before its first message goes on from where it began", async () => {
  const begun = "retry: 1000\nid: 7\n\n: heartbeat\nid: 8\n\n: comment\n\n";
  globalThis.fetch = async () => new Response(begun, { headers: { "content-type": "text/event-stream" } });
  const told = [];
  const last = await new Promise((done) => {
    const { close } = listen("/v1/stream", {}, { message: (event) => told.push(event), state: (state) => state == "waiting" && done(close()) });
  });
  assert.deepEqual([last, told], ["8", []]);
});

test("a person is asked for by an id that browsers leave in a path", () => {
  const asked = (anonymousIds, externalId) => {
    const { path, query } = place({ anonymousId: anonymousIds[0] ?? null, anonymousIds, externalId });
    return `${path.split("/users/")[1]} ${query.idKind}`;
  };
  assert.equal(asked(["..", ".", "a/b"], "ada"), "a%2Fb anonymousId");
  assert.equal(asked(["...", "b"], "ada"), "... anonymousId");
  assert.equal(asked([".."], "ada"), "ada externalId");
  assert.equal(asked([], "ada"), "ada externalId");
});

test("an instant is the local time that was typed, also while the year is", () => {
  const before = process.env.TZ;
  // Until 1893 it was an hour, five minutes and 21 seconds before UTC there.
  process.env.TZ = "Europe/Vienna";
  for (const year of ["0002", "0020", "0202", "2026"]) {
    const typed = `${year}-03-29T10:05`;
    assert.equal(localOf(new Date(typed).toISOString()), typed);
  }
  process.env.TZ = before;
  assert.equal(localOf(undefined), "");
  assert.equal(localOf("soon"), "");
});

test("words with commas between them are read as they were written, whatever they have", () => {
  const all = [["Washington, DC", "Paris"], ['5" pipe', '"quoted"', '"a" b', '"'], [" a ", "", ","], ['a","b', 'x""', '",'], []];
  for (const words of all) assert.deepEqual(split(joined(words)), words);
  assert.equal(joined(["AT", "New York"]), "AT, New York");
  assert.equal(joined(["Washington, DC", 'a "b"']), '"Washington, DC", "a ""b"""');
  // What people type, whole or not.
  assert.deepEqual(split(" AT,DE , ,New York,"), ["AT", "DE", "New York"]);
  assert.deepEqual(split('Paris, "Washington, D'), ["Paris", "Washington, D"]);
  assert.deepEqual(split('5" pipe, "a, b" c , "d" '), ['5" pipe', '"a', 'b" c', "d"]);
});

test("values are shown as people read them", () => {
  assert.equal(bytes(1536), "1.5 KiB");
  assert.equal(count(10000, true), `${new Intl.NumberFormat().format(10000)}+`);
  assert.equal(shortId("01a20972-f027-7001-b3cb-0a7d8abac732"), "…8abac732");
  assert.equal(utcDay("2026-01-02T00:00:00.000Z"), utcDay("2026-01-02T23:59:59.999Z"));
  assert.equal(ago("2026-01-01T00:00:00.000Z", Date.parse("2026-01-03T00:00:00.000Z")), new Intl.RelativeTimeFormat(undefined, { numeric: "auto" }).format(-2, "day"));
});

test("an error in JSON has its line", () => {
  assert.deepEqual(parse('{"a": [1]}'), { value: { a: [1] } });
  assert.match(parse('{\n"a": \n}').error, /^Line 3: /);
  assert.match(parse('{\n"a": 1').error, /^Line 2: /);
});

test("what a mode does not take stays while one looks at modes, and is not saved", () => {
  const base = { mode: "triggered", trigger: { kind: "event", eventName: "a" }, audience: { include: {} }, schedule: { daysOfWeek: ["monday"] } };
  const turned = (mode, more) => fitting({ base, value: { ...base, mode, ...more } });
  assert.deepEqual(turned("triggered"), base);
  assert.deepEqual(turned("transactional"), { mode: "transactional" });
  assert.deepEqual(turned("broadcast"), { mode: "broadcast", audience: base.audience, schedule: base.schedule });
  const calendar = { trigger: { kind: "schedule", every: "day", at: "09:00" } };
  assert.deepEqual(turned("scheduled", calendar), { ...base, mode: "scheduled", ...calendar });
  assert.deepEqual(turned("triggered", calendar), base);
  // What was made by the API is left as it is, and can be changed.
  const odd = { mode: "triggered", trigger: { kind: "manual" } };
  assert.deepEqual(fitting({ base: odd, value: odd }), odd);
  assert.deepEqual(fitting({ base: odd, value: { ...odd, trigger: { kind: "manual", delaySeconds: 5 } } }).trigger, { kind: "manual", delaySeconds: 5 });
  assert.deepEqual(fitting({ base: { ...odd, mode: "scheduled" }, value: { mode: "scheduled" } }), { mode: "scheduled" });
});

test("an id of something in a question goes wherever it is named, and nothing gets one that was there before", () => {
  const options = [{ id: "a", label: "A" }, { id: "b", label: "B" }];
  const rows = { rows: [{ id: "a", label: "A" }], columns: [{ id: "a", label: "Good" }] };
  const questions = [{ id: "q1", options }, { id: "q2", options }, { id: "m", ...rows }];
  const when = (questionId, value) => ({ id: "b1", from: "q1", when: { all: [{ questionId, operator: "x", value }] }, to: { questionId: "q2" } });
  const flow = { questions, branches: [when("q1", "a"), when("q1", ["b", "a"]), when("q2", "a"), when("m", { a: "a" }), { from: "q2", when: null }], endScreens: [] };
  const de = { "questions/q1/options/a": "A", "questions/q1/options/a/label": "A", "questions/q1/options/ab": "AB", "questions/q2/options/a": "A", "questions/m/rows/a": "A" };
  const survey = { flow, localization: { defaultLocale: "en", translations: { de } } };
  const values = ({ flow }) => flow.branches.slice(0, 4).map(({ when }) => when.all[0].value);
  const option = renamed(survey, 0, "z", "options", 0);
  assert.deepEqual(option.flow.questions.map((question) => question.options?.[0].id), ["z", "a", undefined]);
  assert.deepEqual(values(option), ["z", ["b", "z"], "a", { a: "a" }]);
  assert.deepEqual(Object.keys(option.localization.translations.de), ["questions/q1/options/z", "questions/q1/options/z/label", "questions/q1/options/ab", "questions/q2/options/a", "questions/m/rows/a"]);
  assert.deepEqual(values(renamed(survey, 2, "z", "rows", 0))[3], { z: "a" });
  assert.deepEqual(values(renamed(survey, 2, "z", "columns", 0))[3], { a: "z" });
  assert.deepEqual(option.flow.branches.map(({ from }) => from), ["q1", "q1", "q1", "q1", "q2"]);
  assert.deepEqual(renamed(survey, 0, "z").flow.branches.map(({ from, when }) => `${from} ${when?.all[0].questionId}`), ["z z", "z z", "z q2", "z m", "q2 undefined"]);
  assert.notEqual(newQuestion().id, newQuestion().id);
});

test("days without a row are there, also to those that are named; a copy's name is no longer than names are", () => {
  const rows = [{ at: "2026-01-30T00:00:00.000Z", sent: 1 }, { at: "2026-02-02T00:00:00.000Z", sent: 2 }];
  const days = (...range) => everyDay(rows, ...range).map(({ at, sent = 0 }) => `${at.slice(5, 10)} ${sent}`);
  assert.deepEqual(days(), ["01-30 1", "01-31 0", "02-01 0", "02-02 2"]);
  assert.deepEqual(days("2026-01-29", "2026-02-03"), ["01-29 0", "01-30 1", "01-31 0", "02-01 0", "02-02 2", "02-03 0"]);
  assert.equal(days("1970-01-02", "").length, 370);
  assert.equal(copied("a"), "a (copy)");
  assert.equal([...copied("😀".repeat(200))].length, 200);
});

test("whoever is past a statement has seen it", () => {
  const attempts = [{ answers: [{ questionId: "s", answerValue: null }, { questionId: "q", answerValue: null }] }];
  const all = ["statement", "number"].map((type, index) => ({ questionId: "sq"[index], type, distribution: [] }));
  assert.deepEqual(reportOf(all, attempts).map(({ responses, skipped }) => [responses, skipped]), [[1, 0], [0, 1]]);
});
