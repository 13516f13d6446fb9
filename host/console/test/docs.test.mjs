// What the pages of the API make of a description: schemas as they are seen, examples, commands.
import assert from "node:assert/strict";
import test from "node:test";

// The router reads the address when it is loaded.
Object.assign(globalThis, { location: { hash: "" }, addEventListener: () => {} });
const { curl, Description, example, target } = await import("../app/src/docs/model.js");

const ref = (name) => ({ $ref: `#/components/schemas/${name}` });
const description = new Description({
  tags: [{ name: "b" }, { name: "a" }, { name: "empty" }],
  paths: {
    "/v1/things/{id}": {
      get: { operationId: "get_thing", tags: ["a"], responses: { 404: { $ref: "#/components/responses/NotFound" }, 200: { description: "It.", content: { "application/json": { schema: ref("Thing") } } } }, parameters: [{ name: "id", in: "path", required: true }, { name: "q", in: "query" }] },
      delete: { operationId: "delete_thing", tags: ["b"], responses: {}, security: [{ key: ["write"] }] },
    },
  },
  components: {
    responses: { NotFound: { description: "There is none." } },
    schemas: {
      Base: { type: "object", required: ["id"], properties: { id: { type: "string", format: "uuid" } } },
      Thing: { allOf: [ref("Base"), { type: "object", required: ["count"], properties: { count: { type: "integer", minimum: 2, maximum: 9 }, parent: { oneOf: [{ type: "null" }, ref("Thing")] } } }] },
      Kind: { type: "string", enum: ["x", "y"] },
      Tree: { oneOf: [{ type: "object", required: ["all"], properties: { all: { type: "array", items: ref("Tree") } } }, ref("Kind")] },
    },
  },
});

test("references, parts and null are resolved", () => {
  const thing = description.see(ref("Thing"));
  assert.deepEqual([thing.name, Object.keys(thing.properties), thing.required], ["Thing", ["id", "count", "parent"], ["id", "count"]]);
  const parent = description.see(thing.properties.parent);
  assert.deepEqual([parent.name, parent.nullable], ["Thing", true]);
  assert.deepEqual(description.see(thing.properties.count).limits, ["at least 2", "at most 9"]);
  assert.deepEqual(description.see(ref("Kind")).values, ["x", "y"]);
  assert.equal(description.see(ref("Tree")).choices.length, 2);
});

test("operations stand in groups, are found by words, and are known to their schemas", () => {
  assert.deepEqual(description.groups.map(({ tag, operations }) => [tag, operations.map(({ id }) => id)]), [["b", ["delete_thing"]], ["a", ["get_thing"]]]);
  const [get] = description.operations;
  assert.deepEqual(get.answers.map(({ status, description }) => [status, description]), [["200", "It."], ["404", "There is none."]]);
  const found = description.search("thing GET");
  assert.deepEqual([found.groups.length, found.schemas], [1, []]);
  assert.deepEqual(description.search("count").schemas, ["Thing"]);
  const { operations, schemas } = description.users("Thing");
  assert.deepEqual([operations.map(({ id }) => id), schemas], [["get_thing"], []]);
});

test("an example has what must be there, also of schemas that contain themselves", () => {
  assert.deepEqual(example(description, ref("Thing")), { id: "00000000-0000-4000-8000-000000000000", count: 2 });
  assert.equal(example(description, ref("Tree")), "x");
});

test("a command is what would be sent, as a shell reads it", () => {
  const [get] = description.operations;
  assert.equal(target(get, {}), "/v1/things/{id}");
  assert.equal(target(get, { id: "a/b", q: "x y" }), "/v1/things/a%2Fb?q=x+y");
  const command = curl({ method: "POST", address: "http://h/", headers: { authorization: "Bearer $TOKEN", accept: "a'b" }, body: "it's" });
  assert.equal(command, "curl -X POST 'http://h/' \\\n  -H \"authorization: Bearer $TOKEN\" \\\n  -H 'accept: a'\\''b' \\\n  -d 'it'\\''s'");
});
