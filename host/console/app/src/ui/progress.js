// How far a job is that the server does by itself.
import { number } from "../lib/format.js";
import { useResource, usePolling } from "../lib/load.js";
import { html, useEffect, useId } from "../lib/preact.js";
import { inApp } from "../lib/session.js";
import { ErrorView } from "./error.js";
import { Notice } from "./notice.js";

const ENDED = ["completed", "failed"];

/**
 * @param {object} props
 * @param {string} props.jobId
 * @param {string} props.label `Replaying letters`
 * @param {(job: any) => void} [props.onEnd] when it is completed or has failed
 * @param {(job: any) => any} [props.result] shows what a completed job's result says
 */
export function Progress({ jobId, label, onEnd, result }) {
  const id = useId();
  const { data: job, error, reload } = useResource(inApp(`/jobs/${jobId}`));
  const ended = ENDED.includes(job?.status);
  usePolling(reload, ended ? null : 1000);
  useEffect(() => {
    if (ended) onEnd?.(job);
  }, [ended]);
  if (error && !job) return html`<${ErrorView} error=${error} retry=${reload} />`;
  if (job?.status == "failed") return html`<${Notice} kind="bad">${label}: failed. ${job.error ?? ""}<//>`;
  if (ended) return html`<${Notice} kind="good">${label}: done, ${number(job.progress.done)}. ${result?.(job)}<//>`;
  const { done = 0, total } = job?.progress ?? {};
  return html`<div class="progress"><label for=${id}>${label}: ${number(done)}${total === undefined ? "" : ` of ${number(total)}`}</label><progress id=${id} value=${total === undefined ? undefined : done} max=${total || 1}></progress></div>`;
}
