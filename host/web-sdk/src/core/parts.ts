import type { Parts } from "./make.js";

/** The other parts, as the server that served this one has them. */
export const parts = (here: string | undefined): Parts => ({
  here,
  load: () => import(new URL(__SURVEYS__, here).href),
  // A worker's script has to come from the page's own origin.
  worker: (baseUrl) => (new URL(baseUrl, location.href).origin == location.origin ? `${baseUrl}/sdk/v1/${__WORKER__}` : "/nudge/worker.js"),
});
