export type * from "./types.js";
/** The version of the SDK. */
export const version = __VERSION__;
