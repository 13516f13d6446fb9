import type { Problem } from "../answers.js";
import { isWeb } from "../dom.js";
import type { Host, Json, OpenAction, Question } from "../host.js";
import type { Texts } from "../texts.js";

/** What a question's control has to know. */
export interface Setting {
  question: Question;
  texts: Texts;
  /** The answer that was given before. */
  initial: Json | undefined;
  /** Ids of what describes the control: description, ends of a scale, the error. */
  describedBy: string;
  /** Tells people who don't see the page. */
  say(text: string): void;
  /** Opens an address. */
  open: Host["open"];
}

/** The control of a question. */
export interface Field {
  /** What goes below the question's title. */
  nodes: Node[];
  /** The control that the title labels, where there is one alone; otherwise the title is a group's. */
  control?: HTMLElement;
  /** The answer; null: none. */
  read(): Json;
  /** What is wrong with what was typed, where it is no value at all. */
  odd?(): Problem | undefined;
  /** What has to get the focus, of the whole or of a part of the answer. */
  aim(part?: string): HTMLElement | null | undefined;
}

/** The action of an address. */
export const actionOf = (url: string): OpenAction => ({ action: isWeb(url) ? "url" : "deep_link", url });
