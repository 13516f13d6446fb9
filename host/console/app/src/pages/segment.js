// One segment: its conditions with a live count, its members, its size over time, and who uses it.
import { can, copied, difference, everyDay, go, html, inApp, link, number, percent, post, route, say, time, useDraft, useEffect, useList, useLoaded, useResource, useState, utcDay, whole } from "../lib/index.js";
import { AudienceEditor, Badge, Button, Chart, Copy, Discard, DraftFields, Empty, ErrorView, Form, Input, Json, Loading, Notice, PageHead, put, RestoredDraft, Table, Tabs, TextArea, Time, useSaving } from "../ui/index.js";
import { remove } from "./segments.js";

const PAUSE = 400;

/** @param {any} segment */
const written = ({ name = "", description, audience = {} }) => put({ name, description, audience }, "description", description || undefined);

const PEOPLE = [
  { title: "Person", render: (/** @type {any} */ row) => html`<a href=${link("/apps/:appId/people/:personId", { ...route.value.params, personId: row.subjectId })}>${row.externalId ?? row.anonymousId}</a>` },
  { title: "Platform", render: (/** @type {any} */ row) => row.platform ?? "–" },
  { title: "Country", render: (/** @type {any} */ row) => row.country ?? "–" },
  { title: "Events", end: true, render: (/** @type {any} */ row) => number(row.eventCount) },
  { title: "Last seen", render: (/** @type {any} */ row) => html`<${Time} relative at=${row.lastSeenAt} />` },
];

/** How many people conditions have now, with some of them: asked when somebody has stopped changing them. @param {{ audience: any }} props */
function Preview({ audience }) {
  const text = JSON.stringify(audience);
  const [asked, setAsked] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setAsked(text), PAUSE);
    return () => clearTimeout(timer);
  }, [text]);
  const found = useLoaded(asked, (signal) => post(inApp("/segments/preview"), { audience: JSON.parse(asked) }, { signal }));
  const { data, error } = found;
  const [last, setLast] = useState(/** @type {any} */ (undefined));
  useEffect(() => void (data && setLast(data)), [data]);
  const shown = data ?? last;
  const waits = found.loading || asked !== text;
  return html`<section aria-labelledby="count"><h2 id="count">Who is in it now</h2>
    <p role="status" class="big">${error && !waits ? "–" : shown ? html`<strong>${shown.isEstimate ? "about " : ""}${number(shown.count)}</strong> of ${number(shown.total)} people${shown.total ? ` (${percent(shown.count / shown.total)})` : ""}` : "Counting…"}${waits && shown ? " · counting…" : ""}</p>
    ${shown?.isEstimate && html`<p class="hint">An estimate: of more than 10,000 people, a sample was looked at.</p>`}
    ${error && !waits && html`<${ErrorView} kind="warn" error=${error}>These conditions can't be counted yet.<//>`}
    ${shown && !error && html`<details><summary>Some of them</summary><${Table} label="A sample" list=${whole(shown.sample)} columns=${PEOPLE} id=${(/** @type {any} */ row) => row.subjectId} empty=${html`<${Empty} title="Nobody is"><p>Nobody meets these conditions now.</p><//>`} /></details>`}
  </section>`;
}

/** @param {{ segment: any, onSaved: (segment: any) => void, name: string }} props segment: without an id where it is new */
function Editor({ segment, onSaved, name }) {
  const draft = useDraft(name, written(segment), segment.version);
  const { value } = draft;
  const set = (/** @type {string} */ member) => (/** @type {any} */ next) => draft.set((/** @type {any} */ before) => put(before, member, next));
  const [saving, dialog] = useSaving(inApp(`/segments/${segment.id}`), onSaved, draft, written);
  const save = async () => {
    if (!segment.id) {
      const created = await post(inApp("/segments"), value);
      draft.discard();
      say(`“${created.name}” was made.`);
      if (draft.here()) go(link("/apps/:appId/segments/:segmentId", { appId: created.appId, segmentId: created.id }), { replace: true });
      return;
    }
    await saving(difference(draft.base, value), draft.version);
  };
  return html`<${RestoredDraft} draft=${draft} />
    <${Form} label="Segment" onSubmit=${save} submit=${segment.id ? "Save" : "Make the segment"} disabled=${Boolean(segment.id) && !draft.changed} actions=${html`<${Discard} draft=${draft} />`}>
      <${Input} label="Name" at="/name" value=${value.name} onInput=${set("name")} />
      <${TextArea} label="What it is for" at="/description" rows=${2} value=${value.description ?? ""} onInput=${(/** @type {string} */ text) => set("description")(text || undefined)} />
      <${DraftFields} draft=${draft}><${AudienceEditor} sample=${false} value=${value.audience} onChange=${(/** @type {any} */ audience) => set("audience")(audience ?? {})} /><//>
      <${Preview} audience=${value.audience} />
    <//>
    ${dialog}`;
}

/** @param {{ segmentId: string }} props */
function Members({ segmentId }) {
  const list = useList(inApp(`/segments/${segmentId}/members`), { cursor: route.value.query.cursor });
  const asOf = /** @type {any} */ (list.data)?.asOf;
  const empty = asOf
    ? html`<${Empty} title="Nobody is in it"><p>Nobody met the conditions when everybody was last looked at.</p><//>`
    : html`<${Empty} title="Nobody was looked at yet" actions=${html`<${Button} onClick=${list.reload}>Look again<//>`}><p>The server looks at everybody now. Decisions do not wait for it: they ask the conditions.</p><//>`;
  return html`${asOf && html`<p class="hint">As of <${Time} at=${asOf} />, at most an hour ago. Decisions ask the conditions as of now.</p>`}
    <${Table} label="Members" list=${list} columns=${PEOPLE} id=${(/** @type {any} */ row) => row.subjectId} empty=${empty} />`;
}

