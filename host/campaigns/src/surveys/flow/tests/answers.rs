//! What each type of question takes, and what it does not.

use serde_json::json;

use super::{options, taken, typed};

#[test]
fn answers_that_questions_take_are_kept() {
    let several = json!({"options": options(), "allowOther": true});
    for (question, values) in [
        (typed("nps", json!({})), json!([0, 10])),
        (typed("rating", json!({"scale": 3})), json!([1, 3])),
        (typed("ces", json!({"scale": 7})), json!([1, 7])),
        (typed("thumbs", json!({})), json!(["up", "down"])),
        (
            typed("single_choice", several.clone()),
            json!([{"optionId": "a"}, {"other": "x"}]),
        ),
        (
            typed("multiple_choice", several),
            json!([{"optionIds": ["c", "a"]}, {"optionIds": ["a", "b", "c"], "other": "x"}, {"optionIds": [], "other": "x"}]),
        ),
        (
            typed("ranking", json!({"options": options()})),
            json!([{"optionIds": ["c", "a", "b"]}]),
        ),
        (
            typed("matrix", json!({"rows": options(), "columns": options()})),
            json!([{"a": "b", "b": "b", "c": "a"}]),
        ),
        (
            typed("short_text", json!({"minLength": 2, "maxLength": 3})),
            json!(["äö", "äöü"]),
        ),
        (
            typed("short_text", json!({"format": "email"})),
            json!(["ada@example.com", "ada.b+c@sub.example.org"]),
        ),
        (
            typed("short_text", json!({"format": "url"})),
            json!(["https://example.com/a?b", "http://example.com"]),
        ),
        (
            typed("short_text", json!({"format": "phone"})),
            json!(["+43 1 234-56", "(01) 23456"]),
        ),
        (
            typed("number", json!({"min": 0.1, "max": 1, "step": 0.1})),
            json!([0.1, 0.3, 0.7, 1]),
        ),
        (
            typed("number", json!({"step": 0.01})),
            json!([12_345.67, 1_000_000_000.01]),
        ),
        (
            typed("number", json!({"min": 1_000_000.1, "step": 0.1})),
            json!([1_000_000.3, 9_999_999.9]),
        ),
        (typed("number", json!({})), json!([-1.5, 1_000_000])),
        (
            typed("date", json!({"min": "2026-01-01", "max": "2026-12-31"})),
            json!(["2026-01-01", "2026-12-31"]),
        ),
        (typed("consent", json!({"label": "yes"})), json!([true])),
        (
            typed(
                "contact_info",
                json!({"fields": [{"id": "mail", "label": "M", "required": true}, {"id": "name", "label": "N"}]}),
            ),
            json!([{"mail": "x"}, {"mail": "x", "name": ""}]),
        ),
        (
            typed(
                "contact_info",
                json!({"fields": [{"id": "mail", "label": "M"}, {"id": "name", "label": "N"}]}),
            ),
            json!([{"name": "x"}, {"mail": " ", "name": "x"}]),
        ),
        (typed("statement", json!({})), json!([null])),
        (typed("link", json!({})), json!(["clicked"])),
    ] {
        for value in values.as_array().unwrap() {
            for required in [false, true] {
                assert_eq!(
                    taken(question.clone(), value.clone(), required),
                    Ok(value.clone()),
                    "{question}"
                );
            }
        }
        if question["type"] != "statement" {
            assert_eq!(
                taken(question.clone(), json!(null), false),
                Ok(json!(null)),
                "{question}"
            );
            let refused = Err((String::new(), "required"));
            assert_eq!(
                taken(question.clone(), json!(null), true),
                refused,
                "{question}"
            );
        }
    }
    assert_eq!(
        taken(typed("nps", json!({})), json!(9.0), true),
        Ok(json!(9))
    );
}

