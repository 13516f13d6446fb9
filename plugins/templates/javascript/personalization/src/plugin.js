// Greets by name: `{greeting}` becomes "Hello Ada", or the fallback where the name is not known.
import { personalization, problem } from "../sdk/nudge.js";

export const personalizationPlugin = personalization({
  name: "{{name}}",
  version: "0.1.0",
  summary: "Resolves each binding to a greeting with the recipient's name",

  // What is wrong with a configuration, and what decisions under it read.
  check({ bindings }) {
    if (!Array.isArray(bindings) || bindings.some(({ id }) => typeof id !== "string")) {
      throw problem("required", "/bindings", "must be a list of bindings, each with an `id`");
    }
    return { subjectProperties: ["name"] };
  },

  // What the bindings stand for, for one recipient. One that is not resolved is missing.
  resolve({ bindings }, recipient) {
    const name = recipient.property("name");
    const resolved = bindings.map(({ id, fallback }) => {
      if (typeof name === "string") return [id, { value: `Hello ${name}` }];
      if (fallback !== undefined) return [id, { value: fallback, usedFallback: true, issue: "missing" }];
      return [id, { issue: "missing", detail: "the recipient has no `name`" }];
    });
    return Object.fromEntries(resolved);
  },
});
