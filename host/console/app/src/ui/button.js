// Buttons. Whoever presses one sees at once that something happens, and cannot press it twice.
import { complain } from "../lib/notice.js";
import { html, useEffect, useRef, useState } from "../lib/preact.js";

/** Gives the focus to the page where what had it is gone, unless something nearer is found. @param {() => HTMLElement | null | undefined} [find] */
export const refocus = (find) => setTimeout(() => document.activeElement === document.body && (find?.() ?? document.getElementById("main"))?.focus({ preventScroll: true }), 100);

/**
 * @param {object} props
 * @param {any} props.children
 * @param {() => unknown} [props.onClick] may answer a promise: the button is pending until it is done, and says what failed
 * @param {"primary" | "secondary" | "danger" | "plain"} [props.kind]
 * @param {string} [props.label] what it is called where its content is only a sign
 * @param {boolean} [props.disabled]
 * @param {boolean} [props.pending]
 * @param {"button" | "submit"} [props.type]
 * @param {Record<string, any>} [props.rest] further attributes: `aria-expanded` …
 */
export function Button({ children, onClick, kind = "secondary", label, disabled, pending, type = "button", rest = {} }) {
  const [own, setOwn] = useState(false);
  const there = useRef(true);
  useEffect(() => () => void (there.current = false), []);
  const busy = pending || own;
  const press = async () => {
    if (busy || !onClick) return;
    try {
      const result = onClick();
      if (!(result instanceof Promise)) return;
      setOwn(true);
      await result;
    } catch (error) {
      complain(error);
    } finally {
      if (there.current) setOwn(false);
      refocus();
    }
  };
  return html`<button type=${type} class=${`button ${kind}`} ...${rest} aria-label=${label} title=${label} disabled=${disabled} aria-disabled=${busy ? "true" : undefined} aria-busy=${busy ? "true" : undefined} onClick=${onClick && press}>${children}</button>`;
}

/** A link that looks like a button: it can be opened in a new tab. @param {{ href: string, kind?: string, children: any, rest?: Record<string, any> }} props */
export const LinkButton = ({ href, kind = "secondary", children, rest = {} }) => html`<a href=${href} class=${`button ${kind}`} ...${rest}>${children}</a>`;
