// Fires when what a subject bought within some days reaches a sum: the history of the subject, with properties.
import { problem, trigger } from "../sdk/nudge.js";

const DAY = 86_400_000;
const PROPERTIES = ["total", "currency"];
// The most that the host gives.
const PURCHASES = 1_000;

// What a purchase adds, in thousandths: fractions would not add up. A total that is no number adds nothing.
function thousandths(total, currency, counted) {
  const counts = typeof total === "number" && (counted === undefined || currency === counted);
  return counts ? Math.round(total * 1_000) : 0;
}

export const triggerPlugin = trigger({
  name: "high-spender-javascript",
  version: "0.1.0",
  summary: "Fires when what a subject bought within some days reaches a sum",

  check({ sum, days = 30, currency = "" }) {
    const isNumber = (value) => typeof value === "number";
    if (!(isNumber(sum) && sum > 0)) throw problem("out_of_range", "/sum", "must be more than 0");
    if (!(isNumber(days) && days >= 1 && days <= 90)) throw problem("out_of_range", "/days", "must be from 1 to 90");
    if (typeof currency !== "string") throw problem("type_mismatch", "/currency", "must be a text, such as EUR");
    return { events: ["purchase_completed"], properties: PROPERTIES };
  },

  onEvent({ sum, days = 30, currency }, event, subject) {
    const earlier = subject
      .recentEvents(event.name, { within: days * DAY, limit: PURCHASES, properties: PROPERTIES })
      .reduce((spent, { properties }) => spent + thousandths(properties.total, properties.currency, currency), 0);
    const spent = (earlier + thousandths(event.get("total"), event.get("currency"), currency)) / 1_000;
    subject.explain("spent", spent >= sum, `${spent} of ${sum}`);
    // Once: at the purchase that reaches the sum, not at those above it.
    return earlier / 1_000 < sum && spent >= sum;
  },
});
