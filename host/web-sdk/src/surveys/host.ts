/**
 * What the renderer and the core ask of each other. The core loads the renderer (`surveys.mjs`) when it first has
 * something to show, calls `createRenderer(host)` once, and hands over instructions. The renderer does no requests of
 * its own: it asks the host.
 *
 * Shapes of the server are as its routes answer them, without `{"data": …}` around them.
 */

/** A JSON value, as answers are. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** What can be said of an instruction: `POST /v1/sdk/instructions/ack`. */
export type AckStatus = "received" | "displayed" | "clicked" | "dismissed" | "completed" | "discarded";

/** What opening a button does. */
export interface OpenAction {
  action: "none" | "open_app" | "url" | "deep_link" | "json";
  url?: string | null;
  actionJson?: Json;
}

/** An instruction, as `GET /v1/sdk/instructions` and `POST /v1/sdk/ingest` answer it. */
export interface Instruction {
  instructionId: string;
  kind: "survey" | "in_app" | "feedback";
  campaignId: string;
  campaignVersion: number;
  priority: number;
  createdAt: string;
  availableAt: string;
  expiresAt: string;
  trigger?: { eventId: string; name: string };
  /** The renderer's own, of a survey that was started without one: the server has nothing to acknowledge. */
  local?: true;
  payload: {
    survey?: Survey;
    attempt?: { attemptId: string; expiresAt: string };
    message?: Message;
  };
}

/** A survey, in the person's language. */
export interface Survey {
  id: string;
  version: number;
  name: string;
  /** The language of most of its text, where it has translations. */
  locale?: string;
  flow: Flow;
  theme?: Theme;
  settings?: SurveySettings;
}

/** How a survey behaves. What is not known is not looked at. */
export interface SurveySettings {
  presentation?: "popover" | "modal" | "inline" | "feedback_button";
  position?: "top_left" | "top_right" | "bottom_left" | "bottom_right" | "center";
  closeable?: boolean;
  delaySeconds?: number;
  once?: boolean;
  coordinated?: boolean;
}

/** Colours of a theme, `#rrggbb`. */
export interface Colours {
  background?: string;
  text?: string;
  primary?: string;
  onPrimary?: string;
}

/** How a survey or a message looks. */
export interface Theme extends Colours {
  mode?: "auto" | "light" | "dark";
  dark?: Colours;
  radius?: number;
  font?: "system" | "serif" | "mono" | "inherit";
}

/** The types of questions. */
export type QuestionType =
  | "nps"
  | "rating"
  | "csat"
  | "ces"
  | "thumbs"
  | "single_choice"
  | "multiple_choice"
  | "picture_choice"
  | "ranking"
  | "matrix"
  | "short_text"
  | "long_text"
  | "number"
  | "date"
  | "consent"
  | "contact_info"
  | "statement"
  | "link";

/** An option, a row or a column; a picture has an address, a field may have to be filled in. */
export interface Item {
  id: string;
  label: string;
  imageUrl?: string;
  required?: boolean;
}

/** What limits answers: at the question, or under `validation`. */
export interface Limits {
  minSelections?: number;
  maxSelections?: number;
  minLength?: number;
  maxLength?: number;
  format?: "email" | "url" | "phone";
  min?: number | string;
  max?: number | string;
  step?: number;
}

/** A question, with what its type adds. */
export interface Question extends Limits {
  id: string;
  type: QuestionType;
  title: string;
  description?: string;
  required?: boolean;
  validation?: Limits & { message?: string };
  scale?: number;
  display?: "number" | "star" | "emoji";
  lowLabel?: string;
  highLabel?: string;
  options?: Item[];
  allowOther?: boolean;
  shuffle?: boolean;
  multiple?: boolean;
  rows?: Item[];
  columns?: Item[];
  placeholder?: string;
  label?: string;
  fields?: Item[];
  body?: string;
  buttonLabel?: string;
  url?: string;
}

/** A condition of a branch: `{all}`, `{any}`, or a comparison. */
export interface Condition {
  all?: Condition[];
  any?: Condition[];
  questionId?: string;
  operator?: string;
  value?: Json;
}

/** A way from one question to another. */
export interface Branch {
  id: string;
  from: string;
  when?: Condition | null;
  to: { questionId: string } | { endScreenId: string };
}

/** What is shown at the end. */
export interface EndScreen {
  id: string;
  title: string;
  body?: string;
  button?: { label: string; action: "close" | "url" | "deep_link"; url?: string };
}

/** What a survey asks, in which order. */
export interface Flow {
  startQuestionId?: string;
  questions: Question[];
  branches?: Branch[];
  endScreens?: EndScreen[];
  progressStyle?: "bar" | "steps" | "percent" | "none";
  backNavigation?: boolean;
}

/** An in-app message, rendered for the person. */
export interface Message {
  variantId: string;
  layout: "banner" | "modal" | "card" | "fullscreen";
  title?: string | null;
  body?: string | null;
  imageUrl?: string | null;
  buttons?: MessageButton[] | null;
  dismissible?: boolean;
  theme?: Theme | null;
  /** The language of most of its text, where it has translations. */
  locale?: string;
}

/** A button of an in-app message. */
export interface MessageButton {
  id: string;
  label: string;
  style?: "primary" | "secondary";
  openAction?: OpenAction;
}

/** What is next in an attempt; null: its end, where the flow has no end screens. */
export type Next = { questionId: string } | { endScreenId: string } | null;

