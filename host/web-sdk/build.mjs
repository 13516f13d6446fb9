// Makes the bundles: `dist` is what a server embeds and serves, `lib` is what the npm package has.
//
// `node build.mjs --check` makes `dist` in memory and fails where the committed one differs.
import { createHash } from "node:crypto";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build, transform } from "esbuild";

const root = dirname(fileURLToPath(import.meta.url));
const { version } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
const check = process.argv.includes("--check");

/** What all bundles have in common. */
const common = {
  absWorkingDir: root,
  bundle: true,
  charset: "utf8",
  legalComments: "none",
  logLevel: "warning",
  // Imports that only say what comes first in a bundle.
  logOverride: { "ignored-bare-import": "silent" },
  target: ["es2022"],
};

/** Makes style sheets small: they are texts of the sources, which the bundler leaves alone. */
const styles = {
  name: "styles",
  setup: (build) =>
    build.onLoad({ filter: /styles\.ts$/ }, async ({ path }) => {
      const text = await readFile(path, "utf8");
      const [whole, rules] = /STYLES = `([^`]*)`/.exec(text);
      const { code } = await transform(rules, { charset: "utf8", loader: "css", minify: true });
      return { contents: text.replace(whole, () => `STYLES = \`${code.trim().replaceAll("\\", "\\\\")}\``), loader: "ts" };
    }),
};

/** Puts numbers that have a name in their module where they are used: the bundler leaves them in variables. */
const numbers = {
  name: "numbers",
  setup: (build) =>
    build.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      let text = await readFile(path, "utf8");
      for (const [whole, name, number] of text.matchAll(/^const ([A-Z_]+) = ([\d_* ]+);\n/gm)) {
        text = text.replace(whole, "").replace(new RegExp(`\\b${name}\\b`, "g"), `(${number})`);
      }
      return { contents: text, loader: "ts" };
    }),
};

/** Members that the renderer's own parts call so among themselves: not the server, the core, nor browsers. */
const OWN = /^(again|aim|begin|characters|closed|content|control|describedBy|direction|done|drain|drop|element|end|failed|fate|forget|frame|give|given|gone|hasFocus|host|initial|language|last|letClose|listener|live|named|nodes|note|odd|opened|outcome|over|ownId|part|prune|read|refused|root|save|say|send|sending|shell|shown|spoken|started|starting|stops|subject|texts|theirId|unheard)$/;

/** The same of the core, among which are no members of what is stored or told other tabs. */
const CORE =
  /^(activity|again|alter|answered|around|ask|bound|change|channel|claim|complain|complaints|decide|deciding|degrade|delay|deliver|depart|drafts|emit|end|ended|enter|failures|forget|give|gone|granted|head|hear|held|here|hold|host|hurry|idle|isAlone|isFinal|isKept|isStale|later|lead|leads|leave|listen|listeners|load|look|looking|makeHost|maySee|most|notBefore|note|offer|offered|options|part|pending|poller|post|proof|prove|ready|recall|refused|release|remove|renderer|repoll|resume|retryAfter|run|said|say|send|sender|sending|session|settled|shows|since|started|starting|stop|stopped|store|tabs|temporary|timer|unconfirmed|unheard|unproven|until|urge|use|used|waits|with|worker|write|writing)$/;

/** Bundles one entry for the server; answers its text. */
async function served(entry, format, define = {}, mangleProps = undefined) {
  const made = await build({
    ...common,
    define: { __VERSION__: JSON.stringify(version), ...define },
    entryPoints: [entry],
    format,
    mangleProps,
    minify: true,
    plugins: [styles, numbers],
    write: false,
  });
  return made.outputFiles[0].text;
}

/** The digest by which a bundle's address names its content. */
const digest = (text) => createHash("sha256").update(text).digest("hex").slice(0, 16);

const files = {};
files["surveys.mjs"] = await served("src/surveys/index.ts", "esm", {}, OWN);
files["worker.js"] = await served("src/worker/index.ts", "iife");
const names = {
  __SURVEYS__: JSON.stringify(`surveys.mjs?v=${digest(files["surveys.mjs"])}`),
  __WORKER__: JSON.stringify(`worker.js?v=${digest(files["worker.js"])}`),
};
files["nudge.mjs"] = await served("src/core/served.ts", "esm", names, CORE);
files["nudge.js"] = await served("src/core/script.ts", "iife", names, CORE);

/** The most that a bundle may be, gzipped (contract 23): of the core less than 10 KiB. */
const MOST = { "nudge.js": 10_239, "nudge.mjs": 10_239, "surveys.mjs": 16 * 1024, "worker.js": 2 * 1024 };

let differs = false;
await mkdir(join(root, "dist"), { recursive: true });
for (const [name, text] of Object.entries(files)) {
  const path = join(root, "dist", name);
  const before = await readFile(path, "utf8").catch(() => "");
  if (before !== text) {
    if (check) console.error(`dist/${name} is not what the sources make: run \`npm run build\` and commit it`);
    else await writeFile(path, text);
    differs ||= check;
  }
  // As whoever measures it may compress it, not as small as can be.
  const sizes = [6, 9].map((level) => gzipSync(text, { level }).length);
  console.log(`${name.padEnd(12)} ${text.length} bytes, ${sizes.join(" or ")} gzipped`);
  if (Math.max(...sizes) > MOST[name]) {
    console.error(`dist/${name} is larger than the ${MOST[name]} bytes that contract 23 gives it`);
    differs = true;
  }
}
if (differs) process.exit(1);

if (!check) {
  await rm(join(root, "lib"), { force: true, recursive: true });
  const packaged = (entry, outfile, format, external = []) =>
    build({
      ...common,
      define: { __VERSION__: JSON.stringify(version) },
      entryPoints: [entry],
      external,
      format,
      outfile,
      jsx: "automatic",
      sourcemap: "linked",
    });
  await packaged("src/core/index.ts", "lib/nudge.mjs", "esm", ["./surveys.mjs"]);
  await packaged("src/surveys/index.ts", "lib/surveys.mjs", "esm");
  await packaged("src/react/index.ts", "lib/react.mjs", "esm", ["react", "react/jsx-runtime", "@nudge/web"]);
  await packaged("src/worker/index.ts", "lib/worker.js", "iife");
}
