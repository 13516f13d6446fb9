/** A survey within a frame: one question at a time, by the flow's way, to an end screen. */

import { check, type Problem } from "./answers.js";
import { acknowledge } from "./ack.js";
import { Attempt, type Refused } from "./attempt.js";
import { h, newId, safeUrl } from "./dom.js";
import { ahead, positionOf, wayOf } from "./flow.js";
import type { Draft, EndScreen, Host, Instruction, Json, Next, Outcome, Question, Survey } from "./host.js";
import { FIELDS } from "./questions/index.js";
import type { Field } from "./questions/field.js";
import { headline, type Shell } from "./shell.js";
import type { Texts } from "./texts.js";

/** How long the end waits for the server's word before it is shown. */
const PATIENCE = 2_500;

/** Types whose control is one, which the title labels. */
const SINGLE = /^(short_text|long_text|number|date)$/;

/** How a survey ends that is not taken back. */
type End = Exclude<Outcome, "withdrawn">;

/** What a survey is shown with. */
export interface SurveyScene {
  host: Host;
  instruction: Instruction;
  survey: Survey;
  shell: Shell;
  texts: Texts;
  draft: Draft | null;
  started?: { attemptId: string; clientAttemptId: string } | undefined;
  /** It is over: the frame goes. */
  done(outcome: Outcome): void;
}

/** A survey that is shown. */
export interface ShownSurvey {
  /** Puts the focus where the question is answered. */
  focus(): void;
  /** The person closes it. */
  close(): void;
}

/** The second click of a double click would answer the question that the first one led to. */
function once(event: MouseEvent): boolean {
  if (event.detail > 1) event.preventDefault();
  return event.detail < 2;
}