#[test]
fn answers_that_questions_do_not_take_are_refused() {
    let choice = json!({"options": options()});
    let bounded = json!({"options": options(), "minSelections": 2, "maxSelections": 2});
    let picture = json!({"options": [{"id": "a", "label": "A", "imageUrl": "https://a.b/c"}, {"id": "b", "label": "B", "imageUrl": "https://a.b/c"}]});
    let matrix = json!({"rows": options(), "columns": options()});
    let fields = json!({"fields": [{"id": "mail", "label": "M", "required": true}]});
    let optional = json!({"fields": [{"id": "mail", "label": "M"}, {"id": "name", "label": "N"}]});
    for (question, value, pointer, code) in [
        (typed("nps", json!({})), json!(11), "", "out_of_range"),
        (typed("nps", json!({})), json!(-1), "", "out_of_range"),
        (typed("nps", json!({})), json!(1.5), "", "invalid"),
        (typed("nps", json!({})), json!("9"), "", "invalid"),
        (
            typed("rating", json!({"scale": 3})),
            json!(0),
            "",
            "out_of_range",
        ),
        (
            typed("rating", json!({"scale": 3})),
            json!(4),
            "",
            "out_of_range",
        ),
        (typed("thumbs", json!({})), json!("sideways"), "", "invalid"),
        (
            typed("single_choice", choice.clone()),
            json!({"optionId": "z"}),
            "/optionId",
            "unknown_id",
        ),
        (
            typed("single_choice", choice.clone()),
            json!({"other": "x"}),
            "/other",
            "not_allowed",
        ),
        (
            typed("single_choice", choice.clone()),
            json!("a"),
            "",
            "invalid",
        ),
        (
            typed("single_choice", choice.clone()),
            json!({}),
            "",
            "invalid",
        ),
        (
            typed("multiple_choice", choice.clone()),
            json!({"optionIds": []}),
            "/optionIds",
            "out_of_range",
        ),
        (
            typed("multiple_choice", choice.clone()),
            json!({"optionIds": ["a", "a"]}),
            "/optionIds/1",
            "duplicate",
        ),
        (
            typed("multiple_choice", bounded.clone()),
            json!({"optionIds": ["a"]}),
            "/optionIds",
            "out_of_range",
        ),
        (
            typed("multiple_choice", bounded),
            json!({"optionIds": ["a", "b", "c"]}),
            "/optionIds",
            "out_of_range",
        ),
        (
            typed("picture_choice", picture),
            json!({"optionIds": ["a", "b"]}),
            "/optionIds",
            "out_of_range",
        ),
        (
            typed("ranking", choice.clone()),
            json!({"optionIds": ["a", "b"]}),
            "/optionIds",
            "incomplete",
        ),
        (
            typed("ranking", choice),
            json!({"optionIds": ["a", "b", "b"]}),
            "/optionIds/2",
            "duplicate",
        ),
        (
            typed("matrix", matrix.clone()),
            json!({"a": "b"}),
            "",
            "incomplete",
        ),
        (
            typed("matrix", matrix.clone()),
            json!({"a": "b", "b": "b", "c": "z"}),
            "/c",
            "unknown_id",
        ),
        (
            typed("matrix", matrix),
            json!({"z": "a"}),
            "/z",
            "unknown_id",
        ),
        (typed("short_text", json!({})), json!(""), "", "required"),
        (typed("short_text", json!({})), json!("   "), "", "required"),
        (
            typed("short_text", json!({"maxLength": 3})),
            json!("äöüß"),
            "",
            "out_of_range",
        ),
        (
            typed("short_text", json!({"minLength": 3})),
            json!("äö"),
            "",
            "out_of_range",
        ),
        (
            typed("short_text", json!({"format": "email"})),
            json!("ada@example"),
            "",
            "invalid_format",
        ),
        (
            typed("short_text", json!({"format": "email"})),
            json!("a b@example.com"),
            "",
            "invalid_format",
        ),
        (
            typed("short_text", json!({"format": "url"})),
            json!("example.com"),
            "",
            "invalid_format",
        ),
        (
            typed("short_text", json!({"format": "phone"})),
            json!("call me"),
            "",
            "invalid_format",
        ),
        (
            typed("number", json!({"min": 0, "max": 1})),
            json!(1.01),
            "",
            "out_of_range",
        ),
        (
            typed("number", json!({"min": 1, "step": 2})),
            json!(4),
            "",
            "invalid_step",
        ),
        (
            typed("number", json!({"step": 1})),
            json!(1_000_000_000.4),
            "",
            "invalid_step",
        ),
        (
            typed("number", json!({"step": 0.01})),
            json!(12_345.678),
            "",
            "invalid_step",
        ),
        (typed("number", json!({})), json!("4"), "", "invalid"),
        (typed("date", json!({})), json!("+2026-1-31"), "", "invalid"),
        (typed("date", json!({})), json!(" 2026-1-31"), "", "invalid"),
        (
            typed("short_text", json!({"format": "url"})),
            json!(" https://example.com"),
            "",
            "invalid_format",
        ),
        (
            typed("short_text", json!({"format": "url"})),
            json!("https:example.com"),
            "",
            "invalid_format",
        ),
        (typed("date", json!({})), json!("2026-02-29"), "", "invalid"),
        (typed("date", json!({})), json!("2026-2-1"), "", "invalid"),
        (
            typed("date", json!({"max": "2026-01-31"})),
            json!("2026-02-01"),
            "",
            "out_of_range",
        ),
        (
            typed("consent", json!({"label": "yes"})),
            json!(false),
            "",
            "invalid",
        ),
        (
            typed("contact_info", fields.clone()),
            json!({"mail": ""}),
            "/mail",
            "required",
        ),
        (
            typed("contact_info", fields.clone()),
            json!({"mail": 7}),
            "/mail",
            "invalid",
        ),
        (
            typed("contact_info", optional.clone()),
            json!({"mail": " ", "name": ""}),
            "",
            "required",
        ),
        (typed("contact_info", optional), json!({}), "", "required"),
        (
            typed("contact_info", fields),
            json!({"mail": "x", "fax": "y"}),
            "/fax",
            "unknown_id",
        ),
        (typed("statement", json!({})), json!("read"), "", "invalid"),
        (typed("link", json!({})), json!(true), "", "invalid"),
    ] {
        let refused = Err((pointer.to_owned(), code));
        assert_eq!(
            taken(question.clone(), value.clone(), true),
            refused,
            "{question}: {value}"
        );
    }
}
