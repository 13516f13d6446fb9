//! JSON merge patch (RFC 7396).

use serde_json::{Map, Value};

/// Lays a patch over a document: null removes, objects merge, everything else replaces.
pub fn apply(document: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *document = patch;
        return;
    };
    if !document.is_object() {
        *document = Value::Object(Map::new());
    }
    let Value::Object(document) = document else {
        return;
    };
    for (key, value) in patch {
        if value.is_null() {
            document.remove(&key);
        } else {
            apply(document.entry(key).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_examples_of_the_rfc_hold() {
        for (mut document, patch, result) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (
                json!({"a": "b", "b": "c"}),
                json!({"a": null}),
                json!({"b": "c"}),
            ),
            (
                json!({"a": {"b": "c"}}),
                json!({"a": {"b": "d", "c": null}}),
                json!({"a": {"b": "d"}}),
            ),
            (
                json!({"a": [1]}),
                json!({"a": {"b": null}}),
                json!({"a": {}}),
            ),
            (json!({"a": "foo"}), json!("bar"), json!("bar")),
            (
                json!([1, 2]),
                json!({"a": {"b": null}, "c": null}),
                json!({"a": {}}),
            ),
            (
                json!({}),
                json!({"a": {"bb": {"ccc": null}}}),
                json!({"a": {"bb": {}}}),
            ),
        ] {
            apply(&mut document, patch);
            assert_eq!(document, result);
        }
    }
}
