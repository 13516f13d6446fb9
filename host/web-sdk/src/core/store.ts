import type { EventProperties } from "./types.js";

/** An event as it is sent. */
export interface QueuedEvent {
  eventId: string;
  name: string;
  timestamp: string;
  anonymousId: string;
  properties?: EventProperties;
}

/** What waits to be sent: `aid` says for whom. */
export type Item =
  | { kind: "event"; aid: string; sid: string; event: QueuedEvent; screen?: string; locale?: string }
  | { kind: "call"; aid: string; method: string; path: string; body?: unknown }
  | { kind: "identify"; aid: string; token: string }
  | { kind: "end"; aid: string };

/** An item and its place. */
export type Row = [key: number, item: Item];

/** What a change makes of what it read. */
export interface Change {
  put?: { [key: string]: unknown };
  add?: Item[];
  remove?: number[];
}

/** What is kept: a queue in order, and values by name. */
export interface Store {
  /** Reads values and changes things, in one transaction. */
  change(keys: string[], change: (values: any[]) => Change | undefined): Promise<void>;
  /** What waits, oldest first. */
  head(most: number): Promise<Row[]>;
  get(key: string): Promise<any>;
}

const QUEUE = "queue";
const VALUES = "values";
const VERSION = 1;

/** What the database of an app is called; the service worker opens it too. */
export const databaseName = (writeKey: string): string => `nudge:${writeKey}`;

/** What a request of the database comes to. */
const result = <T>(request: IDBRequest<T>): Promise<T> =>
  new Promise((done, fail) => {
    request.onsuccess = () => done(request.result);
    request.onerror = () => fail(request.error);
  });

/** Opens the database. Rejects where there is none. */
export async function openDatabase(writeKey: string): Promise<IDBDatabase> {
  const request = indexedDB.open(databaseName(writeKey), VERSION);
  request.onupgradeneeded = () => {
    request.result.createObjectStore(QUEUE, { autoIncrement: true });
    request.result.createObjectStore(VALUES);
  };
  return result(request);
}

/** The store in a database. A change is on disk, or the promise is rejected. */
export function databaseStore(database: IDBDatabase): Store {
  const begin = (mode: IDBTransactionMode) => {
    const transaction = database.transaction([QUEUE, VALUES], mode);
    return [transaction.objectStore(QUEUE), transaction.objectStore(VALUES), transaction] as const;
  };
  return {
    change: (keys, change) =>
      new Promise((done, fail) => {
        const [queue, values, transaction] = begin("readwrite");
        transaction.oncomplete = () => done();
        transaction.onabort = () => fail(transaction.error);
        // One more than is asked for: the last one read says that all are.
        const read: IDBRequest[] = [...keys, ""].map((key) => values.get(key));
        const apply = () => {
          try {
            const { put = {}, add = [], remove = [] } = change(read.map((request) => request.result)) ?? {};
            for (const [key, value] of Object.entries(put)) {
              if (value === undefined) values.delete(key);
              else values.put(value, key);
            }
            for (const item of add) queue.add(item);
            for (const key of remove) queue.delete(key);
            // Not left to the browser, which waits for more: a page may be gone by then.
            transaction.commit?.();
          } catch (error) {
            fail(error);
            transaction.abort();
          }
        };
        read.at(-1)!.onsuccess = apply;
      }),
    async head(most) {
      const [queue] = begin("readonly");
      const [keys, items] = await Promise.all([result(queue.getAllKeys(null, most)), result(queue.getAll(null, most))]);
      return keys.map((key, index): Row => [key as number, items[index]]);
    },
    get: (key) => result(begin("readonly")[1].get(key)),
  };
}

/** The store of a page that may keep nothing. */
export function memoryStore(values: Map<string, any> = new Map()): Store {
  let rows: Row[] = [];
  // Keys that no database gives: what a page has under way from one, before it fails, is not of here.
  let next = 0;
  return {
    async change(keys, change) {
      const { put = {}, add = [], remove = [] } = change(keys.map((key) => values.get(key))) ?? {};
      for (const [key, value] of Object.entries(put)) values.set(key, value);
      rows = rows.filter(([key]) => !remove.includes(key));
      for (const item of add) rows.push([--next, item]);
    },
    head: async (most) => rows.slice(0, most),
    get: async (key) => values.get(key),
  };
}
