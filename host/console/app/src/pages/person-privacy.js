// What the law asks for: a copy of all that is stored of somebody, and its deletion. Both go on by themselves.
import { bytes, go, html, inApp, link, number, post, route, setQuery, useEffect, usePolling, useResource, whole, words } from "../lib/index.js";
import { Badge, Button, confirm, Copy, Facts, Json, LinkButton, Loaded, Notice, Table, Time } from "../ui/index.js";
import { nameOf } from "./find.js";

const ENDED = ["completed", "failed", "expired"];

/**
 * How the routes of privacy name a person.
 * @param {any} person
 */
const reference = ({ externalId, anonymousId }) => (externalId ? { externalId } : { anonymousId });

/** @param {string | undefined} status */
const kind = (status) => (status == "completed" ? "good" : status == "failed" || status == "expired" ? "bad" : "info");

/** The archive is on this server, whatever it is called outside. @param {string} url */
const here = (url) => url.replace(/^https?:\/\/[^/]+/, "");

/** An export and its file. @param {{ exportId: string }} props */
function Export({ exportId }) {
  const found = useResource(inApp(`/gdpr/exports/${exportId}`));
  const status = found.data?.status;
  // The link is good for a quarter of an hour: it is asked for anew before.
  usePolling(found.reload, status == "completed" ? 600_000 : ENDED.includes(status) ? null : 1000);
  return html`<${Loaded} of=${found}>${(/** @type {any} */ one) => html`
    <p role="status"><${Badge} kind=${kind(status)}>${status}<//> ${one.error}</p>
    ${!ENDED.includes(status) && html`<div class="progress"><label for="exporting">Gathering the copy</label><progress id="exporting"></progress></div>`}
    <${Facts} facts=${[
      ["Requested", html`<${Time} at=${one.requestedAt} /> by ${one.requestedBy}`],
      ["Completed", one.completedAt && html`<${Time} at=${one.completedAt} />`],
      ["Size", one.sizeBytes && bytes(one.sizeBytes)],
      ["SHA-256", one.sha256 && html`<${Copy} short text=${one.sha256} label="SHA-256" />`],
    ]} />
    ${one.downloadUrl && html`<p><${LinkButton} kind="primary" href=${here(one.downloadUrl)} rest=${{ download: `export-${exportId}.zip` }}>Download the copy<//> <span class="hint">The server keeps it for 7 days.</span></p>`}`}<//>`;
}

/**
 * A deletion, step by step.
 * @param {{ jobId: string, onEnd?: () => void }} props
 */
export function Deletion({ jobId, onEnd }) {
  const found = useResource(inApp(`/gdpr/deletions/${jobId}`));
  const status = found.data?.status;
  const ended = ENDED.includes(status);
  usePolling(found.reload, ended ? null : 1000);
  useEffect(() => {
    if (ended) onEnd?.();
  }, [ended]);
  const columns = [
    { title: "Store", render: (/** @type {any} */ step) => words(step.store) },
    { title: "State", render: (/** @type {any} */ step) => html`<${Badge} kind=${kind(step.state)}>${step.state}<//>` },
    { title: "Deleted", end: true, render: (/** @type {any} */ step) => number(step.deletedCount) },
    { title: "Completed", render: (/** @type {any} */ step) => html`<${Time} at=${step.completedAt} />` },
  ];
  return html`<section aria-labelledby="deletion"><h2 id="deletion">Deletion</h2>
    <${Loaded} of=${found}>${(/** @type {any} */ one) => {
      const done = one.steps.filter((/** @type {any} */ { state }) => state == "completed").length;
      return html`<p role="status"><${Badge} kind=${kind(status)}>${words(status)}<//> requested by ${one.requestedBy}, <${Time} at=${one.requestedAt} /> <${Copy} short text=${jobId} label="id of the job" /></p>
        ${!ended && html`<div class="progress"><label for="deleting">${done} of ${one.steps.length} steps</label><progress id="deleting" value=${done} max=${one.steps.length || 1}></progress></div>`}
        <${Table} label="Steps" list=${whole(one.steps)} columns=${columns} id=${(/** @type {any} */ step) => step.store} empty=${html`<p>It has not begun yet.</p>`} />
        ${one.receipt && html`<h3>Receipt</h3><p class="hint">Signed by the server: it is verified with the keys of <code>/.well-known/jwks.json</code>.</p><${Json} value=${one.receipt} label="Receipt" />`}`;
    }}<//></section>`;
}

/** @param {{ person: any }} props */
export function Privacy({ person }) {
  const { params, query } = route.value;
  const name = nameOf(person);
  const copy = async () => {
    const { exportId } = await post(inApp("/gdpr/export"), reference(person));
    setQuery({ export: exportId });
  };
  const remove = () =>
    confirm({
      title: `Delete all data of ${name}?`,
      text: "Events, properties, devices, messages and answers of this person go, on every device. Later events of these ids are refused. It can't be undone.",
      action: "Delete the person",
      danger: true,
      type: name,
      run: async () => {
        const { jobId } = await post(inApp("/gdpr/delete"), reference(person));
        go(link("/apps/:appId/people", params, { tab: "deletions", job: jobId }));
      },
    });
  return html`<section aria-labelledby="copy"><h2 id="copy">A copy of all that is stored</h2>
      <p>A zip file with the profile, devices, events, answers and messages, for whoever asks for their data.</p>
      ${query.export ? html`<${Export} key=${query.export} exportId=${query.export} />` : html`<${Notice}>A copy is kept for 7 days. This page's address has it: keep the address, as copies are not listed anywhere.<//>`}
      <p><${Button} onClick=${copy}>${query.export ? "Make another copy" : "Make a copy"}<//></p>
    </section>
    <section aria-labelledby="delete"><h2 id="delete">Deletion</h2>
      <p>Everything that is stored of the person is deleted, step by step; the receipt says so.</p>
      <p><${Button} kind="danger" onClick=${remove}>Delete the person<//></p>
    </section>`;
}
