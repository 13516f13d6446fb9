//! What SDKs get to show of a survey.

use std::sync::Arc;

use nudge_platform::field_error::FieldError;
use nudge_platform::json::escaped;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use uuid::Uuid;

use super::flow::Flow;
use super::localization::Localization;
use super::{Content, Mode};

/// Members of what is handed to SDKs as it is: as many as an event has properties (contract 15).
const MOST_MEMBERS: usize = 256;
/// The longest name of a member, in characters: as that of a property (specification 8).
const MOST_KEY: usize = 120;
/// The bytes of what is handed to SDKs as it is: as many as those of an event (contract 15).
const MOST_BYTES: usize = 64 * 1024;

/// What an SDK gets to show: the survey without what decides whom it is for.
#[derive(Clone, Debug)]
pub struct Payload {
    /// As JSON: a tree of it would take many times as much, for as long as the survey runs.
    survey: Arc<RawValue>,
    localization: Option<Localization>,
    /// Whether an attempt comes with it.
    pub coordinated: bool,
    /// Where a button opens it: whether that goes once the survey is complete.
    pub feedback: Option<bool>,
    /// Whether it fires for people. One that they reach by a link or a button does not.
    pub fires: bool,
}

impl Payload {
    /// The payload of a version of a survey.
    pub fn new(id: Uuid, version: i64, content: &Content) -> Self {
        let flow = document(content.flow.as_ref());
        let mut survey = json!({"id": id, "version": version, "name": content.name, "flow": flow});
        for (key, part) in [("theme", &content.theme), ("settings", &content.settings)] {
            if let (Some(part), Some(survey)) = (part, survey.as_object_mut()) {
                survey.insert(key.to_owned(), part.clone());
            }
        }
        Self {
            survey: text(&survey),
            localization: content.localization.clone(),
            coordinated: content.is_coordinated(),
            feedback: content.is_feedback().then(|| content.is_once()),
            fires: content.mode != Mode::LinkOnly && !content.is_feedback(),
        }
    }

    /// Whether it depends on who looks at it.
    pub fn is_localized(&self) -> bool {
        self.localization.is_some()
    }

    /// The survey in a person's language, as far as there is text in it. Its `locale` is the one that most of its text
    /// is of.
    pub fn survey(&self, locale: Option<&str>) -> Arc<RawValue> {
        let Some(localization) = &self.localization else {
            return Arc::clone(&self.survey);
        };
        let mut survey: Value = serde_json::from_str(self.survey.get()).unwrap_or_default();
        let Some(flow) = survey.get_mut("flow") else {
            return Arc::clone(&self.survey);
        };
        let spoken = localization.apply(flow, locale);
        if let Some(survey) = survey.as_object_mut() {
            survey.insert("locale".to_owned(), Value::from(spoken));
        }
        text(&survey)
    }
}

/// A tree as text. Any has one; the null of one that had not would be shown as nothing.
fn text(tree: &Value) -> Arc<RawValue> {
    Arc::from(serde_json::value::to_raw_value(tree).unwrap_or_default())
}

/// Checks what is handed to SDKs as it is, under a key of the survey.
pub(crate) fn check(key: &str, part: &Value, errors: &mut Vec<FieldError>) {
    let place = format!("/{key}");
    let Some(members) = part.as_object() else {
        errors.push(FieldError::new(place, "invalid", "an object belongs here"));
        return;
    };
    if members.len() > MOST_MEMBERS {
        let detail = format!("has at most {MOST_MEMBERS} members");
        errors.push(FieldError::new(&place, "too_many", detail));
    }
    for name in members.keys() {
        if name.chars().count() > MOST_KEY {
            let pointer = format!("{place}/{}", escaped(name));
            let detail = format!("a member's name has at most {MOST_KEY} characters");
            errors.push(FieldError::new(pointer, "too_long", detail));
        }
    }
    if part.to_string().len() > MOST_BYTES {
        let detail = format!("has at most {MOST_BYTES} bytes as JSON");
        errors.push(FieldError::new(place, "too_large", detail));
    }
}

/// A flow as JSON.
pub(super) fn document(flow: Option<&Flow>) -> Value {
    flow.and_then(|flow| serde_json::to_value(flow).ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(part: &Value) -> Vec<(String, String)> {
        let mut errors = Vec::new();
        check("theme", part, &mut errors);
        let each = errors.into_iter().map(|error| (error.pointer, error.code));
        each.collect()
    }

    #[test]
    fn what_sdks_get_as_it_is_has_limits() {
        let members = |number: usize| -> Value {
            let each = (0..number).map(|number| (number.to_string(), json!(1)));
            Value::Object(each.collect())
        };
        let text = |bytes: usize| json!({"a": "x".repeat(bytes - r#"{"a":""}"#.len())});
        let key = |characters: usize| json!({"/".repeat(characters): {"b": [1]}});
        for good in [
            json!({}),
            members(MOST_MEMBERS),
            text(MOST_BYTES),
            key(MOST_KEY),
        ] {
            assert_eq!(wrong(&good), []);
        }
        let long = format!("/theme/{}", "~1".repeat(MOST_KEY + 1));
        for (part, pointer, code) in [
            (json!([]), "/theme", "invalid"),
            (json!("red"), "/theme", "invalid"),
            (json!(1), "/theme", "invalid"),
            (members(MOST_MEMBERS + 1), "/theme", "too_many"),
            (text(MOST_BYTES + 1), "/theme", "too_large"),
            (key(MOST_KEY + 1), &long, "too_long"),
        ] {
            assert_eq!(wrong(&part), [(pointer.to_owned(), code.to_owned())]);
        }
    }
}
