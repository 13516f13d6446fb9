import { databaseName, databaseStore, openDatabase } from "./store.js";
import type { Draft } from "./state.js";

/** Whether the page is no reload and no way within the site: a new tab while no other is known. `name`: the database's. */
export function isCold(name: string): boolean {
  try {
    const before = sessionStorage.getItem(name);
    sessionStorage.setItem(name, "1");
    return !before;
  } catch {
    return true;
  }
}

/** Notes what the database has not taken yet, in the one storage that takes it before the page is gone. */
export function stash(name: string, tab: string, all: Draft[]): void {
  try {
    const drafts = all.filter((draft) => draft.kind != "active" || draft.cold);
    if (drafts.length) localStorage.setItem(`${name}:${tab}`, JSON.stringify(drafts));
  } catch {
    // A page that may keep nothing.
  }
}

/** Where earlier pages noted something. Throws where a page may not look. */
const noted = (name: string): string[] => Object.keys(localStorage).filter((key) => key.startsWith(`${name}:`));

/** What earlier pages noted as they went. An event that the database has as well has the same id. */
export function unstash(name: string): Draft[] {
  const drafts: Draft[] = [];
  try {
    for (const key of noted(name)) {
      const text = localStorage.getItem(key)!;
      localStorage.removeItem(key);
      drafts.push(...JSON.parse(text));
    }
  } catch {
    // It was nothing of ours.
  }
  return drafts;
}

/** Whether somebody consented before, or something of that time is not sent yet. Makes no database to find out. */
export async function consented(writeKey: string): Promise<boolean> {
  const name = databaseName(writeKey);
  try {
    if (noted(name).length) return true;
  } catch {
    // A page that may note nothing has a database all the same.
  }
  try {
    const known = await indexedDB.databases();
    if (!known.some((database) => database.name == name)) return false;
    const database = await openDatabase(writeKey);
    const store = databaseStore(database);
    const { analytics, messaging } = (await store.get("me")) ?? {};
    const [waits] = await store.head(1);
    database.close();
    return !!(analytics || messaging || waits);
  } catch {
    return false;
  }
}
