// What editors offer to choose from: segments, and names of events that the app knows.
import { useList } from "../lib/load.js";
import { createContext, html, useContext, useId, useMemo } from "../lib/preact.js";
import { inApp } from "../lib/session.js";
import { Failed } from "./error.js";
import { Input, Select } from "./form.js";

const Choices = createContext(/** @type {{ segments: any[], names: string } | null} */ (null));

/** Asks once for all editors within. @param {{ children: any }} props */
export function WithChoices({ children }) {
  const around = useContext(Choices);
  const id = useId();
  const path = (/** @type {string} */ name) => (around ? null : inApp(name));
  const lists = ["/segments", "/event-definitions", "/events"].map((name) => useList(path(name), { limit: 200 }));
  const [segments = [], declared = [], recent = []] = lists.map(({ data }) => data?.items);
  const names = useMemo(() => [...new Set([...declared, ...recent].map(({ name }) => name).filter(Boolean))].sort(), [declared, recent]);
  const own = useMemo(() => ({ segments, names: id }), [segments, id]);
  if (around) return children;
  return html`<${Choices.Provider} value=${own}><datalist id=${id}>${names.map((name) => html`<option value=${name}></option>`)}</datalist><${Failed} of=${lists} />${children}<//>`;
}

/** The name of an event, with those that are known to choose from. @param {{ value?: string, onChange: (name: string) => void, at: string, label?: string, hint?: any }} props */
export function EventName({ value = "", onChange, at, label = "Event", hint }) {
  const { names } = useContext(Choices) ?? { names: "" };
  return html`<${Input} label=${label} at=${at} hint=${hint} value=${value} onInput=${onChange} rest=${{ list: names, spellcheck: false }} />`;
}

/** A segment of the app. @param {{ value?: string, onChange: (id: string) => void, at: string }} props */
export function SegmentChoice({ value = "", onChange, at }) {
  const { segments } = useContext(Choices) ?? { segments: [] };
  /** @type {[string, string][]} */
  const options = [["", "choose a segment"], ...segments.map((/** @type {any} */ { id, name }) => /** @type {[string, string]} */ ([id, name]))];
  if (value && !segments.some((/** @type {any} */ { id }) => id == value)) options.push([value, value]);
  return html`<${Select} label="Segment" at=${at} value=${value} options=${options} onChange=${onChange} />`;
}
