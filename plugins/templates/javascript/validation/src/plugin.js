// Checks what concerns two properties at once: a discount is never more than the total.
import { problem, validation } from "../sdk/nudge.js";

export const validationPlugin = validation({
  name: "{{name}}",
  version: "0.1.0",
  summary: "Checks that one number of an event is not more than another",

  // What a configuration looks like: consoles make a form of it, and servers one to try the plugin with.
  configSchema: {
    type: "object",
    required: ["smaller", "larger"],
    properties: { smaller: { type: "string", minLength: 1 }, larger: { type: "string", minLength: 1 } },
  },

  // What is wrong with a configuration, and what decisions under it read.
  check({ smaller, larger }) {
    const problems = Object.entries({ smaller, larger })
      .filter(([, path]) => typeof path !== "string" || path === "")
      .map(([key]) => problem("required", `/${key}`, "must be a property, such as cart.total"));
    if (problems.length > 0) throw problems;
    return { properties: [smaller, larger] };
  },

  // Every violation of an event; one without any is valid.
  validate({ smaller, larger }, event) {
    const [less, more] = [event.get(smaller), event.get(larger)];
    if (typeof less !== "number" || typeof more !== "number" || less <= more) return [];
    return [{ code: "out_of_range", property: smaller, expected: `at most ${larger}, ${more}`, actual: less }];
  },
});
