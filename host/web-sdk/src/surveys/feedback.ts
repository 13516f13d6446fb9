/** The feedback button: it stays, and opens its survey. */

import { h } from "./dom.js";
import type { Survey } from "./host.js";
import { cornerOf, type Shown, surface } from "./shell.js";
import { directionOf, languageOf, textsOf } from "./texts.js";

/** A feedback button in the page. */
export interface FeedbackButton extends Shown {
  /** Says whether its survey is open. */
  opened(is: boolean): void;
}

/** Shows the button of a survey. */
export function showFeedback(locale: string, survey: Survey, pressed: () => void): FeedbackButton {
  const language = languageOf(survey.locale ?? locale);
  const label = textsOf(language)("feedback");
  const { element, root } = surface(survey.theme);
  const button = h(
    "button",
    {
      type: "button",
      class: `fab ${cornerOf(survey.settings?.position)}`,
      "aria-haspopup": "dialog",
      "aria-expanded": "false",
      click: pressed,
    },
    label,
  );
  root.append(h("div", { class: "root layer", lang: language, dir: directionOf(label) }, button));
  // A page may put another body in the place of its own: the button moves there.
  const watch = new MutationObserver(() => element.isConnected || document.body?.append(element));
  watch.observe(document.documentElement, { childList: true });
  return {
    element,
    opened: (is) => button.setAttribute("aria-expanded", `${is}`),
    remove: () => {
      watch.disconnect();
      element.remove();
    },
  };
}
