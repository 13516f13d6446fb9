// The ways of a flow as a picture: questions from top to bottom, branches beside them; and in words below it.
import { html, useId } from "../../lib/index.js";
import { Notice } from "../../ui/index.js";
import { nameOf, said, troubles, waysFrom } from "./model.js";

const WIDTH = 560;
const BOX = 240;
const HEIGHT = 40;
const STEP = 78;
const LEFT = 12;

/** @param {string} text @param {number} most */
const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** @param {{ flow: any }} props */
export function Picture({ flow }) {
  const arrow = useId();
  const { lost, circles } = troubles(flow);
  const nodes = [...flow.questions.map((/** @type {any} */ { id, title, type }) => ({ key: `q:${id}`, title, type, bad: lost.has(id) || circles.has(id) })), ...flow.endScreens.map((/** @type {any} */ { id, title }) => ({ key: `e:${id}`, title, type: "end", bad: false }))];
  const place = (/** @type {any} */ to) => nodes.findIndex(({ key }) => to && key == (to.questionId !== undefined ? `q:${to.questionId}` : `e:${to.endScreenId}`));
  const top = (/** @type {number} */ index) => 8 + index * STEP;
  const ways = flow.questions.flatMap((/** @type {any} */ question, /** @type {number} */ from) => waysFrom(flow, from).map((way, number) => ({ ...way, from, number, target: place(way.to), label: way.rest ? "" : said(way.when, flow).replace(`${question.title} `, "") })));
  const path = (/** @type {any} */ { from, target, number, rest }) => {
    if (rest && target == from + 1) return `M${LEFT + BOX / 2} ${top(from) + HEIGHT}V${top(target) - 4}`;
    const [y, z] = [top(from) + HEIGHT / 2 + number * 6 - 6, top(target) + HEIGHT / 2];
    const out = Math.min(WIDTH - 20, LEFT + BOX + 40 + 26 * Math.abs(target - from));
    return `M${LEFT + BOX} ${y}C${out} ${y} ${out} ${z} ${LEFT + BOX + 5} ${z}`;
  };
  const drawn = ways.filter((/** @type {any} */ { target }) => target >= 0);
  return html`<figure class="chart"><figcaption>The ways through it</figcaption>
    ${(lost.size > 0 || circles.size > 0) && html`<${Notice} kind="warn">${[...lost].map((id) => html`<p>Nothing leads to “${nameOf({ questionId: id }, flow)}”.</p>`)}${[...circles].map((id) => html`<p>The flow leads back to “${nameOf({ questionId: id }, flow)}”.</p>`)}<//>`}
    <svg class="picture" viewBox=${`0 0 ${WIDTH} ${top(nodes.length) - 20}`} role="img" aria-label="The ways through the survey. They are in words below.">
      <defs><marker id=${arrow} viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" class="tip" /></marker></defs>
      ${drawn.map((/** @type {any} */ way) => html`<path class=${way.rest ? "way" : "way branch"} d=${path(way)} marker-end=${`url(#${arrow})`}><title>${way.label || "otherwise"}</title></path>`)}
      ${drawn.filter((/** @type {any} */ { label }) => label).map((/** @type {any} */ way) => html`<text x=${LEFT + BOX + 60} y=${top(way.from) + HEIGHT / 2 + way.number * 14 - 8}>${short(way.label, 34)}</text>`)}
      ${nodes.map(({ title, type, bad }, index) => html`<g><rect class=${bad ? "node wrong" : type == "end" ? "node end" : "node"} x=${LEFT} y=${top(index)} width=${BOX} height=${HEIGHT} rx="8" /><text class="name" x=${LEFT + 10} y=${top(index) + 25}>${short(type == "end" ? title : `${index + 1}. ${title}`, 32)}</text><title>${title}</title></g>`)}
    </svg>
    <details class="numbers"><summary>In words</summary><ol>${flow.questions.map((/** @type {any} */ question, /** @type {number} */ from) => html`<li><strong>${question.title}</strong><ul>${ways.filter((/** @type {any} */ way) => way.from == from).map((/** @type {any} */ way) => html`<li>${way.rest ? "Otherwise" : `If ${said(way.when, flow)}`}: ${nameOf(way.to, flow)}</li>`)}</ul></li>`)}</ol></details>
  </figure>`;
}
