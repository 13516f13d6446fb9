// One survey: its composer, its life, and the way to its results. What is written is kept in the browser until it is saved.
import { ApiError, can, copied, difference, go, html, inApp, link, post, route, save as saveFile, say, setQuery, useDraft, useEffect, useResource, useState, words } from "../lib/index.js";
import { AudienceEditor, Badge, Button, CapEditor, confirm, Copy, Discard, DraftFields, ErrorView, Field, Form, Input, Json, JsonField, LinkButton, Loading, Notice, NumberInput, PageHead, put, RestoredDraft, ScheduleEditor, Select, Tabs, TextArea, TriggerEditor, useSaving } from "../ui/index.js";
import { Branches } from "./survey/branches.js";
import { Languages } from "./survey/languages.js";
import { Look } from "./survey/look.js";
import { flowOf, newSurvey, spokenOf, textsOf, written, wrong } from "./survey/model.js";
import { Preview } from "./survey/preview.js";
import { Questions } from "./survey/questions.js";

const KINDS = /** @type {Record<string, string>} */ ({ active: "good", paused: "warn" });
/** Where a status may lead, and what that is called. @type {Record<string, [string, string][]>} */
const NEXT = {
  draft: [["active", "Activate"], ["archived", "Archive"]],
  active: [["paused", "Pause"], ["completed", "End"]],
  paused: [["active", "Activate"], ["completed", "End"]],
  completed: [["active", "Activate again"], ["archived", "Archive"]],
  archived: [["draft", "Back to draft"]],
};
/** @type {[string, string][]} */
const MODES = [["triggered", "by what people do"], ["scheduled", "by the calendar"], ["on_demand", "the app asks for it"], ["link_only", "by a link"]];

/** The parts of a survey by their tabs: what the server refuses is shown where it was written. @type {[RegExp, string][]} */
const PLACES = [
  [/^\/(name|description|flow\/(questions|progressStyle|backNavigation))/, ""],
  [/^\/flow/, "ways"],
  [/^\/(mode|trigger|audience|schedule|frequencyCap|priority)/, "reach"],
  [/^\/(theme|settings)/, "look"],
  [/^\/localization/, "languages"],
];

/** Goes to the tab of the first error, unless it is the JSON that is edited. @param {unknown} error */
function showPlace(error) {
  const pointer = error instanceof ApiError ? error.errors[0]?.pointer : undefined;
  const tab = PLACES.find(([pattern]) => pointer && pattern.test(pointer))?.[1];
  if (tab !== undefined && route.value.query.tab != "json") setQuery({ tab }, { replace: true });
}

/** @typedef {{ value: any, onChange: (value: any) => void }} Part */

/** Whom it is for and when. @param {Part} props */
function Reach({ value, onChange }) {
  const set = (/** @type {string} */ name) => (/** @type {any} */ next) => onChange(put(value, name, next));
  const feedback = value.settings?.presentation == "feedback_button";
  const waits = (value.mode ?? "triggered") == "triggered" && !feedback;
  return html`
    <${Select} label="It finds its people" at="/mode" value=${value.mode ?? "triggered"} options=${MODES} onChange=${set("mode")} />
    ${(value.trigger || value.mode != "link_only") && html`<h2>Trigger</h2>
    ${feedback && html`<p class="hint">The button waits for nothing.</p>`}
    <${TriggerEditor} value=${value.trigger} onChange=${set("trigger")} optional=${!waits} />`}
    <h2>Audience</h2><${AudienceEditor} value=${value.audience} onChange=${set("audience")} />
    <h2>Schedule</h2><${ScheduleEditor} responses value=${value.schedule} onChange=${set("schedule")} />
    <h2>How often</h2><${CapEditor} value=${value.frequencyCap} onChange=${set("frequencyCap")} />
    <${NumberInput} label="Priority" hint="Where several fire at once, the highest comes first." at="/priority" value=${value.priority} onChange=${(/** @type {any} */ next) => set("priority")(next ?? 0)} />`;
}

