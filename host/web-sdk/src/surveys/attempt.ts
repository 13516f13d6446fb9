/**
 * An attempt on the server, as a form needs it: it is started with the first answer, answers go one request after the
 * other, and what is not confirmed is kept in the browser, so that a closed tab loses nothing.
 */

import { wayOf } from "./flow.js";
import type { Answer, Draft, Host, Instruction, Json, Refusal } from "./host.js";

/** The answer that the server does not take, and why. */
export interface Refused {
  questionId: string;
  value: Json;
  code: string | undefined;
  detail: string;
  /** The part of the answer: an option, a row, a field. */
  part: string | undefined;
}

/** What becomes of requests. */
export interface Listener {
  /** The server does not take an answer. */
  refused(refused: Refused): void;
  /** There is no such attempt any more, nor will there be. */
  gone(refusal: Refusal): void;
}

const asRefusal = (error: any): Refusal => (error?.code ? error : { status: 0, code: "unknown", detail: `${error}` });

/** An attempt. */
export class Attempt {
  /** The answers so far. */
  readonly answers = new Map<string, Json>();
  /** The question answered last. */
  last: string | undefined;
  private readonly unheard = new Map<string, Answer>();
  private readonly given = new Map<string, Answer>();
  private ownId: string;
  private sending: Promise<boolean> | undefined;
  private starting: Promise<{ attemptId: string }> | undefined;
  /** Nothing of it is kept in the browser any longer. */
  private over = false;
  /** Whether the server knows of it. */
  private live: boolean;
  private theirId: string | undefined;

  constructor(
    private readonly host: Host,
    private readonly subject: Instruction,
    private readonly listener: Listener,
    draft: Draft | null,
    /** An attempt that was started without an instruction. */
    started?: { attemptId: string; clientAttemptId: string },
  ) {
    this.theirId = draft?.attemptId ?? started?.attemptId ?? subject.payload.attempt?.attemptId;
    this.ownId = (draft ?? started)?.clientAttemptId ?? host.newId();
    this.live = !!started || !!draft;
    if (!draft) return;
    for (const answer of draft.answers) this.note(answer);
    for (const answer of draft.unsent ? draft.answers.slice(-draft.unsent) : []) {
      this.unheard.set(answer.questionId, answer);
    }
  }

  private note(answer: Answer): void {
    // Taken out first, so that the last one given is the last one.
    this.given.delete(answer.questionId);
    this.given.set(answer.questionId, answer);
    this.answers.set(answer.questionId, answer.value);
    this.last = answer.questionId;
  }

  /** Takes an answer, and sends it. */
  give(questionId: string, value: Json): void {
    const answer = { questionId, value, answeredAt: new Date(this.host.now()).toISOString() };
    this.live = true;
    this.note(answer);
    this.unheard.delete(questionId);
    this.unheard.set(questionId, answer);
    this.save();
    void this.send().then((taken) => {
      const { host, subject: instruction } = this;
      const surveyId = instruction.payload.survey?.id ?? instruction.campaignId;
      // What the way no longer led by was not sent.
      if (taken && this.theirId && this.given.has(questionId)) {
        host.tell("answered", { instruction, surveyId, attemptId: this.theirId, questionId, value });
      }
    });
  }

  private save(): void {
    if (this.over) return;
    const sent = [...this.given.values()].filter((answer) => !this.unheard.has(answer.questionId));
    this.host.keep(this.subject.instructionId, {
      instruction: this.subject,
      clientAttemptId: this.ownId,
      attemptId: this.theirId,
      answers: [...sent, ...this.unheard.values()],
      unsent: this.unheard.size,
      at: Date.now(),
    });
  }

  /** The attempt's id; the first call starts it. */
  private async begin(): Promise<string> {
    if (this.theirId) return this.theirId;
    const { campaignId, campaignVersion: surveyVersion, instructionId, kind, payload } = this.subject;
    // A feedback button is answered as often as somebody likes: each time is an attempt of its own, of what they see.
    const from = kind === "feedback" ? { surveyVersion } : { instructionId };
    this.starting ??= this.host.start(payload.survey?.id ?? campaignId, { ...from, clientAttemptId: this.ownId });
    const { attemptId } = await this.starting;
    return (this.theirId = attemptId);
  }

  /** Sends what is not sent; false: some of it was not taken. */
  send(): Promise<boolean> {
    this.sending ??= this.drain().finally(() => {
      this.sending = undefined;
    });
    return this.sending;
  }

  private async drain(): Promise<boolean> {
    for (;;) {
      this.prune();
      if (!this.unheard.size) return true;
      const answers = [...this.unheard.values()];
      try {
        await this.host.answer(await this.begin(), answers);
      } catch (error) {
        return this.failed(asRefusal(error), answers);
      }
      for (const answer of answers) {
        if (this.unheard.get(answer.questionId) === answer) this.unheard.delete(answer.questionId);
      }
      this.save();
    }
  }

  /**
   * Forgets what is unsent and the way no longer leads by, as when somebody went back and took another one: the server would
   * take nothing of the request. What it has of another way it keeps, and does not count.
   */
  private prune(): void {
    const { survey } = this.subject.payload;
    const way = survey && wayOf(survey.flow, this.answers);
    for (const id of this.unheard.keys()) if (way?.stops.every(({ question }) => question.id !== id)) this.drop(id);
  }

  private drop(questionId: string): void {
    this.unheard.delete(questionId);
    this.given.delete(questionId);
    this.answers.delete(questionId);
  }

  private failed(refusal: Refusal, answers: Answer[]): boolean {
    this.starting = undefined;
    // Another tab was faster: there is nothing left to say.
    if (refusal.code === "attempt_completed") {
      this.unheard.clear();
      return true;
    }
    const error = refusal.errors?.[0];
    const [, , index, , ...path] = (error?.pointer ?? "").split("/");
    const answer = answers[Number(index)] ?? answers.at(-1);
    if (refusal.code !== "invalid_answer" || !answer) {
      return this.end(refusal);
    }
    // It is no answer until it is given again; what was given after it waits for it.
    this.drop(answer.questionId);
    this.save();
    const part = path[0] === "optionIds" ? undefined : path[0]?.replace(/~1/g, "/").replace(/~0/g, "~");
    this.listener.refused({ ...answer, code: error?.code, detail: error?.detail ?? refusal.detail ?? "", part });
    return false;
  }

  /** Ends it as complete; false: something was not taken. */
  async complete(): Promise<boolean> {
    if (!(await this.send())) return false;
    try {
      await this.host.complete(await this.begin());
    } catch (error) {
      return this.end(asRefusal(error));
    }
    this.forget();
    return true;
  }

  /** Ends it as the person closed it: nothing is asked of the server where nothing was ever told it. */
  dismiss(): void {
    this.forget();
    if (!this.live) return;
    void this.send()
      .then(() => this.begin())
      .then((id) => this.host.dismiss(id))
      .catch((error) => this.tell(asRefusal(error)));
  }

  /** Tells the app's listeners what went wrong. */
  tell({ code, detail }: Refusal): void {
    this.host.tell("error", { message: detail ?? code, code, instruction: this.subject });
  }

  private end(refusal: Refusal): false {
    this.forget();
    this.listener.gone(refusal);
    return false;
  }

  private forget(): void {
    this.over = true;
    this.host.keep(this.subject.instructionId, null);
  }
}
