// An instant: local, with UTC in the title.
import { ago, time, utc } from "../lib/format.js";
import { html } from "../lib/preact.js";

/** @param {{ at?: string | null, relative?: boolean, none?: string }} props none: what is shown where there is no instant */
export const Time = ({ at, relative, none = "–" }) => (at ? html`<time datetime=${at} title=${relative ? `${time(at)} · ${utc(at)}` : utc(at)}>${relative ? ago(at) : time(at)}</time>` : none);
