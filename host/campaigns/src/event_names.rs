//! Names of events in what campaigns and segments say. It is checked when that is saved, and not when it runs: what was
//! saved before goes on with a name that no event has.

use nudge_platform::field_error::FieldError;
use nudge_platform::json::escaped;
use serde_json::Value;

/// The key of a name, in triggers, audiences and sources alike.
const KEY: &str = "eventName";

/// What is wrong with the names in a part of what is saved, wherever they stand in it. Pointers begin at `place`. No event's
/// name has a control character, and PostgreSQL can't be asked for a NUL.
pub(crate) fn check(value: &Value, place: &str, errors: &mut Vec<FieldError>) {
    match value {
        Value::Array(list) => {
            for (index, element) in list.iter().enumerate() {
                check(element, &format!("{place}/{index}"), errors);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                let place = format!("{place}/{}", escaped(key));
                match member {
                    Value::String(name) if key == KEY && name.contains(char::is_control) => {
                        let detail = "an event's name has no control characters";
                        errors.push(FieldError::new(place, "invalid_name", detail));
                    }
                    _ => check(member, &place, errors),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_name_that_no_event_has_is_found_wherever_it_stands() {
        let named = |name: &str| json!({"kind": "event", "eventName": name});
        let audience = json!({"include": {"all": [named("a"), {"any": [named("a\nb")]}]},
            "exclude": named("a\0b")});
        let mut errors = Vec::new();
        check(&audience, "/audience", &mut errors);
        let mut pointers: Vec<&str> = errors.iter().map(|error| &*error.pointer).collect();
        pointers.sort_unstable();
        assert_eq!(
            pointers,
            [
                "/audience/exclude/eventName",
                "/audience/include/all/1/any/0/eventName"
            ]
        );
    }
}
