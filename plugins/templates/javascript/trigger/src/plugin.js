// Fires for a purchase of some size, and then not again for some time.
import { problem, trigger } from "../sdk/nudge.js";

const MINUTE = 60_000;

export const triggerPlugin = trigger({
  name: "{{name}}",
  version: "0.1.0",
  summary: "Fires for a purchase of at least `minimum`, at most once in `quietMinutes`",

  // What a configuration looks like: consoles make a form of it, and servers one to try the plugin with.
  configSchema: {
    type: "object",
    required: ["minimum"],
    properties: { minimum: { type: "number" }, quietMinutes: { type: "number", minimum: 1, maximum: 10_080 } },
  },

  // What is wrong with a configuration, and what decisions under it read.
  check({ minimum, quietMinutes = 60 }) {
    const problems = [];
    if (typeof minimum !== "number") {
      problems.push(problem("required", "/minimum", "must be a number, the smallest total that counts"));
    }
    if (!(quietMinutes >= 1 && quietMinutes <= 10_080)) {
      problems.push(problem("out_of_range", "/quietMinutes", "must be from 1 to 10080, a week"));
    }
    if (problems.length > 0) throw problems;
    return { events: ["purchase_completed"], properties: ["total"] };
  },

  // Whether an event fires the campaign. Nothing stays in memory: what must last is the subject's state.
  onEvent({ minimum, quietMinutes = 60 }, event, subject) {
    const total = event.get("total");
    if (typeof total !== "number" || total < minimum) return false;
    const { firedAt } = subject.state ?? {};
    if (firedAt !== undefined && event.received < firedAt + quietMinutes * MINUTE) return false;
    subject.state = { firedAt: event.received };
    return true;
  },
});
