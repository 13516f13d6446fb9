//! What follows from what a plugin resolved.

use std::collections::HashMap;

use nudge_wasm::Value as Cell;
use nudge_wasm::personalization::Resolution;
use serde_json::Value;

use crate::push::personalization::{Kind, Missing, Spec};
use crate::push::template;
use crate::settings::Privacy;

/// What one binding stands for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resolved {
    /// The value, of the binding's type. None: see `issue`.
    pub value: Option<Value>,
    /// The value as it stands inside a text.
    pub text: String,
    /// Whether the fallback stands in.
    pub used_fallback: bool,
    /// Why the source gave nothing, empty if it gave something.
    pub issue: String,
    /// The same for people.
    pub detail: String,
    /// The event that the value comes from: its id and time, as the plugin says.
    pub event: (Option<String>, Option<String>),
}

/// What the bindings of a message stand for, for one recipient.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values(HashMap<String, Resolved>);

/// Whether there is a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is.
    Ready,
    /// A value is missing: it is not sent. With the reason.
    Skipped(&'static str),
    /// It can't be made. With the reason.
    Failed(&'static str),
}

impl template::Values for Values {
    fn text(&self, binding: &str) -> Option<&str> {
        self.0.get(binding).map(|resolved| resolved.text.as_str())
    }

    fn json(&self, binding: &str) -> Option<Value> {
        self.0.get(binding)?.value.clone()
    }
}

impl Values {
    /// What a plugin resolved for one recipient, as far as it is about bindings and of their types. What was not
    /// resolved is missing.
    pub fn new(spec: &Spec, privacy: &Privacy, resolutions: Vec<Resolution>) -> Self {
        let mut by_id: HashMap<String, Resolution> = resolutions
            .into_iter()
            .map(|resolution| (resolution.binding.clone(), resolution))
            .collect();
        let values = spec.bindings.iter().map(|binding| {
            let mut resolved = match by_id.remove(&binding.id) {
                Some(resolution) => Resolved::from(resolution),
                None => Resolved::default(),
            };
            if let Some(value) = &resolved.value
                && !binding.kind.fits(value)
            {
                resolved = Resolved {
                    issue: "type_mismatch".to_owned(),
                    detail: "the plugin gave a value of another type".to_owned(),
                    ..Resolved::default()
                };
            }
            if resolved.value.is_none() && resolved.issue.is_empty() {
                "missing".clone_into(&mut resolved.issue);
            }
            if resolved.issue == "missing" && is_withheld(privacy, &binding.source, &binding.key) {
                "filtered_by_privacy".clone_into(&mut resolved.issue);
                "withheld by the privacy policy".clone_into(&mut resolved.detail);
            }
            (binding.id.clone(), resolved)
        });
        Self(values.collect())
    }

    /// What a binding stands for.
    pub fn get(&self, binding: &str) -> Option<&Resolved> {
        self.0.get(binding)
    }

    /// Whether a message says the same with both.
    pub fn say_as(&self, other: &Self) -> bool {
        let says = |values: &Self, binding: &str| {
            let resolved = values.0.get(binding);
            resolved.map(|resolved| (resolved.value.clone(), resolved.text.clone()))
        };
        let mut bindings = self.0.keys().chain(other.0.keys());
        bindings.all(|binding| says(self, binding) == says(other, binding))
    }

    /// Whether there is a message: a value of another type is an error whatever `missingData` says.
    pub fn verdict(&self, spec: &Spec) -> Verdict {
        let unresolved = spec.bindings.iter().filter_map(|binding| {
            let resolved = self.0.get(&binding.id)?;
            resolved.value.is_none().then_some(resolved.issue.as_str())
        });
        let issues: Vec<&str> = unresolved.collect();
        if issues.contains(&"type_mismatch") {
            return Verdict::Failed("type_mismatch");
        }
        let reason = match issues.first() {
            None => return Verdict::Ready,
            Some(&"filtered_by_privacy") => "filtered_by_privacy",
            Some(_) => "missing_data",
        };
        match spec.missing {
            Missing::Skip => Verdict::Skipped(reason),
            Missing::Fail => Verdict::Failed(reason),
        }
    }
}

impl From<Resolution> for Resolved {
    fn from(resolution: Resolution) -> Self {
        let more = |wanted: &str| {
            let mut more = resolution.more.iter();
            more.find(|(name, _)| name == wanted)
                .map(|(_, value)| value.clone())
        };
        Self {
            event: (more("event_id"), more("timestamp")),
            value: resolution.value.and_then(json),
            text: resolution.text,
            used_fallback: resolution.used_fallback,
            issue: resolution.issue,
            detail: resolution.detail,
        }
    }
}

/// A value as JSON. Null is no value.
fn json(value: Cell) -> Option<Value> {
    Some(match value {
        Cell::Null | Cell::Withheld => return None,
        Cell::Boolean(value) => Value::Bool(value),
        Cell::Number(value) => number(value),
        Cell::Text(value) => Value::String(value),
        Cell::Json(text) => serde_json::from_str(&text).ok()?,
    })
}

/// A number; one that is whole is written so.
fn number(value: f64) -> Value {
    /// 2^63: whole numbers below it have 64 bits.
    const MOST: f64 = 9_223_372_036_854_775_808.0;
    if value.fract() == 0.0 && value.abs() < MOST {
        #[expect(clippy::cast_possible_truncation, reason = "it is whole and fits")]
        return Value::from(value as i64);
    }
    Value::from(value)
}

/// Whether the privacy policy keeps a property from messages: a denied key from wherever it comes, and a key of
/// the request's data that backends may not store (specification 4.4).
pub fn is_withheld(privacy: &Privacy, source: &Kind, key: &str) -> bool {
    let denied = |key: &str| privacy.deny_keys.iter().any(|denied| denied == key);
    match source {
        Kind::UserProperty => denied(key),
        Kind::SendData => {
            let allowed = privacy.allow_keys.as_ref();
            denied(key) || allowed.is_some_and(|allowed| !allowed.iter().any(|it| it == key))
        }
        Kind::TriggerEvent | Kind::LatestEvent { .. } | Kind::Other(_) => {
            denied(key) || key.split('.').next().is_some_and(denied)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(missing: &str) -> Spec {
        Spec::read(&json!({"version": 1, "missingData": missing,
            "sources": [{"id": "s", "kind": "send_data"}],
            "bindings": [{"id": "a", "sourceId": "s", "key": "a", "type": "number"},
                {"id": "b", "sourceId": "s", "key": "b", "type": "string"}]}))
        .unwrap()
    }

    fn resolution(binding: &str, value: Option<Cell>, issue: &str) -> Resolution {
        Resolution {
            item: 0,
            binding: binding.to_owned(),
            value,
            text: "text".to_owned(),
            used_fallback: false,
            issue: issue.to_owned(),
            detail: String::new(),
            more: Vec::new(),
        }
    }

    fn verdict(missing: &str, resolutions: Vec<Resolution>) -> Verdict {
        let spec = spec(missing);
        Values::new(&spec, &Privacy::default(), resolutions).verdict(&spec)
    }

    #[test]
    fn a_message_needs_every_binding() {
        let a = || resolution("a", Some(Cell::Number(1.0)), "");
        let b = || resolution("b", Some(Cell::Text("x".to_owned())), "");
        assert_eq!(verdict("skip", vec![a(), b()]), Verdict::Ready);
        assert_eq!(verdict("skip", vec![a()]), Verdict::Skipped("missing_data"));
        assert_eq!(verdict("fail", vec![a()]), Verdict::Failed("missing_data"));
        let null = resolution("b", Some(Cell::Null), "");
        assert_eq!(
            verdict("skip", vec![a(), null]),
            Verdict::Skipped("missing_data")
        );
        let other = resolution("b", None, "type_mismatch");
        assert_eq!(
            verdict("skip", vec![other]),
            Verdict::Failed("type_mismatch")
        );
        // A plugin of somebody's own may get types wrong.
        let wrong = resolution("b", Some(Cell::Number(1.0)), "");
        assert_eq!(
            verdict("skip", vec![a(), wrong]),
            Verdict::Failed("type_mismatch")
        );
    }

    #[test]
    fn whole_numbers_are_written_so() {
        assert_eq!(number(42.0).to_string(), "42");
        assert_eq!(number(-0.5).to_string(), "-0.5");
        assert_eq!(number(1e16).to_string(), "10000000000000000");
        assert!(number(1e300).is_f64());
    }

    #[test]
    fn what_the_policy_withholds_is_said_to_be() {
        let privacy = Privacy {
            allow_keys: Some(vec!["b".to_owned()]),
            deny_keys: vec!["c".to_owned()],
        };
        assert!(is_withheld(&privacy, &Kind::SendData, "a"));
        assert!(!is_withheld(&privacy, &Kind::SendData, "b"));
        assert!(!is_withheld(&privacy, &Kind::UserProperty, "a"));
        assert!(is_withheld(&privacy, &Kind::UserProperty, "c"));
        assert!(is_withheld(&privacy, &Kind::TriggerEvent, "c.d"));
        let spec = spec("skip");
        let values = Values::new(&spec, &privacy, Vec::new());
        assert_eq!(values.get("a").unwrap().issue, "filtered_by_privacy");
        assert_eq!(values.get("b").unwrap().issue, "missing");
    }
}
