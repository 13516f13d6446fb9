/** Opens the frame of a survey or a message, and what goes into it. */

import { acknowledge } from "./ack.js";
import type { Draft, Host, Instruction, Message, Outcome, Survey } from "./host.js";
import { isDismissible, showMessage } from "./message.js";
import { type Frame, openShell, type Shell, type Shown } from "./shell.js";
import { showSurvey } from "./survey.js";
import { directionOf, languageOf, type Texts, textsOf } from "./texts.js";

/** An attempt that was started without an instruction. */
export interface Started {
  attemptId: string;
  clientAttemptId: string;
}

/** What is shown, and where. */
export interface Scene {
  host: Host;
  instruction: Instruction;
  /** Where to put it, instead of over the page. */
  container: Element | undefined;
  /** Whether the person asked for it just now. */
  asked: boolean;
  draft: Draft | null;
  started: Started | undefined;
  /** It is over: the frame goes. */
  done(outcome: Outcome): void;
}

/** The frames of messages. */
const LAYOUTS: Record<Message["layout"], Frame> = {
  banner: "banner",
  modal: "modal",
  card: "popover",
  fullscreen: "fullscreen",
};

interface Words {
  /** The language of our own words: that of what is shown, if there are words in it. */
  language: string;
  /** The language of what is shown: without translations that of the page, as far as anybody knows. */
  spoken: string | undefined;
  /** The language that the server says it is in. */
  locale: string | undefined;
  texts: Texts;
}

/** How something lies over the page, or in its container. */
export function frameOf({ payload: { message, survey } }: Instruction, container?: Element): Frame {
  if (container) return "inline";
  if (message) return LAYOUTS[message.layout] ?? "popover";
  return survey?.settings?.presentation === "modal" ? "modal" : "popover";
}

/** Shows something. */
export function show(scene: Scene): Shown | undefined {
  const { survey, message } = scene.instruction.payload;
  const locale = (message ?? survey)?.locale?.replaceAll("_", "-");
  const language = languageOf(locale ?? scene.host.locale);
  const spoken = locale ?? (document.documentElement.lang || undefined);
  const words = { language, spoken, locale, texts: textsOf(language) };
  if (message) return openMessage(scene, message, words);
  return survey && openSurvey(scene, survey, words);
}

function openSurvey(scene: Scene, survey: Survey, { locale, ...words }: Words): Shown {
  const { host, instruction, draft, started, asked, container } = scene;
  const settings = survey.settings ?? {};
  const title = survey.flow.questions[0]?.title ?? survey.name;
  const frame = frameOf(instruction, container);
  const shell: Shell = openShell({
    frame,
    position: settings.position,
    theme: survey.theme,
    container,
    closeable: settings.closeable !== false,
    label: survey.name,
    ...words,
    direction: directionOf(title, locale),
    closed: () => shown.close(),
  });
  const shown = showSurvey({
    host,
    instruction,
    survey,
    shell,
    texts: words.texts,
    draft,
    started,
    done: scene.done,
  });
  // Whoever did not ask is told, and goes on with what they do.
  if (frame === "modal" || asked) shown.focus();
  else shell.say(title);
  return shell;
}

function openMessage(scene: Scene, message: Message, { locale, ...words }: Words): Shown {
  const { host, instruction, asked, container } = scene;
  const frame = frameOf(instruction, container);
  const name = message.title ?? message.body ?? message.buttons?.[0]?.label ?? "";
  const { done } = scene;
  const shell = openShell({
    frame,
    position: "bottom_right",
    theme: message.theme,
    container,
    closeable: isDismissible(message),
    label: name,
    ...words,
    direction: directionOf(name, locale),
    closed: () => {
      acknowledge(host, instruction, "dismissed");
      done("dismissed");
    },
  });
  const focus = showMessage({ host, instruction, message, shell, done });
  if (asked || frame === "modal" || frame === "fullscreen") focus();
  else shell.say([message.title, message.body].filter(Boolean).join(" "));
  return shell;
}