/** The whole as JSON: to be taken elsewhere, and brought from there. @param {Part & { onValid: (valid: boolean) => void, texts: Map<string, import("../lib/draft.js").Unread> }} props texts: has a text that is no survey yet */
function AsJson({ value, onChange, onValid, texts }) {
  const [fits] = useState(() => texts.get("Definition")?.of !== JSON.stringify(value));
  useEffect(() => {
    onValid(fits);
    // The other parts can be saved meanwhile.
    return () => onValid(true);
  }, []);
  const change = (/** @type {any} */ next) => {
    onValid(next !== undefined);
    if (next !== undefined) onChange(written(next));
  };
  const read = async (/** @type {any} */ event) => {
    const [file] = event.currentTarget.files;
    event.currentTarget.value = "";
    if (!file) return;
    try {
      const found = JSON.parse(await file.text());
      const fault = wrong(found);
      if (fault) throw fault;
      change(found);
      say(`“${file.name}” was read. It is not saved yet.`);
    } catch (error) {
      confirm({ title: "The file is no survey", text: `${String(error).replace(/\.?$/, ".")} Nothing was changed: choose a file that “Save as a file” has made.`, action: "Close", run: () => {} });
    }
  };
  return html`<div class="actions">
      <${Button} onClick=${() => saveFile(new Blob([JSON.stringify(value, null, 2)], { type: "application/json" }), `${value.name || "survey"}.json`)}>Save as a file<//>
    </div>
    <${Field} label="Read a file" hint="It replaces what is written here.">${(/** @type {any} */ attributes) => html`<input ...${attributes} type="file" accept=".json,application/json" onChange=${read} />`}<//>
    <${JsonField} label="Definition" value=${value} onChange=${change} rows=${24} check=${wrong} />`;
}

/** @param {{ survey: any, name: string, onSaved: (survey: any) => void, children?: any }} props survey: without an id where it is new */
function Composer({ survey, name, onSaved }) {
  const { id } = survey;
  const { params } = route.value;
  const [valid, setValid] = useState(true);
  const own = useDraft(name, written(survey), survey.version);
  // What is no JSON goes with the rest.
  const draft = { ...own, discard: () => (setValid(true), own.discard()) };
  // Apart from the draft's own: what is no survey yet keeps nobody from saving the other parts.
  const [texts] = useState(() => new Map());
  const [failed, setFailed] = useState(/** @type {Error | undefined} */ (undefined));
  const { value } = draft;
  const set = (/** @type {any} */ next) => {
    setFailed(undefined);
    draft.set(JSON.parse(JSON.stringify(next)));
  };
  const one = (/** @type {string} */ member) => (/** @type {any} */ next) => set(put(value, member, next));
  const done = (/** @type {any} */ saved) => {
    setFailed(undefined);
    onSaved(saved);
    return saved.status == survey.status ? undefined : `“${saved.name}” is ${saved.status}.`;
  };
  const [saving, dialog] = useSaving(inApp(`/surveys/${id}`), done, draft, written);
  /** Saves what is written, and a status with it: as one change. @param {string} [status] */
  const save = async (status) => {
    const change = { ...difference(draft.base, value), ...(status ? { status } : {}) };
    if (!id) {
      const created = await post(inApp("/surveys"), { ...value, status: status ?? "draft" });
      draft.discard();
      say(`“${created.name}” was made.`);
      if (draft.here()) go(link("/apps/:appId/surveys/:surveyId", { ...params, surveyId: created.id }), { replace: true });
      return;
    }
    await saving(change, draft.version, { ...value, status });
  };
  const submit = async () => {
    setFailed(undefined);
    try {
      await save();
    } catch (error) {
      if (draft.here()) showPlace(error);
      throw error;
    }
  };
  const turn = async (/** @type {string} */ status) => {
    try {
      await save(status);
    } catch (error) {
      if (draft.here()) showPlace(error);
      setFailed(/** @type {Error} */ (error));
    }
  };
  const press = ([status, label] = ["", ""]) => {
    const both = id && draft.changed ? `Save and ${label.toLowerCase()}` : label;
    const end = () => confirm({ title: "End the survey?", text: "It is shown to nobody any longer. Its results stay, and it can be activated again.", action: "End", run: () => turn(status) });
    return html`<${Button} kind=${status == "active" ? "primary" : "secondary"} disabled=${!valid} onClick=${() => (status == "completed" ? end() : turn(status))}>${both}<//>`;
  };
  const actions = html`
    ${id && html`<${LinkButton} href=${link("/apps/:appId/surveys/:surveyId/results", params)}>Results<//>
      <${LinkButton} href=${link("/apps/:appId/why", params, { campaign: id })}>Why?<//>
      <${LinkButton} href=${link("/apps/:appId/surveys/:surveyId", { ...params, surveyId: "new" }, { from: id })}>Duplicate<//>`}
    ${id && (NEXT[survey.status] ?? []).map(press)}`;
  const part = { value, onChange: set };
  /** The whole takes the place of what is no JSON in any of its parts, too. @param {any} next */
  const replace = (next) => {
    draft.texts.clear();
    set(next);
  };
  const tabs = [
    { id: "questions", title: "Questions", render: () => html`
      <${Input} label="Name" at="/name" value=${value.name} onInput=${one("name")} />
      <${TextArea} label="What it is for" at="/description" rows=${2} value=${value.description ?? ""} onInput=${(/** @type {string} */ text) => one("description")(text || undefined)} />
      <h2>Questions</h2><${Questions} ...${part} />` },
    { id: "ways", title: "Branches and ends", render: () => html`<${DraftFields} draft=${draft} part="ways"><${Branches} ...${part} /><//>` },
    { id: "reach", title: "Who and when", render: () => html`<${DraftFields} draft=${draft} part="reach"><${Reach} ...${part} /><//>` },
    { id: "look", title: "Look", render: () => html`<${Look} ...${part} />` },
    { id: "languages", title: "Languages", render: () => html`<${Languages} value=${value.localization} onChange=${one("localization")} texts=${textsOf(spokenOf(flowOf(value)))} />` },
    { id: "preview", title: "Preview", render: () => html`<${Preview} value=${value} />` },
    { id: "json", title: "JSON", render: () => html`<${DraftFields} draft=${{ texts }}><${AsJson} value=${value} onChange=${replace} onValid=${setValid} texts=${texts} /><//>` },
  ];
  return html`<${Head} survey=${{ ...survey, name: id ? survey.name : "New survey" }} actions=${actions} />
    ${failed && html`<${ErrorView} error=${failed} />`}
    <${RestoredDraft} draft=${draft} />
    <${Form} label="Survey" draft=${draft} failed=${failed} onSubmit=${submit} submit=${id ? "Save" : "Make the survey"} disabled=${!valid || (Boolean(id) && !draft.changed)} actions=${html`<${Discard} draft=${draft} />`}>
      <${Tabs} label="Parts of the survey" tabs=${tabs} />
    <//>
    ${dialog}`;
}

