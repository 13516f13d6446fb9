// Finds a person by any id, and campaigns of all kinds by theirs.
import { get, inApp, list, useLoaded } from "../lib/index.js";

const SUBJECT = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** What people are called. @param {any} person */
export const nameOf = (person) => person.externalId ?? person.anonymousId ?? person.subjectId;

/** An id of dots alone: browsers take it out of a path, however it is written. */
const DOTS = /^\.\.?$/;

/**
 * The path of a person's routes, and its query: an id can be one person's anonymous id and another one's external id.
 * @param {any} person
 * @returns {{ path: string, query: import("../lib/api.js").Query }}
 */
export function place({ anonymousId, anonymousIds, externalId }) {
  const anonymous = anonymousIds.find((/** @type {string} */ id) => !DOTS.test(id)) ?? (externalId ? undefined : anonymousId);
  return { path: inApp(`/users/${encodeURIComponent(anonymous ?? externalId)}`), query: { idKind: anonymous ? "anonymousId" : "externalId" } };
}

/**
 * A person by their subject id, or by any other id of theirs. The routes of people know no subject ids, but the search
 * does.
 * @param {string} id
 * @param {AbortSignal} signal
 */
async function find(id, signal) {
  if (SUBJECT.test(id)) {
    const { items } = await get(inApp("/users"), { q: id, limit: 2 }, signal);
    const found = items.find((/** @type {any} */ { subjectId }) => subjectId == id.toLowerCase());
    if (found) return await get(place(found).path, place(found).query, signal);
  }
  return await get(inApp(`/users/${encodeURIComponent(id)}`), {}, signal);
}

/**
 * @param {string | undefined} id none: nobody is asked for
 * @returns {import("../lib/load.js").Loaded<any>} the person with devices and properties
 */
export const usePerson = (id) => useLoaded(id ? inApp(`/person/${id}`) : null, (signal) => find(id ?? "", signal));

/** @typedef {{ id: string, name: string, kind: string, status: string }} Campaign */

/** Surveys and campaigns of the app. */
export function useCampaigns() {
  const found = useLoaded(inApp("/every-campaign"), async (signal) => {
    const [surveys, push, inAppMessages] = await Promise.all([
      list(inApp("/surveys"), {}, signal),
      list(inApp("/campaigns"), { type: "push" }, signal),
      list(inApp("/campaigns"), { type: "in_app" }, signal),
    ]);
    const of = (/** @type {string} */ kind, /** @type {any} */ { items }) => items.map((/** @type {any} */ { id, name, status }) => ({ id, name, status, kind }));
    return /** @type {Campaign[]} */ ([...of("survey", surveys), ...of("push", push), ...of("in-app", inAppMessages)]);
  });
  const nameOf = (/** @type {string} */ id) => found.data?.find((one) => one.id == id)?.name ?? id;
  return { ...found, nameOf };
}
