// Events, and what else happened to people, as rows that open in place.
import { html, link, route, time, words } from "../lib/index.js";
import { Badge, Copy, Facts, Json, LinkButton, Time } from "../ui/index.js";

/** @param {{ label: string, children: any }} props */
export const Entries = ({ label, children }) => html`<ul class="entries" aria-label=${label}>${children}</ul>`;

/**
 * A row that opens.
 * @param {{ title: any, about?: any, at: string, children: any }} props at: when
 */
export const Entry = ({ title, about, at, children }) =>
  html`<li><details><summary><strong>${title}</strong>${about && html`<span>${about}</span>`}<${Time} at=${at} /></summary><div>${children}</div></details></li>`;

/**
 * An event of the feed, or of somebody's timeline.
 * @param {{ event: any, subjectId: string, inTimeline?: boolean }} props inTimeline: whose it is goes without saying
 */
export function EventEntry({ event, subjectId, inTimeline }) {
  const { params } = route.value;
  const rejected = event.verdict == "rejected";
  const person = event.externalId ?? event.anonymousId ?? subjectId;
  const glance = JSON.stringify(event.properties).slice(0, 100);
  const about = html`${!inTimeline && person} ${glance != "{}" && html`<code class="hint">${glance}</code>`} ${rejected && html`<${Badge} kind="bad">rejected: ${event.errors.map((/** @type {any} */ { code }) => words(code)).join(", ")}<//>`}`;
  return html`<${Entry} title=${event.name ?? "without a name"} about=${about} at=${inTimeline ? event.timestamp : event.receivedAt}>
    ${rejected && html`<ul>${event.errors.map((/** @type {any} */ { code, message, retryable, deadLetterId }) => html`<li><strong>${words(code)}</strong>: ${message}${retryable && " It may be sent again."}
      ${deadLetterId && html` <a href=${link("/apps/:appId/dead-letters", params, { tab: "letters", eventName: event.name })}>It is kept as a dead letter.</a>`}</li>`)}</ul>`}
    <${Facts} facts=${[
      ["Event id", event.eventId ? html`<${Copy} text=${event.eventId} label="event id" />` : "none that can be used"],
      ["Happened", html`<${Time} at=${event.timestamp} />`],
      ["By the client's clock", event.clientTimestamp && time(event.clientTimestamp)],
      ["Received", html`<${Time} at=${event.receivedAt} />`],
      ["Sent by", event.source],
      ["Anonymous id", event.anonymousId ?? undefined],
      ["External id", event.externalId],
      ["Platform", event.platform && `${event.platform} ${event.appVersion ?? ""}`],
    ]} />
    <${Json} value=${event.properties} label=${`Properties of ${event.name}`} />
    <p class="actions">
      ${!inTimeline && html`<${LinkButton} href=${link("/apps/:appId/people/:personId", { ...params, personId: subjectId })}>The person<//>`}
      ${!rejected && event.eventId && html`<${LinkButton} href=${link("/apps/:appId/why", params, { subject: subjectId, event: event.eventId, campaign: route.value.query.campaign })}>Why?<//>`}
    </p>
  <//>`;
}
