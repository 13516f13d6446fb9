// The pages: all operations by their groups, one operation, one schema. Schemas are opened in place, and what is inside of
// one is made when it is opened: schemas may contain themselves.
import { html, useState } from "../lib/preact.js";
import { link } from "../lib/router.js";
import { Copy } from "../ui/copy.js";
import { PageHead } from "../ui/head.js";
import { Badge, Empty } from "../ui/notice.js";
import { description, Prose } from "./model.js";
import { Trial } from "./trial.js";

/** @typedef {import("./model.js").Answer} Answer */
/** @typedef {import("./model.js").Operation} Operation */
/** @typedef {import("./model.js").Schema} Schema */
/** @typedef {import("./model.js").Seen} Seen */

/** The description; pages are drawn when it is here. */
const all = () => /** @type {import("./model.js").Description} */ (description.value);

/** @type {Record<string, "info" | "good" | "warn" | "bad">} */
const KINDS = { GET: "info", POST: "good", PUT: "warn", PATCH: "warn", DELETE: "bad" };

/** A text with paragraphs. @param {{ text: string }} props */
export const Paragraphs = ({ text }) => text.split(/\n\s*\n/).filter(Boolean).map((part) => html`<p><${Prose} text=${part} /></p>`);

/** @param {{ method: string }} props */
export const Method = ({ method }) => html`<${Badge} kind=${KINDS[method]}>${method}<//>`;

/** The name of an operation as words. @param {import("./model.js").Operation} operation */
export const title = ({ id }) => id.replaceAll("_", " ").replace(/^./, (letter) => letter.toUpperCase());

/** @param {{ operations: import("./model.js").Operation[] }} props */
export const Operations = ({ operations }) => html`<ul class="entries operations">${operations.map((one) => html`<li key=${one.id}>
  <a href=${link("/op/:id", { id: one.id })}>${title(one)}</a>
  <div><${Method} method=${one.method} /> <code>${one.path}</code></div>
  ${one.summary && html`<p class="hint"><${Prose} text=${one.summary} /></p>`}
</li>`)}</ul>`;

/** @param {{ names: string[] }} props */
export const SchemaLinks = ({ names }) => html`<ul class="names">${names.map((name) => html`<li key=${name}><a href=${link("/schema/:name", { name })}><code>${name}</code></a></li>`)}</ul>`;

const EMPTY = /** @type {Schema} */ ({});

/** @param {Schema} schema */
const see = (schema) => all().see(schema);

/** What a schema is, in a few words. @param {Seen} seen @returns {string} */
function kind(seen) {
  const base = () => {
    if (seen.items) return `array of ${kind(see(seen.items))}`;
    if (seen.name) return seen.name;
    if (seen.choices.length) return `one of ${seen.choices.length}`;
    if (seen.others && !Object.keys(seen.properties).length) return `object of ${kind(see(seen.others))}`;
    return seen.types.join(" or ") || (seen.values.length ? typeof seen.values[0] : "anything");
  };
  return `${base()}${seen.format ? ` (${seen.format})` : ""}${seen.nullable ? " or null" : ""}`;
}

/** Whether there is something to open. @param {Seen} seen @returns {boolean} */
const isDeep = (seen) => Boolean(Object.keys(seen.properties).length || seen.choices.length || (seen.others && !see(seen.others).others && isDeep(see(seen.others))) || (seen.items && isDeep(see(seen.items))));

/** The values by which a choice is told from the others: `kind: "event"`. @param {Seen} seen */
function mark(seen) {
  for (const [name, property] of Object.entries(seen.properties)) {
    const { values } = see(property);
    if (values.length == 1) return `${name}: ${JSON.stringify(values[0])}`;
  }
  return seen.name || seen.values.length ? undefined : Object.keys(seen.properties).filter((name) => seen.required.includes(name)).join(", ");
}

