// Dialogs: the browser's own, which keep the focus inside, close by Escape, and give the focus back.
import { html, signal, useId, useLayoutEffect, useRef, useState } from "../lib/preact.js";
import { Button, refocus } from "./button.js";
import { ErrorView } from "./error.js";
import { Input } from "./form.js";
import { Icon } from "./icon.js";

/**
 * A dialog that is open as long as it is rendered.
 * @param {{ title: string, onClose: () => void, children: any, actions?: any, wide?: boolean }} props
 */
export function Dialog({ title, onClose, children, actions, wide }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const id = useId();
  // At once: until it is open, a key still goes to the button that asked for it.
  useLayoutEffect(() => {
    const element = dialog.current;
    const before = document.activeElement;
    element?.showModal();
    return () => {
      element?.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
      refocus();
    };
  }, []);
  const cancel = (/** @type {Event} */ event) => {
    event.preventDefault();
    onClose();
  };
  return html`<dialog ref=${dialog} class=${wide ? "wide" : ""} aria-labelledby=${id} onCancel=${cancel}>
    <header><h2 id=${id}>${title}</h2><${Button} kind="plain" label="Close" onClick=${onClose}><${Icon} name="close" /><//></header>
    <div class="content">${children}</div>
    ${actions && html`<footer>${actions}</footer>`}
  </dialog>`;
}

/**
 * @typedef {object} Question
 * @property {string} title `Delete the survey?`
 * @property {any} text what happens then
 * @property {string} action the name of the button: a verb, `Delete`
 * @property {boolean} [danger] it can't be undone
 * @property {string} [type] what must be typed first, for what is worst: the name of the thing
 * @property {() => unknown} run
 */

/** @param {Question & { onClose: () => void }} props */
function Confirm({ title, text, action, danger, type, run, onClose }) {
  const [typed, setTyped] = useState("");
  const [failed, setFailed] = useState(/** @type {Error | undefined} */ (undefined));
  const press = async () => {
    setFailed(undefined);
    try {
      await run();
      onClose();
    } catch (error) {
      setFailed(/** @type {Error} */ (error));
    }
  };
  const actions = html`<${Button} onClick=${onClose}>Cancel<//><${Button} kind=${danger ? "danger" : "primary"} disabled=${type !== undefined && typed !== type} onClick=${press}>${action}<//>`;
  return html`<${Dialog} title=${title} onClose=${onClose} actions=${actions}>
    <p>${text}</p>
    ${failed && html`<${ErrorView} error=${failed} />`}
    ${type !== undefined && html`<${Input} presses label=${`Type “${type}” to go on`} value=${typed} onInput=${setTyped} />`}
  <//>`;
}

/** Questions that are open: in the page's tree, whose ids are unique. */
const questions = signal(/** @type {(Question & { id: number, onClose: () => void })[]} */ ([]));
let next = 1;

/** All questions; the layout has it. */
export const Questions = () => questions.value.map((question) => html`<${Confirm} key=${question.id} ...${question} />`);

/**
 * Asks before something dangerous; does it where the answer is yes.
 * @param {Question} question
 */
export function confirm(question) {
  const id = next++;
  const onClose = () => (questions.value = questions.value.filter((one) => one.id !== id));
  questions.value = [...questions.value, { ...question, id, onClose }];
}
