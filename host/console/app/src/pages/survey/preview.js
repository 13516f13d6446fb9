// The survey as people see it, as it is written now.
import { html } from "../../lib/index.js";
import { Empty, Notice } from "../../ui/index.js";
import { askedFor, languagesOf, Stage } from "../stage.js";
import { flowOf, localized } from "./model.js";

/** @param {{ value: any }} props value: the survey, as it is written now */
export function Preview({ value }) {
  const { locale: asked, mode } = askedFor();
  const { localization, settings = {}, theme } = value;
  const source = localization?.defaultLocale ?? "en";
  const locale = asked || source;
  const flow = flowOf(value);
  if (!flow.questions.length) return html`<${Empty} title="There is nothing to show yet"><p>Add a question first.</p><//>`;
  const survey = { id: "preview", version: 1, name: value.name || "Survey", flow: localized(localization, flow, locale), theme: mode ? { ...theme, mode } : theme, settings: { ...settings, delaySeconds: 0 } };
  return html`<${Notice}>The SDK's own renderer shows it, with what is written here. Nothing is recorded.<//>
    <${Stage} payload=${{ survey }} locale=${locale} chosen=${locale} languages=${languagesOf(localization)} place=${`${settings.presentation ?? "popover"} ${settings.position ?? "bottom_right"}`} asked=${settings.presentation != "feedback_button"} />`;
}
