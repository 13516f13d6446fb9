//! JSON merge patch (RFC 7396).

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::body;
use super::error::ApiError;

/// What a patch makes of something. A key that it can't have is refused, even where the patch removes it.
pub fn patched<D: Serialize, T: DeserializeOwned>(
    current: &D,
    patch: Map<String, Value>,
) -> Result<T, ApiError> {
    let mut document = serde_json::to_value(current).map_err(ApiError::internal)?;
    let removed = patch.iter().filter(|(_, value)| value.is_null());
    let absent = removed.filter(|(key, _)| document.get(key).is_none());
    let absent: Vec<String> = absent.map(|(key, _)| key.clone()).collect();
    apply(&mut document, Value::Object(patch));
    if !absent.is_empty() {
        let mut tried = document.clone();
        let nulls = absent.into_iter().map(|key| (key, Value::Null));
        if let Some(members) = tried.as_object_mut() {
            members.extend(nulls);
        }
        let refused = body::parse_value::<T>(tried).err();
        let unknown = |error: &ApiError| {
            let mut errors = error.errors().iter();
            errors.any(|error| error.code == "unknown_key")
        };
        if let Some(error) = refused.filter(unknown) {
            return Err(error);
        }
    }
    body::parse_value(document)
}

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
