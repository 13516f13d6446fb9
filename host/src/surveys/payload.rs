//! What SDKs get to show of a survey.

use serde_json::{Value, json};
use uuid::Uuid;

use super::Content;
use super::flow::Flow;
use super::localization::Localization;

/// What an SDK gets to show: the survey without what decides whom it is for.
#[derive(Clone, Debug)]
pub struct Payload {
    survey: Value,
    localization: Option<Localization>,
    /// Whether an attempt comes with it.
    pub coordinated: bool,
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
            survey,
            localization: content.localization.clone(),
            coordinated: content.is_coordinated(),
        }
    }

    /// Whether it depends on who looks at it.
    pub fn is_localized(&self) -> bool {
        self.localization.is_some()
    }

    /// The survey in a person's language, as far as there is text in it.
    pub fn survey(&self, locale: Option<&str>) -> Value {
        let mut survey = self.survey.clone();
        if let (Some(localization), Some(flow)) = (&self.localization, survey.get_mut("flow")) {
            localization.apply(flow, locale);
        }
        survey
    }
}

/// A flow as JSON.
pub(super) fn document(flow: Option<&Flow>) -> Value {
    flow.and_then(|flow| serde_json::to_value(flow).ok())
        .unwrap_or_default()
}
