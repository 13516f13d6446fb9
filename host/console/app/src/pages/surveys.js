// The list of surveys: the pattern of a list page. What it shows is in the URL; what one may not do is not there.
import { can, del, html, inApp, link, patch, say, setQuery, useList, words } from "../lib/index.js";
import { Badge, Button, confirm, Copy, Empty, LinkButton, PageHead, Search, Select, Table, Time } from "../ui/index.js";

const STATUSES = ["draft", "active", "paused", "completed", "archived"];
const KINDS = /** @type {Record<string, string>} */ ({ active: "good", paused: "warn" });

/** @typedef {import("../../../types/api.js").components["schemas"]["SurveyView"]} Survey */

/** @param {{ params: Record<string, string>, query: Record<string, string> }} props */
export default function Surveys({ params, query }) {
  const list = useList(inApp("/surveys"));
  const { q = "", status = "" } = query;
  // The route answers every survey: the page filters them itself.
  const items = list.data?.items.filter((survey) => (!status || survey.status == status) && survey.name.toLowerCase().includes(q.toLowerCase()));
  const shown = { ...list, data: items && { items, nextCursor: null, total: items.length } };

  const turn = async (/** @type {Survey} */ survey, /** @type {string} */ next) => {
    await patch(inApp(`/surveys/${survey.id}`), { status: next }, survey.version);
    say(`“${survey.name}” is ${next}.`);
    await list.reload();
  };
  const activate = (/** @type {Survey} */ survey) =>
    survey.status == "archived"
      ? confirm({ title: "Activate the survey?", text: `“${survey.name}” is archived. People meet it again.`, action: "Activate", run: () => turn(survey, "active") })
      : turn(survey, "active");
  const remove = (/** @type {Survey} */ survey) => {
    const known = { version: survey.version };
    confirm({
      title: "Delete the survey?",
      text: `“${survey.name}” goes with all its attempts and answers. This can't be undone.`,
      action: "Delete",
      danger: true,
      run: async () => {
        await del(inApp(`/surveys/${survey.id}`), known);
        say(`“${survey.name}” was deleted.`);
        await list.reload();
      },
    });
  };

  const columns = [
    { title: "Name", sort: "name", value: (/** @type {Survey} */ row) => row.name, render: (/** @type {Survey} */ row) => html`<a href=${link("/apps/:appId/surveys/:surveyId", { ...params, surveyId: row.id })}>${row.name}</a>` },
    { title: "Status", sort: "status", value: (/** @type {Survey} */ row) => row.status, render: (/** @type {Survey} */ row) => html`<${Badge} kind=${KINDS[row.status ?? ""]}>${row.status}<//>` },
    { title: "Mode", sort: "mode", value: (/** @type {Survey} */ row) => row.mode, render: (/** @type {Survey} */ row) => words(row.mode) },
    { title: "Changed", sort: "updated", value: (/** @type {Survey} */ row) => row.updatedAt, render: (/** @type {Survey} */ row) => html`<${Time} relative at=${row.updatedAt} />` },
    { title: "Answers", render: (/** @type {Survey} */ row) => html`<a href=${link("/apps/:appId/surveys/:surveyId/results", { ...params, surveyId: row.id })} aria-label=${`Results of ${row.name}`}>Results</a>` },
    { title: "Id", render: (/** @type {Survey} */ row) => html`<${Copy} short text=${row.id} label=${`id of ${row.name}`} />` },
  ];
  const actions = (/** @type {Survey} */ row) => html`
    ${row.status == "active"
      ? html`<${Button} label=${`Pause ${row.name}`} onClick=${() => turn(row, "paused")}>Pause<//>`
      : html`<${Button} label=${`Activate ${row.name}`} onClick=${() => activate(row)}>Activate<//>`}
    <${LinkButton} href=${link("/apps/:appId/surveys/:surveyId", { ...params, surveyId: "new" }, { from: row.id })} rest=${{ "aria-label": `Duplicate ${row.name}` }}>Duplicate<//>
    <${Button} kind="danger" label=${`Delete ${row.name}`} onClick=${() => remove(row)}>Delete<//>`;
  const create = can("editor") && html`<${LinkButton} kind="primary" href=${link("/apps/:appId/surveys/:surveyId", { ...params, surveyId: "new" })}>New survey<//>`;
  const empty = q || status
    ? html`<${Empty} title="No survey is like that" actions=${html`<${Button} onClick=${() => setQuery({ q: "", status: "" })}>Show all<//>`} />`
    : html`<${Empty} title="There is no survey yet" actions=${html`${create} <${LinkButton} href=${link("/apps/:appId/start", params)}>Begin with a sample<//>`}><p>A survey asks people something at the moment that matters.</p><//>`;

  return html`<${PageHead} title="Surveys" actions=${create} />
    <div class="filters">
      <${Search} label="Name" value=${q} onInput=${(/** @type {string} */ value) => setQuery({ q: value }, { replace: true })} />
      <${Select} label="Status" value=${status} options=${[["", "all"], ...STATUSES.map((one) => [one, one])]} onChange=${(/** @type {string} */ value) => setQuery({ status: value })} />
    </div>
    <${Table} label="Surveys" list=${shown} columns=${columns} id=${(/** @type {Survey} */ row) => row.id} actions=${can("editor") ? actions : undefined} empty=${empty} />`;
}
