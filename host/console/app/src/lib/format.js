// How values are shown.
import { signal } from "./preact.js";
import { keep, recall } from "./storage.js";

/** The time zone of times: empty, which is the browser's, or UTC. */
export const zone = signal(/** @type {string} */ (recall("times") ?? ""));

/** @param {string} next */
export function setZone(next) {
  zone.value = next;
  keep("times", next || undefined);
}

const NUMBER = new Intl.NumberFormat();
const PERCENT = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 1 });
const TIME = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const DAY = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeZone: "UTC" });
const RELATIVE = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });

/** @type {[Intl.RelativeTimeFormatUnit, number][]} */
const UNITS = [["year", 31_536_000], ["month", 2_592_000], ["day", 86_400], ["hour", 3600], ["minute", 60], ["second", 1]];

/** @param {number | null | undefined} value */
export const number = (value) => (value === null || value === undefined ? "–" : NUMBER.format(value));

/** @param {number | null | undefined} share 0 to 1 */
export const percent = (share) => (share === null || share === undefined ? "–" : PERCENT.format(share));

/**
 * A count that may be an estimate: `10,000+`.
 * @param {number | undefined} total
 * @param {boolean} [estimate]
 */
export const count = (total, estimate) => (total === undefined ? "" : number(total) + (estimate ? "+" : ""));

/** The time in the zone that is chosen. @param {string} instant */
export const time = (instant) => (zone.value ? utc(instant) : TIME.format(new Date(instant)));

/** The day in UTC, by which the server counts. @param {string} instant */
export const utcDay = (instant) => DAY.format(new Date(instant));

const DAY_LENGTH = 86_400_000;
const YEAR_LENGTH = 366 * DAY_LENGTH;

/**
 * Rows by their days, with a row for each day between that has none; also from and to a day that is named, at most a year further.
 * @param {any[]} rows with `at`, the oldest first; at least one
 * @param {string} [from]
 * @param {string} [to]
 */
export function everyDay(rows, from, to) {
  const known = new Map(rows.map((row) => [row.at.slice(0, 10), row]));
  const [first = 0, ...rest] = [...known.keys()].map((day) => Date.parse(day));
  const last = rest.at(-1) ?? first;
  const [begin, end] = [from, to].map((day) => Date.parse(day?.slice(0, 10) ?? ""));
  const least = Math.max(first - YEAR_LENGTH, Math.min(first, begin || first));
  const most = Math.min(last + YEAR_LENGTH, Math.max(last, end || last));
  const found = [];
  for (let at = least; at <= most; at += DAY_LENGTH) {
    const day = new Date(at).toISOString();
    found.push(known.get(day.slice(0, 10)) ?? { at: day });
  }
  return found;
}

/** The same instant in UTC, to the second. @param {string} instant */
export const utc = (instant) => `${new Date(instant).toISOString().slice(0, 19).replace("T", " ")} UTC`;

/** How long ago, or how long until. @param {string} instant @param {number} [now] */
export function ago(instant, now = Date.now()) {
  const seconds = (Date.parse(instant) - now) / 1000;
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? ["second", 1];
  return RELATIVE.format(Math.round(seconds / size), unit);
}

/** The part of an id that tells it from its neighbours: ids begin with the time. @param {string} id */
export const shortId = (id) => (id.length > 12 ? `…${id.slice(-8)}` : id);

/** A snake case value as words: `link_only` → `link only`. @param {string | null | undefined} value */
export const words = (value) => (value ?? "–").replaceAll("_", " ");

/** The name of a copy: names have at most 200 characters. @param {string} name */
export const copied = (name) => `${[...name].slice(0, 193).join("")} (copy)`;

/** @param {number} size */
export function bytes(size) {
  const units = ["B", "KiB", "MiB", "GiB"];
  let index = 0;
  for (; size >= 1024 && index < units.length - 1; index++) size /= 1024;
  return `${index ? size.toFixed(1) : size} ${units[index]}`;
}
