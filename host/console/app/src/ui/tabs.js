// Tabs. Which one is selected is in the URL, so that it can be sent to somebody.
import { html, useId } from "../lib/preact.js";
import { route, setQuery } from "../lib/router.js";

/**
 * @typedef {{ id: string, title: string, render: () => any }} Tab render is called for the selected one only
 * @param {{ tabs: Tab[], label: string, name?: string }} props name: of the query's member
 */
export function Tabs({ tabs, label, name = "tab" }) {
  const id = useId();
  const selected = tabs.find((tab) => tab.id == route.value.query[name]) ?? tabs[0];
  const select = (/** @type {Tab | undefined} */ tab) => tab && setQuery({ [name]: tab.id == tabs[0]?.id ? "" : tab.id }, { replace: true });
  const move = (/** @type {any} */ event) => {
    const index = tabs.findIndex((tab) => tab === selected);
    /** @type {Record<string, number>} */
    const places = { ArrowRight: index + 1, ArrowLeft: index - 1, Home: 0, End: tabs.length - 1 };
    const place = places[event.key];
    if (place === undefined) return;
    event.preventDefault();
    const next = (place + tabs.length) % tabs.length;
    select(tabs[next]);
    event.currentTarget.children[next]?.focus();
  };
  return html`<div class="tabs">
    <div role="tablist" aria-label=${label} onKeyDown=${move}>
      ${tabs.map((tab) => html`<button type="button" role="tab" id=${`${id}-${tab.id}`} aria-selected=${tab === selected ? "true" : "false"} aria-controls=${`${id}-panel`} tabindex=${tab === selected ? 0 : -1} onClick=${() => select(tab)}>${tab.title}</button>`)}
    </div>
    <div role="tabpanel" id=${`${id}-panel`} aria-labelledby=${`${id}-${selected?.id}`} tabindex="0" key=${selected?.id}>${selected?.render()}</div>
  </div>`;
}
