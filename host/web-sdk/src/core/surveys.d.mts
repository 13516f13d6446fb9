export * from "../surveys/index.js";
