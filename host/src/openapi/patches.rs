//! Bodies of changes, which are merge patches (RFC 7396): made of the schemas of what they change. Nothing in them is
//! required, and each member may be null, which removes it. Lists are replaced as a whole.

use serde_json::{Map, Value, json};

use super::shapes::reference;

/// The routes, and the schemas of what they change.
const BODIES: [(&str, &[&str]); 6] = [
    ("/v1/apps/{appId}/settings", &["Settings"]),
    (
        "/v1/apps/{appId}/event-definitions/{id}",
        &["DefinitionContent"],
    ),
    ("/v1/apps/{appId}/segments/{segmentId}", &["SegmentContent"]),
    ("/v1/apps/{appId}/surveys/{surveyId}", &["SurveyContent"]),
    (
        "/v1/apps/{appId}/campaigns/{campaignId}",
        &["Content", "InAppContent"],
    ),
    (
        "/v1/apps/{appId}/push/webhooks/{webhookId}",
        &["WebhookRequest"],
    ),
];
/// Names of patches that do not follow from those of their schemas.
const NAMES: [(&str, &str); 6] = [
    ("DefinitionContent", "DefinitionPatch"),
    ("SegmentContent", "SegmentPatch"),
    ("SurveyContent", "SurveyPatch"),
    ("Content", "PushCampaignPatch"),
    ("InAppContent", "InAppPatch"),
    ("WebhookRequest", "WebhookPatch"),
];
/// Keys under which a schema has several.
const SEVERAL: [&str; 3] = ["oneOf", "anyOf", "allOf"];

/// Gives the changes their bodies.
pub(super) fn add(document: &mut Value) {
    let schemas = document.pointer("/components/schemas");
    let Some(schemas) = schemas.and_then(Value::as_object).cloned() else {
        return;
    };
    let mut patches = Patches {
        schemas,
        made: Map::new(),
    };
    for (path, names) in BODIES {
        let mut bodies: Vec<Value> = names.iter().map(|name| patches.named(name)).collect();
        let body = match bodies.as_slice() {
            [_] => bodies.remove(0),
            _ => json!({"anyOf": bodies}),
        };
        let described = document
            .pointer_mut("/paths")
            .and_then(|paths| paths.get_mut(path))
            .and_then(|item| item.pointer_mut("/patch/requestBody/content/application~1json"));
        if let Some(described) = described.and_then(Value::as_object_mut) {
            described.insert("schema".to_owned(), body);
        }
    }
    let mut made = patches.made;
    // A definition's status is no part of what it says.
    let definition = made
        .get_mut("DefinitionPatch")
        .and_then(|patch| patch.get_mut("properties"))
        .and_then(Value::as_object_mut);
    if let Some(members) = definition {
        let status = json!({"oneOf": [reference("DefinitionStatus"), {"type": "null"}], "description": "Whether it is in force."});
        members.insert("status".to_owned(), status);
    }
    let schemas = document.pointer_mut("/components/schemas");
    if let Some(schemas) = schemas.and_then(Value::as_object_mut) {
        schemas.extend(made);
    }
}

struct Patches {
    /// What they are made of.
    schemas: Map<String, Value>,
    made: Map<String, Value>,
}

impl Patches {
    /// The patch of a schema with a name.
    fn named(&mut self, name: &str) -> Value {
        let own = NAMES.iter().find(|(known, _)| *known == name);
        let patch = own.map_or_else(|| format!("{name}Patch"), |(_, own)| (*own).to_owned());
        if !self.made.contains_key(&patch) {
            // Schemas may name themselves.
            self.made.insert(patch.clone(), Value::Null);
            let schema = self.schemas.get(name).cloned().unwrap_or_default();
            let made = self.of_object(&schema);
            self.made.insert(patch.clone(), made);
        }
        reference(&patch)
    }

    /// The patch of a schema of objects.
    fn of_object(&mut self, schema: &Value) -> Value {
        if let Some(name) = name_of(schema) {
            return self.named(name);
        }
        let mut patch = schema.clone();
        let Some(members) = patch.as_object_mut() else {
            return patch;
        };
        for key in ["required", "default", "minProperties"] {
            members.remove(key);
        }
        // What becomes another of several may have members of both.
        if members.get("additionalProperties") == Some(&json!(false)) {
            members.remove("additionalProperties");
        } else if let Some(further) = members.get_mut("additionalProperties") {
            *further = self.of_member(further);
        }
        for (_, member) in members
            .get_mut("properties")
            .and_then(Value::as_object_mut)
            .into_iter()
            .flatten()
        {
            *member = self.of_member(member);
        }
        for key in SEVERAL {
            let Some(Value::Array(parts)) = members.remove(key) else {
                continue;
            };
            let parts: Vec<Value> = parts.iter().map(|part| self.of_part(part)).collect();
            // A patch of one may be a patch of another too.
            let key = if key == "oneOf" { "anyOf" } else { key };
            members.insert(key.to_owned(), parts.into());
        }
        patch
    }

    /// The patch of one of several schemas.
    fn of_part(&mut self, part: &Value) -> Value {
        if self.is_of_objects(part) {
            self.of_object(part)
        } else {
            part.clone()
        }
    }

