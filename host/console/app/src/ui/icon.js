// Signs that fonts may lack. They say nothing to screen readers: what has one has a label.
import { html } from "../lib/preact.js";

const PATHS = {
  check: "M3 8.5 6.5 12 13 4.5",
  close: "M4 4l8 8M12 4l-8 8",
  copy: "M6 6h7v7H6zM10 3H3v7",
  menu: "M2 4h12M2 8h12M2 12h12",
};

/** @param {{ name: keyof typeof PATHS }} props */
export const Icon = ({ name }) => html`<svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true"><path d=${PATHS[name]} /></svg>`;
