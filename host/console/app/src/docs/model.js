// The API's description (OpenAPI 3.1), in the shape that the pages need, and examples that are made of it.
import { get } from "../lib/api.js";
import { computed, html, signal } from "../lib/preact.js";
import { session } from "../lib/session.js";
import { keep, recall } from "../lib/storage.js";

/** @typedef {Record<string, any>} Schema */
/** @typedef {{ name: string, in: "path" | "query" | "header", required?: boolean, description?: string, schema: Schema }} Parameter */
/** @typedef {{ status: string, description: string, headers: Record<string, any>, content: Record<string, Schema> }} Answer */
/**
 * @typedef {object} Operation
 * @property {string} id
 * @property {string} method
 * @property {string} path with `{name}` where a value stands
 * @property {string} tag
 * @property {string} summary
 * @property {string} description
 * @property {Record<string, string[]>[]} credentials each is enough; a credential has its scopes
 * @property {Parameter[]} parameters
 * @property {{ type: string, schema: Schema, required: boolean } | undefined} body
 * @property {Answer[]} answers by status
 * @property {string} words all that a search looks at
 */
/** @typedef {{ tag: string, description: string, operations: Operation[] }} Group */
/**
 * @typedef {object} Seen a schema with references and parts resolved
 * @property {string} [name] the name that the description has for it
 * @property {boolean} nullable
 * @property {string[]} types
 * @property {string} [format]
 * @property {Record<string, Schema>} properties
 * @property {string[]} required
 * @property {Schema} [items]
 * @property {Schema} [others] what properties of any other name are
 * @property {boolean} closed there are no properties of other names
 * @property {Schema[]} choices one of which it is
 * @property {unknown[]} values all that it may be
 * @property {string} [description]
 * @property {string[]} limits in words
 * @property {number} [least]
 * @property {unknown} [sample] a value that the description gives
 */

const METHODS = ["get", "post", "put", "patch", "delete"];
const SCHEMAS = "#/components/schemas/";

/** What limits are in words; `%` is the number. */
const LIMITS = Object.entries({
  minimum: "at least %",
  exclusiveMinimum: "more than %",
  maximum: "at most %",
  exclusiveMaximum: "less than %",
  minLength: "% characters or more",
  maxLength: "% characters or fewer",
  minItems: "% items or more",
  maxItems: "% items or fewer",
  maxProperties: "% properties or fewer",
  pattern: "matches %",
});

export class Description {
  /** @param {Record<string, any>} document */
  constructor(document) {
    this.document = document;
    /** @type {Record<string, Schema>} */
    this.schemas = document.components?.schemas ?? {};
    /** @type {Record<string, any>} */
    this.credentials = document.components?.securitySchemes ?? {};
    /** @type {Operation[]} */
    this.operations = Object.entries(document.paths).flatMap(([path, item]) =>
      METHODS.filter((method) => item[method]).map((method) => this.#operation(path, method, item[method])));
    this.groups = this.#groups();
  }

  /** @param {string} path @param {string} method @param {any} said @returns {Operation} */
  #operation(path, method, said) {
    const [summary = "", description = ""] = [said.summary, said.description];
    const [body] = Object.entries(this.resolve(said.requestBody ?? {}).content ?? {});
    const answers = Object.entries(said.responses ?? {}).map(([status, answer]) => {
      const { description = "", headers = {}, content = {} } = this.resolve(answer);
      return { status, description, headers, content: Object.fromEntries(Object.entries(content).map(([type, { schema = {} }]) => [type, schema])) };
    });
    const tag = said.tags?.[0] ?? "other";
    const parameters = (said.parameters ?? []).map((/** @type {any} */ one) => this.resolve(one));
    const names = parameters.map((/** @type {Parameter} */ { name }) => name);
    return {
      id: said.operationId,
      method: method.toUpperCase(),
      path,
      tag,
      summary,
      description,
      credentials: said.security ?? [],
      parameters,
      body: body && { type: body[0], schema: body[1].schema ?? {}, required: said.requestBody.required ?? false },
      answers: answers.sort((one, other) => one.status.localeCompare(other.status)),
      words: [method, path, said.operationId, said.operationId.replaceAll("_", " "), tag, summary, description, ...names].join(" ").toLowerCase(),
    };
  }

  /** @returns {Group[]} */
  #groups() {
    /** @type {Map<string, Group>} */
    const groups = new Map();
    for (const { name, description = "" } of this.document.tags ?? []) groups.set(name, { tag: name, description, operations: [] });
    for (const operation of this.operations) {
      const { tag } = operation;
      if (!groups.has(tag)) groups.set(tag, { tag, description: "", operations: [] });
      groups.get(tag)?.operations.push(operation);
    }
    return [...groups.values()].filter(({ operations }) => operations.length);
  }

