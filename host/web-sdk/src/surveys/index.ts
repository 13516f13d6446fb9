/** The renderer: what is shown when. See `host.ts` for what it asks of the core. */

// First, and in this order: what is no code is compressed better apart from code.
import "./styles.js";
import "./texts.js";
import "./answers.js";
import { acknowledge } from "./ack.js";
import { Attempt } from "./attempt.js";
import { showFeedback } from "./feedback.js";
import type { Attempt as Begun, CreateRenderer, Instruction, Outcome, PresentOptions, Refusal } from "./host.js";
import { FIELDS } from "./questions/index.js";
import { frameOf, type Started, show } from "./scene.js";
import type { Frame, Shown } from "./shell.js";

export type * from "./host.js";

/** Something that is shown, or waits for its turn. */
interface Job {
  instruction: Instruction;
  container: Element | undefined;
  asked: boolean;
  started: Started | undefined;
  /** How it ends. */
  outcome: Promise<Outcome>;
  /** Its place among those that wait. */
  number: number;
  /** Whether the page took it away amid it, and presents it once more. */
  again: boolean;
  /** Ends it, whatever it is at. */
  end(outcome: Outcome): void;
  /** What is shown of it. */
  shown?: Shown;
}

/** How long it is quiet between two that nobody asked for, in milliseconds. */
const PAUSE = 1_000;
/** How long a page that is reloaded may hold what was shown there, in milliseconds. */
const LEAVING = 1_000;
/** How long a survey that was started without an instruction may be gone on with, in milliseconds. */
const LIFETIME = 604_800_000;

const elementOf = (place: Element | string | undefined): Element | undefined =>
  (typeof place === "string" ? document.querySelector(place) : place) ?? undefined;

const after = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Resolves when the page is looked at, and what is shown there can be used. */
async function seen(frame: Frame): Promise<void> {
  for (;;) {
    if (document.hidden) await new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));
    // Beside a modal dialog of the page's nothing can be used. One that the page removes does not say that it closes, and
    // `:is` takes what a browser does not know.
    else if (/popover|banner/.test(frame) && document.querySelector(":is(dialog:modal)")) await after(250);
    else return;
  }
}

/** Keeps something from other tabs until it ends here. Resolves to whether none of them has it. */
const claim = ({ instruction, outcome }: Job): Promise<boolean> =>
  new Promise((resolve) => {
    const mine = (): Promise<unknown> => {
      resolve(true);
      // A page that the browser keeps for "back" has it no longer.
      return Promise.race([outcome, new Promise((left) => addEventListener("pagehide", left))]);
    };
    // Where there are no locks, as in a sandboxed frame, each tab is by itself.
    if (navigator.locks) navigator.locks.request(instruction.instructionId, mine).catch(mine);
    else void mine();
    setTimeout(resolve, LEAVING, false);
  });

/** Ends what the page has taken away. Answers whether there was more to say. */
function sweep(job: { shown?: Shown; end(outcome: Outcome): void } | undefined): boolean {
  if (!job?.shown || job.shown.element.isConnected) return false;
  job.end("withdrawn");
  return !job.shown.over;
}

