const hex = (value: number, digits = 4) => Math.floor(value).toString(16).padStart(digits, "0");

/** Ids of one millisecond, of which the first are those of {@link idOf}. More go into the next one. */
const PLACES = 1024;
const FIRST = 16;

/** The place of the last id, of all places since 1970. */
let last = 0;

/**
 * A new id (UUIDv7): those that a page makes later sort after those that it made before, also within a millisecond, so
 * that the server lists events of one instant in their order.
 */
export function newId(): string {
  last = Math.max(last + 1, Date.now() * PLACES + FIRST + Math.random() * 256);
  return idOf(last / PLACES, last % PLACES);
}

/**
 * An id of an instant that sorts before those that a page made then: `place` is less than 16, by which the sender knows it.
 * The same instant, place and `seed` (an id) make the same one.
 */
export function idOf(at: number, place: number, seed?: string): string {
  const time = hex(at, 12);
  const [first, ...others] = crypto.getRandomValues(new Uint16Array(4));
  const chance = seed?.slice(19) ?? `${hex(0x8000 | (first! % 0x4000))}-${others.map((value) => hex(value)).join("")}`;
  return `${time.slice(0, 8)}-${time.slice(8)}-7${hex(place, 3)}-${chance}`;
}

/** An instant as the server reads it. */
export const iso = (at: number): string => new Date(at).toISOString();

/** Resolves after a while, or at once when a signal says so, to which nobody else listens then. */
export function pause(milliseconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const timer = setTimeout(done, signal?.aborted ? 0 : milliseconds);
    if (signal) signal.onabort = () => (clearTimeout(timer), done());
  });
}

/** The pause before the next try, in milliseconds: longer each time, a minute at the most, never all at once. */
export const backoff = (failures: number): number => Math.min(60_000, 500 * 2 ** failures) * (0.5 + Math.random() / 2);
