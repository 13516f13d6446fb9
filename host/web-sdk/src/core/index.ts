import { make } from "./make.js";
import type { Client, Options } from "./types.js";

export type * from "./types.js";

/** The version of the SDK. */
export const version: string = __VERSION__;

/** Makes the SDK of a page. With the same key and server it is the same one, however often a page asks. */
export const init = (options: Options): Client =>
  make(options, { load: () => import("./surveys.mjs"), worker: () => "/nudge/worker.js" });

export const Nudge = { init, version };
