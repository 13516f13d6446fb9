//! What the document says of values that plugins read. The types of the server know such values as JSON alone.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{cases, patches, questions, webhooks};

/// The shapes, and the members that have them wherever their type is only JSON.
#[derive(Deserialize)]
struct Shapes {
    schemas: Map<String, Value>,
    members: Map<String, Value>,
    /// The shapes of members that have their own, by `Schema.member`.
    replaced: Map<String, Value>,
}

/// The beginnings of references to documents that readers do not have.
const REFERENCES: [&str; 2] = [" (contract ", " (specification "];

/// Completes the document.
pub(super) fn add(document: &mut Value) -> serde_json::Result<()> {
    let Shapes {
        schemas,
        members,
        replaced,
    } = serde_json::from_str(include_str!("shapes.json"))?;
    if let Some(all) = members_of(document, "/components/schemas") {
        name_copies(all);
        for schema in all.values_mut() {
            shape(schema, &members);
        }
        all.extend(schemas);
        questions::add(all);
        cases::add(all)?;
    }
    replace(document, &replaced);
    patches::add(document);
    if let Some(all) = document.as_object_mut() {
        all.insert("webhooks".to_owned(), webhooks::all()?);
    }
    without_references(document);
    mend_tests(document);
    mend_binaries(document);
    Ok(())
}

/// The members of the object at a place.
fn members_of<'v>(value: &'v mut Value, place: &str) -> Option<&'v mut Map<String, Value>> {
    value.pointer_mut(place)?.as_object_mut()
}

/// Names schemas where envelopes have copies of them.
fn name_copies(schemas: &mut Map<String, Value>) {
    let is_envelope = |name: &str| name.starts_with("Data_") || name.starts_with("Page_");
    let mut names: HashMap<String, Option<String>> = HashMap::new();
    let says_something = |schema: &Value| {
        ["properties", "allOf", "oneOf"]
            .iter()
            .any(|key| schema.get(key).is_some())
    };
    let all = schemas
        .iter()
        .filter(|(name, schema)| !is_envelope(name) && says_something(schema));
    for (name, schema) in all {
        // Of two that are alike none is meant more than the other.
        names
            .entry(schema.to_string())
            .and_modify(|known| *known = None)
            .or_insert_with(|| Some(name.clone()));
    }
    for (_, envelope) in schemas.iter_mut().filter(|(name, _)| is_envelope(name)) {
        for part in envelope
            .as_object_mut()
            .into_iter()
            .flat_map(Map::values_mut)
        {
            name_copy(part, &names);
        }
    }
}

fn name_copy(value: &mut Value, names: &HashMap<String, Option<String>>) {
    if value.is_object()
        && let Some(Some(name)) = names.get(&value.to_string())
    {
        *value = reference(name);
        return;
    }
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| name_copy(item, names)),
        Value::Object(members) => members
            .values_mut()
            .for_each(|member| name_copy(member, names)),
        _ => {}
    }
}

/// Gives members that are only JSON their shapes.
fn shape(schema: &mut Value, members: &Map<String, Value>) {
    for (name, member) in members_of(schema, "/properties").into_iter().flatten() {
        let known = members.get(name).filter(|_| is_open(member));
        if let Some(shape) = known.and_then(Value::as_str) {
            let description = member.get("description").cloned();
            let is_there = member.get("type") == Some(&json!("object"));
            *member = if is_there {
                reference(shape)
            } else {
                json!({"oneOf": [reference(shape), {"type": "null"}]})
            };
            if let (Some(text), Some(member)) = (description, member.as_object_mut()) {
                member.insert("description".to_owned(), text);
            }
        } else if name == "properties" && member.get("items") == Some(&json!({})) {
            if let Some(items) = member.get_mut("items") {
                *items = reference("PropertyDefinition");
            }
        } else {
            shape(member, members);
        }
    }
    if let Some(items) = schema.get_mut("items") {
        shape(items, members);
    }
    for several in ["oneOf", "allOf", "anyOf"] {
        let parts = schema.get_mut(several).and_then(Value::as_array_mut);
        for part in parts.into_iter().flatten() {
            shape(part, members);
        }
    }
}

/// Whether a schema says nothing of the value, or only that it is an object.
fn is_open(schema: &Value) -> bool {
    let says = [
        "$ref",
        "oneOf",
        "allOf",
        "anyOf",
        "enum",
        "properties",
        "additionalProperties",
    ];
    let kind = schema.get("type");
    let is_object =
        kind.is_some_and(|kind| *kind == "object" || *kind == json!(["object", "null"]));
    (kind.is_none() || is_object) && says.iter().all(|key| schema.get(key).is_none())
}

/// Gives members the shapes that only they have.
fn replace(value: &mut Value, replaced: &Map<String, Value>) {
    for (place, shape) in replaced {
        let Some((schema, member)) = place.split_once('.') else {
            continue;
        };
        let place = format!("/components/schemas/{schema}/properties/{member}");
        if let Some(member) = value.pointer_mut(&place) {
            shape.clone_into(member);
        }
    }
}

pub(super) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// Media types whose bodies are bytes.
const BINARY: [&str; 2] = ["application/wasm", "application/zip"];

/// Says of bodies that are bytes that they are no list of numbers.
fn mend_binaries(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for media_type in BINARY {
                let described = members.get_mut(media_type).and_then(Value::as_object_mut);
                if let Some(described) = described {
                    let bytes = json!({"type": "string", "format": "binary"});
                    described.insert("schema".to_owned(), bytes);
                }
            }
            members.values_mut().for_each(mend_binaries);
        }
        Value::Array(items) => items.iter_mut().for_each(mend_binaries),
        _ => {}
    }
}

/// Takes references to other documents out of all descriptions.
fn without_references(value: &mut Value) {
    match value {
        Value::String(text) => {
            for beginning in REFERENCES {
                while let Some(start) = text.find(beginning)
                    && let Some(length) = text[start..].find(')')
                {
                    text.replace_range(start..=start + length, "");
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(without_references),
        Value::Object(members) => members.values_mut().for_each(without_references),
        _ => {}
    }
}

/// A test of a push message fits the view of an in-app message's too, which has no member of its own that is always there.
fn mend_tests(value: &mut Value) {
    match value {
        Value::Object(members) => {
            let name = reference("InAppTestView");
            let is_test = |view: &Value| view.get("$ref") == name.get("$ref");
            let views = members.get("oneOf").and_then(Value::as_array);
            if views.is_some_and(|views| views.iter().any(is_test))
                && let Some(views) = members.remove("oneOf")
            {
                members.insert("anyOf".to_owned(), views);
            }
            members.values_mut().for_each(mend_tests);
        }
        Value::Array(items) => items.iter_mut().for_each(mend_tests),
        _ => {}
    }
}