/** Shows a survey in a frame. */
export function showSurvey(scene: SurveyScene): ShownSurvey {
  const { host, instruction, survey, shell, texts } = scene;
  const { flow } = survey;
  const lang = shell.spoken;
  const tell = (text: string): void => shell.say(text, shell.language);
  const typed = new Map<string, Json>();
  let focus = (): void => {};
  /** Remembers what is typed. */
  let stash = (): void => {};
  /** How it ended, once that is said. */
  let ended: End | undefined;
  let closed = false;
  /** Whether the end is awaited. */
  let busy = false;

  const attempt = new Attempt(
    host,
    instruction,
    {
      refused: (refused) => !closed && showRefused(refused),
      gone: (refusal) => {
        attempt.tell(refusal);
        if (!closed && !ended) showEnd({ title: texts("ended") }, shell.language, "discarded");
      },
    },
    scene.draft,
    scene.started,
  );

  /** Shows what is next after the question answered last. */
  function advance(moved: boolean): void {
    const way = wayOf(flow, attempt.answers);
    const next = positionOf(way, attempt.last);
    if (next) showQuestion(next, moved);
    else void finish(way.end === "required" ? null : way.end);
  }

  /** Shows some nodes in the frame, and where the focus goes then. */
  function show(nodes: Node[], moved: boolean, target: () => HTMLElement | null | undefined): void {
    busy = false;
    const had = moved || shell.hasFocus();
    shell.content.replaceChildren(...nodes);
    focus = () => target()?.focus();
    if (had) focus();
  }

  function showQuestion(question: Question, moved: boolean, refused?: Refused): void {
    const { stops } = wayOf(flow, attempt.answers);
    const place = stops.findIndex((stop) => stop.question.id === question.id);
    const before = place > 0 && flow.backNavigation ? stops[place - 1]?.question : undefined;
    const left = ahead(flow, question.id);
    const number = Math.max(place, 0) + 1;

    const [descriptionId, errorId] = [newId(), newId()];
    const describedBy = `${descriptionId} ${errorId}`;
    const title = headline(question.title, shell);
    const required = question.required || question.type === "statement";
    const field: Field = FIELDS[question.type]({
      question,
      texts,
      initial: typed.get(question.id) ?? attempt.answers.get(question.id),
      describedBy,
      say: tell,
      open: (action) => host.open(action),
    });
    stash = () => typed.set(question.id, field.read());
    const optional = !required && h("span", { class: "optional", lang: shell.language }, ` ${texts("optional")}`);
    const error = h("p", { class: "error", id: errorId });
    const description = h("p", { class: "desc", lang, id: descriptionId }, question.description);
    description.hidden = !question.description;
    const control = h("div", { class: "control", lang }, ...field.nodes);

    const single = field.control && SINGLE.test(question.type);
    const named = single ? h("label", { for: field.control?.id }, ...title.childNodes) : title;
    if (single) title.append(named);
    if (optional) named.append(optional);
    const parts = [description, control, error];
    const group = single
      ? h("div", {}, title, ...parts)
      : question.type === "statement" || question.type === "link"
        ? h("div", { role: "group", "aria-labelledby": title.id }, title, ...parts)
        : h("fieldset", { "aria-describedby": describedBy }, h("legend", {}, title), ...parts);

    const complain = (text: string, part?: string): void => {
      error.textContent = text;
      const target = field.aim(part) ?? title;
      for (const input of control.querySelectorAll(".text")) input.toggleAttribute("aria-invalid", false);
      if (target.matches(".text")) target.setAttribute("aria-invalid", "true");
      target.focus();
      tell(text);
    };
    const describe = (problem: Problem): string =>
      question.validation?.message ??
      texts(
        problem.key,
        ...(problem.values ?? []).map((value) => (problem.characters ? texts("characters", value) : value)),
      );
    const submit = (value: Json): void => {
      if (busy) return;
      const problem = field.odd?.() ?? check(question, value);
      if (problem) return complain(describe(problem), problem.part);
      take(question, value);
    };

    const last = left === 0;
    const own = question.type === "statement" ? question.buttonLabel : undefined;
    const next = h("button", { type: "submit", class: "primary", lang: own && lang, click: once }, own ?? texts(last ? "send" : "next"));
    const back =
      before &&
      h(
          "button",
          {
            type: "button",
            class: "back",
            click: () => {
              stash();
              showQuestion(before, true);
            },
          },
          texts("back"),
        );
    const pass = (event: MouseEvent): void => {
      if (once(event) && !busy) take(question, null);
    };
    const skip = !required && h("button", { type: "button", class: "skip", click: pass }, texts("skip"));
    const form = h(
      "form",
      {
        novalidate: true,
        submit: (event: Event) => {
          event.preventDefault();
          submit(field.read());
        },
      },
      group,
      h("div", { class: "actions" }, back, skip, next),
    );
    const target = (): HTMLElement => field.aim() ?? title;
    show([...progress(number, number + left), form], moved, target);
    if (moved) tell(flow.questions.length > 1 ? texts("question", number, number + left) : "");
    if (refused) complain(sentence(question, refused), refused.part);
  }

  /** Takes an answer, and goes on. Null passes over the question. */
  function take({ id }: Question, value: Json): void {
    typed.delete(id);
    attempt.give(id, value);
    advance(true);
  }

  function progress(number: number, of: number): Node[] {
    if (of < 2) return [];
    const text = texts("question", number, of);
    const done = Math.round(((number - 1) / of) * 100);
    switch (flow.progressStyle) {
      case "bar":
        return [h("progress", { max: 100, value: done, "aria-label": text })];
      case "steps":
        return [h("p", { class: "count" }, text)];
      case "percent":
        return [h("p", { class: "count" }, h("span", { class: "sr" }, `${text}: `), `${done} %`)];
      default:
        return [];
    }
  }

  /** Why the server does not take an answer, at the question. */
  function showRefused(refused: Refused): void {
    const question = flow.questions.find(({ id }) => id === refused.questionId);
    if (!ended) stash();
    ended = undefined;
    typed.set(refused.questionId, refused.value);
    if (question) showQuestion(question, true, refused);
  }

  function sentence(question: Question, { code, detail }: Refused): string {
    if (question.validation?.message) return question.validation.message;
    return code === "required" ? texts("required") : `${texts("refused")} ${detail}`;
  }

  async function finish(end: Next): Promise<void> {
    busy = true;
    const buttons = shell.content.querySelectorAll("button");
    for (const button of buttons) button.setAttribute("aria-disabled", "true");
    const completed = attempt.complete();
    const late = new Promise<true>((resolve) => setTimeout(resolve, PATIENCE, true));
    // Whatever takes longer goes on; the answers are kept until the server has them.
    const taken = await Promise.race([completed, late]);
    if (!taken || closed) return;
    acknowledge(host, instruction, "completed");
    const screen = flow.endScreens?.find(({ id }) => end && "endScreenId" in end && id === end.endScreenId);
    if (screen) showEnd(screen, lang);
    else showEnd({ title: texts("thanks") }, shell.language);
  }

  function showEnd({ title, body, button }: Omit<EndScreen, "id">, said: string | undefined, outcome: End = "completed"): void {
    ended = outcome;
    shell.letClose();
    const heading = headline(title, shell, said);
    const url = safeUrl(button?.url);
    const leave = h(
      "button",
      {
        type: "button",
        class: "primary",
        lang: button && said,
        click: () => {
          if (button && button.action !== "close" && url) host.open({ action: button.action, url: button.url ?? url });
          close();
        },
      },
      button?.label ?? texts("close"),
    );
    const text = body ? [h("p", { class: "body", lang: said }, body)] : [];
    show([heading, ...text, h("div", { class: "actions" }, leave)], false, () => heading);
    shell.say([title, body].filter(Boolean).join(" "), said);
  }

  function close(): void {
    if (closed) return;
    closed = true;
    // Whoever closes it while the end is awaited has answered everything.
    const outcome = ended ?? (busy ? "completed" : "dismissed");
    if (!ended) acknowledge(host, instruction, outcome);
    if (outcome === "dismissed") attempt.dismiss();
    scene.done(outcome);
  }

  if (scene.draft?.unsent) void attempt.send();
  advance(false);
  return { focus: () => focus(), close };
}
