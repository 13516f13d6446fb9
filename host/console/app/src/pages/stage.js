// Something as people see it: shown by the SDK's own renderer, which this server hands out. Its host here answers by
// itself: nothing is sent, so nothing is recorded.
import { html, route, setQuery, useEffect, useRef, useState } from "../lib/index.js";
import { Button, Checkbox, ErrorView, Select } from "../ui/index.js";
import { languageName } from "./survey/languages.js";

/** Where every server has the renderer. */
const RENDERER = "/sdk/v1/surveys.mjs";
/** The languages of the SDK's own words. */
const WORDS = ["en", "de", "fr", "es", "ar"];

/**
 * What the renderer asks of the SDK's core, answered without a server.
 * @param {string} locale
 * @param {object} to
 * @param {(text: string) => void} to.note what would have happened
 * @param {() => void} to.displayed
 */
const hostOf = (locale, { note, displayed }) => ({
  locale,
  newId: () => crypto.randomUUID(),
  now: Date.now,
  onOffer: () => true,
  acknowledge: (/** @type {any} */ _, /** @type {string} */ status, /** @type {string} */ action = "") => note(`acknowledged: ${status} ${action}`.trim()),
  start: async (/** @type {string} */ surveyId, /** @type {any} */ { clientAttemptId }) => ({ attemptId: clientAttemptId, surveyId, surveyVersion: 1, state: "started", next: null }),
  answer: async (/** @type {string} */ _, /** @type {any[]} */ answers) => {
    for (const { questionId, value } of answers) note(`${questionId}: ${value === null ? "skipped" : JSON.stringify(value)}`);
    return null;
  },
  complete: async () => note("completed"),
  dismiss: async () => note("dismissed"),
  open: (/** @type {any} */ { action, url }) => note(`opens ${url ?? action}`),
  draft: async () => null,
  keep: () => {},
  tell: (/** @type {string} */ event) => event == "displayed" && displayed(),
});

/** @param {{ survey?: any, message?: any }} payload */
const instructionOf = (payload) => {
  const at = new Date().toISOString();
  return { instructionId: crypto.randomUUID(), kind: payload.survey ? "survey" : "in_app", campaignId: "preview", campaignVersion: 1, priority: 0, createdAt: at, availableAt: at, expiresAt: new Date(Date.now() + 86_400_000).toISOString(), payload };
};

/** Writes the newest frame from right to left, as it is in a language that is. @param {ParentNode | null | undefined} within */
function mirror(within) {
  const root = [...(within?.querySelectorAll("nudge-ui") ?? [])].at(-1)?.shadowRoot?.querySelector(".root");
  if (root instanceof HTMLElement) root.dir = "rtl";
}

/** What is asked for by the address: a language, colours, the width. */
export const askedFor = () => {
  const { width = "phone", locale = "", mode = "", mirrored = "" } = route.value.query;
  return { width, locale, mode, mirrored };
};

/** Languages to choose from, with their names: the written ones and those of the SDK's own words. @param {any} localization @returns {[string, string][]} */
export function languagesOf(localization) {
  const locales = new Set([localization?.defaultLocale ?? "en", ...Object.keys(localization?.translations ?? {}), ...WORDS]);
  return [...locales].map((locale) => [locale, languageName(locale)]);
}

/**
 * @param {object} props
 * @param {{ survey?: any, message?: any }} props.payload what the SDK is given
 * @param {string} props.locale the language of the SDK's own words
 * @param {string} props.chosen the language that is chosen
 * @param {[string, string][]} props.languages those to choose from; an empty one: none is asked for
 * @param {string} props.place classes of where it stands
 * @param {boolean} [props.asked] over this page it comes at once, and not behind its button
 */
export function Stage({ payload, locale, chosen, languages, place, asked = true }) {
  const { width, mode, mirrored } = askedFor();
  const text = JSON.stringify(payload);

  const spot = useRef(/** @type {HTMLElement | null} */ (null));
  const over = useRef(/** @type {any} */ (undefined));
  const [notes, setNotes] = useState(/** @type {string[]} */ ([]));
  const [outcome, setOutcome] = useState("");
  const [turn, setTurn] = useState(0);
  const [failed, setFailed] = useState(/** @type {Error | undefined} */ (undefined));
  const note = (/** @type {string} */ line) => setNotes((before) => [...before, line].slice(-50));

  useEffect(() => {
    /** @type {any} */
    let renderer;
    let gone = false;
    setNotes([]);
    setOutcome("");
    // While somebody types, the form is shown when they stop.
    const timer = setTimeout(async () => {
      try {
        const { createRenderer } = await import(RENDERER);
        if (gone || !spot.current) return;
        renderer = createRenderer(hostOf(locale, { note, displayed: () => mirrored && mirror(spot.current) }));
        const end = await renderer.present(instructionOf(JSON.parse(text)), { container: spot.current });
        if (!gone) setOutcome(end);
      } catch (error) {
        if (!gone) setFailed(new Error(`The renderer can't be loaded from ${RENDERER}. Reload the page. (${error})`));
      }
    }, 200);
    return () => {
      gone = true;
      clearTimeout(timer);
      renderer?.clear();
    };
  }, [text, locale, mirrored, turn]);
  useEffect(() => () => over.current?.clear(), []);

  const overPage = async () => {
    over.current?.clear();
    const { createRenderer } = await import(RENDERER);
    over.current = createRenderer(hostOf(locale, { note, displayed: () => mirrored && mirror(document.body) }));
    void over.current.present(instructionOf(JSON.parse(text)), { asked });
  };
  const set = (/** @type {string} */ name) => (/** @type {string} */ next) => setQuery({ [name]: next }, { replace: true });
  if (failed) return html`<${ErrorView} error=${failed} />`;
  return html`<div class="row">
      <${Select} label="Width" value=${width} options=${[["phone", "a phone, 375 pixels"], ["desktop", "a desktop"]]} onChange=${set("width")} />
      <${Select} label="Language" value=${chosen} options=${languages} onChange=${set("locale")} />
      <${Select} label="Colours" value=${mode} options=${[["", "as the theme has them"], "light", "dark"]} onChange=${set("mode")} />
    </div>
    <${Checkbox} label="From right to left" hint="What is written in Arabic or Hebrew is so by itself." checked=${Boolean(mirrored)} onChange=${(/** @type {boolean} */ on) => set("mirrored")(on ? "yes" : "")} />
    <div class=${`stage ${width} ${place}`} role="region" aria-label="Preview">
      <div class="spot" ref=${spot}></div>
      ${outcome && html`<p role="status">Preview ended: ${outcome}</p>`}
    </div>
    <div class="actions">
      <${Button} onClick=${() => setTurn(turn + 1)}>Begin again<//>
      <${Button} onClick=${overPage}>Show it over this page<//>
      <${Button} onClick=${() => over.current?.clear()}>Take it away<//>
    </div>
    <h2>What would be sent</h2>
    ${notes.length ? html`<div class="notes" role="log" aria-label="What would be sent" tabindex="0"><ol>${notes.map((line) => html`<li><code>${line}</code></li>`)}</ol></div>` : html`<p class="hint">Answer or close it to see.</p>`}`;
}
