//! Merge.

use nudge_platform::json::merge::apply;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Map;
use serde_json::Value;

use crate::body;
use crate::error::ApiError;

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
