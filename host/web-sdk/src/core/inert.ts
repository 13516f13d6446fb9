import type { Client } from "./types.js";
import { newId } from "./util.js";

/** The SDK where there is no page, as in a server that renders one: it does nothing. */
export const inert = (): Client => {
  const nothing = () => {};
  const later = async () => {};
  return {
    track: newId,
    screen: newId,
    identify: nothing,
    reset: nothing,
    consent: nothing,
    set: nothing,
    unset: nothing,
    on: () => nothing,
    present: later,
    startSurvey: later,
    flush: later,
    push: { state: "unsupported", subscribe: async () => "unsupported", unsubscribe: async () => "unsupported" },
  };
};