/** @param {{ segmentId: string }} props */
function History({ segmentId }) {
  const { from = "", to = "" } = route.value.query;
  const { data, error, reload } = useResource(inApp(`/segments/${segmentId}/history`), { from, to });
  if (error) return html`<${ErrorView} error=${error} retry=${reload} />`;
  if (!data) return html`<${Loading} />`;
  if (!data.length) return html`<${Empty} title="There is no size yet" actions=${html`<${Button} onClick=${reload}>Look again<//>`}><p>One is kept a day, once everybody was looked at.</p><//>`;
  // Of a day without a size nothing is known.
  const days = everyDay(data, from, to);
  return html`<${Chart} title="People in it, the last 90 days (UTC)" head="Day" labels=${days.map(({ at }) => utcDay(at))} series=${[{ name: "people", values: days.map(({ size = null }) => size) }]} />`;
}

/** @type {Record<string, string>} */
const PLACES = { survey: "/apps/:appId/surveys/:id", campaign: "/apps/:appId/messages/:id", segment: "/apps/:appId/segments/:id" };

/** @param {{ segment: any }} props */
const Uses = ({ segment }) =>
  segment.usedBy.length
    ? html`<ul>${segment.usedBy.map((/** @type {any} */ { kind, id, name }) => html`<li><a href=${link(PLACES[kind] ?? "", { ...route.value.params, id })}>${name}</a> <${Badge}>${kind}<//></li>`)}</ul>
      <p class="hint">It can't be deleted as long as something uses it.</p>`
    : html`<${Empty} title="Nothing uses it"><p>Choose it in the audience or the trigger of a survey or a campaign, or in another segment.</p><//>`;

/** @param {{ params: Record<string, string>, query: Record<string, string> }} props */
export default function SegmentPage({ params, query }) {
  const { segmentId = "" } = params;
  const fresh = segmentId == "new";
  const source = fresh ? query.from : segmentId;
  const { data, error, reload, set } = useResource(source ? inApp(`/segments/${source}`) : null);
  const back = { href: link("/apps/:appId/segments", params), title: "Segments" };
  if (error && !data) return html`<${ErrorView} error=${error} retry=${reload} />`;
  if (source && !data) return html`<${Loading} />`;
  if (fresh) {
    return html`<${PageHead} title="New segment" back=${back} />
      ${can("editor") ? html`<${Editor} key=${source} segment=${data ? { ...written(data), name: copied(data.name) } : {}} name=${`segment.new.${source ?? ""}`} onSaved=${() => {}} />` : html`<${Notice}>An editor makes segments.<//>`}`;
  }
  const tabs = [
    { id: "conditions", title: "Conditions", render: () => (can("editor") ? html`<${Editor} key=${data.id} segment=${data} name=${`segment.${data.id}`} onSaved=${set} />` : html`<${Json} value=${data.audience} label="Conditions" /><${Preview} audience=${data.audience} />`) },
    { id: "members", title: "Members", render: () => html`<${Members} segmentId=${segmentId} />` },
    { id: "size", title: "Size over time", render: () => html`<${History} segmentId=${segmentId} />` },
    { id: "uses", title: `Used by ${data.usedBy.length}`, render: () => html`<${Uses} segment=${data} />` },
  ];
  const actions = can("editor") && html`<${Button} kind="danger" onClick=${() => remove(data, () => go(back.href))}>Delete<//>`;
  return html`<${PageHead} title=${data.name} back=${back} actions=${actions}>
      <p>${number(data.size)} people${data.sizeAt && ` as of ${time(data.sizeAt)}`} · version ${data.version} <${Copy} short text=${data.id} label="id" /></p>
    <//>
    <${Tabs} label="The segment" tabs=${tabs} />`;
}
