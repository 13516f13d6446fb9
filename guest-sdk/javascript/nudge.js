// What authors of Nudge plugins in JavaScript import: one function a kind of plugin, which makes the
// component's exports of plain functions. Instants are milliseconds since 1970, as `Date` has them. A plugin may give a
// `Date` for an instant.

import { write } from "nudge:plugin/log@1.0.0";

/** A text of the contract. A value of another type would end the call without a word. */
function textOf(value, what) {
  if (typeof value !== "string") throw new TypeError(`${what} must be a string, and is ${JSON.stringify(value)}`);
  return value;
}

/** A list of texts of the contract. */
function textsOf(values, what) {
  if (!Array.isArray(values)) throw new TypeError(`${what} must be an array of strings, and is ${JSON.stringify(values)}`);
  return values.map((value) => textOf(value, `each of ${what}`));
}

/** What a function of the plugin answers. A promise would be settled after the call has ended. */
function answered(value, name) {
  if (typeof value?.then === "function") throw new TypeError(`\`${name}\` must answer at once: it can't be async`);
  return value;
}

/** Whether a decision fires. A value that only counts as true would fire for nobody, and say nothing. */
function isFired(value, name) {
  if (answered(value, name) && value !== true) {
    throw new TypeError(`\`${name}\` must answer true or false, and answered ${shown(value)}`);
  }
  return value === true;
}

/** What `check` may answer. */
const READS = ["events", "properties", "subjectProperties", "history"];

/** What `check` answered. A misspelt name would leave the plugin without events, and say nothing. */
function readsOf(value) {
  const reads = answered(value, "check") ?? {};
  if (typeof reads !== "object" || Array.isArray(reads)) {
    throw new TypeError(`\`check\` must answer an object, and answered ${shown(reads)}; problems are thrown`);
  }
  const other = Object.keys(reads).find((name) => !READS.includes(name));
  if (other !== undefined) throw new TypeError(`\`check\` answered \`${other}\`, which is none of ${READS.join(", ")}`);
  return reads;
}

/** A problem with a configuration, for `throw problem(…)` or `throw [problem(…), …]` in `check`. */
export function problem(code, pointer, message) {
  return {
    code: textOf(code, "a problem's code"),
    pointer: textOf(pointer, "a problem's pointer"),
    message: textOf(message, "a problem's message"),
    more: [],
  };
}

/** Refuses a whole batch: nothing of it takes effect. */
export function refusal(code, message) {
  return { code: textOf(code, "a refusal's code"), message: textOf(message, "a refusal's message"), more: [] };
}

/** Lines for the plugin's author and operators: up to 8 KiB a call. */
export const log = {
  debug: (message) => write("debug", String(message)),
  info: (message) => write("info", String(message)),
  warn: (message) => write("warn", String(message)),
  error: (message) => write("error", String(message)),
};

const millis = (micros) => Number(micros) / 1000;
/** An instant that the plugin gives. A value of another type would end the call without a word. */
function micros(instant, what = "an instant") {
  const millis = instant instanceof Date ? instant.getTime() : instant;
  if (!Number.isFinite(millis)) throw new TypeError(`${what} must be a Date or milliseconds, and is ${String(instant)}`);
  return BigInt(Math.round(millis * 1000));
}

/** A random number of the host, which has 64 bits, as a fraction from 0 to 1. */
const fraction = (random) => Number(random >> 11n) / 2 ** 53;

/** What is kept of a subject or a timer, as bytes. What JSON leaves out, such as a function, would be kept as nothing. */
function encode(value) {
  const text = JSON.stringify(value);
  if (text === undefined) throw new TypeError(`what is kept must be JSON, and is ${String(value)}`);
  return new TextEncoder().encode(text);
}

const decode = (bytes) => (bytes === undefined ? undefined : JSON.parse(new TextDecoder().decode(bytes)));

/** The digits of bytes, as facts have them. */
const hexadecimal = (bytes) => Array.from(bytes ?? [], (byte) => byte.toString(16).padStart(2, "0")).join("");

/** The bytes that a fact's digits stand for. */
const unhexadecimal = (digits) => Uint8Array.from(digits.match(/../g) ?? [], (pair) => parseInt(pair, 16));

/** A value of the contract as JavaScript has it. */
function fromWit(value) {
  if (value === undefined || value.tag === "null") return value === undefined ? undefined : null;
  return value.tag === "json" ? JSON.parse(value.val) : value.val;
}