  /** What a reference leads to. @param {any} thing */
  resolve(thing) {
    let found = thing;
    while (found?.$ref) found = found.$ref.slice(2).split("/").reduce((/** @type {any} */ at, /** @type {string} */ part) => at?.[part], this.document);
    return found ?? {};
  }

  /**
   * Operations and schemas that have all words of a search.
   * @param {string} text
   */
  search(text) {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const has = (/** @type {string} */ all) => words.every((word) => all.includes(word));
    const groups = this.groups.map((group) => ({ ...group, operations: group.operations.filter((one) => has(one.words)) }));
    const schemas = Object.keys(this.schemas).filter((name) => has(`${name} ${Object.keys(this.see(this.#named(name)).properties).join(" ")}`.toLowerCase()));
    return { groups: groups.filter(({ operations }) => operations.length), schemas };
  }

  /** @param {string} name @returns {Schema} */
  #named = (name) => ({ $ref: SCHEMAS + name });

  /** The operations and schemas that name a schema. @param {string} name */
  users(name) {
    const wanted = `"${SCHEMAS}${name}"`;
    const names = (/** @type {unknown} */ thing) => JSON.stringify(thing).includes(wanted);
    return {
      operations: this.operations.filter(({ parameters, body, answers }) => names([parameters, body, answers])),
      schemas: Object.keys(this.schemas).filter((other) => other != name && names(this.schemas[other])),
    };
  }

  /** A schema with its references and parts resolved. @param {Schema} schema @returns {Seen} */
  see(schema) {
    const found = this.resolve(schema);
    const parts = (found.allOf ?? []).map((/** @type {Schema} */ part) => this.see(part));
    const all = found.oneOf ?? found.anyOf ?? [];
    const choices = all.filter((/** @type {Schema} */ { type }) => type !== "null");
    const nullable = choices.length < all.length;
    const [only] = choices;
    if (choices.length == 1) {
      const inner = this.see(only);
      return { ...inner, nullable: nullable || inner.nullable, description: found.description ?? inner.description };
    }
    const types = [found.type ?? (found.properties ? "object" : [])].flat();
    const more = found.additionalProperties;
    return {
      name: schema.$ref?.startsWith(SCHEMAS) ? schema.$ref.slice(SCHEMAS.length) : parts.length == 1 ? parts[0].name : undefined,
      nullable: nullable || types.includes("null") || parts.some((/** @type {Seen} */ part) => part.nullable),
      types: [...new Set([...types.filter((type) => type != "null"), ...parts.flatMap((/** @type {Seen} */ part) => part.types)])],
      format: found.format,
      properties: Object.assign({}, ...parts.map((/** @type {Seen} */ part) => part.properties), found.properties),
      required: [...parts.flatMap((/** @type {Seen} */ part) => part.required), ...(found.required ?? [])],
      items: found.items || undefined,
      others: more && typeof more == "object" && Object.keys(more).length ? more : undefined,
      closed: more === false,
      choices: [...choices, ...parts.flatMap((/** @type {Seen} */ part) => part.choices)],
      values: found.const !== undefined ? [found.const] : found.enum ?? parts.find((/** @type {Seen} */ part) => part.values.length)?.values ?? [],
      description: schema.description ?? found.description ?? parts.find((/** @type {Seen} */ part) => part.description)?.description,
      limits: limits(found),
      least: found.minimum,
      sample: found.example ?? found.examples?.[0] ?? found.default,
    };
  }
}

/** @param {Schema} schema */
function limits(schema) {
  const found = LIMITS.filter(([name]) => schema[name] !== undefined).map(([name, text]) => text.replace("%", () => String(schema[name])));
  if (schema.uniqueItems) found.push("no two alike");
  if (schema.default !== undefined && schema.default !== null) found.push(`default ${JSON.stringify(schema.default)}`);
  return found;
}

