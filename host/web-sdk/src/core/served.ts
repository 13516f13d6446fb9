import { make } from "./make.js";
import { parts } from "./parts.js";
import type { Client, Options } from "./types.js";

export const version: string = __VERSION__;

export const init = (options: Options): Client => make(options, parts(import.meta.url));

export const Nudge = { init, version };
