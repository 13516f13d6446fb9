// One person: who they are, what happened to them, and what they may ask for.
import { can, html, link, number, whole } from "../lib/index.js";
import { Badge, Copy, Empty, ErrorView, Facts, LinkButton, Loading, PageHead, Table, Tabs, Time } from "../ui/index.js";
import { nameOf, place, usePerson } from "./find.js";
import { Kept } from "./plugin/kept.js";
import { Privacy } from "./person-privacy.js";
import { Timeline } from "./person-timeline.js";

/** @param {boolean} granted */
const granted = (granted) => (granted ? html`<${Badge} kind="good">granted<//>` : html`<${Badge} kind="bad">not granted<//>`);

/** @type {Record<string, "good" | "warn" | "bad">} */
const PUSH = { active: "good", opted_out: "warn", invalid: "bad" };

/** @param {{ devices: any[] }} props */
const Devices = ({ devices }) => html`<${Table} label="Devices" list=${whole(devices)} id=${(/** @type {any} */ row) => row.deviceId} columns=${[
  { title: "Device", render: (/** @type {any} */ row) => html`<${Copy} short text=${row.deviceId} label="device id" />` },
  { title: "Platform", render: (/** @type {any} */ row) => row.platform ?? "–" },
  { title: "App", render: (/** @type {any} */ row) => row.appVersion ?? "–" },
  { title: "SDK", render: (/** @type {any} */ row) => row.sdkVersion ?? "–" },
  { title: "Language", render: (/** @type {any} */ row) => row.locale ?? "–" },
  { title: "Push", render: (/** @type {any} */ { push }) => (push ? html`${push.provider} ${push.environment} …${push.tokenSuffix} <${Badge} kind=${PUSH[push.status]}>${push.status.replaceAll("_", " ")}<//>` : "no") },
  { title: "Last seen", render: (/** @type {any} */ row) => html`<${Time} relative at=${row.lastSeenAt} />` },
]} empty=${html`<${Empty} title="No device"><p>A device is known once its SDK has sent an event with a device id, or registered for push.</p><//>`} />`;

/** @param {{ properties: any[] }} props */
const Properties = ({ properties }) => html`<${Table} label="Properties" list=${whole(properties)} id=${(/** @type {any} */ row) => row.key} columns=${[
  { title: "Key", render: (/** @type {any} */ row) => html`<code>${row.key}</code>` },
  { title: "Value", render: (/** @type {any} */ row) => html`<code>${JSON.stringify(row.value)}</code>` },
  { title: "Set by", render: (/** @type {any} */ row) => row.source },
  { title: "Changed", render: (/** @type {any} */ row) => html`<${Time} at=${row.updatedAt} />` },
]} empty=${html`<${Empty} title="No property"><p>SDKs set them by <code>nudge.set()</code>, backends by <code>PATCH users/properties</code>.</p><//>`} />`;

/** @param {{ person: any }} props */
function Profile({ person: { profile, devices, properties } }) {
  return html`<${Facts} facts=${[
      ["First seen", html`<${Time} at=${profile.firstSeenAt} />`],
      ["Last seen", html`<${Time} at=${profile.lastSeenAt} />`],
      ["Events", number(profile.eventCount)],
      ["Platform", profile.platform],
      ["Country", profile.country],
      ["Language", profile.locale],
      ["Time zone", profile.timezone],
      ["Consent to analytics", granted(profile.consent.analytics)],
      ["Consent to messages", granted(profile.consent.messaging)],
      ["Consent given", profile.consent.updatedAt ? html`<${Time} at=${profile.consent.updatedAt} />` : "never; the app's default holds"],
    ]} />
    <h2>Ids</h2>
    <${Facts} facts=${[["Subject id", html`<${Copy} text=${profile.subjectId} label="subject id" />`], ["External id", profile.externalId && html`<${Copy} text=${profile.externalId} label="external id" />`]]} />
    ${profile.anonymousIds.length > 0 && html`<p>Anonymous ids, the oldest first:</p><ul>${profile.anonymousIds.map((/** @type {string} */ id) => html`<li><${Copy} text=${id} label="anonymous id" /></li>`)}</ul>`}
    <h2>Properties</h2>
    <${Properties} properties=${properties} />
    <h2>Devices</h2>
    <${Devices} devices=${devices} />
    <h2>What plugins keep</h2>
    <${Kept} path=${`${place(profile).path}/plugin-state`} query=${place(profile).query} />`;
}

/** @param {{ params: Record<string, string> }} props */
export default function Person({ params }) {
  const { data: person, error, reload } = usePerson(params.personId);
  const back = { href: link("/apps/:appId/people", params), title: "People" };
  if (error && !person) return html`<${PageHead} title="Person" back=${back} /><${ErrorView} error=${error} retry=${reload} />`;
  if (!person) return html`<${Loading} />`;
  const { profile } = person;
  const tabs = [
    { id: "timeline", title: "Timeline", render: () => html`<${Timeline} person=${profile} />` },
    { id: "profile", title: "Profile", render: () => html`<${Profile} person=${person} />` },
    ...(can("admin") ? [{ id: "privacy", title: "Privacy", render: () => html`<${Privacy} person=${profile} />` }] : []),
  ];
  const why = html`<${LinkButton} href=${link("/apps/:appId/why", params, { subject: profile.subjectId })}>Why?<//>`;
  return html`<${PageHead} title=${nameOf(profile)} back=${back} actions=${why}>
      <p><${Badge} kind=${profile.identified ? "good" : "info"}>${profile.identified ? "identified" : "anonymous"}<//> <${Copy} short text=${profile.subjectId} label="subject id" /></p>
    <//>
    <${Tabs} label="About this person" tabs=${tabs} />`;
}