/** @param {{ seen: Seen }} props */
function Limits({ seen }) {
  const { limits, values } = seen;
  return html`${limits.length > 0 && html` <span class="limits">${limits.join(" · ")}</span>`}${values.length > 0 && html` <span class="limits">${values.length > 1 && "one of "}${values.map((value, index) => html`${index > 0 && ", "}<code>${JSON.stringify(value)}</code>`)}</span>`}`;
}

/**
 * A schema in its place: a property, a choice, or alone.
 * @param {{ schema: Schema, name?: string, required?: boolean, open?: boolean }} props
 */
export function SchemaNode({ schema, name, required, open = false }) {
  const [shown, setShown] = useState(open);
  const seen = see(schema);
  const head = html`${name && html`<code class="name">${name}</code> `}<span class="hint">${kind(seen)}</span>${required && html` <${Badge} kind="warn">required<//>`}<${Limits} seen=${seen} />`;
  const about = seen.description && html`<p class="hint"><${Prose} text=${seen.description} /></p>`;
  if (!isDeep(seen)) return html`<div class="leafless">${head}${about}</div>`;
  return html`<details open=${shown} onToggle=${(/** @type {any} */ event) => setShown(event.currentTarget.open)}>
    <summary>${head}</summary>
    ${about}
    ${shown && html`<${Inside} seen=${seen} />`}
  </details>`;
}

/** @param {{ seen: Seen }} props */
export function Inside({ seen }) {
  const { properties, choices, items, others, required, closed, name } = seen;
  const names = Object.keys(properties);
  return html`
    ${name && html`<p class="hint">Schema <a href=${link("/schema/:name", { name })}><code>${name}</code></a>${closed && ": no other properties are taken"}</p>`}
    ${names.length > 0 && html`<ul class="inside">${names.map((one) => html`<li key=${one}><${SchemaNode} name=${one} schema=${properties[one] ?? EMPTY} required=${required.includes(one)} /></li>`)}</ul>`}
    ${choices.length > 0 && html`<p>${names.length ? "And one of" : "One of"}</p><ul class="inside">${choices.map((choice, index) => html`<li key=${index}><${SchemaNode} name=${mark(see(choice))} schema=${choice} /></li>`)}</ul>`}
    ${others && html`<ul class="inside"><li><${SchemaNode} name="any other name" schema=${others} /></li></ul>`}
    ${items && html`<${Inside} seen=${see(items)} />`}`;
}

const PROBLEM = "application/problem+json";

/** @param {{ operation: Operation }} props */
function Credentials({ operation: { credentials } }) {
  if (!credentials.length) return html`<p>It takes no credential.</p>`;
  return html`<ul>${credentials.map((one) => html`<li>${Object.entries(one).map(([scheme, scopes], index) => html`
    ${index > 0 && " and "}<code>${scheme}</code>${scopes.length > 0 && html` with the scope ${scopes.map((scope) => html`<code>${scope}</code> `)}`}: ${description.value?.credentials[scheme]?.description ?? description.value?.credentials[scheme]?.name}`)}</li>`)}</ul>`;
}

/** @param {{ answer: Answer }} props */
const Success = ({ answer: { status, description, headers, content } }) => html`
  <h3>${status}</h3>
  <p><${Prose} text=${description} /></p>
  ${Object.entries(headers).map(([name, header]) => html`<p>Header <code>${name}</code>${header.description && html`: <${Prose} text=${header.description} />`}</p>`)}
  ${Object.entries(content).map(([type, schema]) => html`<p><code>${type}</code></p><${SchemaNode} schema=${schema} open />`)}`;

