// Charts: SVG of our own, with a table behind each, for those who cannot see them and those who want the numbers.
import { number, percent } from "../lib/format.js";
import { html } from "../lib/preact.js";

const WIDTH = 640;
const HEIGHT = 220;
const LEFT = 48;
const BOTTOM = 24;

/**
 * @typedef {object} Series
 * @property {string} name
 * @property {(number | null)[]} values one for each label; null: there is none, which is a gap in a line
 * @property {(value: number | null | undefined) => string} [show] how values are written
 */

/** The numbers. @param {{ title: string, labels: string[], series: Series[], head?: string }} props */
const Numbers = ({ title, labels, series, head = "" }) => html`<details class="numbers"><summary>Numbers</summary>
  <div class="table" role="region" aria-label=${`Numbers of ${title}`} tabindex="0"><table>
    <caption class="hidden">${title}</caption>
    <thead><tr><th scope="col">${head || html`<span class="hidden">Label</span>`}</th>${series.map(({ name }) => html`<th scope="col" class="end">${name}</th>`)}</tr></thead>
    <tbody>${labels.map((label, index) => html`<tr><th scope="row">${label}</th>${series.map(({ values, show = number }) => html`<td class="end">${show(values[index])}</td>`)}</tr>`)}</tbody>
  </table></div>
</details>`;

/** A round number at or above another: 1, 2 or 5 times a power of ten. @param {number} most */
function ceiling(most) {
  const power = 10 ** Math.floor(Math.log10(most || 1));
  return ([1, 2, 5, 10].find((factor) => factor * power >= most) ?? 10) * power;
}

/**
 * Lines or bars over labels, which are often days.
 * @param {{ kind?: "line" | "bars", title: string, labels: string[], series: Series[], head?: string }} props
 */
export function Chart({ kind = "line", title, labels, series, head }) {
  const top = ceiling(Math.max(1, ...series.flatMap(({ values }) => values.map(Number))));
  const step = (WIDTH - LEFT) / Math.max(1, labels.length);
  const x = (/** @type {number} */ index) => LEFT + step * (index + 0.5);
  const y = (/** @type {number} */ value) => 8 + (HEIGHT - BOTTOM - 8) * (1 - value / top);
  const each = Math.ceil(labels.length / 6);
  const bar = (step * 0.8) / Math.max(1, series.length);
  const line = (/** @type {Series} */ { values }) => values.map((value, index) => (value === null ? "" : `${index && values[index - 1] !== null ? "L" : "M"}${x(index).toFixed(1)} ${y(value).toFixed(1)}`)).join("");
  return html`<figure class="chart">
    <figcaption>${title}</figcaption>
    ${series.length > 1 && html`<ul class="legend">${series.map(({ name }, index) => html`<li><span class=${`swatch series-${index % 6}`} aria-hidden="true"></span>${name}</li>`)}</ul>`}
    <svg viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label=${`${title}. The numbers are in the table below.`}>
      ${[0, 0.5, 1].map((part) => html`<g><line class="grid" x1=${LEFT} x2=${WIDTH} y1=${y(part * top)} y2=${y(part * top)} /><text x=${LEFT - 6} y=${y(part * top) + 4} text-anchor="end">${number(part * top)}</text></g>`)}
      ${labels.map((label, index) => index % each == 0 && html`<text x=${x(index)} y=${HEIGHT - 6} text-anchor="middle">${label}</text>`)}
      ${series.map((one, place) => kind == "line"
        ? html`<g class=${`series-${place % 6}`}><path class="line" d=${line(one)} />${labels.length < 40 && one.values.map((value, index) => value !== null && html`<circle cx=${x(index)} cy=${y(value)} r="3"><title>${labels[index]}: ${number(value)}</title></circle>`)}</g>`
        : html`<g class=${`series-${place % 6}`}>${one.values.map((value, index) => value !== null && html`<rect x=${x(index) - step * 0.4 + bar * place} y=${y(value)} width=${bar} height=${y(0) - y(value)}><title>${labels[index]}: ${number(value)}</title></rect>`)}</g>`)}
    </svg>
    <${Numbers} title=${title} labels=${labels} series=${series} head=${head} />
  </figure>`;
}

/**
 * Steps of which fewer and fewer come through; also the shares of answers.
 * @param {{ title: string, steps: { label: string, value: number, share?: number }[], head?: string, name?: string }} props share: of the first step, unless given
 */
export function Funnel({ title, steps, head = "Step", name = "Number" }) {
  const first = steps[0]?.value || 1;
  const share = (/** @type {{ value: number, share?: number }} */ step) => step.share ?? step.value / first;
  const most = Math.max(...steps.map(share), Number.MIN_VALUE);
  return html`<figure class="chart funnel">
    <figcaption>${title}</figcaption>
    <ol aria-hidden="true">${steps.map((step) => html`<li>
      <span class="name">${step.label}</span>
      <svg viewBox="0 0 100 10" preserveAspectRatio="none"><rect class="back" width="100" height="10" /><rect class="series-0" width=${(100 * share(step)) / Math.max(1, most)} height="10" /></svg>
      <span class="value">${number(step.value)} · ${percent(share(step))}</span>
    </li>`)}</ol>
    <${Numbers} title=${title} labels=${steps.map(({ label }) => label)} series=${[{ name, values: steps.map(({ value }) => value) }, { name: "Share", values: steps.map(share), show: percent }]} head=${head} />
  </figure>`;
}
