//! Configurations that a plugin may accept: the examples of its schema, one made of its schema, an empty one, and one of
//! the shape that the app's slot gives.

use serde_json::{Map, Value as Json, json};

use crate::kind::Kind;

/// Examples of a schema that are tried.
const MOST_EXAMPLES: usize = 4;
/// Values that are made of a schema, whose parts may name each other again and again.
const MOST_VALUES: usize = 1_000;
/// How deep they nest.
const DEPTH: usize = 16;
/// Elements of an array, and characters of a text.
const MOST_ELEMENTS: u64 = 64;

/// Configurations, as JSON, in the order in which they are tried.
pub(super) fn made_up(kind: Kind, schema: &str) -> Vec<String> {
    let schema: Json = serde_json::from_str(schema).unwrap_or_default();
    let mut made = Vec::new();
    let mut add = |config: Json| {
        let text = config.to_string();
        if !made.contains(&text) {
            made.push(text);
        }
    };
    let examples = schema.get("examples").and_then(Json::as_array);
    let examples = examples.into_iter().flatten().take(MOST_EXAMPLES);
    examples.cloned().for_each(&mut add);
    let mut maker = Maker {
        root: &schema,
        left: MOST_VALUES,
    };
    if schema.is_object()
        && let Some(config) = maker.make(&schema, DEPTH)
    {
        add(config);
    }
    add(json!({}));
    add(of_slot(kind));
    made
}

/// What the app's slot asks a plugin of a kind about.
fn of_slot(kind: Kind) -> Json {
    match kind {
        Kind::Trigger => json!({
            "trigger": {"kind": "event", "eventName": "self_test"},
            "audience": null,
        }),
        Kind::Validation => json!({"properties": [], "additionalProperties": "allow"}),
        Kind::Personalization => json!({
            "version": 1,
            "missingData": "skip",
            "sources": [{"id": "source", "kind": "send_data"}],
            "bindings": [{"id": "binding", "sourceId": "source", "key": "key", "type": "string", "fallback": "text"}],
        }),
    }
}

/// Makes values of the schemas of a document.
struct Maker<'s> {
    root: &'s Json,
    left: usize,
}

impl<'s> Maker<'s> {
    /// A value that a schema describes, as far as its usual words are understood; none: it would be too large.
    fn make(&mut self, schema: &'s Json, depth: usize) -> Option<Json> {
        self.left = self.left.checked_sub(1)?;
        let depth = depth.checked_sub(1)?;
        if let Some(reference) = schema.get("$ref").and_then(Json::as_str) {
            let target = self.root.pointer(reference.strip_prefix('#')?)?;
            return self.make(target, depth);
        }
        for word in ["default", "const"] {
            if let Some(value) = schema.get(word) {
                return Some(value.clone());
            }
        }
        for word in ["examples", "enum"] {
            if let Some(value) = schema.get(word).and_then(|list| list.get(0)) {
                return Some(value.clone());
            }
        }
        for word in ["anyOf", "oneOf"] {
            if let Some(first) = schema.get(word).and_then(|list| list.get(0)) {
                return self.make(first, depth);
            }
        }
        let named = schema.get("type");
        let named = named.and_then(|named| named.get(0).or(Some(named)));
        match named.and_then(Json::as_str) {
            Some("object") => self.object(schema, depth),
            Some("array") => self.array(schema, depth),
            Some("string") => Some("a".repeat(count(schema, "minLength").max(1)).into()),
            Some("integer" | "number") => Some(number(schema)),
            Some("boolean") => Some(true.into()),
            None if schema.get("properties").is_some() => self.object(schema, depth),
            _ => Some(Json::Null),
        }
    }

    fn object(&mut self, schema: &'s Json, depth: usize) -> Option<Json> {
        let mut object = Map::new();
        let required = schema.get("required").and_then(Json::as_array);
        for key in required.into_iter().flatten().filter_map(Json::as_str) {
            let property = schema.get("properties").and_then(|all| all.get(key));
            let value = match property {
                Some(property) => self.make(property, depth)?,
                None => Json::Null,
            };
            object.insert(key.to_owned(), value);
        }
        Some(Json::Object(object))
    }

    fn array(&mut self, schema: &'s Json, depth: usize) -> Option<Json> {
        let mut array = Vec::new();
        if let Some(items) = schema.get("items") {
            for _ in 0..count(schema, "minItems") {
                array.push(self.make(items, depth)?);
            }
        }
        Some(Json::Array(array))
    }
}

fn count(schema: &Json, word: &str) -> usize {
    let count = schema.get(word).and_then(Json::as_u64).unwrap_or_default();
    usize::try_from(count.min(MOST_ELEMENTS)).unwrap_or_default()
}

/// A number in a schema's range, 1 where it is.
fn number(schema: &Json) -> Json {
    let bound = |word: &str| schema.get(word).and_then(Json::as_f64);
    let least = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|bound| bound + 1.0));
    let most = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|bound| bound - 1.0));
    let value = least.map_or(1.0, |least| least.max(1.0));
    let value = most.map_or(value, |most| value.min(most));
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a whole number is shown as one; others are not in the way"
    )]
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return (value as i64).into();
    }
    value.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_makes_a_configuration() {
        let schema = json!({
            "type": "object",
            "required": ["event", "at", "list", "one", "more", "any"],
            "properties": {
                "event": {"type": "string", "minLength": 3},
                "at": {"type": "number", "minimum": 2, "maximum": 9},
                "list": {"type": "array", "minItems": 2, "items": {"$ref": "#/$defs/flag"}},
                "one": {"enum": ["x", "y"]},
                "more": {"type": "object", "required": ["n"], "properties": {"n": {"default": 7}}},
                "any": {"anyOf": [{"type": ["integer", "null"], "maximum": 0}]},
                "left": {"type": "string"},
            },
            "$defs": {"flag": {"type": "boolean"}},
            "examples": [{"event": "example"}],
        });
        let made = made_up(Kind::Trigger, &schema.to_string());
        let made: Vec<Json> = made
            .iter()
            .map(|text| serde_json::from_str(text).unwrap())
            .collect();
        assert_eq!(made[0], json!({"event": "example"}));
        assert_eq!(made[made.len() - 2], json!({}));
        let mut without = schema;
        without.as_object_mut().unwrap().remove("examples");
        let made = made_up(Kind::Trigger, &without.to_string());
        assert_eq!(
            serde_json::from_str::<Json>(&made[0]).unwrap(),
            json!({"event": "aaa", "at": 2, "list": [true, true], "one": "x", "more": {"n": 7}, "any": 0})
        );
    }

    #[test]
    fn no_schema_makes_a_large_configuration() {
        let both = json!({"$ref": "#/$defs/both"});
        let doubling = json!({
            "$ref": "#/$defs/both",
            "$defs": {"both": {"type": "object", "required": ["a", "b"], "properties": {"a": both, "b": both}}},
        });
        let long = json!({"type": "string", "minLength": u64::MAX});
        for schema in [doubling, long, json!([]), json!(true)] {
            let made = made_up(Kind::Validation, &schema.to_string());
            assert!(made.iter().all(|config| config.len() < 10_000), "{schema}");
            assert!(made.contains(&"{}".to_owned()));
        }
    }
}
