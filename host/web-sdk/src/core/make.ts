import { Nudge } from "./client.js";
import { inert } from "./inert.js";
import type { Client, Options } from "./types.js";

/** How a build of the SDK finds its other parts. */
export interface Parts {
  /** Where the script came from, where a server served it. */
  here?: string;
  load: () => Promise<any>;
  worker(baseUrl: string): string;
}

/** The SDKs of the page, whichever of its scripts made them. */
const made: { [key: string]: Client } = ((globalThis as any)[Symbol.for("nudge")] ??= {});

/** Makes the SDK of a page. With the same key and server it is the same one, however often a page asks. */
export function make(options: Options, parts: Parts): Client {
  if (typeof document == "undefined") return inert();
  const baseUrl = (options.baseUrl ?? new URL(parts.here ?? location.href).origin).replace(/\/+$/, "");
  const workerUrl = options.workerUrl ?? parts.worker(baseUrl);
  return (made[`${options.writeKey} ${baseUrl}`] ??= new Nudge({ ...options, baseUrl, workerUrl, load: parts.load }));
}
