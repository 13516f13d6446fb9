// Surveys' ways and answers, by the vectors that the server's code writes
// (`host/campaigns/src/surveys/flow/tests/vectors.rs`), and what needs no browser beside.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const root = new URL("../", import.meta.url);

/** A module of the sources. */
async function source(name) {
  const made = await build({
    bundle: true,
    entryPoints: [new URL(`src/surveys/${name}.ts`, root).pathname],
    format: "esm",
    target: "es2022",
    write: false,
  });
  return import(`data:text/javascript;base64,${Buffer.from(made.outputFiles[0].text).toString("base64")}`);
}

const { flows, answers } = JSON.parse(await readFile(new URL("test/flow-vectors.json", root), "utf8"));
const { wayOf, positionOf, ahead } = await source("flow");
const { check } = await source("answers");
const texts = await source("texts");
const { themeRules } = await source("theme");

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
  const { LANGUAGES, languageOf, textsOf, directionOf } = texts;
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

test("the bundle is small", async () => {
  const bundle = await readFile(new URL("dist/surveys.mjs", root));
  const size = gzipSync(bundle, { level: 9 }).length;
  assert.ok(size <= 16 * 1024, `${size} bytes`);
});
