// Types of `nudge.js`. Instants and spans are milliseconds, as `Date` has them. A plugin may give a `Date` for an instant.

/** A JSON value; `undefined` where it stands is a missing one. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** A problem with a configuration. */
export interface Problem {
  code: string;
  /** A JSON pointer into the configuration; empty for the whole. */
  pointer: string;
  message: string;
  more: [string, string][];
}

/** Why a plugin refuses a whole batch. */
export interface Refusal {
  code: string;
  message: string;
  more: [string, string][];
}

/** A problem with a configuration, for `throw problem(…)` or `throw [problem(…), …]` in `check`. */
export function problem(code: string, pointer: string, message: string): Problem;

/** Refuses a whole batch, for `throw refusal(…)`: nothing of it takes effect. */
export function refusal(code: string, message: string): Refusal;

/** Lines for the plugin's author and operators: up to 8 KiB a call. */
export const log: {
  debug(message: unknown): void;
  info(message: unknown): void;
  warn(message: unknown): void;
  error(message: unknown): void;
};

/** What decisions under a configuration read: the host sends nothing else. */
export interface Reads {
  /** Names of the events to be called for; `*` alone is every event. Only trigger plugins are routed by it. */
  events?: string[];
  /** Event properties, as dotted paths. */
  properties?: string[];
  /** Saved properties of the subject. */
  subjectProperties?: string[];
  /** Names of events whose past is asked for without being called for them. */
  history?: string[];
}

/** What every plugin says of itself. */
export interface Declaration<Config> {
  /** Lower-case letters, digits and hyphens. */
  name: string;
  /** A semantic version. */
  version: string;
  summary?: string;
  /** A JSON Schema of the configuration. With `examples`, uploads try a decision under them. */
  configSchema?: object;
  /** Checks a configuration and says what decisions under it read. Throws a problem, or a list of them. */
  check(config: Config): Reads | undefined;
}

/** An event, or the event that set a timer. */
export interface Event {
  readonly name: string;
  /** A UUID. */
  readonly id: string;
  /** When it happened, by the client's corrected clock. */
  readonly timestamp: number;
  /** When it reached the server or, as a timer, fell due: the time of the decision. */
  readonly received: number;
  /** A number of the subject's session. */
  readonly session: number;
  /** The property at a dotted path that `check` names. */
  get(path: string): Json | undefined;
  /** All properties. Slower than those that `check` names. */
  json(): { [key: string]: Json };
}

/** Which event it was, and when it happened. */
export interface EventReference {
  /** A UUID. */
  id: string;
  timestamp: number;
}

/** An event of a subject's history. */
export interface PastEvent extends EventReference {
  properties: { [path: string]: Json | undefined };
}

/** Which of the earlier events are asked for. */
export interface Past {
  within?: number;
  /** 200 unless given, 1,000 at the most. */
  limit?: number;
  properties?: string[];
}

/** The subject of an event, under one campaign. */
export interface Subject {
  /** The time of the decision. */
  readonly now: number;
  /** Within one call, equal numbers are the same subject. */
  readonly number: number;
  /** The campaign's identifier (a UUID), by which facts say what they know of it. */
  readonly campaignId: string;
  /** What was last kept of the subject for this campaign: JSON of up to 4 KiB. */
  get state(): any;
  set state(value: Json | undefined);
  /** A saved property. */
  property(key: string): Json | undefined;
  /**
   * A fact: `platform`, `country`, `locale`, `timezone` (`Europe/Vienna`), `app_version`, `external_id`, `identified`,
   * `first_seen_at`, `last_seen_at`, `event_count`, `survey_interactions`, `message_interactions`, `held_back` or
   * `merged_states`. `held_back` says by campaign (`campaignId`) of which event the firing had no effect last.
   * `merged_states` has by campaign `own`, what is kept of the subject, and `others`, what was kept of people who were
   * merged into it since, in hexadecimal digits. It is as of before the batch: heed it while the state is still `own`; a
   * state that is stored follows from all of them.
   */
  fact(name: string): Json | undefined;
  /** The id of the event whose firing of this campaign had no effect last: consent, a cap, quiet hours or the like. */
  readonly heldBack: string | undefined;
  /**
   * What this campaign keeps of people who were merged into the subject, until a state is stored: that follows from all
   * of them.
   */
  readonly mergedStates: any[];
  /** How many earlier events of this name happened within so many milliseconds (none: ever), up to `atMost`, 1,000 or less. */
  countEvents(name: string, within?: number, atMost?: number): number;
  /** Whether an earlier event of this name happened within so many milliseconds (none: ever). */
  hasEvent(name: string, within?: number): boolean;
  /** The earlier events of this name, newest first. */
  recentEvents(name: string, past?: Past): PastEvent[];
  /** Number `n` of the event's own random numbers, from 0 to 1: the same for the same event and campaign. */
  random(n?: number): number;
  /**
   * Sets a timer, in place of one with the same key: at a `Date`, or so many milliseconds ahead. At most 90 days ahead;
   * the past is now.
   */
  setTimer(key: string, when: number | Date, payload?: Json): void;
  cancelTimer(key: string): void;
  cancelTimers(): void;
  /** Says why, for the person who asks. */
  explain(check: string, passed: boolean, detail?: string): void;
}

