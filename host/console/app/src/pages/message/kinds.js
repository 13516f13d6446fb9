// What the two kinds of messages have in common and what not.
import { put } from "../../ui/fields.js";

/** @typedef {"push" | "in_app"} Type */
/** @type {Record<string, string>} */
export const TYPES = { push: "push", in_app: "in-app" };
/** @type {Record<string, string>} */
export const STATUSES = { draft: "info", active: "good", paused: "warn", completed: "info", archived: "info" };

/** How a message finds its people. @type {Record<string, [string, string][]>} */
export const MODES = {
  push: [["triggered", "something happens (triggered)"], ["scheduled", "the calendar (scheduled)"], ["broadcast", "its whole audience, once (broadcast)"], ["transactional", "a request of your server (transactional)"]],
  in_app: [["triggered", "something happens (triggered)"], ["scheduled", "the calendar (scheduled)"]],
};

/** What may start a mode. @type {Record<string, string[]>} */
export const TRIGGERS = {
  triggered: ["event", "screen_view", "session_start", "property_changed", "segment", "plugin"],
  scheduled: ["schedule", "plugin"],
};

/** A new variant. @param {string} type */
export const blankVariant = (type) => (type == "push" ? { title: "", body: "", weight: 1, openAction: { action: "open_app" } } : { layout: "modal", title: "", body: "", weight: 1, dismissible: true, buttons: [] });

/** A new message. @param {string} type */
export const blankMessage = (type) => ({ type, name: type == "push" ? "New push message" : "New in-app message", mode: "triggered", status: "draft", variants: [blankVariant(type)] });

/** The name of a variant: A, B, C … @param {number} index */
export const letter = (index) => (index < 0 ? "deleted" : String.fromCharCode(65 + index));

/** What a variant is called in lists of results. @param {any} campaign @param {string} id */
export const variantName = (campaign, id) => `Variant ${letter(campaign.variants.findIndex((/** @type {any} */ variant) => variant.id == id))}`;

/**
 * What is saved of a draft. What its mode does not take goes, unless the message has it already. Until then it stays: who has only
 * looked at another mode finds the audience as it was.
 * @param {{ base: any, value: any }} draft
 */
export function fitting({ base, value }) {
  const { mode, trigger } = value;
  const own = mode == base.mode ? base : {};
  const fits = !trigger || [...(TRIGGERS[mode] ?? []), own.trigger?.kind].includes(trigger.kind);
  const kept = { ...(!fits && { trigger: own.trigger }), ...(mode == "transactional" && { audience: own.audience, schedule: own.schedule }) };
  return Object.entries(kept).reduce((all, [name, one]) => put(all, name, one), value);
}

/** What people write of a message; its status is changed by buttons. @param {Record<string, any>} campaign */
export function written(campaign) {
  const { id, appId, version, createdAt, updatedAt, activatedAt, stats, status, type, ...content } = campaign;
  return content;
}
