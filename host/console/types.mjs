// Makes `types/api.d.ts` of a server's description: `node types.mjs http://127.0.0.1:8080/openapi.json`, or a file.
import { readFileSync, writeFileSync } from "node:fs";
import openapi, { astToString } from "openapi-typescript";

const [source] = process.argv.slice(2);
if (!source) {
  console.error("say where the description is: `npm run types -- <address or file of openapi.json>`");
  process.exit(2);
}
const text = /^https?:/.test(source) ? await (await fetch(source)).text() : readFileSync(source, "utf8");
const head = "// Made by `npm run types` of a server's /openapi.json.\n";
/** Examples are no types: bodies and parameters, which have a schema, go without theirs. */
function withoutExamples(_key, value) {
  if (value && typeof value === "object" && "schema" in value) {
    delete value.example;
    delete value.examples;
  }
  return value;
}
writeFileSync(new URL("types/api.d.ts", import.meta.url), head + astToString(await openapi(JSON.parse(text, withoutExamples))));
