//! What each operator compares, and conditions that are refused.

use serde_json::{Value, json};

use super::{errors, flow, options, question, typed};
use crate::surveys::flow::*;

/// Where the way ends of a flow with one question and two end screens, a branch to the second among them.
fn branches_off(question: &Value, condition: Value, answers: &Answers) -> bool {
    let flow = flow(json!({
        "questions": [question],
        "branches": [{"id": "x", "from": "q", "when": condition, "to": {"endScreenId": "yes"}}],
        "endScreens": [{"id": "no", "title": "No"}, {"id": "yes", "title": "Yes"}],
    }));
    assert!(check(&flow).is_empty(), "{condition}: {:?}", check(&flow));
    let walker = Walker::new(&flow);
    walker.way(answers).end == End::Screen("yes")
}

#[test]
fn every_operator_compares_what_it_suits() {
    let nps = typed("nps", json!({}));
    let single = typed(
        "single_choice",
        json!({"options": options(), "allowOther": true}),
    );
    let multiple = typed("multiple_choice", json!({"options": options()}));
    let ranking = typed("ranking", json!({"options": options()}));
    let matrix = typed("matrix", json!({"rows": options(), "columns": options()}));
    let text = typed("short_text", json!({}));
    let date = typed("date", json!({}));
    let cases = [
        (&nps, json!(9), "equals", json!(9), true),
        (&nps, json!(9), "equals", json!(9.0), true),
        (&nps, json!(9), "not_equals", json!(9), false),
        (&nps, json!(9), "one_of", json!([1, 9]), true),
        (&nps, json!(9), "gt", json!(9), false),
        (&nps, json!(9), "gte", json!(9), true),
        (&nps, json!(9), "lt", json!(9.5), true),
        (&nps, json!(9), "lte", json!(8), false),
        (&nps, json!(9), "between", json!([9, 10]), true),
        (&nps, json!(8), "between", json!([9, 10]), false),
        (&nps, json!(9), "nps_bucket", json!("promoter"), true),
        (&nps, json!(7), "nps_bucket", json!("passive"), true),
        (&nps, json!(6), "nps_bucket", json!("detractor"), true),
        (&nps, json!(8), "nps_bucket", json!("promoter"), false),
        (&nps, json!(0), "answered", json!(null), true),
        (&nps, json!(0), "skipped", json!(null), false),
        (
            &single,
            json!({"optionId": "a"}),
            "equals",
            json!("a"),
            true,
        ),
        (
            &single,
            json!({"optionId": "a"}),
            "equals",
            json!({"optionId": "a"}),
            true,
        ),
        (
            &single,
            json!({"optionId": "a"}),
            "one_of",
            json!(["b", "c"]),
            false,
        ),
        (&single, json!({"other": "a"}), "equals", json!("a"), false),
        (
            &single,
            json!({"other": "a"}),
            "not_equals",
            json!("a"),
            true,
        ),
        (
            &single,
            json!({"optionId": "a"}),
            "includes_any",
            json!(["a", "b"]),
            true,
        ),
        (
            &multiple,
            json!({"optionIds": ["b", "a"]}),
            "equals",
            json!(["a", "b"]),
            true,
        ),
        (
            &multiple,
            json!({"optionIds": ["a"]}),
            "equals",
            json!(["a", "b"]),
            false,
        ),
        (
            &multiple,
            json!({"optionIds": ["a"]}),
            "includes_any",
            json!(["a", "b"]),
            true,
        ),
        (
            &multiple,
            json!({"optionIds": ["a"]}),
            "includes_all",
            json!(["a", "b"]),
            false,
        ),
        (
            &multiple,
            json!({"optionIds": ["c", "b", "a"]}),
            "includes_all",
            json!(["a", "b"]),
            true,
        ),
        (
            &multiple,
            json!({"optionIds": ["c"]}),
            "includes_none",
            json!(["a", "b"]),
            true,
        ),
        (
            &multiple,
            json!({"optionIds": ["c", "b"]}),
            "includes_none",
            json!(["a", "b"]),
            false,
        ),
        (
            &ranking,
            json!({"optionIds": ["a", "b", "c"]}),
            "equals",
            json!(["a", "b", "c"]),
            true,
        ),
        (
            &ranking,
            json!({"optionIds": ["b", "a", "c"]}),
            "equals",
            json!(["a", "b", "c"]),
            false,
        ),
        (
            &matrix,
            json!({"a": "b", "b": "c"}),
            "includes_all",
            json!({"a": "b"}),
            true,
        ),
        (
            &matrix,
            json!({"a": "b", "b": "c"}),
            "equals",
            json!({"a": "b"}),
            false,
        ),
        (
            &matrix,
            json!({"a": "b"}),
            "includes_none",
            json!({"a": "a"}),
            true,
        ),
        (&text, json!("some words"), "contains", json!("me w"), true),
        (
            &text,
            json!("some words"),
            "starts_with",
            json!("some"),
            true,
        ),
        (
            &text,
            json!("some words"),
            "ends_with",
            json!("word"),
            false,
        ),
        (&text, json!("some"), "equals", json!("some"), true),
        (&date, json!("2026-01-31"), "lt", json!("2026-02-01"), true),
        (
            &date,
            json!("2026-01-31"),
            "between",
            json!(["2026-01-01", "2026-01-31"]),
            true,
        ),
    ];
    for (question, answer, operator, value, holds) in cases {
        let condition = json!({"questionId": "q", "operator": operator, "value": value});
        let answers = Answers::from([("q".to_owned(), answer.clone())]);
        assert_eq!(
            branches_off(question, condition.clone(), &answers),
            holds,
            "{answer}: {condition}"
        );
        // Nothing is known of what is not answered.
        for none in [
            Answers::new(),
            Answers::from([("q".to_owned(), json!(null))]),
        ] {
            let is_skipped = operator == "skipped";
            assert_eq!(
                branches_off(question, condition.clone(), &none),
                is_skipped,
                "{condition}"
            );
        }
        let nested = json!({"all": [{"any": [condition.clone(), {"questionId": "q", "operator": "skipped"}]}, condition]});
        assert_eq!(branches_off(question, nested, &answers), holds);
    }
}

