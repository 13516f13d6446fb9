// What pages take of these modules: `import { html, inApp } from "../lib/index.js"`.
export * from "./api.js";
export * from "./download.js";
export * from "./draft.js";
export * from "./events.js";
export * from "./format.js";
export * from "./load.js";
export * from "./notice.js";
export * from "./preact.js";
export * from "./router.js";
export * from "./session.js";
export { keep, recall } from "./storage.js";
