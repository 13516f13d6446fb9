// A place to drop a file on; pressed, it asks for one.
import { complain } from "../lib/notice.js";
import { html, useId, useState } from "../lib/preact.js";

/**
 * @param {object} props
 * @param {string} props.label `Drop the component here`
 * @param {any} [props.hint]
 * @param {string} [props.accept] as of an `input`
 * @param {boolean} [props.busy]
 * @param {(file: File) => unknown} props.onFile
 */
export function FileDrop({ label, hint, accept, busy, onFile }) {
  const id = useId();
  const [over, setOver] = useState(false);
  const take = async (/** @type {File | null | undefined} */ file) => {
    if (!file || busy) return;
    try {
      await onFile(file);
    } catch (error) {
      complain(error);
    }
  };
  const drag = (/** @type {DragEvent} */ event) => {
    event.preventDefault();
    setOver(event.type == "dragover");
  };
  const drop = (/** @type {DragEvent} */ event) => {
    drag(event);
    void take(event.dataTransfer?.files[0]);
  };
  const change = (/** @type {any} */ event) => {
    const input = event.currentTarget;
    // The same file may be chosen again once it was mended.
    void take(input.files[0]).then(() => (input.value = ""));
  };
  return html`<div class=${over ? "drop over" : "drop"} onDragOver=${drag} onDragLeave=${drag} onDrop=${drop} aria-busy=${busy ? "true" : undefined}>
    <label for=${id}>${label}</label>
    <input id=${id} type="file" accept=${accept} aria-describedby=${hint && `${id}-hint`} disabled=${busy} onChange=${change} />
    ${hint && html`<p class="hint" id=${`${id}-hint`}>${hint}</p>`}
  </div>`;
}