#[test]
fn conditions_that_cannot_hold_are_refused() {
    let condition = |when: Value| {
        json!({
            "questions": [question("a"), typed("short_text", json!({})), typed("single_choice", json!({"id": "s", "options": options()}))],
            "branches": [{"id": "x", "from": "a", "when": when, "to": {"questionId": "q"}}],
        })
    };
    let leaf = |id: &str, operator: &str, value: Value| json!({"questionId": id, "operator": operator, "value": value});
    let deep = |depth: usize| {
        (0..depth).fold(
            leaf("a", "gt", json!(1)),
            |inner, _| json!({"all": [inner]}),
        )
    };
    assert_eq!(errors(condition(deep(condition::MOST_DEPTH - 1))), []);
    let many = |count: usize| json!({"any": vec![leaf("a", "gt", json!(1)); count]});
    assert_eq!(errors(condition(many(condition::MOST_LEAVES))), []);
    for (when, code, pointer) in [
        (
            deep(condition::MOST_DEPTH),
            "limit_exceeded",
            "/all/0/all/0/all/0/all",
        ),
        (many(condition::MOST_LEAVES + 1), "limit_exceeded", ""),
        (json!(7), "invalid", ""),
        (json!({}), "invalid", ""),
        (json!({"all": []}), "invalid", "/all"),
        (
            json!({"all": [leaf("a", "gt", json!(1))], "any": []}),
            "invalid",
            "/all",
        ),
        (
            leaf("z", "answered", json!(null)),
            "unknown_id",
            "/questionId",
        ),
        (leaf("a", "is", json!(1)), "unknown_operator", "/operator"),
        (
            leaf("a", "contains", json!("1")),
            "unsuitable_operator",
            "/operator",
        ),
        (
            leaf("q", "gt", json!("1")),
            "unsuitable_operator",
            "/operator",
        ),
        (
            leaf("q", "nps_bucket", json!("promoter")),
            "unsuitable_operator",
            "/operator",
        ),
        (leaf("a", "gt", json!("1")), "invalid", "/value"),
        (leaf("a", "between", json!([2, 1])), "invalid", "/value"),
        (leaf("a", "one_of", json!([])), "invalid", "/value"),
        (leaf("a", "nps_bucket", json!("hater")), "invalid", "/value"),
        (leaf("a", "answered", json!(1)), "invalid", "/value"),
        (leaf("s", "equals", json!("z")), "unknown_id", "/value"),
        (leaf("s", "includes_any", json!([])), "invalid", "/value"),
        (
            json!({"questionId": "a", "operator": "gt", "value": 1, "not": true}),
            "unknown_key",
            "/not",
        ),
    ] {
        let found = errors(condition(when.clone()));
        let expected = (code.to_owned(), format!("/flow/branches/0/when{pointer}"));
        assert_eq!(found, [expected], "{when}");
    }
}
