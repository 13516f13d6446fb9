// The list of segments: conditions with a name, that surveys, campaigns and other segments use.
import { can, del, html, inApp, link, number, route, say, useList } from "../lib/index.js";
import { Button, confirm, Copy, Empty, LinkButton, PageHead, Table, Time } from "../ui/index.js";

/** @typedef {import("../../../types/api.js").components["schemas"]["SegmentView"]} Segment */

/**
 * Asks, and deletes.
 * @param {Segment} segment
 * @param {() => unknown} done
 */
export function remove(segment, done) {
  const known = { version: segment.version };
  confirm({
    title: "Delete the segment?",
    text: `“${segment.name}” goes with its members and its history. People stay. This can't be undone.`,
    action: "Delete",
    danger: true,
    run: async () => {
      await del(inApp(`/segments/${segment.id}`), known);
      say(`“${segment.name}” was deleted.`);
      await done();
    },
  });
}

/** @param {{ params: Record<string, string> }} props */
export default function Segments({ params }) {
  const list = useList(inApp("/segments"), { cursor: route.value.query.cursor });
  const one = (/** @type {string} */ segmentId) => link("/apps/:appId/segments/:segmentId", { ...params, segmentId });
  const columns = [
    { title: "Name", sort: "name", render: (/** @type {Segment} */ row) => html`<a href=${one(row.id)}>${row.name}</a>${row.description && html`<br /><span class="hint">${row.description}</span>`}` },
    { title: "People", sort: "size", end: true, render: (/** @type {Segment} */ row) => html`${number(row.size)} ${row.sizeAt && html`<span class="hint">(<${Time} relative at=${row.sizeAt} />)</span>`}` },
    { title: "Used by", sort: "uses", value: (/** @type {Segment} */ row) => row.usedBy.length, end: true, render: (/** @type {Segment} */ row) => number(row.usedBy.length) },
    { title: "Changed", sort: "updatedAt", render: (/** @type {Segment} */ row) => html`<${Time} relative at=${row.updatedAt} />` },
    { title: "Id", render: (/** @type {Segment} */ row) => html`<${Copy} short text=${row.id} label=${`id of ${row.name}`} />` },
  ];
  const actions = (/** @type {Segment} */ row) => html`
    <${LinkButton} href=${link("/apps/:appId/segments/:segmentId", { ...params, segmentId: "new" }, { from: row.id })} rest=${{ "aria-label": `Duplicate ${row.name}` }}>Duplicate<//>
    <${Button} kind="danger" label=${`Delete ${row.name}`} onClick=${() => remove(row, list.reload)}>Delete<//>`;
  const create = can("editor") && html`<${LinkButton} kind="primary" href=${one("new")}>New segment<//>`;
  const empty = html`<${Empty} title="There is no segment yet" actions=${create}><p>A segment is a group of people by what they are and did. It is always as of now: surveys and campaigns ask its conditions, not a list.</p><//>`;
  return html`<${PageHead} title="Segments" actions=${list.data?.items.length ? create : undefined} />
    <${Table} label="Segments" list=${list} columns=${columns} id=${(/** @type {Segment} */ row) => row.id} actions=${can("editor") ? actions : undefined} empty=${empty} />`;
}
