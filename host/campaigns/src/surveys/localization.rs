//! A survey's text in other languages (contract 7): texts by paths of ids, `questions/q1/title`.

use std::collections::BTreeMap;

use nudge_platform::field_error::FieldError;
use nudge_platform::json::escaped;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// Languages a survey may have.
const MOST_LOCALES: usize = 100;
/// The longest text, in characters, as of a question's.
const MOST_TEXT: usize = 5_000;

/// Members of a flow that are read by people.
const TEXTS: [&str; 9] = [
    "title",
    "description",
    "label",
    "lowLabel",
    "highLabel",
    "placeholder",
    "body",
    "buttonLabel",
    "message",
];

/// A survey's text in other languages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Localization {
    /// The language of the flow itself.
    pub default_locale: String,
    /// Texts by locale and path.
    #[serde(default)]
    pub translations: BTreeMap<String, BTreeMap<String, String>>,
}

impl Localization {
    /// What is wrong with it, for a flow as JSON: locales that are none, paths that lead nowhere.
    pub fn check(&self, flow: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if !is_locale(&self.default_locale) {
            errors.push(no_locale("/localization/defaultLocale".to_owned()));
        }
        if self.translations.len() > MOST_LOCALES {
            let detail = format!("a survey has at most {MOST_LOCALES} languages");
            let pointer = "/localization/translations";
            errors.push(FieldError::new(pointer, "limit_exceeded", detail));
            return errors;
        }
        let mut flow = flow.clone();
        for (locale, texts) in &self.translations {
            let pointer = format!("/localization/translations/{}", escaped(locale));
            if !is_locale(locale) {
                errors.push(no_locale(pointer.clone()));
            }
            for (path, text) in texts {
                let pointer = format!("{pointer}/{}", escaped(path));
                if find(&mut flow, path).is_none() {
                    let detail = "no text of the flow has this path; it is made of ids, as in questions/q1/title";
                    errors.push(FieldError::new(pointer, "unknown_path", detail));
                } else if text.is_empty() || text.chars().count() > MOST_TEXT {
                    let detail = format!("a text of 1 to {MOST_TEXT} characters");
                    errors.push(FieldError::new(pointer, "invalid", detail));
                }
            }
        }
        errors
    }

    /// Puts a locale's texts into a flow as JSON. Each text is that of the locale itself, or of the nearest of its
    /// languages that has it (`zh-Hant-TW`, `zh-Hant`, `zh`), or of the default locale. Answers the locale that most
    /// texts are of, as it is written in the translations.
    pub fn apply(&self, flow: &mut Value, locale: Option<&str>) -> &str {
        let locales = locale.into_iter().flat_map(fallbacks);
        let locales = locales.chain(fallbacks(&self.default_locale));
        // The farthest first, so that nearer ones replace what it said.
        let mut chosen: Vec<String> = Vec::new();
        for locale in locales {
            if !chosen.contains(&locale) {
                chosen.push(locale);
            }
        }
        let mut spoken: BTreeMap<&str, &str> = BTreeMap::new();
        for locale in chosen.iter().rev() {
            let named = self.translations.iter();
            for (name, texts) in named.filter(|(name, _)| normal(name) == *locale) {
                for (path, text) in texts {
                    if let Some(place) = find(flow, path) {
                        *place = Value::from(text.as_str());
                        spoken.insert(path, name);
                    }
                }
            }
        }
        self.prevailing(&spoken, count(flow, ""))
    }

    /// The locale that most texts are of, given those that are translated and how many there are; of two with as many,
    /// the one that is not the default.
    fn prevailing<'t>(&'t self, spoken: &BTreeMap<&str, &'t str>, texts: usize) -> &'t str {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for locale in spoken.values() {
            *counts.entry(locale).or_default() += 1;
        }
        let untranslated = texts.saturating_sub(spoken.len());
        let mut prevailing = self.default_locale.as_str();
        let mut most = untranslated + counts.remove(prevailing).unwrap_or_default();
        for (locale, texts) in counts {
            if texts >= most {
                (prevailing, most) = (locale, texts);
            }
        }
        prevailing
    }
}

/// How many texts there are at a member of a flow, and below it.
fn count(place: &Value, name: &str) -> usize {
    match place {
        Value::Object(members) => members.iter().map(|(name, part)| count(part, name)).sum(),
        Value::Array(items) => items.iter().map(|item| count(item, "")).sum(),
        Value::String(_) => usize::from(TEXTS.contains(&name)),
        _ => 0,
    }
}

/// The text at a path of a flow: members by name, items of lists by id. A path that ends at an item with a label
/// is that of its label.
fn find<'v>(flow: &'v mut Value, path: &str) -> Option<&'v mut Value> {
    let mut place = flow;
    let mut name = "";
    for segment in path.split('/') {
        name = segment;
        place = match place {
            Value::Object(members) => members.get_mut(segment)?,
            Value::Array(items) => items
                .iter_mut()
                .find(|item| item.get("id").and_then(Value::as_str) == Some(segment))?,
            _ => return None,
        };
    }
    if place.is_object() {
        let is_item = path.split('/').count() == 4;
        name = "label";
        place = place.get_mut(name).filter(|_| is_item)?;
    }
    (place.is_string() && TEXTS.contains(&name)).then_some(place)
}

