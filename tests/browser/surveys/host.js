// A host for the renderer, in the page: it notes what it is asked, and answers as a server does. What it is to refuse
// stands in `window.refusals`, by question.
import { createRenderer } from "/surveys.mjs";

const calls = [];
const note = (name, ...args) => calls.push([name, ...args]);
const later = (value) => new Promise((resolve) => setTimeout(resolve, window.latency ?? 5, value));
const refuse = (refusal) => later().then(() => Promise.reject(refusal));
const key = (id) => `draft ${id}`;

const host = {
  locale: document.documentElement.lang || "en",
  container: undefined,
  newId: () => crypto.randomUUID(),
  now: Date.now,
  onOffer: () => window.onOffer !== false,
  acknowledge: (instruction, status, actionId) => note("ack", instruction.instructionId, status, actionId),
  start: (surveyId, from) => {
    note("start", surveyId, from);
    if (window.startRefusal) return refuse(window.startRefusal);
    const { survey } = window;
    return later({ attemptId: "attempt", surveyId, surveyVersion: 1, state: "started", next: null, survey });
  },
  answer: (attemptId, answers) => {
    note("answer", attemptId, answers);
    const index = answers.findIndex(({ questionId }) => window.refusals?.[questionId]);
    if (index < 0) return later(null);
    const { pointer, code, detail } = window.refusals[answers[index].questionId];
    delete window.refusals[answers[index].questionId];
    const errors = [{ pointer: `/answers/${index}${pointer}`, code, detail }];
    return refuse({ status: 422, code: "invalid_answer", errors });
  },
  complete: (attemptId) => {
    note("complete", attemptId);
    return window.offline ? new Promise(() => {}) : later();
  },
  dismiss: (attemptId) => {
    note("dismiss", attemptId);
    return later();
  },
  open: (action) => note("open", action),
  draft: (id) => later(JSON.parse(localStorage.getItem(key(id)))),
  keep: (id, draft) => {
    if (draft) localStorage.setItem(key(id), JSON.stringify(draft));
    else localStorage.removeItem(key(id));
  },
  tell: (event, detail) => note("tell", event, detail),
};

const renderer = createRenderer(host);
Object.assign(window, { calls, renderer, outcomes: {} });
window.present = (instruction, options) => {
  void renderer.present(instruction, options).then((outcome) => {
    window.outcomes[instruction.instructionId] = outcome;
  });
};
document.documentElement.dataset.ready = "";