    /// The patch of a member, which may be null.
    fn of_member(&mut self, schema: &Value) -> Value {
        let Some(described) = schema.as_object() else {
            return schema.clone();
        };
        let mut bare = described.clone();
        bare.remove("default");
        let description = bare.remove("description");
        let mut patch = if bare.is_empty() {
            json!({})
        } else if self.is_of_objects(schema) {
            let is_null = |part: &Value| *part == json!({"type": "null"});
            let several = bare.get("oneOf").or_else(|| bare.get("anyOf"));
            let parts = several.and_then(Value::as_array).cloned();
            let mut parts = parts.unwrap_or_else(|| vec![Value::Object(bare)]);
            parts.retain(|part| !is_null(part));
            let mut parts: Vec<Value> = parts.iter().map(|part| self.of_part(part)).collect();
            let key = if parts.len() == 1 { "oneOf" } else { "anyOf" };
            parts.push(json!({"type": "null"}));
            json!({key: parts})
        } else {
            nullable(bare)
        };
        if let (Some(text), Some(patch)) = (description, patch.as_object_mut()) {
            patch.insert("description".to_owned(), text);
        }
        patch
    }

    /// Whether a schema is one of objects, whose members are patched one by one.
    fn is_of_objects(&self, schema: &Value) -> bool {
        if let Some(name) = name_of(schema) {
            let named = self.schemas.get(name);
            return named.is_some_and(|named| self.is_of_objects(named));
        }
        let is_object = |kind: &Value| *kind == "object" || *kind == json!(["object", "null"]);
        let has_members = schema.get("properties").is_some()
            || schema
                .get("additionalProperties")
                .is_some_and(Value::is_object);
        let several = SEVERAL.iter().filter_map(|key| schema.get(key)?.as_array());
        schema.get("type").is_some_and(is_object) && has_members
            || several.flatten().any(|part| self.is_of_objects(part))
    }
}

fn name_of(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.rsplit('/').next()
}

/// A schema, or null.
fn nullable(mut schema: Map<String, Value>) -> Value {
    let is_plain = ["enum", "const"]
        .iter()
        .all(|key| !schema.contains_key(*key));
    match schema.get("type") {
        Some(Value::Array(kinds)) if kinds.contains(&json!("null")) => schema.into(),
        Some(Value::String(kind)) if is_plain => {
            let kinds = json!([kind, "null"]);
            schema.insert("type".to_owned(), kinds);
            schema.into()
        }
        _ => {
            let none = json!({"type": "null"});
            if let Some(Value::Array(parts)) = schema.get_mut("oneOf") {
                if !parts.contains(&none) {
                    parts.push(none);
                }
                return schema.into();
            }
            json!({"oneOf": [Value::Object(schema), none]})
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_required_and_all_may_be_null() {
        let mut document = json!({
            "components": {"schemas": {
                "SegmentContent": {
                    "type": "object", "required": ["name"], "additionalProperties": false,
                    "properties": {
                        "name": {"type": "string", "description": "Its name."},
                        "state": {"$ref": "#/components/schemas/State"},
                        "days": {"type": "array", "items": {"type": "integer"}, "default": []},
                        "who": {"oneOf": [{"$ref": "#/components/schemas/Who"}, {"type": "null"}]},
                        "any": {"description": "Anything."},
                    },
                },
                "State": {"type": "string", "enum": ["on"]},
                "Who": {"oneOf": [
                    {"type": "object", "required": ["all"], "properties": {"all": {"type": "array", "items": {"$ref": "#/components/schemas/Who"}}}},
                    {"type": "object", "required": ["kind"], "properties": {"kind": {"const": "a"}, "of": {"$ref": "#/components/schemas/Who"}}},
                ]},
            }},
            "paths": {"/v1/apps/{appId}/segments/{segmentId}": {"patch": {"requestBody": {"content": {"application/json": {"schema": {}}}}}}},
        });
        add(&mut document);
        let body =
            &document["paths"]["/v1/apps/{appId}/segments/{segmentId}"]["patch"]["requestBody"];
        let schema = &body["content"]["application/json"]["schema"];
        assert_eq!(*schema, reference("SegmentPatch"));
        let schemas = &document["components"]["schemas"];
        let none = json!({"type": "null"});
        assert_eq!(
            schemas["SegmentPatch"],
            json!({"type": "object", "properties": {
                "name": {"type": ["string", "null"], "description": "Its name."},
                "state": {"oneOf": [reference("State"), none]},
                "days": {"type": ["array", "null"], "items": {"type": "integer"}},
                "who": {"oneOf": [reference("WhoPatch"), none]},
                "any": {"description": "Anything."},
            }})
        );
        assert_eq!(
            schemas["WhoPatch"],
            json!({"anyOf": [
                {"type": "object", "properties": {"all": {"type": ["array", "null"], "items": reference("Who")}}},
                {"type": "object", "properties": {
                    "kind": {"oneOf": [{"const": "a"}, none]}, "of": {"oneOf": [reference("WhoPatch"), none]},
                }},
            ]})
        );
    }
}
