//! Merge patches (RFC 7396): what a patch makes of a resource, and which of its keys are refused.

use nudge_platform::field_error::FieldError;
use nudge_platform::json::merge::apply;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Map;
use serde_json::Value;

use crate::body;
use crate::code::Code;
use crate::error::ApiError;

/// What the detail of a key that was there before the patch ends with.
const LEFT_OVER: &str = "; it is left from before: a PATCH merges, and null removes a key";

/// What a patch makes of something.
#[derive(Debug)]
pub struct Patched<T> {
    /// What becomes of it.
    pub content: T,
    /// The same with a null in place of each key that the patch removes and that was not there. It is only to be checked for
    /// keys that nothing can have; none: there is nothing to check.
    tried: Option<T>,
    /// The patch. What it does not name was there before.
    patch: Value,
}

impl<T> Patched<T> {
    /// Checks what becomes of it, and answers with what the check does. A key that it can't have is refused, even where the
    /// patch removes it.
    pub async fn check<'a, A, E, F>(
        &'a self,
        check: impl Fn(&'a T) -> F + Send + Sync,
    ) -> Result<A, ApiError>
    where
        T: Sync,
        E: Into<ApiError>,
        F: Future<Output = Result<A, E>> + Send,
    {
        if let Some(tried) = &self.tried {
            let refused = refuse_unknown(check(tried).await);
            refused.map_err(|error| name_left_over(error, &self.patch))?;
        }
        let checked = check(&self.content).await;
        checked.map_err(|error| name_left_over(error.into(), &self.patch))
    }
}

/// What a patch makes of something. A key that it can't have is refused, even where the patch removes it.
pub fn patched<D: Serialize, T: DeserializeOwned>(
    current: &D,
    patch: Map<String, Value>,
) -> Result<T, ApiError> {
    Ok(patched_and_tried(current, patch)?.content)
}

/// What a patch makes of something that has more checks than its type.
pub fn patched_and_tried<D: Serialize, T: DeserializeOwned>(
    current: &D,
    patch: Map<String, Value>,
) -> Result<Patched<T>, ApiError> {
    let mut document = serde_json::to_value(current).map_err(ApiError::internal)?;
    let patch = Value::Object(patch);
    let left_over = |error| name_left_over(error, &patch);
    let mut with_nulls = document.clone();
    let tried = if lay(&mut with_nulls, &patch) {
        refuse_unknown(body::parse_value::<T>(with_nulls)).map_err(left_over)?
    } else {
        None
    };
    apply(&mut document, patch.clone());
    let content = body::parse_value(document).map_err(left_over)?;
    Ok(Patched {
        content,
        tried,
        patch,
    })
}

/// Adds to each refused key that the patch does not name where the key comes from: the body of the request has no such place.
fn name_left_over(mut refused: ApiError, patch: &Value) -> ApiError {
    for error in refused.errors_mut() {
        if error.code == "unknown_key" && patch.pointer(&error.pointer).is_none() {
            error.detail.push_str(LEFT_OVER);
        }
    }
    refused
}

/// Refuses keys that nothing has, if a check has found any.
fn refuse_unknown<T, E: Into<ApiError>>(checked: Result<T, E>) -> Result<Option<T>, ApiError> {
    let error: ApiError = match checked {
        Ok(checked) => return Ok(Some(checked)),
        Err(error) => error.into(),
    };
    let errors = error.errors().iter();
    let unknown = errors.filter(|error| error.code == "unknown_key").cloned();
    let unknown: Vec<FieldError> = unknown.collect();
    if unknown.is_empty() {
        return Ok(None);
    }
    Err(ApiError::fields(Code::ValidationFailed, unknown))
}

/// Lays a patch over a document, but leaves a null for what it removes and is not there; answers whether there is such a
/// null.
fn lay(document: &mut Value, patch: &Value) -> bool {
    let Value::Object(patch) = patch else {
        document.clone_from(patch);
        return false;
    };
    if !document.is_object() {
        *document = Value::Object(Map::new());
    }
    let Value::Object(members) = document else {
        return false;
    };
    let mut is_any_absent = false;
    for (key, value) in patch {
        if !value.is_null() {
            let member = members.entry(key.clone()).or_insert(Value::Null);
            is_any_absent |= lay(member, value);
        } else if members.remove(key).is_none() {
            members.insert(key.clone(), Value::Null);
            is_any_absent = true;
        }
    }
    is_any_absent
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        #[serde(skip_serializing_if = "Option::is_none")]
        known: Option<u8>,
    }

    #[derive(Debug, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Outer {
        #[serde(skip_serializing_if = "Option::is_none")]
        inner: Option<Inner>,
        #[serde(skip_serializing_if = "Option::is_none")]
        free: Option<Value>,
    }

    fn patched(inner: Option<Inner>, patch: Value) -> Result<Patched<Outer>, ApiError> {
        let free = Some(json!({"a": {"b": 1}}));
        let Value::Object(patch) = patch else {
            panic!("a patch is an object");
        };
        patched_and_tried(&Outer { inner, free }, patch)
    }

    #[test]
    fn a_key_that_nothing_has_is_refused_at_every_depth() {
        for inner in [None, Some(1)] {
            let inner = || inner.map(|known| Inner { known: Some(known) });
            for patch in [json!({"typo": null}), json!({"inner": {"typo": null}})] {
                let refused = patched(inner(), patch.clone()).unwrap_err();
                assert_eq!(refused.errors()[0].code, "unknown_key", "{patch}");
            }
            let known = patched(inner(), json!({"inner": {"known": null}})).unwrap();
            assert!(known.content.inner.unwrap().known.is_none());
        }
    }

    #[test]
    fn a_key_that_is_left_from_before_says_so() {
        let refused = ["/trigger/eventName", "/trigger/knd", "/trigger/kind"].map(|pointer| {
            let code = if pointer.ends_with("kind") {
                "invalid"
            } else {
                "unknown_key"
            };
            FieldError::new(pointer, code, "no")
        });
        let refused = ApiError::fields(Code::ValidationFailed, refused.into());
        let named = name_left_over(refused, &json!({"trigger": {"knd": "manual"}}));
        let details: Vec<&str> = named.errors().iter().map(|error| &*error.detail).collect();
        assert_eq!(details, [&*format!("no{LEFT_OVER}"), "no", "no"]);
        for patch in [json!({"free": 1}), json!({"inner": null})] {
            let Value::Object(patch) = patch else {
                panic!("a patch is an object");
            };
            let refused = patched_and_tried::<_, Outer>(&json!({"typo": 1}), patch).unwrap_err();
            assert!(refused.errors()[0].detail.ends_with(LEFT_OVER));
        }
    }

    #[test]
    fn a_key_of_a_free_form_is_left_to_whoever_checks_that() {
        let patch = json!({"free": {"a": {"b": null, "c": null}, "d": {"e": null}}});
        let done = patched(None, patch).unwrap();
        assert_eq!(done.content.free, Some(json!({"a": {}, "d": {}})));
        let tried = done.tried.unwrap();
        assert_eq!(
            tried.free,
            Some(json!({"a": {"c": null}, "d": {"e": null}}))
        );
        let there = patched(None, json!({"free": {"a": {"b": null}}})).unwrap();
        assert!(there.tried.is_none());
    }
}
