// Texts in other languages, each beside its source: those of a survey, or of a message.
import { html, route, setQuery, useState } from "../../lib/index.js";
import { Badge, Button, confirm, Empty, Input, Notice, Select, TextArea } from "../../ui/index.js";

/** The name of a language, as the browser knows it. @param {string} locale */
export function languageName(locale) {
  try {
    return `${new Intl.DisplayNames(undefined, { type: "language" }).of(locale.replaceAll("_", "-"))} (${locale})`;
  } catch {
    return locale;
  }
}

/** Whether a language is written from right to left. @param {string} text */
const isRtl = (text) => /[\p{Script=Arabic}\p{Script=Hebrew}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u.test(/\p{L}/u.exec(text)?.[0] ?? "");

/**
 * @param {object} props
 * @param {any} [props.value] the localization; undefined: it speaks one language
 * @param {(value: any) => void} props.onChange
 * @param {{ path: string, text: string }[]} props.texts what there is to translate
 * @param {string} [props.at] the pointer of the localization
 */
export function Languages({ value, onChange, texts, at = "/localization" }) {
  const [added, setAdded] = useState("");
  const localization = value ?? { defaultLocale: "en", translations: {} };
  const translations = localization.translations ?? {};
  const locales = Object.keys(translations);
  const locale = locales.includes(route.value.query.locale ?? "") ? route.value.query.locale ?? "" : locales[0];
  const set = (/** @type {any} */ next) => onChange({ ...localization, ...next });
  const tell = (/** @type {string} */ name, /** @type {any} */ all) => set({ translations: { ...translations, [name]: all } });
  const show = (/** @type {string} */ name) => setQuery({ locale: name }, { replace: true });
  const add = () => {
    const name = added.trim();
    if (!name) return;
    if (!translations[name]) tell(name, {});
    setAdded("");
    show(name);
  };
  const remove = (/** @type {string} */ name) =>
    confirm({
      title: "Remove the language?",
      text: `All texts in ${languageName(name)} go from this draft.`,
      action: "Remove",
      danger: true,
      run: () => {
        const { [name]: _, ...rest } = translations;
        if (Object.keys(rest).length) set({ translations: rest });
        else onChange(undefined);
      },
    });
  const own = locale === undefined ? {} : translations[locale] ?? {};
  // The path of an item is also that of its label.
  const read = (/** @type {string} */ path) => own[path] ?? (path.endsWith("/label") ? own[path.slice(0, -6)] : undefined) ?? "";
  const write = (/** @type {string} */ path, /** @type {string} */ text) => {
    const { [path]: _, [path.replace(/\/label$/, "")]: __, ...rest } = own;
    tell(locale ?? "", text ? { ...rest, [path]: text } : rest);
  };
  const paths = new Set(texts.flatMap(({ path }) => [path, path.replace(/\/label$/, "")]));
  const gone = Object.keys(own).filter((path) => !paths.has(path));
  const missing = texts.filter(({ path }) => !read(path)).length;
  return html`
    <div class="row">
      <${Input} label="The language that it is written in" at=${`${at}/defaultLocale`} value=${localization.defaultLocale} onInput=${(/** @type {string} */ defaultLocale) => set({ defaultLocale })} />
      <${Input} presses label="Another language" hint="As in de, pt-BR, ar." value=${added} onInput=${setAdded} rest=${{ size: 8 }} />
      <p class="level"><${Button} disabled=${!added.trim()} onClick=${add}>Add the language<//></p>
    </div>
    ${locale === undefined ? html`<${Empty} title="It speaks one language"><p>Add another one: its texts stand beside the source here. People get the one that their device asks for, and the source where a text is missing.</p><//>` : html`
    <div class="row">
      <${Select} label="Translate into" value=${locale} options=${locales.map((name) => [name, languageName(name)])} onChange=${show} />
      <p class="level"><${Badge} kind=${missing ? "warn" : "good"}>${missing ? `${missing} of ${texts.length} are missing` : "complete"}<//> <${Button} onClick=${() => remove(locale)}>Remove the language<//></p>
    </div>
    ${gone.length > 0 && html`<${Notice} kind="warn" actions=${html`<${Button} onClick=${() => tell(locale, Object.fromEntries(Object.entries(own).filter(([path]) => !gone.includes(path))))}>Remove them<//>`}>${gone.length} texts are of what is gone: ${gone.slice(0, 5).join(", ")}. The server takes none that lead nowhere.<//>`}
    ${texts.map(({ path, text }) => html`<div class="sides translation" key=${path}>
      <div><p class="hint"><code>${path}</code></p><p dir=${isRtl(text) ? "rtl" : "ltr"} lang=${localization.defaultLocale}>${text}</p></div>
      <${TextArea} label=${`${path} in ${locale}`} rows=${text.length > 80 ? 3 : 1} at=${`${at}/translations/${locale}/${path.replaceAll("~", "~0").replaceAll("/", "~1")}`} value=${read(path)} onInput=${(/** @type {string} */ next) => write(path, next)} rest=${{ dir: "auto", lang: locale }} />
    </div>`)}`}`;
}
