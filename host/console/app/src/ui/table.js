// Lists: columns, sorting, pages by cursor, actions on rows, and what is said while it loads, fails, or is empty.
import { count } from "../lib/format.js";
import { html } from "../lib/preact.js";
import { link, route, setQuery } from "../lib/router.js";
import { LinkButton } from "./button.js";
import { ErrorView } from "./error.js";
import { Loading } from "./facts.js";

/**
 * @typedef {object} Column
 * @property {string} title
 * @property {(row: any) => any} render
 * @property {string} [sort] its name in the URL; without one it can't be sorted by
 * @property {(row: any) => string | number | null | undefined} [value] what is compared; without it the row's member of the name `sort`
 * @property {boolean} [end] numbers stand at the end
 */

/**
 * Sorts a list that is here as a whole by the URL's `sort`: `name`, or `-name` for the greatest first.
 * @param {any[]} rows
 * @param {Column[]} columns
 */
function sorted(rows, columns) {
  const { sort = "" } = route.value.query;
  const column = columns.find((column) => column.sort && column.sort == sort.replace(/^-/, ""));
  if (!column) return rows;
  const value = column.value ?? ((row) => row[column.sort ?? ""]);
  const compare = (/** @type {any} */ one, /** @type {any} */ other) => (typeof one == "number" ? one - other : String(one ?? "").localeCompare(String(other ?? "")));
  const ordered = [...rows].sort((one, other) => compare(value(one), value(other)));
  return sort.startsWith("-") ? ordered.reverse() : ordered;
}

/** @param {{ column: Column, able: boolean }} props able: the list is here as a whole */
function Head({ column: { title, sort, end }, able }) {
  if (!sort || !able) return html`<th scope="col" class=${end ? "end" : ""}>${title}</th>`;
  const { sort: now } = route.value.query;
  const state = now == sort ? "ascending" : now == `-${sort}` ? "descending" : "none";
  const next = state == "ascending" ? `-${sort}` : sort;
  const sign = { ascending: "▲", descending: "▼", none: "↕" }[state];
  return html`<th scope="col" class=${end ? "end" : ""} aria-sort=${state}><button type="button" class="sort" onClick=${() => setQuery({ sort: next })}>${title} <span aria-hidden="true">${sign}</span></button></th>`;
}

/**
 * The way to the other pages of a list, which are by cursor.
 * @param {{ label: string, data: import("../lib/api.js").Page<any> }} props label: what it lists
 */
export function Pages({ label, data: { items, nextCursor, total, totalIsEstimate } }) {
  const { path, query } = route.value;
  if (!nextCursor && !query.cursor && (total === undefined || !items.length)) return null;
  return html`<nav class="pages" aria-label=${`Pages of ${label}`}>
    <span class="hint">${total !== undefined && items.length > 0 && `${count(total, totalIsEstimate)} in all`}</span>
    ${query.cursor && html`<${LinkButton} href=${link(path, {}, { ...query, cursor: "" })}>First page<//>`}
    ${nextCursor && html`<${LinkButton} href=${link(path, {}, { ...query, cursor: nextCursor })}>Next page<//>`}
  </nav>`;
}

/**
 * @param {object} props
 * @param {string} props.label what it lists
 * @param {import("../lib/load.js").Loaded<import("../lib/api.js").Page<any>>} props.list of `useList`
 * @param {Column[]} props.columns the first one names the row
 * @param {(row: any) => string} props.id
 * @param {(row: any) => any} [props.actions] buttons
 * @param {any} props.empty what an empty list says: `Empty`
 */
export function Table({ label, list, columns, id, actions, empty }) {
  const { data, error, loading, reload } = list;
  if (error && !data) return html`<${ErrorView} error=${error} retry=${reload} />`;
  if (!data) return html`<${Loading} />`;
  const { query } = route.value;
  const able = !data.nextCursor && !query.cursor;
  const rows = able ? sorted(data.items, columns) : data.items;
  return html`
    ${error && html`<${ErrorView} error=${error} retry=${reload} />`}
    ${!rows.length ? (query.cursor ? html`<p class="loading">Nothing is left on this page.</p>` : empty) : html`<div class="table" role="region" aria-label=${label} tabindex="0" aria-busy=${loading ? "true" : "false"}>
      <table>
        <caption class="hidden">${label}</caption>
        <thead><tr>${columns.map((column) => html`<${Head} column=${column} able=${able} />`)}${actions && html`<th scope="col"><span class="hidden">Actions</span></th>`}</tr></thead>
        <tbody>${rows.map((row) => html`<tr key=${id(row)}>
          ${columns.map(({ render, end }, index) => (index ? html`<td class=${end ? "end" : ""}>${render(row)}</td>` : html`<th scope="row">${render(row)}</th>`))}
          ${actions && html`<td class="actions">${actions(row)}</td>`}
        </tr>`)}</tbody>
      </table>
    </div>`}
    <${Pages} label=${label} data=${data} />`;
}