/** @param {{ operation: Operation }} props */
export function OperationPage({ operation }) {
  const { method, path, summary, description, parameters, body, answers } = operation;
  const isRefusal = (/** @type {Answer} */ { status }) => /^[45]/.test(status);
  const refusals = answers.filter(isRefusal);
  return html`
    <${PageHead} title=${title(operation)} back=${{ href: "#/", title: "All operations" }}>
      <p><${Method} method=${method} /> <${Copy} text=${path} label="the path" /></p>
    <//>
    <div class="trial">
      <div>
        <${Paragraphs} text=${[summary, description].filter(Boolean).join("\n\n")} />
        <h2>Credentials</h2>
        <${Credentials} operation=${operation} />
        ${parameters.length > 0 && html`<h2>Parameters</h2><ul class="inside">${parameters.map((one) => html`<li key=${one.name}>
          <span class="place">${one.in}</span> <${SchemaNode} name=${one.name} schema=${{ ...one.schema, description: one.description ?? one.schema?.description }} required=${one.required} />
        </li>`)}</ul>`}
        ${body && html`<h2>Body</h2><p><code>${body.type}</code>${!body.required && ", may be left out"}</p><${SchemaNode} schema=${body.schema} open />`}
        <h2>Answers</h2>
        ${answers.filter((one) => !isRefusal(one)).map((one) => html`<${Success} key=${one.status} answer=${one} />`)}
        ${refusals.length > 0 && html`<h3>Refusals</h3>
          <div class="table"><table><thead><tr><th scope="col">Status</th><th scope="col">Meaning</th></tr></thead><tbody>
            ${refusals.map(({ status, description }) => html`<tr key=${status}><th scope="row">${status}</th><td><${Prose} text=${description} /></td></tr>`)}
          </tbody></table></div>
          <p class="hint">Each is <code>${PROBLEM}</code>:</p>
          <${SchemaNode} schema=${refusals.find(({ content }) => content[PROBLEM])?.content[PROBLEM] ?? {}} />`}
      </div>
      <aside aria-label="Example">
        <${Trial} operation=${operation} />
      </aside>
    </div>`;
}

/** @param {{ q: string }} props */
export function Overview({ q }) {
  const api = all();
  const { groups, schemas } = api.search(q);
  const count = groups.reduce((sum, { operations }) => sum + operations.length, 0);
  return html`
    <${PageHead} title=${q ? `Search: ${q}` : "Nudge API"}>
      ${q ? html`<p role="status">${count} operations, ${schemas.length} schemas</p>` : html`<p>${api.document.info?.description}</p>
        <p>The description is at <a href="/openapi.json"><code>/openapi.json</code></a>, all error codes are at <a href="/v1/errors"><code>/v1/errors</code></a>.</p>`}
    <//>
    ${!q && html`<section><h2>Credentials</h2><dl class="facts">${Object.entries(api.credentials).map(([name, { description, bearerFormat, name: header }]) => html`
      <div><dt><code>${name}</code></dt><dd>${description ?? html`The header <code>${header}</code>`}${bearerFormat && html` <code>${bearerFormat}</code>`}</dd></div>`)}</dl></section>`}
    ${groups.map(({ tag, description, operations }) => html`<section key=${tag} aria-label=${tag}>
      <h2>${tag}</h2>
      ${description && html`<p><${Prose} text=${description} /></p>`}
      <${Operations} operations=${operations} />
    </section>`)}
    ${schemas.length > 0 && html`<section aria-label="Schemas"><h2>Schemas</h2><${SchemaLinks} names=${schemas} /></section>`}
    ${!count && !schemas.length && html`<${Empty} title="Nothing has all of these words"><p>Try fewer, or a part of a path.</p><//>`}`;
}

/** @param {{ name: string }} props */
export function SchemaPage({ name }) {
  const api = all();
  const seen = api.see({ $ref: `#/components/schemas/${name}` });
  const { operations, schemas } = api.users(name);
  const isFlat = !Object.keys(seen.properties).length && !seen.choices.length && !seen.items && !seen.others;
  return html`
    <${PageHead} title=${name} back=${{ href: "#/", title: "All operations" }} />
    ${seen.description && html`<p><${Prose} text=${seen.description} /></p>`}
    ${isFlat ? html`<${SchemaNode} schema=${{ ...api.schemas[name], description: undefined }} />` : html`<${Inside} seen=${{ ...seen, name: undefined }} />`}
    ${operations.length > 0 && html`<section><h2>Operations with it</h2><${Operations} operations=${operations} /></section>`}
    ${schemas.length > 0 && html`<section><h2>Schemas with it</h2><${SchemaLinks} names=${schemas} /></section>`}`;
}
