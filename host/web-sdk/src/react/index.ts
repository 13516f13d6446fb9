export type { Client } from "../core/types.js";
