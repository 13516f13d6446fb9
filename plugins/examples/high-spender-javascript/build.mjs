// Makes the component; `nudge plugin build` runs this with the folder of the contract, the world and the
// output. Clocks, randomness and network are left out: plugins have none, and need nothing of WASI.
import { writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { componentize } from "@bytecodealliance/componentize-js";

const [witPath = "sdk/wit", worldName = "trigger", output = "build/plugin.wasm"] = process.argv.slice(2);
const making = componentize({
  sourcePath: fileURLToPath(new URL("src/plugin.js", import.meta.url)),
  witPath,
  worldName,
  disableFeatures: ["stdio", "random", "clocks", "http", "fetch-event"],
});
// The message names the place in the plugin. The tool's own stack would hide it.
const { component } = await making.catch((error) => {
  console.error(error?.message ?? error);
  process.exit(1);
});
await writeFile(output, component);
