// Makes `app/vendor` of the packages that the lock file pins: their modules with relative imports, as pages have no import
// map, and their licences. `vendor.json` has versions and checksums.
//
// `node vendor.mjs --check` fails where a committed file is not the one that the packages make. Without packages
// installed it compares with the checksums.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(fileURLToPath(import.meta.url));
const check = process.argv.includes("--check");

/** What is taken: specifier → [file of a package, name in `app/vendor`]. */
const MODULES = {
  "preact": ["preact/dist/preact.mjs", "preact.js"],
  "preact/hooks": ["preact/hooks/dist/hooks.mjs", "hooks.js"],
  "htm": ["htm/dist/htm.module.js", "htm.js"],
  "@preact/signals-core": ["@preact/signals-core/dist/signals-core.module.js", "signals-core.js"],
  "@preact/signals": ["@preact/signals/dist/signals.module.js", "signals.js"],
};
const PACKAGES = ["preact", "htm", "@preact/signals-core", "@preact/signals"];

const digest = (text) => `sha256-${createHash("sha256").update(text).digest("base64")}`;
const read = (...path) => readFileSync(join(root, ...path), "utf8");

/** A module with relative imports and without the name of its source map, which is not served. */
function relative(specifier) {
  const text = read("node_modules", MODULES[specifier][0]);
  const imports = /((?:from|import)\s*)(["'])([^"'./][^"']*)\2/g;
  const replaced = text.replace(imports, (_, before, quote, name) => {
    if (!MODULES[name]) throw new Error(`${specifier} imports ${name}, which is not vendored`);
    return `${before}${quote}./${MODULES[name][1]}${quote}`;
  });
  return `${replaced.replace(/\n?\/\/# sourceMappingURL=\S+\s*$/, "")}\n`;
}

/** All files, of the packages. */
function made() {
  const lock = JSON.parse(read("package-lock.json")).packages;
  const files = {};
  for (const [specifier, [, name]] of Object.entries(MODULES)) files[name] = relative(specifier);
  const licences = PACKAGES.map((name) => {
    const { version, license } = lock[`node_modules/${name}`];
    const file = readdirSync(join(root, "node_modules", name)).find((file) => /^licen[sc]e/i.test(file));
    if (!file) throw new Error(`${name} has no licence`);
    return `${name} ${version} (${license})\n\n${read("node_modules", name, file).trim()}\n`;
  });
  files["LICENSES.txt"] = licences.join(`\n${"-".repeat(80)}\n\n`);
  const packages = Object.fromEntries(PACKAGES.map((name) => {
    const { version, license, integrity } = lock[`node_modules/${name}`];
    const installed = JSON.parse(read("node_modules", name, "package.json")).version;
    if (installed !== version) throw new Error(`${name} is ${installed}, not ${version} as locked: run \`npm ci\``);
    return [name, { version, license, integrity }];
  }));
  const checksums = Object.fromEntries(Object.entries(files).map(([name, text]) => [name, digest(text)]));
  return { files, manifest: `${JSON.stringify({ packages, files: checksums }, null, 2)}\n` };
}

/** What is wrong with the committed files. */
function complaints() {
  const found = readdirSync(join(root, "app/vendor")).sort();
  const { files } = JSON.parse(read("vendor.json"));
  const wrong = [];
  if (found.join() !== Object.keys(files).sort().join()) wrong.push(`app/vendor has ${found}, vendor.json has ${Object.keys(files)}`);
  for (const name of found) if (files[name] && digest(read("app/vendor", name)) !== files[name]) wrong.push(`app/vendor/${name} has another checksum`);
  if (existsSync(join(root, "node_modules/preact"))) {
    const fresh = made();
    if (fresh.manifest !== read("vendor.json")) wrong.push("vendor.json is not what the packages make");
  }
  return wrong;
}

if (check) {
  const wrong = complaints();
  for (const line of wrong) console.error(line);
  if (wrong.length) {
    console.error("run `npm ci && npm run vendor` and commit what it makes");
    process.exit(1);
  }
} else {
  const { files, manifest } = made();
  mkdirSync(join(root, "app/vendor"), { recursive: true });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(root, "app/vendor", name), text);
  writeFileSync(join(root, "vendor.json"), manifest);
}
