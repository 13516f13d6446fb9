import { make } from "./make.js";
import { parts } from "./parts.js";
import type { Options } from "./types.js";

const here = (document.currentScript as HTMLScriptElement | null)?.src;

Object.assign(window, { Nudge: { init: (options: Options) => make(options, parts(here)), version: __VERSION__ } });