/** A JavaScript value as the contract has it. */
function toWit(value) {
  switch (typeof value) {
    case "undefined": return undefined;
    case "boolean": return { tag: "boolean", val: value };
    case "number": return { tag: "number", val: value };
    case "string": return { tag: "text", val: value };
    default: return value === null ? { tag: "null" } : { tag: "json", val: JSON.stringify(value) };
  }
}

/** A value as it stands inside a text: arrays and objects as they were sent. */
function shown(value) {
  return value !== null && typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** The contract's table, cell by cell: `undefined` is missing or withheld. */
class Table {
  constructor(cells, columns) {
    this.cells = cells;
    this.columns = columns;
    this.bytes = undefined;
  }

  text(index) {
    // The ends count bytes.
    this.bytes ??= new TextEncoder().encode(this.cells.text);
    const start = index === 0 ? 0 : this.cells.ends[index - 1];
    // A mark of the byte order at its beginning is a part of the text.
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    return decoder.decode(this.bytes.subarray(start, this.cells.ends[index]));
  }

  get(row, path) {
    const column = this.columns.indexOf(path);
    if (column < 0) throw new Error(`\`${path}\` is not among what \`check\` says is read`);
    const index = row * this.columns.length + column;
    switch (this.cells.tags[index]) {
      case 1: return null;
      case 2: return false;
      case 3: return true;
      case 4: return this.cells.numbers[index];
      case 5: return this.text(index);
      case 6: return JSON.parse(this.text(index));
      default: return undefined;
    }
  }

  row(row) {
    return Object.fromEntries(this.columns.map((path) => [path, this.get(row, path)]));
  }
}

function history(found, properties) {
  const table = new Table(found.properties, properties);
  return found.ids.map((id, row) => ({
    id,
    timestamp: millis(found.timestamps[row]),
    properties: table.row(row),
  }));
}

/** The event that a value comes from, as a resolution names it. */
function origin(event) {
  if (event === undefined) return [];
  const timestamp = new Date(Number(micros(event.timestamp, "an event's timestamp")) / 1000).toISOString();
  return [["event_id", textOf(event.id, "an event's id")], ["timestamp", timestamp]];
}

/** An exception as the log shows it: its message, then its places, which are all that an engine's stack may have. */
const told = (error) => `${String(error)}\n${error?.stack ?? ""}`.trimEnd();

/** Code and message of what was thrown. What has none that are texts is a mistake, which the log tells of. */
function stated(error) {
  if (typeof error?.code === "string" && typeof error.message === "string") return error;
  log.error(told(error));
  return { code: "exception", message: String(error) };
}

/** What `check` threw, as problems: one, or a list of them. */
function problems(error) {
  const thrown = [error].flat();
  if (thrown.length === 0) thrown.push(new Error("`check` threw an empty list"));
  return thrown.map((one) => {
    const { code, pointer, message } = stated(one);
    return problem(code, typeof pointer === "string" ? pointer : "", message);
  });
}

/** What all kinds have in common: what a plugin says of itself, and what its configurations read. */
function declared(plugin) {
  const read = (config) => {
    const { events = [], properties = [], subjectProperties = [], history = [] } = readsOf(plugin.check(config));
    return {
      eventNames: textsOf(events, "events"),
      properties: textsOf(properties, "properties"),
      subjectProperties: textsOf(subjectProperties, "subjectProperties"),
      more: textsOf(history, "history").map((name) => ["history", name]),
    };
  };
  return {
    read,
    exports: {
      describe() {
        try {
          return {
            name: textOf(plugin.name, "name"),
            version: textOf(plugin.version, "version"),
            summary: textOf(plugin.summary ?? "", "summary"),
            configSchema: plugin.configSchema ? JSON.stringify(plugin.configSchema) : "",
            more: [],
          };
        } catch (error) {
          log.error(told(error));
          throw error;
        }
      },
      checkConfig(text) {
        try {
          return read(JSON.parse(text));
        } catch (error) {
          throw problems(error);
        }
      },
    },
  };
}

/** Runs a decision: an exception refuses the batch, so that it can be read in the plugin's log. */
function decide(body) {
  try {
    body();
  } catch (error) {
    const { code, message } = stated(error);
    throw refusal(code, message);
  }
}

class Event {
  constructor(campaign, item, row) {
    this.campaign = campaign;
    this.item = item;
    this.row = row;
  }

  get name() { return this.campaign.batch.names[this.campaign.batch.nameIndexes[this.item]]; }
  get id() { return this.campaign.host.eventId(this.item); }
  /** When it happened, by the client's corrected clock. */
  get timestamp() { return millis(this.campaign.batch.timestamps[this.item]); }
  /** When it reached the server or, as a timer, fell due: the time of the decision. */
  get received() { return millis(this.campaign.batch.received[this.item]); }
  get session() { return this.campaign.batch.sessions[this.item]; }
  /** The property at a dotted path that `check` names; `undefined` is missing. */
  get(path) { return this.campaign.table.get(this.row, path); }
  /** All properties. Slower than those that `check` names. */
  json() { return JSON.parse(this.campaign.host.eventJson(this.item)); }
}

class Subject {
  constructor(campaign, item) {
    this.campaign = campaign;
    this.item = item;
    this.host = campaign.host;
  }

  get now() { return millis(this.campaign.batch.received[this.item]); }
  /** Within one call, equal numbers are the same subject. */
  get number() { return this.campaign.batch.subjects()[this.item]; }
  /** The campaign's identifier (a UUID). */
  get campaignId() { return this.host.campaignId(this.campaign.number); }
  #since(within) { return within === undefined ? undefined : micros(this.now - within); }

  /** A saved property; `undefined` is missing. */
  property(key) { return fromWit(this.host.subjectProperty(this.item, key)); }
  /**
   * A fact: `platform`, `country`, `locale`, `timezone`, `app_version`, `external_id`, `identified`, `first_seen_at`,
   * `last_seen_at`, `event_count`, `survey_interactions`, `message_interactions`, `held_back` or `merged_states`. The last
   * four are objects by campaign; `campaignId` is this one's.
   */
  fact(name) { return fromWit(this.host.subjectFact(this.item, name)); }
  /** The id of the event whose firing of this campaign had no effect last; `undefined` is none. */
  get heldBack() { return this.fact("held_back")?.[this.campaignId]; }
  /** What this campaign keeps of people who were merged into the subject, until a state is stored. */
  get mergedStates() {
    const known = this.fact("merged_states")?.[this.campaignId];
    // Facts are as of before the batch. A state that was stored since follows from all of them.
    const own = hexadecimal(this.host.getState(this.campaign.number, this.item));
    if (known === undefined || own === "" || known.own !== own) return [];
    return known.others.map((digits) => decode(unhexadecimal(digits)));
  }
  /** How many earlier events of this name happened within so many milliseconds (none: ever), up to `atMost`. */
  countEvents(name, within, atMost = 1000) {
    return this.host.countEvents(this.item, name, this.#since(within), atMost);
  }
  /** Whether an earlier event of this name happened within so many milliseconds (none: ever). */
  hasEvent(name, within) { return this.countEvents(name, within, 1) > 0; }
  /** The earlier events of this name, newest first. */
  recentEvents(name, { within, limit = 200, properties = [] } = {}) {
    const found = this.host.recentEvents(this.item, name, this.#since(within), limit, properties);
    return history(found, properties);
  }
  /** Number `n` of the event's own random numbers, from 0 to 1. */
  random(n = 0) { return fraction(this.host.random(this.item, this.campaign.number, n)); }
  /** What was last kept of the subject for this campaign; `undefined` is nothing. */
  get state() { return decode(this.host.getState(this.campaign.number, this.item)); }
  set state(value) {
    if (value === undefined) this.host.clearState(this.campaign.number, this.item);
    else this.host.setState(this.campaign.number, this.item, encode(value));
  }
  /** Sets a timer, in place of one with the same key: at a `Date`, or so many milliseconds ahead. */
  setTimer(key, when, payload = null) {
    const at = micros(when instanceof Date ? when : this.now + when, "a timer's time");
    this.host.setTimer(this.campaign.number, this.item, textOf(key, "a timer's key"), at, encode(payload));
  }
  cancelTimer(key) { this.host.cancelTimer(this.campaign.number, this.item, key); }
  cancelTimers() { this.host.cancelTimers(this.campaign.number, this.item); }
  /** Says why, for the person who asks. */
  explain(check, passed, detail = "") {
    if (this.host.explaining()) {
      const { number } = this.campaign;
      this.host.explain(number, this.item, textOf(check, "a check"), passed, textOf(detail, "a check's detail"));
    }
  }
}

/**
 * A trigger plugin: `{name, version, summary?, configSchema?, check(config), onEvent(config, event, subject),
 * onTimer?(config, timer, subject)}`. `check` gives `{events, properties?, subjectProperties?, history?}`; the other
 * two give whether the campaign fires.
 */
export function trigger(plugin) {
  const { read, exports } = declared(plugin);
  return {
    ...exports,
    evaluate: (host) => decide(() => {
      const batch = {
        names: host.names(), nameIndexes: host.nameIndexes(), timestamps: host.timestamps(),
        received: host.received(), sessions: host.sessions(), timers: new Set(host.timerItems()),
        subjects() { return this.numbers ??= host.subjects(); },
      };
      for (let number = 0; number < host.campaignCount(); number++) {
        const config = JSON.parse(host.campaignConfig(number));
        const table = new Table(host.campaignCells(number), read(config).properties);
        const campaign = { host, batch, number, table };
        const fires = (item, row) => {
          const [event, subject] = [new Event(campaign, item, row), new Subject(campaign, item)];
          if (!batch.timers.has(item)) return isFired(plugin.onEvent(config, event, subject), "onEvent");
          const timer = { key: host.timerKey(item), payload: decode(host.timerPayload(item)), event };
          return isFired(plugin.onTimer?.(config, timer, subject), "onTimer");
        };
        const items = Array.from(host.campaignItems(number));
        const fired = items.filter((item, row) => fires(item, row));
        if (fired.length > 0) host.fire(number, fired);
      }
    }),
  };
}

/**
 * A validation plugin: `{name, version, summary?, configSchema?, check(config), validate(config, event)}`.
 * `check` gives `{properties}`, `validate` a list of `{code, property, expected, actual}`. `event` has `timestamp` and
 * `now`, `get(path)`, `unread()` and `json()`.
 */
export function validation(plugin) {
  const { read, exports } = declared(plugin);
  return {
    ...exports,
    validate: (host) => decide(() => {
      const found = [];
      const now = millis(host.now());
      const timestamps = host.timestamps();
      for (let number = 0; number < host.definitionCount(); number++) {
        const config = JSON.parse(host.definitionConfig(number));
        const table = new Table(host.definitionCells(number), read(config).properties);
        Array.from(host.definitionItems(number)).forEach((item, row) => {
          const event = {
            now,
            timestamp: millis(timestamps[item]),
            get: (path) => table.get(row, path),
            unread: () => host.unread(item),
            json: () => JSON.parse(host.eventJson(item)),
          };
          const violations = answered(plugin.validate(config, event), "validate");
          for (const { code, property = "", expected = "", actual = "" } of violations) {
            found.push({
              item,
              code: textOf(code, "a violation's code"),
              property: textOf(property, "a violation's property"),
              expected: textOf(expected, "a violation's expected"),
              actual: shown(actual),
              more: [],
            });
          }
        });
      }
      if (found.length > 0) host.report(found);
    }),
  };
}

/**
 * A personalization plugin: `{name, version, summary?, configSchema?, check(config), dataKeys?(config),
 * resolve(config, recipient)}`. `check` gives `{properties?, subjectProperties?}` (properties are those of
 * the event that caused the message), `dataKeys` the keys of the request's data; `resolve` gives
 * `{[binding]: {value, text?, usedFallback?, issue?, detail?, event?}}`.
 */
export function personalization(plugin) {
  const { read, exports } = declared(plugin);
  return {
    ...exports,
    resolve: (host) => decide(() => {
      const now = millis(host.now());
      for (let number = 0; number < host.messageCount(); number++) {
        const config = JSON.parse(host.messageConfig(number));
        const reads = read(config);
        const keys = textsOf(answered(plugin.dataKeys?.(config), "dataKeys") ?? [], "dataKeys");
        const subjects = new Table(host.subjectCells(number), reads.subjectProperties);
        const triggers = new Table(host.triggerCells(number), reads.properties);
        const data = new Table(host.dataCells(number, keys), keys);
        const resolutions = [];
        Array.from(host.messageItems(number)).forEach((item, row) => {
          const recipient = {
            now,
            property: (key) => subjects.get(row, key),
            trigger: (path) => triggers.get(row, path),
            get triggerEvent() {
              const found = host.triggerEvent(item);
              return found && { id: found[0], timestamp: millis(found[1]) };
            },
            data: (key) => data.get(row, key),
            fact: (name) => fromWit(host.subjectFact(item, name)),
            random: (n = 0) => fraction(host.random(item, n)),
            recentEvents(name, { within, limit = 200, properties = [] } = {}) {
              const since = within === undefined ? undefined : micros(now - within);
              return history(host.recentEvents(item, name, since, limit, properties), properties);
            },
          };
          const resolved = answered(plugin.resolve(config, recipient), "resolve");
          for (const [binding, found] of Object.entries(resolved)) {
            const { value, text = value ?? "", usedFallback = false, issue = "", detail = "", event } = found;
            resolutions.push({
              item,
              binding,
              value: toWit(value),
              text: shown(text),
              usedFallback,
              issue: textOf(issue, "a resolution's issue"),
              detail: textOf(detail, "a resolution's detail"),
              more: origin(event),
            });
          }
        });
        if (resolutions.length > 0) host.resolve(resolutions);
      }
    }),
  };
}
