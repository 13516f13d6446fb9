//! Cases of plugins: the SDK's schema of them, as schemas of the document.

use serde_json::{Map, Value, json};

/// What the editors of plugins' authors read.
const SCHEMA: &str = include_str!("../../../guest-sdk/cases.schema.json");

/// Adds the schemas of what a case gives a plugin, and of what it expects.
pub(super) fn add(schemas: &mut Map<String, Value>) -> serde_json::Result<()> {
    let mut schema: Value = serde_json::from_str(SCHEMA)?;
    rename(&mut schema);
    for (key, name) in [("input", "CaseInput"), ("expect", "CaseExpectation")] {
        if let Some(part) = schema.pointer_mut(&format!("/$defs/case/properties/{key}")) {
            schemas.insert(name.to_owned(), part.take());
        }
    }
    let parts = schema.get_mut("$defs").and_then(Value::as_object_mut);
    for (name, part) in parts.into_iter().flatten() {
        if name != "case" {
            schemas.insert(name_of(name), part.take());
        }
    }
    Ok(())
}

/// The name of a part of the schema among those of the document.
fn name_of(part: &str) -> String {
    let mut letters = part.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    format!("Case{}{}", first.unwrap_or_default(), letters.as_str())
}

/// Gives references the names of the document.
fn rename(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(rename),
        Value::Object(members) => {
            let part = members.get("$ref").and_then(Value::as_str);
            let part = part.and_then(|part| part.strip_prefix("#/$defs/"));
            if let Some(name) = part.map(name_of) {
                let place = json!(format!("#/components/schemas/{name}"));
                members.insert("$ref".to_owned(), place);
            }
            members.values_mut().for_each(rename);
        }
        _ => {}
    }
}
