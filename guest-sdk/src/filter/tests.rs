//! Every operator, with every type of value.
#![expect(clippy::needless_pass_by_value, reason = "`json!` makes values")]

use serde_json::{Value, json};

use super::Filter;
use crate::cell::Cell;
use crate::config::{Node, Place, Problems};
use crate::instant::Instant;

/// Reads a filter, or says which codes and pointers are wrong with it.
fn read(filter: &Value) -> Result<Filter, Vec<(String, String)>> {
    let text = filter.to_string();
    let document = Node::parse(&text).unwrap();
    let mut problems = Problems::new();
    let filter = Filter::read(&Place::root(&document), &mut Vec::new(), &mut problems);
    match problems.unless_any(filter) {
        Ok(filter) => Ok(filter.unwrap()),
        Err(problems) => Err(problems
            .into_iter()
            .map(|problem| (problem.code, problem.pointer))
            .collect()),
    }
}

/// Whether a condition on one property holds for a value, on 2026-01-31.
fn holds(kind: &str, operator: &str, value: Value, cell: Cell<'_>) -> bool {
    let leaf = json!({"property": "p", "type": kind, "operator": operator, "value": value});
    let now = Instant::parse("2026-01-31").unwrap();
    read(&json!({"all": [leaf]}))
        .unwrap()
        .matches(&|| now, &|_| cell)
}

#[test]
fn operators_on_texts() {
    for (operator, value, expected) in [
        ("equals", json!("blue"), true),
        ("equals", json!("Blue"), false),
        ("not_equals", json!("red"), true),
        ("not_equals", json!("blue"), false),
        ("in", json!(["red", "blue"]), true),
        ("in", json!(["red"]), false),
        ("not_in", json!(["red"]), true),
        ("not_in", json!(["red", "blue"]), false),
        ("contains", json!("lu"), true),
        ("contains", json!("ul"), false),
        ("not_contains", json!("ul"), true),
        ("not_contains", json!("lu"), false),
        ("starts_with", json!("bl"), true),
        ("starts_with", json!("ue"), false),
        ("ends_with", json!("ue"), true),
        ("ends_with", json!("bl"), false),
        ("matches", json!("^b.*e$"), true),
        ("matches", json!("[0-9]"), false),
    ] {
        assert_eq!(
            holds("string", operator, value.clone(), Cell::Text("blue")),
            expected,
            "{operator} {value}"
        );
    }
}

#[test]
fn operators_on_numbers() {
    for (operator, value, expected) in [
        ("eq", json!(5), true),
        ("eq", json!(5.1), false),
        ("neq", json!(6), true),
        ("neq", json!(5), false),
        ("gt", json!(5), false),
        ("gt", json!(4), true),
        ("gte", json!(5), true),
        ("lt", json!(5), false),
        ("lt", json!(6), true),
        ("lte", json!(5), true),
        ("between", json!([5, 6]), true),
        ("between", json!([4, 5]), true),
        ("between", json!([6, 7]), false),
    ] {
        assert_eq!(
            holds("number", operator, value.clone(), Cell::Number(5.0)),
            expected,
            "{operator} {value}"
        );
    }
}

#[test]
fn operators_on_booleans_and_dates() {
    assert!(holds("boolean", "is", json!(false), Cell::Boolean(false)));
    assert!(!holds("boolean", "is", json!(true), Cell::Boolean(false)));

    let day = Cell::Text("2026-01-30");
    assert!(holds("date", "before", json!("2026-01-31"), day));
    assert!(!holds("date", "before", json!("2026-01-30"), day));
    assert!(holds("date", "after", json!("2026-01-29T23:59:59Z"), day));
    assert!(!holds("date", "after", json!("2026-01-30"), day));
    assert!(holds(
        "date",
        "within_last",
        json!({"amount": 24, "unit": "hours"}),
        day
    ));
    assert!(!holds(
        "date",
        "within_last",
        json!({"amount": 23, "unit": "hours"}),
        day
    ));
    assert!(!holds(
        "date",
        "within_last",
        json!({"amount": 1, "unit": "weeks"}),
        Cell::Text("2026-02-01")
    ));
}

#[test]
fn a_value_of_another_type_never_matches() {
    let values = [
        Cell::Text("x"),
        Cell::Number(1.0),
        Cell::Boolean(true),
        Cell::Json("[]"),
    ];
    for (index, cell) in values.into_iter().enumerate() {
        let expected = |own: usize| index == own;
        assert_eq!(
            holds("string", "not_equals", json!("y"), cell),
            expected(0),
            "{cell:?}"
        );
        assert_eq!(
            holds("number", "neq", json!(2), cell),
            expected(1),
            "{cell:?}"
        );
        assert_eq!(
            holds("boolean", "is", json!(true), cell),
            expected(2),
            "{cell:?}"
        );
        assert_eq!(
            holds("string", "is_set", json!(null), cell),
            expected(0),
            "{cell:?}"
        );
        assert!(
            !holds("date", "before", json!("2030-01-01"), cell),
            "{cell:?}"
        );
    }
}

