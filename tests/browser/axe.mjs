// axe in pages: injected once a page, and asked for what tests look at alone.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const SOURCE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
/** The rules that depend on colours, which alone differ between light and dark. */
const OF_COLOURS = ["color-contrast", "link-in-text-block"];

/**
 * What axe finds wrong in a page, and what it could not measure. It fails where axe has looked at too few rules.
 * @param {boolean} [options.ofColours] whether to look by the rules of colours alone, which is enough for a page that passed in another scheme
 * @param {string} [options.selector] elements to look at; the whole document if missing
 * @param {number} [options.fewest] more rules than this have to pass where all are asked
 * @returns {Promise<{ violations: object[], incomplete: object[] }>}
 */
export async function axe(page, { ofColours = false, selector, fewest = 5 } = {}) {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(SOURCE);
  const runOnly = ofColours ? { type: "rule", values: OF_COLOURS } : { type: "tag", values: TAGS };
  // Nothing is loaded for rules, and details are made of complaints alone.
  const options = { runOnly, preload: false, resultTypes: ["violations", "incomplete"], selectors: false };
  const run = async ([context, options]) => {
    const { violations, incomplete, passes } = await window.axe.run(context ?? document, options);
    return { violations, incomplete, passed: passes.length };
  };
  const { passed, ...found } = await page.evaluate(run, [selector, options]);
  if (passed <= (ofColours ? 0 : fewest)) throw new Error(`axe looked at ${passed} rules only`);
  return found;
}