/** An answer. Null passes over a question that is not required. */
export interface Answer {
  questionId: string;
  value: Json;
  /** ISO 8601, when it was given. */
  answeredAt: string;
}

/** An attempt, as `POST /v1/sdk/surveys/:surveyId/attempts` answers it. */
export interface Attempt {
  attemptId: string;
  surveyId: string;
  surveyVersion: number;
  state: "started" | "completed" | "abandoned";
  next: Next;
  survey?: Survey;
}

/**
 * How a request of the host's ended badly. The host retries what may be retried by itself (no network, 429, 503, 5xx,
 * an expired token), so that it rejects only with what is final.
 */
export interface Refusal {
  status: number;
  /** The server's code: `invalid_answer`, `not_found`, `attempt_completed`, `consent_required` … */
  code: string;
  detail?: string;
  /** Pointers into the request's body: `/answers/0/value/optionIds`. */
  errors?: { pointer: string; code: string; detail: string }[];
}

/** An attempt under way in this browser: what a reload needs to go on with it. */
export interface Draft {
  /** As it was presented. */
  instruction: Instruction;
  /** The SDK's own id of the attempt. */
  clientAttemptId: string;
  attemptId?: string;
  /** All answers so far, by question, in the order in which they were given last. */
  answers: Answer[];
  /** How many of the answers, from the last one back, the server has not confirmed. */
  unsent: number;
  /** When it last changed, in milliseconds since 1970. */
  at: number;
}

/** What the renderer tells the app's listeners, by `nudge.on(…)`. */
export interface Told {
  displayed: { instruction: Instruction };
  answered: { instruction: Instruction; surveyId: string; attemptId: string; questionId: string; value: Json };
  error: { message: string; code?: string; instruction?: Instruction };
}

/** What the renderer asks the core. */
export interface Host {
  /**
   * The locale of the SDK's own words (Next, Back, Close …), BCP 47, where what is shown does not say which language it
   * is in. Read anew for each presentation.
   */
  readonly locale: string;
  /** Where a survey with `presentation: "inline"` goes, if nobody names a place: `init({container})`. */
  readonly container?: Element | string | undefined;

  /** A new UUID. */
  newId(): string;
  /** The server's clock, in milliseconds since 1970. */
  now(): number;

  /** Whether an instruction may still be shown: not expired, not ended in another tab, same person, consent. */
  onOffer(instruction: Instruction): boolean;
  /** Notes what became of an instruction; the host sends it, in order, at least once. Never throws. */
  acknowledge(instruction: Instruction, status: AckStatus, actionId?: string): void;

  /** `POST /v1/sdk/surveys/:surveyId/attempts`. Rejects with a {@link Refusal}. */
  start(surveyId: string, from: { instructionId?: string; surveyVersion?: number; clientAttemptId: string }): Promise<Attempt>;
  /** `POST /v1/sdk/attempts/:attemptId/answers`. Rejects with a {@link Refusal}. Calls are sent in their order. */
  answer(attemptId: string, answers: Answer[]): Promise<Next>;
  /** `POST /v1/sdk/attempts/:attemptId/complete`. Rejects with a {@link Refusal}. */
  complete(attemptId: string): Promise<void>;
  /** `POST /v1/sdk/attempts/:attemptId/dismiss`; with `keepalive`. Rejects with a {@link Refusal}. */
  dismiss(attemptId: string): Promise<void>;

  /**
   * Opens an action: `url` in the page (http and https alone), `deep_link` and `json` by the app. The renderer calls it
   * amid the click, so that a new tab is not blocked.
   */
  open(action: OpenAction): void;

  /** The draft of an attempt, by the instruction's id; null: none. */
  draft(instructionId: string): Promise<Draft | null>;
  /**
   * Keeps a draft in the browser's storage, or forgets it (null). A core that starts shows the instructions of drafts
   * again that changed within 30 minutes (then the server counts the attempt as abandoned) and are of the same person.
   */
  keep(instructionId: string, draft: Draft | null): void;

  /** Tells the app's listeners. Never throws. */
  tell<K extends keyof Told>(event: K, detail: Told[K]): void;
}

/** How something is presented. */
export interface PresentOptions {
  /** Where to put it, instead of over the page. */
  container?: Element | string | undefined;
  /** Whether the person asked for it just now, so that it comes at once and takes the focus. */
  asked?: boolean;
}

/** What the core asks the renderer. */
export interface Renderer {
  /**
   * Shows an instruction, when its turn comes: one over the page at a time, by priority; inline ones and the feedback
   * button beside them. An instruction that is shown, or waits, is not shown twice.
   * The promise settles when it is over: answered, closed, or not shown at all.
   */
  present(instruction: Instruction, options?: PresentOptions): Promise<Outcome>;
  /** Shows a survey without an instruction (`on_demand`, `link_only`): starts the attempt and shows what comes back. */
  startSurvey(surveyId: string, options?: PresentOptions): Promise<Outcome>;
  /** Sends what is unsent of somebody who is gone, shows nothing, and forgets the draft. */
  finish(draft: Draft): Promise<void>;
  /** Takes back what is shown or waits, without a word to the server: it is on offer no longer. */
  withdraw(instructionId: string): void;
  /** Takes everything away: `reset()`, another person, consent withdrawn. */
  clear(): void;
}

/** How a presentation ended. */
export type Outcome = "completed" | "dismissed" | "discarded" | "withdrawn";

/** The bundle's only export that the core calls. */
export type CreateRenderer = (host: Host) => Renderer;
