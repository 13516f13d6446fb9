//! The worlds `validation` and `personalization`, with the default plugins for guests.

use nudge_wasm::{FactsUnavailable, Kind, PastEvent, Value, personalization, validation};
use uuid::Uuid;

use crate::support::{BINDINGS, NOW, engine};

#[test]
fn a_validation_plugin_reports_violations_by_item() {
    let (engine, _folder) = engine();
    let plugin = engine.load(nudge_plugins::DEFAULT_VALIDATION).unwrap();
    assert_eq!(plugin.kind(), Kind::Validation);
    let config = r#"{
        "properties": [{"name": "amount", "type": "number", "required": true}],
        "additionalProperties": "reject"
    }"#;
    let reads = plugin.check_config(config).unwrap().unwrap();

    let item = |properties: &str| validation::Item {
        timestamp: NOW,
        properties: properties.into(),
    };
    let definition = validation::Definition {
        config: config.into(),
        properties: reads.properties.into(),
        items: vec![0, 1, 2],
    };
    let batch = validation::Batch {
        now: NOW,
        items: vec![
            item(r#"{"amount":1}"#),
            item(r#"{"amount":1,"other":[1]}"#),
            item("{}"),
        ],
        definitions: vec![definition],
    };
    let outcome = plugin.validate(batch).unwrap();
    let found: Vec<_> = outcome
        .violations
        .iter()
        .map(|it| (it.item, &*it.code, &*it.property))
        .collect();
    assert_eq!(
        found,
        [
            (1, "additional_property", "other"),
            (2, "missing_required_property", "amount")
        ]
    );
}

#[test]
fn a_personalization_plugin_resolves_bindings() {
    let (engine, _folder) = engine();
    let plugin = engine.load(nudge_plugins::DEFAULT_PERSONALIZATION).unwrap();
    assert_eq!(plugin.kind(), Kind::Personalization);
    let reads = plugin.check_config(BINDINGS).unwrap().unwrap();

    let event = |properties: &str| PastEvent {
        id: Uuid::from_u128(3),
        timestamp: NOW - 1,
        properties: properties.into(),
    };
    let batch = personalization::Batch {
        now: NOW,
        seed: 1,
        items: vec![personalization::Item {
            recipient: Uuid::from_u128(1),
            data: r#"{"code":"X\"Y"}"#.into(),
            trigger: Some(event(r#"{"total":7}"#)),
        }],
        messages: vec![personalization::Message {
            config: BINDINGS.into(),
            properties: reads.properties.into(),
            subject_properties: reads.subject_properties.into(),
            items: vec![0],
        }],
    };
    let outcome = plugin
        .resolve(batch, Box::new(Known(event(r#"{"amount":2.5}"#))))
        .unwrap();
    let mut found: Vec<_> = outcome
        .resolutions
        .into_iter()
        .map(|it| (it.binding, it.value, it.issue))
        .collect();
    found.sort_by(|one, other| one.0.cmp(&other.0));
    let resolved = |binding: &str, value| (binding.to_owned(), Some(value), String::new());
    let expected = [
        resolved("code", Value::Text("X\"Y".to_owned())),
        resolved("last", Value::Number(2.5)),
        ("name".to_owned(), None, "filtered_by_privacy".to_owned()),
        resolved("total", Value::Number(7.0)),
    ];
    assert_eq!(found, expected);
}

/// Facts with one event of the past, and a name that the privacy policy withholds.
struct Known(PastEvent);

impl personalization::Facts for Known {
    fn subject_property(&mut self, _: u32, key: &str) -> Option<Value> {
        (key == "name").then_some(Value::Withheld)
    }

    fn subject_fact(&mut self, _: u32, _: &str) -> Option<Value> {
        None
    }

    fn recent_events(
        &mut self,
        _: u32,
        _: &str,
        _: Option<i64>,
        _: u32,
    ) -> Result<Vec<PastEvent>, FactsUnavailable> {
        Ok(vec![self.0.clone()])
    }
}
