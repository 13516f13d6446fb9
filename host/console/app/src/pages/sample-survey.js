// A survey to begin with: it is brought by the event that the shop sends when something is put into the cart.
export const SAMPLE = {
  name: "Sample: after the cart has changed",
  description: "Made by the start page of the console.",
  mode: "triggered",
  status: "active",
  trigger: { kind: "event", eventName: "cart_updated", delaySeconds: 0, occurrence: { mode: "every" } },
  flow: {
    startQuestionId: "recommend",
    questions: [
      { id: "recommend", type: "nps", title: "How likely are you to recommend us?", lowLabel: "Not at all", highLabel: "Very likely", required: true },
      { id: "why", type: "long_text", title: "Why?", required: false },
    ],
    branches: [],
    endScreens: [{ id: "thanks", title: "Thank you!", button: { label: "Close", action: "close" } }],
    progressStyle: "bar",
    backNavigation: true,
  },
};
