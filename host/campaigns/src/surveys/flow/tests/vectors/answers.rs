//! What a form may make of what people type, and what this code says of it.

use serde_json::{Value, json};

use super::super::{options, typed};
use crate::surveys::flow::*;

/// Values that a form may make of what people type, and the code of the refusal.
pub(super) fn vectors() -> Vec<Value> {
    let long = "x".repeat(501);
    let cases = [
        (
            "short_text",
            json!({"format": "email"}),
            json!([
                "ada@example.com",
                "a.b+c@sub.example.org",
                "ü@müller.de",
                "ada",
                "ada@",
                "@b.c",
                "a b@c.de",
                "a@b",
                "a@b..c",
                "a@-b.c",
                "a@b-.c",
                "a@@b.c",
                "a@b.c "
            ]),
        ),
        (
            "short_text",
            json!({"format": "url"}),
            json!([
                "https://example.com/a?b",
                "http://example.com",
                "HTTPS://example.com",
                "example.com",
                "ftp://example.com",
                "https://",
                "https:example.com",
                "https://a b.c",
                "javascript:alert(1)"
            ]),
        ),
        (
            "short_text",
            json!({"format": "phone"}),
            json!([
                "+43 1 234-56",
                "(01) 23456",
                "1234",
                "1234567890123456",
                "12345a",
                "++4312345",
                "0123.456/7"
            ]),
        ),
        (
            "short_text",
            json!({"minLength": 2, "maxLength": 3}),
            json!(["ä", "äö", "äöü", "🧀🧀🧀", "🧀🧀🧀🧀", "  "]),
        ),
        (
            "short_text",
            json!({}),
            json!(["x".repeat(1_000), "x".repeat(1_001), " "]),
        ),
        (
            "long_text",
            json!({"validation": {"minLength": 2}}),
            json!(["x", "xy"]),
        ),
        (
            "number",
            json!({"min": 0.1, "max": 1, "step": 0.1}),
            json!([0.1, 0.3, 0.7, 1, 0.05, 0.15, 1.1, 0]),
        ),
        (
            "number",
            json!({"step": 0.01}),
            json!([12_345.67, 1_000_000_000.01, 0.005, -3.25]),
        ),
        (
            "number",
            json!({"min": 1_000_000.1, "step": 0.1}),
            json!([1_000_000.3, 9_999_999.9, 1_000_000.35]),
        ),
        ("number", json!({"validation": {"max": 5}}), json!([5, 6])),
        (
            "date",
            json!({"min": "2026-01-01", "max": "2026-12-31"}),
            json!([
                "2026-01-01",
                "2026-12-31",
                "2025-12-31",
                "2027-01-01",
                "2026-02-30",
                "26-01-01"
            ]),
        ),
        (
            "multiple_choice",
            json!({"options": options(), "allowOther": true, "minSelections": 2, "maxSelections": 2}),
            json!([{"optionIds": ["a"]}, {"optionIds": ["a", "b"]}, {"optionIds": ["a", "b", "c"]}, {"optionIds": ["a"], "other": "x"}, {"optionIds": ["a"], "other": " "}, {"optionIds": ["a"], "other": long}]),
        ),
        (
            "multiple_choice",
            json!({"options": options()}),
            json!([{"optionIds": ["a"]}, {"optionIds": ["a", "b", "c"]}]),
        ),
        (
            "single_choice",
            json!({"options": options(), "allowOther": true}),
            json!([{"optionId": "a"}, {"other": "x"}, {"other": ""}, {"other": long}]),
        ),
        (
            "ranking",
            json!({"options": options()}),
            json!([{"optionIds": ["c", "b", "a"]}]),
        ),
        (
            "matrix",
            json!({"rows": options(), "columns": options()}),
            json!([{"a": "a", "b": "a", "c": "a"}, {"a": "a"}]),
        ),
        (
            "contact_info",
            json!({"fields": [{"id": "m", "label": "M", "required": true}, {"id": "n", "label": "N"}]}),
            json!([{"m": "x"}, {"n": "x"}, {"m": " ", "n": "x"}, {"m": "x", "n": long}]),
        ),
        ("consent", json!({"label": "yes"}), json!([true])),
        ("link", json!({}), json!(["clicked"])),
        ("statement", json!({}), json!([])),
        ("nps", json!({}), json!([0, 10])),
        ("thumbs", json!({}), json!(["up", "down"])),
    ];
    let mut vectors = Vec::new();
    for (name, extra, values) in cases {
        for required in [false, true] {
            let mut question = typed(name, extra.clone());
            question["required"] = json!(required);
            let parsed: Question = serde_json::from_value(question.clone()).unwrap();
            let spec = parsed.spec().unwrap();
            for value in values.as_array().unwrap().iter().chain([&json!(null)]) {
                let refused = answer::check(&parsed, &spec, value).err();
                let code = refused.map(|refusal| refusal.code);
                vectors.push(json!({"question": question, "value": value, "refused": code}));
            }
        }
    }
    vectors
}
