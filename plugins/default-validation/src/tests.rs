//! Definitions and events.
#![expect(clippy::needless_pass_by_value, reason = "`json!` makes values")]

use nudge_guest::serde_json::{Value, json};
use nudge_guest::testing::ValidationTest;

use crate::DefaultValidation;

type Definition = ValidationTest<DefaultValidation>;

/// A definition of one property.
fn one(property: Value) -> Definition {
    Definition::new(&json!({"properties": [property]})).unwrap()
}

fn codes(definition: &Definition, properties: Value) -> Vec<String> {
    definition
        .violations(&properties)
        .into_iter()
        .map(|violation| violation.code)
        .collect()
}

/// The codes and pointers of what is wrong with a configuration.
fn problems(config: Value) -> Vec<(String, String)> {
    let problems = Definition::new(&config).err().unwrap_or_default();
    problems
        .into_iter()
        .map(|problem| (problem.code, problem.pointer))
        .collect()
}

fn problem_of(property: Value) -> Vec<(String, String)> {
    problems(json!({"properties": [property]}))
}

#[test]
fn each_type_accepts_its_own_values_only() {
    let values = [
        json!("text"),
        json!(1.5),
        json!(true),
        json!("2026-01-31"),
        json!([1]),
        json!({"a": 1}),
    ];
    for (name, accepted) in [
        ("string", vec![0, 3]),
        ("number", vec![1]),
        ("boolean", vec![2]),
        ("date", vec![3]),
    ] {
        let definition = one(json!({"name": "p", "type": name}));
        for (index, value) in values.iter().enumerate() {
            let found = codes(&definition, json!({"p": value}));
            let expected: &[&str] = if accepted.contains(&index) {
                &[]
            } else {
                &["type_mismatch"]
            };
            assert_eq!(found, expected, "{name} {value}");
        }
    }
}

#[test]
fn a_required_property_must_be_there_and_not_null() {
    let definition = one(json!({"name": "p", "type": "string", "required": true}));
    assert_eq!(codes(&definition, json!({})), ["missing_required_property"]);
    assert_eq!(
        codes(&definition, json!({"p": null})),
        ["missing_required_property"]
    );
    assert!(codes(&definition, json!({"p": ""})).is_empty());
}

#[test]
fn an_optional_property_may_be_null() {
    let definition = one(json!({"name": "p", "type": "number"}));
    assert!(codes(&definition, json!({"p": null})).is_empty());
    assert!(codes(&definition, json!({})).is_empty());
}

#[test]
fn bounds_include_their_ends() {
    let number = one(json!({"name": "p", "type": "number", "minimum": 1, "maximum": 2}));
    for (value, expected) in [(0.9, 1), (1.0, 0), (2.0, 0), (2.1, 1)] {
        assert_eq!(
            codes(&number, json!({"p": value})).len(),
            expected,
            "{value}"
        );
    }
    let text = one(json!({"name": "p", "type": "string", "minLength": 2, "maxLength": 3}));
    for (value, expected) in [("é", 1), ("éé", 0), ("ééé", 0), ("éééé", 1)] {
        assert_eq!(codes(&text, json!({"p": value})).len(), expected, "{value}");
    }
}

#[test]
fn patterns_and_lists_are_checked() {
    let pattern = one(json!({"name": "p", "type": "string", "pattern": "^[A-Z]{3}$"}));
    assert!(codes(&pattern, json!({"p": "EUR"})).is_empty());
    assert_eq!(codes(&pattern, json!({"p": "euro"})), ["pattern_mismatch"]);

    let list = one(json!({"name": "p", "type": "enum", "enumValues": ["free", 2]}));
    assert!(codes(&list, json!({"p": "free"})).is_empty());
    assert!(codes(&list, json!({"p": 2})).is_empty());
    assert_eq!(codes(&list, json!({"p": "2"})), ["enum_mismatch"]);
}

#[test]
fn other_properties_are_rejected_where_asked() {
    let config =
        json!({"properties": [{"name": "p", "type": "string"}], "additionalProperties": "reject"});
    let found = Definition::new(&config)
        .unwrap()
        .violations(&json!({"p": "x", "q": 1}));
    assert_eq!(
        (found[0].code.as_str(), found[0].property.as_str()),
        ("additional_property", "q")
    );
    assert!(
        codes(
            &one(json!({"name": "p", "type": "string"})),
            json!({"q": 1})
        )
        .is_empty()
    );
}

#[test]
fn what_the_server_adds_is_rejected_nowhere() {
    let config =
        json!({"properties": [{"name": "p", "type": "string"}], "additionalProperties": "reject"});
    let definition = Definition::new(&config).unwrap();
    let named = json!({"p": "x", "$original_name": "Order Completed"});
    assert!(codes(&definition, named).is_empty());
    let other = json!({"$original_name": "Order Completed", "$original": 1});
    assert_eq!(codes(&definition, other), ["additional_property"]);
    // One that is declared is like any other.
    let declared = one(json!({"name": "$original_name", "type": "number"}));
    let named = json!({"$original_name": "Order Completed"});
    assert_eq!(codes(&declared, named), ["type_mismatch"]);
}

#[test]
fn a_violation_says_what_was_expected_and_found() {
    let definition = one(json!({"name": "total", "type": "number"}));
    let found = definition.violations(&json!({"total": "12"}));
    assert_eq!(
        (found[0].expected.as_str(), found[0].actual.as_str()),
        ("number", "string `12`")
    );
}

#[test]
fn mistakes_in_definitions_are_named_by_their_place() {
    for (property, code, pointer) in [
        (json!({"type": "string"}), "required", "/properties/0/name"),
        (
            json!({"name": "p", "type": "integer"}),
            "unknown_type",
            "/properties/0/type",
        ),
        (
            json!({"name": "p", "type": "enum"}),
            "required",
            "/properties/0/enumValues",
        ),
        (
            json!({"name": "p", "type": "enum", "enumValues": []}),
            "out_of_range",
            "/properties/0/enumValues",
        ),
        (
            json!({"name": "p", "type": "number", "minimum": 2, "maximum": 1}),
            "out_of_range",
            "/properties/0/minimum",
        ),
        (
            json!({"name": "p", "type": "string", "pattern": "("}),
            "invalid_pattern",
            "/properties/0/pattern",
        ),
        (
            json!({"name": "p", "type": "boolean", "minimum": 2}),
            "not_applicable",
            "/properties/0/minimum",
        ),
        (
            json!({"name": "p", "type": "string", "colour": 2}),
            "unknown_key",
            "/properties/0/colour",
        ),
        (json!("p"), "wrong_type", "/properties/0"),
    ] {
        assert_eq!(
            problem_of(property.clone()),
            [(code.to_owned(), pointer.to_owned())],
            "{property}"
        );
    }
}

#[test]
fn names_are_unique_and_limited() {
    let twice =
        json!({"properties": [{"name": "p", "type": "string"}, {"name": "p", "type": "number"}]});
    assert_eq!(
        problems(twice),
        [("duplicate_name".to_owned(), "/properties/1".to_owned())]
    );

    let many: Vec<Value> = (0..257)
        .map(|number| json!({"name": format!("p{number}"), "type": "string"}))
        .collect();
    assert_eq!(
        problems(json!({"properties": many})),
        [("out_of_range".to_owned(), "/properties".to_owned())]
    );
}

#[test]
fn names_with_dots_are_read_as_they_stand() {
    let definition = one(json!({"name": "cart.total", "type": "number", "required": true}));
    assert_eq!(definition.reads().properties, ["cart.total"]);
    assert!(codes(&definition, json!({"cart.total": 1})).is_empty());
}