/** A timer that is due. */
export interface Timer {
  key: string;
  payload: any;
  /** The event that set it. */
  event: Event;
}

/** What a component exports; the host calls it. */
export type Exports = object;

/** A trigger plugin: `onEvent` and `onTimer` say whether the campaign fires. */
export function trigger<Config = any>(
  plugin: Declaration<Config> & {
    onEvent(config: Config, event: Event, subject: Subject): boolean | undefined;
    onTimer?(config: Config, timer: Timer, subject: Subject): boolean | undefined;
  },
): Exports;

/** An event that is to be validated. */
export interface ValidatedEvent {
  /** The time of the decision: when the batch's latest event reached the server. */
  readonly now: number;
  /** When it happened, by the client's corrected clock. */
  readonly timestamp: number;
  /** The property at a dotted path that `check` names. */
  get(path: string): Json | undefined;
  /** The names of the properties that `check` does not name. */
  unread(): string[];
  /** All properties. Slower than those that `check` names. */
  json(): { [key: string]: Json };
}

/** One way in which an event breaks its definition. */
export interface Violation {
  code: string;
  property?: string;
  expected?: string;
  actual?: unknown;
}

/** A validation plugin. */
export function validation<Config = any>(
  plugin: Declaration<Config> & {
    validate(config: Config, event: ValidatedEvent): Iterable<Violation>;
  },
): Exports;

/** A recipient of a message. */
export interface Recipient {
  readonly now: number;
  /** A saved property that `check` names. */
  property(key: string): Json | undefined;
  /** A property, named by `check`, of the event that caused the message. */
  trigger(path: string): Json | undefined;
  /** The event that caused the message; `undefined` where none did. */
  readonly triggerEvent: EventReference | undefined;
  /** A value of the request that asks for the send, whose key `dataKeys` names. */
  data(key: string): Json | undefined;
  /** A fact, as those of subjects. */
  fact(name: string): Json | undefined;
  /** The recipient's events of this name, newest first. */
  recentEvents(name: string, past?: Past): PastEvent[];
  /** Number `n` of the recipient's own random numbers, from 0 to 1: the same for the same recipient. */
  random(n?: number): number;
}

/** What one binding resolved to. Without a value, `issue` says why. */
export interface Resolution {
  value?: Json;
  /** How the value stands inside a text. Without it the value stands there itself: arrays and objects as they were sent. */
  text?: string;
  usedFallback?: boolean;
  issue?: string;
  detail?: string;
  /** The event that the value comes from, such as one of `recentEvents`. */
  event?: { id: string; timestamp: number | Date };
}

/** A personalization plugin. */
export function personalization<Config = any>(
  plugin: Declaration<Config> & {
    /** The keys of the request's data that `data` will ask for. */
    dataKeys?(config: Config): string[];
    resolve(config: Config, recipient: Recipient): { [binding: string]: Resolution };
  },
): Exports;
