// What the list of webhooks and the page of one have in common: what is written of one, and how it fares.
import { html, number } from "../../lib/index.js";
import { Badge, Checkbox, Input, PickSome, Time } from "../../ui/index.js";

/** What an endpoint can be told of, in the order in which it happens. */
const TYPES = ["sent", "delivered", "displayed", "opened", "clicked", "dismissed", "bounced", "failed"];
/** What authors of plugins have to look at. */
const AUTHORS = ["plugin.rolled_back", "plugin.degraded", "dead_letter.created"];

export const BLANK = { url: "", eventTypes: TYPES, active: true, description: "" };

/** @param {{ value: typeof BLANK, onChange: (value: typeof BLANK) => void }} props */
export const Fields = ({ value, onChange }) => html`
  <${Input} label="Address" type="url" at="/url" hint="https, on the public internet." value=${value.url} onInput=${(/** @type {string} */ url) => onChange({ ...value, url })} />
  <${Input} label="Description" at="/description" value=${value.description} onInput=${(/** @type {string} */ description) => onChange({ ...value, description })} />
  <${PickSome} label="It is told of" options=${[...TYPES, ...AUTHORS].map((type) => [type, type])} value=${value.eventTypes} onChange=${(/** @type {string[]} */ eventTypes) => onChange({ ...value, eventTypes })} />
  <${Checkbox} label="Active" at="/active" hint="Nothing is sent or kept for one that is not." checked=${value.active} onChange=${(/** @type {boolean} */ active) => onChange({ ...value, active })} />`;

/** @type {Record<string, string>} */
const KINDS = { healthy: "good", degraded: "warn", disabled: "bad" };

/** @param {{ webhook: any }} props */
export const HealthBadge = ({ webhook: { active, health } }) =>
  active || health.state == "disabled" ? html`<${Badge} kind=${KINDS[health.state]}>${health.state}<//>` : html`<${Badge}>not active<//>`;

/** @param {{ health: any }} props */
export const Health = ({ health }) => html`<p>Last success: <${Time} relative at=${health.lastSuccessAt} none="none yet" />.
  ${health.lastFailureAt && html`Last failure: <${Time} relative at=${health.lastFailureAt} />${health.lastStatusCode && `, status ${health.lastStatusCode}`}${health.lastError && `, ${health.lastError}`}.`}
  ${health.consecutiveFailures > 0 && html`<strong>${number(health.consecutiveFailures)} failed attempts in a row.</strong>`}</p>`;
