// Fires when what a subject bought within some days reaches a sum: the history of the subject, with a property.
import { problem, trigger } from "../sdk/nudge.js";

const DAY = 86_400_000;
const total = (value) => (typeof value === "number" ? value : 0);

export const triggerPlugin = trigger({
  name: "high-spender-javascript",
  version: "0.1.0",
  summary: "Fires when what a subject bought within some days reaches a sum",

  check({ sum, days = 30 }) {
    if (!(sum > 0)) throw problem("out_of_range", "/sum", "must be more than 0");
    if (!(days >= 1 && days <= 90)) throw problem("out_of_range", "/days", "must be from 1 to 90");
    return { events: ["purchase_completed"], properties: ["total"] };
  },

  onEvent({ sum, days = 30 }, event, subject) {
    const earlier = subject
      .recentEvents(event.name, { within: days * DAY, properties: ["total"] })
      .reduce((spent, { properties }) => spent + total(properties.total), 0);
    const spent = earlier + total(event.get("total"));
    subject.explain("spent", spent >= sum, `${spent} of ${sum}`);
    // Once: at the purchase that reaches the sum, not at those above it.
    return earlier < sum && spent >= sum;
  },
});
