// What the console weighs, and that its files are what the rules say.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";
import { brotliCompressSync } from "node:zlib";
import typescript from "typescript";
import { isOurs, withoutComments } from "../served.mjs";

const APP = fileURLToPath(new URL("../app/", import.meta.url));
const MOST_BYTES = 150 * 1024;
const MOST_LINES = 400;
const PAGES = ["index.html", "docs.html"];

const files = readdirSync(APP, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath ?? entry.path, entry.name));
const own = files.filter((path) => path.endsWith(".js") && !path.includes("/vendor/"));
const read = (path) => readFileSync(path, "utf8");
const name = (path) => relative(APP, path);

test("all files that are served stay below 150 KiB of Brotli", () => {
  const served = (path) => (isOurs(name(path)) ? Buffer.from(withoutComments(read(path))) : readFileSync(path));
  const total = files.reduce((sum, path) => sum + brotliCompressSync(served(path)).length, 0);
  console.log(`${files.length} files, ${total} bytes`);
  assert.ok(total < MOST_BYTES, `${total} bytes`);
});

const parsed = (text) => typescript.createSourceFile("a.js", text, typescript.ScriptTarget.Latest, true);

test("what is left out of modules are comments and indentation", () => {
  const print = (text) => typescript.createPrinter({ removeComments: true }).printFile(parsed(text)).replace(/^ +/gm, "");
  for (const path of own) assert.equal(print(withoutComments(read(path))), print(read(path)), name(path));
  const kept = "a(); // b\n";
  assert.equal(withoutComments(`/** f\n * g */\n${kept}// h\n  /* i */\n/* j\n*/ k();\nl(/** @type {M} */ (n), /** @param {O} p */ (p) => p);\n`), `\n\n${kept}\n\n\n k();\nl((n), (p) => p);\n`);
  assert.equal(withoutComments("a {\n  b: c; /* d */\n}\n"), "a {\nb: c; /* d */\n}\n");
});

test("no text spans lines, whose indentation would be missing: markup does, of which htm leaves it out", () => {
  const wrong = [];
  const walk = (path) => (node) => {
    const { parent } = node;
    const isMarkup = typescript.isTaggedTemplateExpression(parent) && parent.tag.getText() == "html";
    const isText = typescript.isTemplateExpression(node) || typescript.isNoSubstitutionTemplateLiteral(node);
    const parts = isText ? [node.head ?? node, ...(node.templateSpans ?? []).map(({ literal }) => literal)] : [];
    if (!isMarkup && parts.some(({ rawText }) => rawText.includes("\n"))) wrong.push(`${name(path)}: ${node.getText()}`);
    typescript.forEachChild(node, walk(path));
  };
  for (const path of own) typescript.forEachChild(parsed(read(path)), walk(path));
  assert.deepEqual(wrong, []);
});

test("files stay below 400 lines", () => {
  assert.deepEqual(own.filter((path) => read(path).split("\n").length > MOST_LINES).map(name), []);
});

test("nothing needs what the policy forbids", () => {
  const forbidden = /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|dangerouslySetInnerHTML|\bstyle="|\bon[a-z]+="/;
  assert.deepEqual(own.filter((path) => forbidden.test(read(path))).map(name), []);
  for (const page of PAGES) assert.doesNotMatch(read(join(APP, page)), /<style|<script(?![^>]*\bsrc=)|\bstyle=|\bon[a-z]+=/);
});

test("imports are relative, of files that are there, and no module imports itself in a circle", () => {
  const graph = new Map(own.map((path) => [path, [...read(path).matchAll(/^(?:import|export)[^"]*?from "([^"]+)";|^import "([^"]+)";/gm)].map(([, one, other]) => one ?? other)]));
  const wrong = [];
  const targets = (path) => (graph.get(path) ?? []).map((specifier) => join(dirname(path), specifier));
  for (const [path, specifiers] of graph) {
    for (const specifier of specifiers) if (!specifier.startsWith(".")) wrong.push(`${name(path)} imports ${specifier}`);
    for (const target of targets(path)) if (!files.includes(target)) wrong.push(`${name(path)} imports ${name(target)}, which is not there`);
  }
  const walk = (path, way) => {
    if (way.includes(path)) return wrong.push([...way.slice(way.indexOf(path)), path].map(name).join(" → "));
    for (const target of targets(path)) walk(target, [...way, path]);
  };
  for (const first of ["src/main.js", "src/docs/main.js"]) walk(join(APP, first), []);
  assert.deepEqual(wrong, []);
});

test("pages take the modules of lib by one door", () => {
  const pages = own.filter((path) => name(path).startsWith("src/pages/"));
  assert.deepEqual(pages.filter((path) => /^import [^"]*"[./]*\/lib\/(?!index\.js")/m.test(read(path))).map(name), []);
});

test("every page is in the table", () => {
  const table = read(join(APP, "src/pages/index.js"));
  const pages = own.filter((path) => name(path).startsWith("src/pages/") && /export default/.test(read(path)));
  assert.deepEqual(pages.filter((path) => !table.includes(`"./${name(path).replace("src/pages/", "")}"`)).map(name), []);
});

test("what deletes something asks first", () => {
  // The plugin that was in a slot can be put in again.
  const allowed = ["src/pages/plugins.js: clear"];
  const found = [];
  const calls = (node, callee) => typescript.isCallExpression(node) && node.expression.getText() == callee;
  const walk = (path) => (node) => {
    if (calls(node, "del")) {
      let [around, last] = [node.parent, ""];
      for (; around && !calls(around, "confirm"); around = around.parent) if (typescript.isVariableDeclaration(around)) last = around.name.getText();
      if (!around) found.push(`${name(path)}: ${last}`);
    }
    typescript.forEachChild(node, walk(path));
  };
  for (const path of own.filter((path) => name(path).startsWith("src/pages/"))) typescript.forEachChild(parsed(read(path)), walk(path));
  assert.deepEqual(found, allowed);
});