/** Makes the renderer. */
export const createRenderer: CreateRenderer = (host) => {
  /** What is shown or waits, by the instruction's id; feedback buttons apart from what they open. */
  const jobs = new Map<string, Job>();
  const buttons = new Map<string, Pick<Job, "instruction" | "shown" | "end">>();
  const waiting: Job[] = [];
  let current: Job | undefined;
  let quiet = 0;
  let count = 0;

  const isThere = (job: Job): boolean => jobs.get(job.instruction.instructionId) === job;

  /** Shows the next of those that lie over the page: whoever asked first, then by priority. */
  async function next(): Promise<void> {
    sweep(current);
    if (current) return;
    const urgency = ({ asked, instruction }: Job): number => (asked ? Infinity : instruction.priority);
    waiting.sort((one, other) => urgency(other) - urgency(one) || one.number - other.number);
    const job = waiting.shift();
    if (!job) return;
    current = job;
    if (!job.asked) await after(Math.max(0, quiet - Date.now()));
    await enter(job);
  }

  /** Shows something. What can't be shown is over: others wait. */
  const enter = (job: Job): Promise<void> =>
    begin(job).catch((error) => {
      host.tell("error", { code: "show_failed", message: `${error}`, instruction: job.instruction });
      job.end("withdrawn");
    });

  /** Shows something, unless it is not on offer any longer. */
  async function begin(job: Job): Promise<void> {
    let { instruction } = job;
    await seen(frameOf(instruction, job.container));
    if (!isThere(job)) return;
    const claimed = claim(job);
    const draft = await host.draft(instruction.instructionId).catch(() => null);
    // Another tab goes on with it, unless somebody has pressed a button here.
    if (draft && instruction.kind !== "feedback" && !(await claimed)) return job.end("withdrawn");
    // As it was when it was begun: a button may open another version by now.
    if (draft) instruction = draft.instruction;
    const { survey, message } = instruction.payload;
    // What was begun is gone on with: it was shown, and is on offer no longer.
    if (!draft && !job.again && !host.onOffer(instruction)) return job.end("withdrawn");
    const questions = survey?.flow?.questions ?? [];
    const known = message ?? (questions.length && questions.every(({ type }) => type in FIELDS));
    // Without style sheets of its own it would be something bare; a newer server may ask what this does not know.
    if (!known || !("replaceSync" in CSSStyleSheet.prototype)) {
      acknowledge(host, instruction, "discarded");
      return job.end("discarded");
    }
    if (!isThere(job)) return;
    job.shown = show({ ...job, instruction, host, draft, done: job.end });
    acknowledge(host, instruction, "displayed");
    host.tell("displayed", { instruction });
  }

  async function queue(instruction: Instruction, options: PresentOptions, started?: Started): Promise<Outcome> {
    const key = instruction.instructionId;
    const again = sweep(jobs.get(key));
    if (jobs.has(key)) return "withdrawn";
    const { settings } = instruction.payload.survey ?? {};
    const inline = settings?.presentation === "inline" ? host.container : undefined;
    let settle: (outcome: Outcome) => void;
    const job: Job = {
      instruction,
      container: elementOf(options.container ?? inline),
      asked: !!options.asked,
      started,
      outcome: new Promise((resolve) => {
        settle = resolve;
      }),
      again,
      number: count++,
      end: (outcome) => {
        if (!isThere(job)) return;
        jobs.delete(key);
        clearTimeout(timer);
        job.shown?.remove();
        const place = waiting.indexOf(job);
        if (place >= 0) waiting.splice(place, 1);
        if (current === job) {
          current = undefined;
          quiet = Date.now() + PAUSE;
          void next();
        }
        settle(outcome);
      },
    };
    jobs.set(key, job);
    const turn = (): void => {
      if (job.container) return void enter(job);
      waiting.push(job);
      void next();
    };
    const delay = job.asked ? 0 : (settings?.delaySeconds ?? 0);
    const timer = setTimeout(turn, delay * 1_000);
    return job.outcome;
  }

  /** Shows a feedback button, as long as its survey is on offer. One that is there opens what it was offered with last. */
  async function offer(instruction: Instruction): Promise<Outcome> {
    const key = instruction.instructionId;
    const { survey } = instruction.payload;
    sweep(buttons.get(key));
    const known = buttons.get(key);
    if (known) known.instruction = instruction;
    if (known || !survey) return "withdrawn";
    return new Promise((resolve) => {
      const press = async (): Promise<void> => {
        sweep(jobs.get(key));
        const open = jobs.get(key);
        // A second press closes what the first one opened.
        if (open) return open.end("withdrawn");
        button.opened(true);
        const { instruction } = it;
        const outcome = await queue(instruction, { asked: true });
        button.opened(false);
        // What the server takes no answers to is over, whatever was heard of it last.
        const last = outcome === "discarded" || (outcome === "completed" && instruction.payload.survey?.settings?.once);
        if (last || !host.onOffer(it.instruction)) buttons.get(key)?.end(outcome);
      };
      const button = showFeedback(host.locale, survey, () => void press());
      const it = {
        instruction,
        shown: button,
        end: (outcome: Outcome): void => {
          buttons.delete(key);
          button.remove();
          resolve(outcome);
        },
      };
      buttons.set(key, it);
    });
  }

  const withdraw = (key: string): void => {
    jobs.get(key)?.end("withdrawn");
    buttons.get(key)?.end("withdrawn");
  };

  return {
    present: (instruction, options = {}) => {
      const { survey } = instruction.payload;
      // What was started without an instruction has no button: it is gone on with.
      const isButton = !instruction.local && (instruction.kind === "feedback" || survey?.settings?.presentation === "feedback_button");
      return isButton && !options.asked && !options.container ? offer(instruction) : queue(instruction, options);
    },
    startSurvey: async (surveyId, options = {}) => {
      const clientAttemptId = host.newId();
      let attempt: Begun;
      try {
        attempt = await host.start(surveyId, { clientAttemptId });
      } catch (error) {
        const { code, detail } = error as Refusal;
        host.tell("error", { message: detail ?? `${error}`, code });
        return "discarded";
      }
      const { attemptId, surveyVersion, survey } = attempt;
      if (!survey) return "discarded";
      const now = host.now();
      const at = new Date(now).toISOString();
      const instruction: Instruction = {
        instructionId: clientAttemptId,
        kind: "survey",
        campaignId: surveyId,
        campaignVersion: surveyVersion,
        priority: 0,
        createdAt: at,
        availableAt: at,
        expiresAt: new Date(now + LIFETIME).toISOString(),
        local: true,
        payload: { survey },
      };
      return queue(instruction, { asked: true, ...options }, { attemptId, clientAttemptId });
    },
    finish: async (draft) => {
      const { instruction } = draft;
      let again = true;
      const attempt = new Attempt(host, instruction, { refused: () => (again = true), gone() {} }, draft);
      // The server takes nothing of a request of which it refuses one answer: the others are sent without that one.
      while (again) {
        again = false;
        await attempt.send();
      }
      host.keep(instruction.instructionId, null);
    },
    withdraw,
    clear: () => {
      for (const key of [...jobs.keys(), ...buttons.keys()]) withdraw(key);
    },
  };
};