/// A locale, and its languages without region, script and so on.
fn fallbacks(locale: &str) -> Vec<String> {
    let mut locale = normal(locale);
    let mut all = vec![locale.clone()];
    while let Some(end) = locale.rfind('-') {
        locale.truncate(end);
        all.push(locale.clone());
    }
    all
}

/// Locales are compared without regard to case, and to which dash there is.
fn normal(locale: &str) -> String {
    locale.replace('_', "-").to_ascii_lowercase()
}

/// Whether a text has the shape of a locale (BCP 47), with either dash.
pub fn is_locale(text: &str) -> bool {
    let mut parts = text.split(['-', '_']);
    let language = parts.next().unwrap_or_default();
    let is_language = (2..=8).contains(&language.len())
        && language.bytes().all(|byte| byte.is_ascii_alphabetic());
    let part = |part: &str| {
        (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    text.len() <= 35 && is_language && parts.all(part)
}

fn no_locale(pointer: String) -> FieldError {
    FieldError::new(pointer, "invalid", "a locale, as in de or de-AT")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn flow() -> Value {
        json!({
            "questions": [
                {"id": "q1", "type": "nps", "title": "How?", "lowLabel": "bad"},
                {"id": "q2", "type": "single_choice", "title": "What?", "options": [{"id": "a", "label": "A"}]},
            ],
            "endScreens": [{"id": "e1", "title": "Thanks", "button": {"label": "Close", "action": "close"}}],
        })
    }

    fn localization(translations: &Value) -> Localization {
        serde_json::from_value(json!({"defaultLocale": "en", "translations": translations}))
            .unwrap()
    }

    fn shown(localization: &Localization, locale: Option<&str>, pointer: &str) -> Value {
        let mut flow = flow();
        localization.apply(&mut flow, locale);
        flow.pointer(pointer).unwrap().clone()
    }

    #[test]
    fn a_text_is_that_of_the_locale_its_language_or_the_default() {
        let localization = localization(&json!({
            "de": {"questions/q1/title": "Wie?", "questions/q1/lowLabel": "schlecht"},
            "de-AT": {"questions/q1/title": "Wia?"},
            "en": {"endScreens/e1/title": "Thank you"},
        }));
        let title = "/questions/0/title";
        for (locale, text) in [
            (Some("de-AT"), "Wia?"),
            (Some("de_at"), "Wia?"),
            (Some("de-CH"), "Wie?"),
            (Some("de"), "Wie?"),
            (Some("fr"), "How?"),
            (None, "How?"),
        ] {
            assert_eq!(shown(&localization, locale, title), text, "{locale:?}");
            assert_eq!(
                shown(&localization, locale, "/endScreens/0/title"),
                "Thank you"
            );
        }
        assert_eq!(
            shown(&localization, Some("de-AT"), "/questions/0/lowLabel"),
            "schlecht"
        );
        assert_eq!(
            shown(&localization, Some("fr"), "/questions/0/lowLabel"),
            "bad"
        );
    }

    #[test]
    fn the_locale_of_most_texts_is_named() {
        // The flow has six texts.
        let localization = localization(&json!({
            "de": {"questions/q1/title": "Wie?", "questions/q1/lowLabel": "schlecht", "questions/q2/title": "Was?", "endScreens/e1/title": "Danke"},
            "de-AT": {"questions/q1/title": "Wia?"},
            "fr": {"questions/q1/title": "Comment ?"},
            "ar": {"questions/q1/title": "كيف؟", "questions/q2/title": "ماذا؟", "questions/q2/options/a": "ألف"},
            "en-GB": {"questions/q1/title": "How so?"},
        }));
        for (locale, named) in [
            (Some("de-AT"), "de"),
            (Some("de_CH"), "de"),
            (Some("ar-EG"), "ar"),
            // One text of six is French.
            (Some("fr"), "en"),
            (Some("en-GB"), "en"),
            (Some("it"), "en"),
            (None, "en"),
        ] {
            assert_eq!(localization.apply(&mut flow(), locale), named, "{locale:?}");
        }
    }

    #[test]
    fn every_text_has_a_path_and_nothing_else_has() {
        for path in [
            "questions/q1/title",
            "questions/q1/lowLabel",
            "questions/q2/options/a/label",
            "questions/q2/options/a",
            "endScreens/e1/title",
            "endScreens/e1/button/label",
        ] {
            let localization = localization(&json!({"de": {path: "x"}}));
            assert_eq!(localization.check(&flow()), [], "{path}");
        }
        for path in [
            "",
            "questions",
            "questions/q1",
            "questions/q1/type",
            "questions/q1/id",
            "questions/q1/highLabel",
            "questions/q3/title",
            "questions/0/title",
            "questions/q2/options/b",
            "endScreens/e1/button",
            "endScreens/e1/button/action",
        ] {
            let localization = localization(&json!({"de": {path: "x"}}));
            let errors = localization.check(&flow());
            assert_eq!(errors.len(), 1, "{path}");
            let pointer = format!("/localization/translations/de/{}", escaped(path));
            assert_eq!(errors[0].pointer, pointer);
        }
    }

    #[test]
    fn locales_are_locales() {
        for (locale, fine) in [
            ("de", true),
            ("de-AT", true),
            ("zh-Hant-TW", true),
            ("de_AT", true),
            ("", false),
            ("d", false),
            ("de-", false),
            ("de AT", false),
            ("12", false),
        ] {
            let localization = localization(&json!({locale: {}}));
            assert_eq!(localization.check(&flow()).is_empty(), fine, "{locale}");
        }
    }
}
