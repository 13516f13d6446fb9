import type { Client } from "./types.js";
import { newId } from "./util.js";

/** The SDK where there is no page, as in a server that renders one: it does nothing. */
export const inert = (): Client => {
  const state = "unsupported";
  const nothing = async (): Promise<any> => state;
  return {
    track: newId,
    screen: newId,
    identify: nothing,
    reset: nothing,
    consent: nothing,
    set: nothing,
    unset: nothing,
    on: () => nothing,
    present: nothing,
    startSurvey: nothing,
    flush: nothing,
    push: { state, subscribe: nothing, unsubscribe: nothing },
  };
};
