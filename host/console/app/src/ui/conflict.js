// Somebody else changed it meanwhile: shows both, field by field, and saves what one decides.
import { Conflict, difference, patch } from "../lib/api.js";
import { say } from "../lib/notice.js";
import { html, useState } from "../lib/preact.js";
import { Button } from "./button.js";
import { Dialog } from "./dialog.js";
import { ErrorView } from "./error.js";
import { checkJson } from "./form.js";
import { Json } from "./json.js";

const same = (/** @type {unknown} */ one, /** @type {unknown} */ other) => JSON.stringify(one ?? null) === JSON.stringify(other ?? null);

/**
 * @param {object} props
 * @param {Conflict} props.conflict
 * @param {string} props.path of the resource
 * @param {Record<string, any>} [props.value] all that was written: then fields are shown and saved as wholes
 * @param {(saved: any, theirs?: boolean) => void} props.onDone told the resource as it is afterwards, and whether it is as somebody else has saved it
 * @param {() => void} props.onClose decides nothing yet: what was written stays
 */
export function ConflictDialog({ conflict, path, value, onDone, onClose }) {
  const [theirs, setTheirs] = useState(conflict.theirs);
  const mine = value ?? conflict.mine;
  const fields = Object.keys(conflict.mine).filter((name) => !same(mine[name], theirs[name]));
  const [chosen, setChosen] = useState(/** @type {Record<string, "mine" | "theirs">} */ ({}));
  const [error, setError] = useState(/** @type {Error | undefined} */ (undefined));
  const save = async (/** @type {string[]} */ names) => {
    if (!names.length) return onDone(theirs, true);
    try {
      const part = (/** @type {Record<string, any>} */ whole) => Object.fromEntries(names.map((name) => [name, whole[name]]));
      onDone(await patch(path, value ? difference(part(theirs), part(mine)) : part(mine), theirs.version));
    } catch (thrown) {
      // Saved once more while this is open: what is there now is what is decided about.
      if (thrown instanceof Conflict) setTheirs(thrown.theirs);
      setError(/** @type {Error} */ (thrown));
    }
  };
  const pick = (/** @type {string} */ name, /** @type {"mine" | "theirs"} */ side) => {
    const checked = (chosen[name] ?? "mine") == side;
    return html`<label class="pick"><input type="radio" name=${`conflict-${name}`} checked=${checked} onChange=${() => setChosen({ ...chosen, [name]: side })} /> ${side == "mine" ? "Mine" : "Theirs"}</label>
      <${Json} value=${(side == "mine" ? mine : theirs)[name] ?? null} label=${`${name}, ${side}`} />`;
  };
  const actions = html`
    <${Button} onClick=${() => save([])}>Take theirs<//>
    <${Button} onClick=${() => save(fields)}>Put mine over it<//>
    <${Button} kind="primary" onClick=${() => save(fields.filter((name) => chosen[name] != "theirs"))}>Save what is chosen<//>`;
  return html`<${Dialog} wide title="Somebody else changed this" onClose=${onClose} actions=${actions}>
    <p>It was saved by somebody else after you had opened it. Nothing of yours is lost: choose what is to stand.</p>
    ${fields.map((name) => html`<fieldset><legend><code>${name}</code></legend><div class="sides"><div>${pick(name, "mine")}</div><div>${pick(name, "theirs")}</div></div></fieldset>`)}
    ${!fields.length && html`<p>Both have made the same changes.</p>`}
    ${error && html`<${ErrorView} error=${error} />`}
  <//>`;
}

/**
 * Saves changes of a resource, and asks what is to stand where somebody else was faster.
 * @param {string} path of the resource
 * @param {(saved: any) => any} onSaved told the resource as it is afterwards; answers what is said then, unless that is “Saved.”
 * @param {import("../lib/draft.js").Draft<any>} [draft] what is saved: what is written meanwhile stays
 * @param {(saved: any) => any} [written] what of the resource is in the draft
 * @returns {[save: (change: Record<string, any>, version: number | undefined, value?: Record<string, any>) => Promise<void>, dialog: any]} value: all that was written, where that is not the draft's value. The dialog shows and saves whole fields of it: the change of one member would be mixed with what somebody else has saved. The dialog stands in the page
 */
export function useSaving(path, onSaved, draft, written = (saved) => saved) {
  const [conflict, setConflict] = useState(/** @type {any} */ (undefined));
  const close = () => setConflict(undefined);
  const save = async (/** @type {Record<string, any>} */ change, /** @type {number | undefined} */ version, /** @type {Record<string, any> | undefined} */ value = draft?.value) => {
    // The page's own form: that of a preview comes later.
    checkJson(document.querySelector("form"), draft);
    const sent = draft?.value;
    const onDone = async (/** @type {any} */ saved, theirs = false) => {
      close();
      draft?.saved(written(saved), saved.version, sent);
      const said = await onSaved(saved);
      if (!theirs) say(said ?? "Saved.");
    };
    try {
      await onDone(await patch(path, change, version));
    } catch (error) {
      if (!(error instanceof Conflict)) throw error;
      setConflict({ conflict: error, value, onDone });
    }
  };
  return [save, conflict && html`<${ConflictDialog} ...${conflict} path=${path} onClose=${close} />`];
}
