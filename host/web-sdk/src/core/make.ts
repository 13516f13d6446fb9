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

const made = new Map<string, Client>();

/** Makes the SDK of a page. With the same key and server it is the same one, however often a page asks. */
export function make(options: Options, parts: Parts): Client {
  if (typeof document == "undefined") return inert();
  const baseUrl = (options.baseUrl ?? (parts.here ? new URL(parts.here).origin : location.origin)).replace(/\/+$/, "");
  const key = `${options.writeKey} ${baseUrl}`;
  let client = made.get(key);
  if (!client) {
    client = new Nudge({ ...options, baseUrl, workerUrl: options.workerUrl ?? parts.worker(baseUrl), load: parts.load });
    made.set(key, client);
  }
  return client;
}
