/**
 * The frame of everything that is shown: an element in the page with a shadow root of its own, in the top layer where
 * the browser has one, closed by Escape, giving the focus back.
 */

import { focused, glyph, h, newId } from "./dom.js";
import type { Theme } from "./host.js";
import { STYLES } from "./styles.js";
import type { Texts } from "./texts.js";
import { themeRules } from "./theme.js";

/** How a frame lies over the page, or in it. */
export type Frame = "popover" | "modal" | "inline" | "banner" | "fullscreen" | "button";

/** What a frame is to be. */
export interface ShellOptions {
  frame: Frame;
  /** The corner, of a popover. */
  position?: string | undefined;
  theme?: Theme | null | undefined;
  /** The element that an inline one goes into. */
  container?: Element | undefined;
  closeable: boolean;
  /** What it is called where it has no headline. */
  label: string;
  /** The language of our own words. */
  language: string;
  /** The language of what is shown, as far as it is known. */
  spoken: string | undefined;
  direction: "rtl" | "ltr";
  texts: Texts;
  /** The person closes it. */
  closed(): void;
}

/** Something of ours in the page. */
export interface Shown {
  element: HTMLElement;
  /** Whether all is said. */
  over?: boolean;
  /** Takes it away without a word. */
  remove(): void;
}

/** A frame. */
export interface Shell extends Shown {
  /** What the content goes into. */
  content: HTMLElement;
  language: string;
  spoken: string | undefined;
  /** Says what names the frame. */
  named(id: string): void;
  /** Tells people who don't see it: something of what is shown, unless in another language. */
  say(text: string, language?: string): void;
  /** Whether the focus is within. */
  hasFocus(): boolean;
  /** Lets it be closed from now on, whatever it was told. */
  letClose(): void;
  /** Takes it away; the focus goes back to where it was. */
  remove(): void;
}

/** The classes of a corner, or of the middle. */
export const cornerOf = (position: string | undefined): string =>
  (/^((top|bottom)_(left|right)|center)$/.test(position ?? "") ? (position as string) : "bottom_right").replace("_", " ");

let sheet: CSSStyleSheet | undefined;

/** A style sheet that no content security policy has a say in. */
function sheetOf(text: string): CSSStyleSheet {
  const made = new CSSStyleSheet();
  made.replaceSync(text);
  return made;
}

/** An element in the page with a shadow root that has our styles. */
export function surface(theme: Theme | null | undefined, parent?: Element): { element: HTMLElement; root: ShadowRoot } {
  const element = document.createElement("nudge-ui");
  // One that lies over the page takes no place in it, not even a gap between the page's own parts.
  element.toggleAttribute("inline", !!parent);
  const root = element.attachShadow({ mode: "open" });
  root.adoptedStyleSheets = [(sheet ??= sheetOf(STYLES)), sheetOf(themeRules(theme))];
  // What is typed here is not for the page's shortcuts, and the focus not for its traps.
  for (const name of ["keydown", "keyup", "keypress", "focusin", "focusout"]) {
    root.addEventListener(name, (event) => event.stopPropagation());
  }
  (parent ?? document.body).append(element);
  return { element, root };
}

/** What the Tab key comes to. */
function stops(within: Element): HTMLElement[] {
  const all = within.querySelectorAll<HTMLElement>("button,a[href],input,textarea");
  return [...all].filter((element) => element.checkVisibility?.() ?? element.offsetParent);
}

/** Shows a frame. */
export function openShell(options: ShellOptions): Shell {
  const { frame, texts, language, spoken } = options;
  const modal = frame === "modal" || frame === "fullscreen";
  const inline = frame === "inline";
  const { element, root } = surface(options.theme, options.container);
  let origin = focused();
  let { closeable } = options;

  const status = h("p", { class: "sr", role: "status" });
  const content = h("div", { class: "content" });
  const close = h("button", { type: "button", class: "close", "aria-label": texts("close"), click: () => leave() }, glyph("✕"));
  const box: HTMLElement = h(modal ? "dialog" : "div", {
    class: `root ${frame} ${frame === "popover" ? cornerOf(options.position) : ""} ${closeable ? "closeable" : ""}`,
    role: modal ? null : inline || frame === "banner" ? "region" : "dialog",
    "aria-label": options.label,
    lang: language,
    dir: options.direction,
    tabindex: -1,
  });
  if (closeable) box.append(close);
  box.append(content, status);
  root.append(box);

  const leave = (): void => {
    if (closeable) options.closed();
  };
  root.addEventListener("focusin", (event) => {
    const before = (event as FocusEvent).relatedTarget;
    // A shadow root shows its host alone, which takes no focus.
    if (before instanceof HTMLElement && !before.shadowRoot && !root.contains(before)) origin = before;
  });
  box.addEventListener("keydown", (event) => {
    const { key, repeat, shiftKey } = event;
    // An Enter that is held answers one question.
    if (key === "Enter" && repeat && !(event.target instanceof HTMLTextAreaElement)) event.preventDefault();
    if (key === "Escape" && !inline) {
      // A browser would close a dialog at the second Escape, whatever it is told at the first.
      event.preventDefault();
      leave();
    }
    if (key !== "Tab" || !modal) return;
    const within = stops(box);
    const [first, last] = [within[0], within.at(-1)];
    const at = root.activeElement;
    if (shiftKey ? at === first || at === box : at === last) {
      event.preventDefault();
      (shiftKey ? last : first)?.focus();
    }
  });
  if (box instanceof HTMLDialogElement) {
    box.addEventListener("cancel", (event) => {
      event.preventDefault();
      leave();
    });
    box.showModal();
  } else if (!inline && "showPopover" in box) {
    box.popover = "manual";
    box.showPopover();
  }

  let timer = 0;
  const shell: Shell = {
    element,
    content,
    language,
    spoken,
    named: (id) => {
      box.removeAttribute("aria-label");
      box.setAttribute("aria-labelledby", id);
    },
    say: (text, said = spoken) => {
      // Emptied first, and filled later: what is there when it appears, and what stays as it is, is not told.
      status.textContent = "";
      clearTimeout(timer);
      timer = setTimeout(() => {
        status.textContent = text;
        status.lang = said ?? "";
      }, 60) as unknown as number;
    },
    hasFocus: () => !!root.activeElement,
    letClose: () => {
      if (!closeable) box.prepend(close);
      closeable = shell.over = true;
      box.classList.add("closeable");
    },
    remove: () => {
      clearTimeout(timer);
      const had = !!root.activeElement;
      element.remove();
      if (had && origin?.isConnected) origin.focus({ preventScroll: true });
    },
  };
  return shell;
}

/** A headline, with an id that names its frame. */
export function headline(text: string, shell: Shell, lang = shell.spoken): HTMLElement {
  const made = h("h2", { id: newId(), tabindex: -1, lang }, text);
  shell.named(made.id);
  return made;
}