/** The description; undefined: it is not here yet. */
export const description = signal(/** @type {Description | undefined} */ (undefined));

export async function loadDescription() {
  description.value = new Description(await get("/openapi.json"));
}

/** The id of the app that somebody chose, in this browser. */
const chosen = signal(/** @type {string | undefined} */ (recall("docs.app")));

/** The app that examples are for: one of those that the person who is signed in sees. */
export const app = computed(() => {
  const apps = session.value?.apps ?? [];
  return apps.find(({ id }) => id == chosen.value) ?? apps[0];
});

/** @param {string} id */
export function chooseApp(id) {
  chosen.value = id;
  keep("docs.app", id);
}

/** @typedef {{ method: string, address: string, headers: Record<string, string>, body?: string, file?: string }} Call */

const DEEPEST = 6;

/** @type {Record<string, () => string>} */
const TEXTS = {
  uuid: () => "00000000-0000-4000-8000-000000000000",
  "date-time": () => new Date().toISOString(),
  date: () => new Date().toISOString().slice(0, 10),
  uri: () => "https://example.com/",
};

/**
 * A value of a schema: all that must be there; where nothing must, the first property.
 * @param {Description} description
 * @param {Schema} schema
 * @returns {any}
 */
export function example(description, schema, depth = 0) {
  const seen = description.see(schema);
  if (seen.sample !== undefined && seen.sample !== null) return seen.sample;
  if (seen.values.length) return seen.values[0];
  // A choice that does not contain the whole again, where there is one.
  const choice = seen.choices.find((one) => !JSON.stringify(description.resolve(one)).includes(`/${seen.name}"`)) ?? seen.choices[0];
  const names = Object.keys(seen.properties);
  const inner = (/** @type {Schema} */ one) => example(description, one, depth + 1);
  if (choice) {
    const value = inner(choice);
    // What all choices have stands beside them.
    return names.length && value && typeof value == "object" ? { ...object(), ...value } : value;
  }
  function object() {
    const wanted = names.filter((name) => seen.required.includes(name));
    const shown = wanted.length || depth ? wanted : names.slice(0, 1);
    return Object.fromEntries(depth > DEEPEST ? [] : shown.map((name) => [name, inner(seen.properties[name] ?? {})]));
  }
  switch (seen.types[0]) {
    case "array":
      return seen.items && depth < DEEPEST ? [inner(seen.items)] : [];
    case "boolean":
      return true;
    case "integer":
    case "number":
      return seen.least ?? 1;
    case "string":
      return TEXTS[seen.format ?? ""]?.() ?? "text";
    default:
      return object();
  }
}

/**
 * The path and query of a request. A value of the path that is not given stays as `{name}`.
 * @param {Operation} operation
 * @param {Record<string, string>} values of parameters, by name
 */
export function target({ path, parameters }, values) {
  const filled = path.replace(/\{(\w+)\}/g, (mark, name) => (values[name] ? encodeURIComponent(values[name]) : mark));
  const query = parameters.filter((one) => one.in == "query" && values[one.name]).map(({ name }) => [name, values[name] ?? ""]);
  const text = new URLSearchParams(query).toString();
  return text ? `${filled}?${text}` : filled;
}

/** @param {string} text a word for a shell */
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** A header whose value has a variable of the shell. @param {string} text */
const expanding = (text) => `"${text.replace(/["\\`]/g, "\\$&")}"`;

/**
 * A request as a command.
 * @param {Call} call
 */
export function curl({ method, address, headers, body, file }) {
  const lines = [`curl${method == "GET" ? "" : ` -X ${method}`} ${quoted(address)}`];
  for (const [name, value] of Object.entries(headers)) lines.push(`-H ${(value.includes("$") ? expanding : quoted)(`${name}: ${value}`)}`);
  if (file) lines.push(`--data-binary @${file}`);
  else if (body) lines.push(`-d ${quoted(body)}`);
  return lines.join(" \\\n  ");
}

/** A text in which code stands between backticks. @param {{ text: string }} props */
export const Prose = ({ text }) => html`${text.split("`").map((part, index) => (index % 2 ? html`<code>${part}</code>` : part))}`;
