// Instructions, as a server sends them.
let made = 0;

/** An instruction of a survey. */
export const instruction = (survey, more = {}) => {
  const number = `${++made}`.padStart(12, "0");
  const instructionId = `01900000-0000-7000-8000-${number}`;
  return {
    instructionId,
    kind: "survey",
    campaignId: "01900000-0000-7000-9000-000000000001",
    campaignVersion: 1,
    priority: 0,
    createdAt: "2026-01-31T09:30:00.000Z",
    availableAt: "2026-01-31T09:30:00.000Z",
    expiresAt: "2036-02-07T09:30:00.000Z",
    payload: { survey },
    ...more,
  };
};

/** A survey of some questions. */
export const survey = (questions, { flow, ...more } = {}) => ({
  id: "01900000-0000-7000-9000-000000000001",
  version: 1,
  name: "Survey",
  flow: { questions, branches: [], endScreens: [{ id: "end", title: "Thank you" }], backNavigation: false, ...flow },
  ...more,
});

/** An instruction of an in-app message. */
export const message = (content) => ({
  ...instruction(undefined),
  kind: "in_app",
  payload: {
    message: { variantId: "v1", layout: "card", title: "A sale", body: "All week long.", buttons: [], dismissible: true, ...content },
  },
});

const options = [
  { id: "a", label: "Apples" },
  { id: "b", label: "Bread" },
  { id: "c", label: "Cheese" },
];

/** A question of each type, all required. */
export const QUESTIONS = {
  nps: { lowLabel: "Not at all", highLabel: "Very likely" },
  rating: { scale: 10, display: "star", lowLabel: "Bad", highLabel: "Good" },
  csat: { scale: 5, display: "emoji" },
  ces: { scale: 7 },
  thumbs: {},
  single_choice: { options, allowOther: true },
  multiple_choice: { options, allowOther: true, minSelections: 2, maxSelections: 3 },
  picture_choice: { options: options.map((option) => ({ ...option, imageUrl: "{origin}/picture.svg" })) },
  ranking: { options },
  matrix: { rows: options.slice(0, 2), columns: [{ id: "bad", label: "Bad" }, { id: "fair", label: "Fair" }, { id: "good", label: "Good" }] },
  short_text: { placeholder: "name@example.com", format: "email" },
  long_text: { minLength: 3, maxLength: 200 },
  number: { min: 1, max: 10, step: 0.5 },
  date: { min: "2026-01-01", max: "2026-12-31" },
  consent: { label: "I agree to be called" },
  contact_info: { fields: [{ id: "name", label: "Name", required: true }, { id: "email", label: "E-mail", required: true }, { id: "phone", label: "Phone", required: false }] },
  statement: { body: "We read every answer.", buttonLabel: "Go on" },
  link: { body: "Our terms.", buttonLabel: "Read them", url: "https://example.com/terms" },
};

/** A question of a type. */
export const question = (type, more = {}) => ({
  id: type,
  type,
  title: `About ${type.replace("_", " ")}?`,
  description: "Tell us what you think.",
  required: true,
  ...QUESTIONS[type],
  ...more,
});
