//! What a case expects against what came out.

use nudge_platform::json::escaped;
use serde::Serialize;
use serde_json::Value as Json;
use utoipa::ToSchema;

/// One place where the output is not as expected.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Difference {
    /// A JSON pointer into the output.
    pub pointer: String,
    /// What was expected there. None: nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<Json>,
    /// What is there. None: nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actual: Option<Json>,
}

/// Compares a part with the whole: keys that `expected` does not have are not looked at. Arrays are
/// compared element by element and must be equally long. An expected `null` also stands for a key that is
/// not there.
pub fn compare(expected: &Json, actual: &Json) -> Vec<Difference> {
    let mut found = Vec::new();
    walk(expected, Some(actual), "", false, &mut found);
    found
}

/// Compares the whole with the whole.
pub fn exactly(expected: &Json, actual: &Json) -> Vec<Difference> {
    let mut found = Vec::new();
    walk(expected, Some(actual), "", true, &mut found);
    found
}

fn walk(
    expected: &Json,
    actual: Option<&Json>,
    pointer: &str,
    whole: bool,
    found: &mut Vec<Difference>,
) {
    match (expected, actual) {
        (Json::Object(expected), Some(Json::Object(actual))) => {
            for (key, value) in expected {
                walk(value, actual.get(key), &below(pointer, key), whole, found);
            }
            let surplus = actual
                .iter()
                .filter(|(key, _)| whole && !expected.contains_key(*key));
            for (key, value) in surplus {
                found.push(difference(below(pointer, key), None, Some(value)));
            }
        }
        (Json::Array(expected), Some(Json::Array(actual))) => {
            for index in 0..expected.len().max(actual.len()) {
                let pointer = below(pointer, &index.to_string());
                match (expected.get(index), actual.get(index)) {
                    (Some(expected), actual) => walk(expected, actual, &pointer, whole, found),
                    (None, actual) => found.push(difference(pointer, None, actual)),
                }
            }
        }
        (expected, actual) if same(expected, actual) => {}
        (expected, actual) => {
            found.push(difference(pointer.to_owned(), Some(expected), actual));
        }
    }
}

fn same(expected: &Json, actual: Option<&Json>) -> bool {
    match (expected, actual) {
        (Json::Null, None) => true,
        // 50 and 50.0 are one number.
        (Json::Number(expected), Some(Json::Number(actual))) => {
            expected == actual || expected.as_f64() == actual.as_f64()
        }
        (expected, Some(actual)) => expected == actual,
        (_, None) => false,
    }
}

fn difference(pointer: String, expected: Option<&Json>, actual: Option<&Json>) -> Difference {
    Difference {
        pointer,
        expected: expected.cloned(),
        actual: actual.cloned(),
    }
}

/// The pointer of a part (RFC 6901).
fn below(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", escaped(key))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pointers(expected: &Json, actual: &Json) -> Vec<String> {
        compare(expected, actual)
            .into_iter()
            .map(|difference| difference.pointer)
            .collect()
    }

    #[test]
    fn what_is_not_expected_is_not_looked_at_but_arrays_are_whole() {
        let actual = json!({"fired": [{"event": 1, "at": "x"}, {"event": 2}], "states": {}});
        assert!(pointers(&json!({}), &actual).is_empty());
        assert!(pointers(&json!({"fired": [{"event": 1}, {"event": 2.0}]}), &actual).is_empty());
        assert_eq!(
            pointers(&json!({"fired": [{"event": 1}]}), &actual),
            ["/fired/1"]
        );
        assert_eq!(
            pointers(&json!({"fired": [{"event": 1}, {"event": 3}, {}]}), &actual),
            ["/fired/1/event", "/fired/2"]
        );
    }

    #[test]
    fn a_key_that_is_not_there_differs_unless_null_is_expected() {
        let differences = compare(&json!({"fierd": [], "state": null}), &json!({"fired": []}));
        assert_eq!(
            differences,
            [Difference {
                pointer: "/fierd".to_owned(),
                expected: Some(json!([])),
                actual: None
            }]
        );
    }

    #[test]
    fn pointers_are_escaped() {
        assert_eq!(
            pointers(&json!({"a/b": {"~": 1}}), &json!({"a/b": {}})),
            ["/a~1b/~0"]
        );
    }

    #[test]
    fn the_whole_is_compared_both_ways() {
        assert_eq!(exactly(&json!({}), &json!({"a": 1})).len(), 1);
        assert_eq!(exactly(&json!({"a": 1}), &json!({})).len(), 1);
        assert!(exactly(&json!([1, {"a": null}]), &json!([1, {"a": null}])).is_empty());
    }

    proptest::proptest! {
        #[test]
        fn everything_is_as_expected_of_itself(text in "[a-z/~]{0,8}", number in -1e9..1e9, flag: bool) {
            let value = json!({text.clone(): [number, {text: flag}], "n": null});
            proptest::prop_assert!(compare(&value, &value).is_empty());
            proptest::prop_assert!(exactly(&value, &value).is_empty());
        }
    }
}
