import { idOf, iso, newId } from "./util.js";
import type { Change, Item } from "./store.js";
import type { EventProperties } from "./types.js";

/** Who uses the browser, and the session that they are in (kept under `me`). */
export interface Me {
  /** The anonymous id. */
  aid: string;
  /** What the SDK calls the browser. */
  device: string;
  /** The session, and when something last happened in it. */
  sid?: string;
  last: number;
  analytics?: boolean;
  messaging?: boolean;
  /** Whether the server may have a token of Web Push of the browser for the person. */
  push?: boolean;
  /** The number of the last draft that is written down, of each tab that wrote lately. */
  done?: { [tab: string]: number };
}

/** What the server said of a person (kept under `person:` and the anonymous id). */
export interface Person {
  /** The id of the browser session. */
  client: string;
  token?: string;
  /** When the token ends, by the server's clock. */
  expires?: number;
  /** By how much the server's clock is ahead. */
  skew: number;
  identified?: boolean;
  config?: Config;
}

/** `sdkConfig` of a session. */
export interface Config {
  sessionTimeoutSeconds: number;
  lifecycleEvents: boolean;
  immediateTriggers: string[];
  pollAfterSeconds: number;
  push?: { vapidPublicKey: string } | null;
}

/**
 * What the page has said, before it is written down, with its tab and its number there: a page that goes away may leave
 * a draft in two places, and it is written once. A page that goes may also send what comes of a draft before that is
 * written: ids of it are decided by the draft's own.
 */
export type Draft = Said & { tab: string; n: number };

/** What pages say. */
export type Said =
  | { kind: "event"; at: number; id: string; name: string; properties?: EventProperties; screen?: string; locale: string }
  | { kind: "call"; method: string; path: string; body: object }
  | { kind: "identify"; token: string }
  | { kind: "consent"; analytics?: boolean; messaging?: boolean }
  | { kind: "push"; push: boolean }
  | { kind: "active"; at: number; id: string; locale: string; cold?: boolean; idle?: boolean }
  | { kind: "reset"; id: string };

/** When, and by what, a session goes on. */
type Moment = { at: number; id: string; locale: string };

/** Where properties of a person go: no further than analytics were consented to. */
export const PROPERTIES = "/v1/sdk/user-properties";

const SESSION_TIMEOUT = 1800;
/** Tabs besides the one that writes whose drafts are known. */
const MOST_TABS = 20;

/** Who uses a browser for the first time. */
const nobody = (): Me => ({ aid: newId(), device: newId(), last: 0 });

/**
 * Puts drafts into the queue in their order. Sessions begin and end here, in the transaction that all tabs share: one
 * tab's silence is none while another tab is used.
 */
export function write(
  before: Me | undefined,
  drafts: Draft[],
  granted: boolean,
  config?: Config,
): { me: Me; add: Item[]; change: Change } {
  const me = { ...(before ?? nobody()) };
  const add: Item[] = [];
  const isKnown = () => me.analytics ?? granted;
  const event = (draft: { at: number; locale: string; screen?: string }, name: string, id: string, properties?: EventProperties) => {
    if (!isKnown()) return;
    const { at, screen, locale } = draft;
    const entry = { eventId: id, name, timestamp: iso(at), anonymousId: me.aid, properties };
    add.push({ kind: "event", aid: me.aid, sid: me.sid!, event: entry, screen, locale });
  };
  /** What the SDK notes itself: before what it is noted with, also where both are of one millisecond, by its `place` there. */
  const lifecycle = (draft: Moment, name: string, place: number) => {
    if (config?.lifecycleEvents !== false) event(draft, name, idOf(draft.at, place, draft.id));
  };
  /** Ends a session that was silent for too long, and begins one unless nothing happens. */
  const touch = (draft: Moment & { idle?: boolean }) => {
    const { at, id, locale } = draft;
    const timeout = 1000 * (config?.sessionTimeoutSeconds ?? SESSION_TIMEOUT);
    if (me.sid && at - me.last > timeout) {
      lifecycle({ at: me.last + timeout, id, locale }, "session_ended", 0);
      me.sid = undefined;
    }
    if (draft.idle) return;
    if (!me.sid) {
      me.sid = idOf(at, 4, id);
      lifecycle(draft, "session_started", 1);
    }
    me.last = at;
  };
  const call = (method: string, path: string, body?: object) =>
    add.push({ kind: "call", aid: me.aid, method, path, body: { anonymousId: me.aid, ...body } });
  const consent = ({ analytics, messaging }: { analytics?: boolean; messaging?: boolean }) =>
    call("POST", "/v1/sdk/consent", { analytics, messaging });
  for (const draft of drafts) {
    const { tab, n } = draft;
    const { [tab]: last = 0, ...others } = me.done ?? {};
    if (n <= last) continue;
    me.done = Object.fromEntries([...Object.entries(others).slice(-MOST_TABS), [tab, n]]);
    switch (draft.kind) {
      case "event":
        touch(draft);
        event(draft, draft.name, draft.id, draft.properties);
        break;
      case "active":
        touch(draft);
        if (!before && draft.cold) lifecycle(draft, "app_installed", 2);
        if (draft.cold) lifecycle(draft, "app_opened", 3);
        break;
      case "call":
        if (draft.path != PROPERTIES || isKnown()) call(draft.method, draft.path, draft.body);
        break;
      case "identify":
        add.push({ kind: "identify", token: draft.token, aid: me.aid });
        break;
      case "consent": {
        const { analytics = me.analytics, messaging = me.messaging } = draft;
        Object.assign(me, { analytics, messaging });
        consent(draft);
        break;
      }
      case "push":
        me.push = draft.push;
        break;
      case "reset":
        if (me.push) call("DELETE", `/v1/sdk/push-tokens/${me.device}`);
        add.push({ kind: "end", aid: me.aid });
        Object.assign(me, { aid: draft.id, sid: undefined, push: false });
        // What was said in this browser holds for who comes.
        if ((me.analytics ?? me.messaging) != undefined) consent(me);
        break;
    }
  }
  return { me, add, change: { put: { me }, add } };
}
