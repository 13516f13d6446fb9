const hex = (value: number, digits: number) => value.toString(16).padStart(digits, "0");
const random = (most: number) => crypto.getRandomValues(new Uint32Array(1))[0]! % most;

let last = 0;
let count = 0;

/**
 * A new id (UUIDv7): those that a page makes later sort after those that it made before, also within a millisecond, so
 * that the server lists events of one instant in their order.
 */
export function newId(): string {
  const now = Date.now();
  if (now > last) {
    last = now;
    count = FIRST + random(1024);
  } else if (++count > 4095) {
    last++;
    count = FIRST;
  }
  return idOf(last, count);
}

/** Places of a millisecond before those of {@link newId}. */
const FIRST = 16;

/**
 * An id of an instant that sorts before those that a page made then: `place` is less than 16. The same instant, place
 * and `seed` (an id) make the same one.
 */
export function idOf(at: number, place: number, seed?: string): string {
  const time = hex(at, 12);
  const chance = seed?.slice(19) ?? `${hex(0x8000 | random(0x4000), 4)}-${hex(random(2 ** 32), 8)}${hex(random(2 ** 16), 4)}`;
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
