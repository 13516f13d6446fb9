import * as Nudge from "./index.js";

Object.assign(window, { Nudge });
