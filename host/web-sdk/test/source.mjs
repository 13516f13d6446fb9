// The sources, as tests import them.
import { build } from "esbuild";

export const root = new URL("../", import.meta.url);

/** What modules of the sources export. A name that two of them export would be missing. */
export async function source(...names) {
  const contents = names.map((name) => `export * from "./${name}.ts";`).join("\n");
  const made = await build({
    bundle: true,
    define: { __VERSION__: '"0"' },
    format: "esm",
    logLevel: "error",
    stdin: { contents, resolveDir: new URL("src", root).pathname },
    target: "es2022",
    write: false,
  });
  return import(`data:text/javascript;base64,${Buffer.from(made.outputFiles[0].text).toString("base64")}`);
}