#[test]
fn what_is_missing_matches_is_not_set_only() {
    for cell in [Cell::Missing, Cell::Null, Cell::Withheld] {
        assert!(holds("string", "is_not_set", json!(null), cell));
        assert!(!holds("string", "is_set", json!(null), cell));
        assert!(!holds("string", "not_equals", json!("x"), cell));
        assert!(!holds("string", "not_in", json!(["x"]), cell));
    }
    assert!(!holds(
        "string",
        "is_not_set",
        json!(null),
        Cell::Number(1.0)
    ));
}

#[test]
fn groups_combine() {
    let leaf = |value: &str| json!({"property": "p", "type": "string", "operator": "equals", "value": value});
    let matches = |filter: Value| {
        read(&filter)
            .unwrap()
            .matches(&Instant::default, &|_| Cell::Text("a"))
    };
    assert!(matches(json!({"any": [leaf("b"), leaf("a")]})));
    assert!(!matches(json!({"all": [leaf("b"), leaf("a")]})));
    assert!(matches(
        json!({"all": [leaf("a")], "any": [leaf("b"), leaf("a")]})
    ));
    assert!(!matches(json!({"all": [leaf("a")], "any": [leaf("b")]})));
    assert!(matches(
        json!({"all": [{"any": [leaf("b"), {"all": [leaf("a")]}]}]})
    ));
    assert!(matches(leaf("a")));
    assert!(matches(json!({})));
}

#[test]
fn depth_and_size_are_limited() {
    let leaf = json!({"property": "p", "type": "boolean", "operator": "is", "value": true});
    let nested = |depth: usize| (0..depth).fold(leaf.clone(), |inner, _| json!({"all": [inner]}));
    assert!(read(&nested(4)).is_ok());
    assert_eq!(
        read(&nested(5)).unwrap_err()[0],
        ("too_deep".to_owned(), "/all/0/all/0/all/0/all/0".to_owned())
    );

    let wide = |count: usize| json!({"all": [{"all": vec![leaf.clone(); count]}, leaf.clone()]});
    assert!(read(&wide(49)).is_ok());
    assert_eq!(
        read(&wide(50)).unwrap_err(),
        [("too_many".to_owned(), "/all/1".to_owned())]
    );
}

#[test]
fn what_a_leaf_met_is_told_beside_what_it_asks() {
    let long = "x".repeat(101);
    let cut = format!("p = \"{}…\"; equals \"x\"", "x".repeat(100));
    for (asks, cell, expected) in [
        (
            r#"["number", "gte", 50]"#,
            Cell::Number(49.5),
            "p = 49.5; gte 50",
        ),
        (
            r#"["number", "gte", 50]"#,
            Cell::Text("80"),
            "p = \"80\", a string; gte 50 wants a number",
        ),
        (
            r#"["number", "between", [1, 2]]"#,
            Cell::Json("[1]"),
            "p = [1], an array or object; between 1 and 2 wants a number",
        ),
        (
            r#"["string", "in", ["a", "b"]]"#,
            Cell::Missing,
            "p is missing; in \"a\", \"b\"",
        ),
        (
            r#"["string", "matches", "^a"]"#,
            Cell::Withheld,
            "p is withheld; matches \"^a\"",
        ),
        (
            r#"["string", "is_not_set", null]"#,
            Cell::Text("a\"b"),
            "p = \"a\\\"b\"; is_not_set",
        ),
        (
            r#"["boolean", "is", true]"#,
            Cell::Null,
            "p is null; is true",
        ),
        (
            r#"["date", "before", "2026-01-31"]"#,
            Cell::Text("soon"),
            "p = \"soon\", a string; before 2026-01-31T00:00:00.000Z wants a date",
        ),
        (
            r#"["date", "within_last", {"amount": 36, "unit": "hours"}]"#,
            Cell::Text("2026-01-30"),
            "p = \"2026-01-30\"; within_last 36 hours",
        ),
        (r#"["string", "equals", "x"]"#, Cell::Text(&long), &cut),
    ] {
        let asks: Value = serde_json::from_str(asks).unwrap();
        let leaf = json!({"property": "p", "type": asks[0], "operator": asks[1], "value": asks[2]});
        let filter = read(&leaf).unwrap();
        assert_eq!(filter.leaves()[0].describe("p", cell), expected);
    }
}
