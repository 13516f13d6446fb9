/** In-app messages: banner, modal, card, fullscreen. */

import { acknowledge } from "./ack.js";
import { append, h, isWeb, safeUrl } from "./dom.js";
import type { Host, Instruction, Message, Outcome } from "./host.js";
import { headline, type Shell } from "./shell.js";

/** What a message is shown with. */
export interface MessageScene {
  host: Host;
  instruction: Instruction;
  message: Message;
  shell: Shell;
  /** It is over: the frame goes. */
  done(outcome: Outcome): void;
}

/** Whether a message can be closed without one of its buttons. One that has none always can. */
export const isDismissible = (message: Message): boolean => message.dismissible !== false || !message.buttons?.length;

/** Shows a message in a frame; answers what takes the focus. */
export function showMessage({ host, instruction, message, shell, done }: MessageScene): () => void {
  const { title, body, imageUrl, buttons } = message;
  const heading = title && headline(title, shell);
  const address = safeUrl(imageUrl);
  const made = (buttons ?? []).slice(0, 2).map(({ id, label, style, openAction }, index) => {
    const primary = style ? style === "primary" : index === 0;
    const click = (): void => {
      acknowledge(host, instruction, "clicked", id);
      if (openAction && openAction.action !== "none" && (!openAction.url || safeUrl(openAction.url))) {
        host.open(openAction);
      }
      done("completed");
    };
    return h("button", { type: "button", class: primary ? "primary" : "", lang: shell.spoken, click }, label);
  });
  const text = body && h("p", { class: "body", lang: shell.spoken, tabindex: heading ? null : -1 }, body);
  append(
    shell.content,
    isWeb(address) && h("img", { class: "picture", src: address, alt: "", referrerpolicy: "no-referrer" }),
    heading,
    text,
    made.length > 0 && h("div", { class: "actions" }, ...made),
  );
  return () => (heading || text || made[0])?.focus();
}