/** @param {{ survey: any, actions: any }} props */
const Head = ({ survey, actions }) => html`<${PageHead} title=${survey.name} actions=${actions} back=${{ href: link("/apps/:appId/surveys", route.value.params), title: "Surveys" }}>
  ${survey.id && html`<p><${Badge} kind=${KINDS[survey.status]}>${words(survey.status)}<//> version ${survey.version} <${Copy} short text=${survey.id} label="id" /></p>`}
<//>`;

/** What a viewer sees. @param {{ survey: any }} props */
const Reading = ({ survey }) => html`
  <${Head} survey=${survey} actions=${html`<${LinkButton} href=${link("/apps/:appId/surveys/:surveyId/results", route.value.params)}>Results<//><${LinkButton} href=${link("/apps/:appId/why", route.value.params, { campaign: survey.id })}>Why?<//>`} />
  <${Tabs} label="Parts of the survey" tabs=${[{ id: "preview", title: "Preview", render: () => html`<${Preview} value=${survey} />` }, { id: "json", title: "JSON", render: () => html`<${Json} value=${written(survey)} label="Definition" />` }]} />`;

/** @param {{ params: Record<string, string>, query: Record<string, string> }} props */
export default function Survey({ params, query }) {
  const fresh = params.surveyId == "new";
  const source = fresh ? query.from : params.surveyId;
  const { data, error, reload, set } = useResource(source ? inApp(`/surveys/${source}`) : null);
  if (error && !data) return html`<${ErrorView} error=${error} retry=${reload} />`;
  if (source && !data) return html`<${Loading} />`;
  if (!can("editor")) return data && !fresh ? html`<${Reading} survey=${data} />` : html`<${PageHead} title="New survey" /><${Notice}>An editor makes surveys.<//>`;
  if (!fresh) return html`<${Composer} key=${data.id} survey=${data} name=${`survey.${data.id}`} onSaved=${set} />`;
  const begun = data ? { ...written(data), name: copied(data.name) } : newSurvey();
  return html`<${Composer} key=${`new ${source ?? ""}`} survey=${begun} name=${`survey.new.${source ?? ""}`} onSaved=${() => {}} />`;
}
