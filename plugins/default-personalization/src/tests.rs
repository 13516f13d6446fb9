//! Messages and recipients.
#![expect(clippy::needless_pass_by_value, reason = "`json!` makes values")]

use nudge_guest::serde_json::{Value as Json, json};
use nudge_guest::testing::PersonalizationTest;
use nudge_guest::{Instant, Value};

use crate::DefaultPersonalization;

type Message = PersonalizationTest<DefaultPersonalization>;

fn config(source: Json, binding: Json) -> Json {
    json!({"version": 1, "missingData": "skip", "sources": [source], "bindings": [binding]})
}

fn message(source: Json, binding: Json) -> Message {
    Message::new(&config(source, binding)).unwrap()
}

fn user_property(binding: Json) -> Message {
    message(json!({"id": "s", "kind": "user_property"}), binding)
}

/// The codes and pointers of what is wrong with a configuration.
fn problems(config: &Json) -> Vec<(String, String)> {
    let problems = Message::new(config).err().unwrap_or_default();
    problems
        .into_iter()
        .map(|problem| (problem.code, problem.pointer))
        .collect()
}

#[test]
fn a_property_of_the_recipient_is_filled_in() {
    let mut message = user_property(
        json!({"id": "name", "sourceId": "s", "key": "first_name", "type": "string"}),
    );
    message.set_property("first_name", json!("Ana"));
    let resolved = message.resolve();
    assert_eq!(resolved["name"].value, Some(Value::Text("Ana".to_owned())));
    assert_eq!(
        (
            resolved["name"].text.as_str(),
            resolved["name"].issue.as_str()
        ),
        ("Ana", "")
    );
}

#[test]
fn a_fallback_stands_in_for_what_is_missing_null_or_withheld() {
    let binding =
        json!({"id": "n", "sourceId": "s", "key": "points", "type": "number", "fallback": 7});
    let mut message = user_property(binding);
    assert_eq!(
        (
            message.resolve()["n"].text.as_str(),
            message.resolve()["n"].issue.as_str()
        ),
        ("7", "missing")
    );
    message.set_property("points", json!(null));
    assert!(message.resolve()["n"].used_fallback);
    message.set_property("points", json!(12));
    assert!(!message.resolve()["n"].used_fallback);
    message.withhold_property("points");
    assert_eq!(message.resolve()["n"].issue, "filtered_by_privacy");
    assert_eq!(message.resolve()["n"].text, "7");
}

#[test]
fn a_value_of_another_type_is_an_error_whatever_the_fallback() {
    let binding =
        json!({"id": "n", "sourceId": "s", "key": "points", "type": "number", "fallback": 7});
    let mut message = user_property(binding);
    message.set_property("points", json!("12"));
    let resolved = message.resolve();
    assert_eq!(
        (resolved["n"].issue.as_str(), resolved["n"].value.clone()),
        ("type_mismatch", None)
    );
    assert_eq!(resolved["n"].detail, "expected number, found string");
}

#[test]
fn data_of_the_send_is_filled_in() {
    let source = json!({"id": "s", "kind": "send_data"});
    let mut message = message(
        source,
        json!({"id": "code", "sourceId": "s", "key": "code", "type": "string"}),
    );
    assert_eq!(message.resolve()["code"].issue, "missing");
    message.set_data(json!({"code": "X1"}));
    assert_eq!(message.resolve()["code"].text, "X1");
}

#[test]
fn the_event_that_caused_the_message_is_read() {
    let source = json!({"id": "s", "kind": "trigger_event"});
    let binding = json!({"id": "total", "sourceId": "s", "key": "cart.total", "type": "number",
        "format": {"style": "currency", "currency": "EUR", "locale": "de"}});
    let mut message = message(source, binding);
    assert_eq!(message.resolve()["total"].issue, "event_not_found");
    message.set_trigger_event(json!({"cart": {"total": 1234.5}}));
    let resolved = message.resolve();
    assert_eq!(resolved["total"].text, "1.234,50\u{a0}€");
    assert!(
        resolved["total"]
            .more
            .iter()
            .any(|(name, _)| name == "event_id")
    );
}

#[test]
fn the_latest_event_that_passes_is_read_once() {
    let config = json!({"version": 1, "sources": [{"id": "s", "kind": "latest_event", "eventName": "viewed",
            "lookbackDays": 30, "filters": {"all": [{"property": "price", "type": "number", "operator": "lt", "value": 10}]}}],
        "bindings": [{"id": "name", "sourceId": "s", "key": "name", "type": "string"},
            {"id": "price", "sourceId": "s", "key": "price", "type": "number"}]});
    let mut message = Message::new(&config).unwrap();
    let at = |text: &str| Instant::parse(text).unwrap();
    message.add_event(
        "viewed",
        at("2025-11-01"),
        json!({"name": "too old", "price": 1}),
    );
    assert_eq!(message.resolve()["name"].issue, "event_not_found");
    message.add_event(
        "viewed",
        at("2025-12-20"),
        json!({"name": "cup", "price": 5}),
    );
    message.add_event(
        "viewed",
        at("2025-12-30"),
        json!({"name": "sofa", "price": 500}),
    );
    let before = message.history_reads();
    let resolved = message.resolve();
    assert_eq!(
        (
            resolved["name"].text.as_str(),
            resolved["price"].text.as_str()
        ),
        ("cup", "5")
    );
    assert_eq!(
        resolved["name"].more[1],
        (
            "timestamp".to_owned(),
            "2025-12-20T00:00:00.000Z".to_owned()
        )
    );
    assert_eq!(message.history_reads(), before + 1);
}

#[test]
fn as_many_events_are_looked_at_as_the_host_gives() {
    let config = json!({"version": 1, "sources": [{"id": "s", "kind": "latest_event", "eventName": "viewed",
            "lookbackDays": 30, "filters": {"all": [{"property": "price", "type": "number", "operator": "lt", "value": 10}]}}],
        "bindings": [{"id": "name", "sourceId": "s", "key": "name", "type": "string"}]});
    let mut message = Message::new(&config).unwrap();
    let at = |text: &str| Instant::parse(text).unwrap();
    message.add_event(
        "viewed",
        at("2025-12-20"),
        json!({"name": "cup", "price": 5}),
    );
    for _ in 0..999 {
        let dear = json!({"name": "sofa", "price": 500});
        message.add_event("viewed", at("2025-12-30"), dear);
    }
    assert_eq!(message.resolve()["name"].text, "cup");
    message.add_event("viewed", at("2025-12-30"), json!({"price": 500}));
    assert_eq!(message.resolve()["name"].issue, "event_not_found");
}

#[test]
fn dates_keep_their_text_unless_a_format_is_given() {
    let plain = json!({"id": "d", "sourceId": "s", "key": "due", "type": "date"});
    let formatted = json!({"id": "d", "sourceId": "s", "key": "due", "type": "date",
        "format": {"style": "date", "locale": "en-GB", "timezone": "-01:00"}});
    for (binding, expected) in [(plain, "2026-01-31T00:30:00Z"), (formatted, "30/01/2026")] {
        let mut message = user_property(binding);
        message.set_property("due", json!("2026-01-31T00:30:00Z"));
        assert_eq!(message.resolve()["d"].text, expected);
        message.set_property("due", json!("soon"));
        assert_eq!(message.resolve()["d"].issue, "type_mismatch");
    }
}

#[test]
fn what_a_format_leaves_open_is_the_recipients() {
    let due = |format: Json| {
        let binding =
            json!({"id": "d", "sourceId": "s", "key": "due", "type": "date", "format": format});
        let mut message = user_property(binding);
        message.set_property("due", json!("2026-01-31T23:30:00Z"));
        message
    };
    let open = json!({"style": "datetime"});
    assert_eq!(due(open.clone()).resolve()["d"].text, "1/31/2026, 11:30 PM");
    for (format, locale, zone, expected) in [
        (&open, "de-DE", "Europe/Berlin", "01.02.2026, 00:30"),
        (
            &json!({"style": "datetime", "locale": "en"}),
            "de",
            "+01:00",
            "2/1/2026, 12:30 AM",
        ),
        (
            &json!({"style": "datetime", "timezone": "UTC"}),
            "de",
            "+01:00",
            "31.01.2026, 23:30",
        ),
        (&open, "nonsense", "Mars/Olympus", "1/31/2026, 11:30 PM"),
    ] {
        let mut message = due(format.clone());
        message.set_fact("locale", json!(locale));
        message.set_fact("timezone", json!(zone));
        assert_eq!(message.resolve()["d"].text, expected, "{format}");
    }
    let total = json!({"id": "t", "sourceId": "s", "key": "total", "type": "number", "fallback": 1234.5,
        "format": {"style": "decimal"}});
    let mut message = user_property(total);
    message.set_fact("locale", json!("de"));
    assert_eq!(message.resolve()["t"].text, "1.234,5", "fallbacks too");
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn mistakes_are_named_by_their_place() {
    let source = || json!({"id": "s", "kind": "user_property"});
    let binding = || json!({"id": "b", "sourceId": "s", "key": "k", "type": "number"});
    let with = |mut object: Json, key: &str, value: Json| {
        object[key] = value;
        object
    };
    let latest = |days: Json| json!({"id": "s", "kind": "latest_event", "eventName": "e", "lookbackDays": days});
    for (config, code, pointer) in [
        (
            with(config(source(), binding()), "version", json!(2)),
            "unknown_version",
            "/version",
        ),
        (
            with(config(source(), binding()), "missingData", json!("wait")),
            "unknown_value",
            "/missingData",
        ),
        (
            with(config(source(), binding()), "colour", json!(1)),
            "unknown_key",
            "/colour",
        ),
        (
            config(source(), with(binding(), "sourceId", json!("t"))),
            "unknown_source",
            "/bindings/0/sourceId",
        ),
        (
            config(source(), with(binding(), "fallback", json!("7"))),
            "wrong_type",
            "/bindings/0/fallback",
        ),
        (
            config(source(), with(binding(), "type", json!("money"))),
            "unknown_type",
            "/bindings/0/type",
        ),
        (
            config(source(), with(binding(), "id", json!("a b"))),
            "invalid_id",
            "/bindings/0/id",
        ),
        (
            config(
                latest(json!(0)),
                json!({"id": "b", "sourceId": "s", "key": "k", "type": "number"}),
            ),
            "out_of_range",
            "/sources/0/lookbackDays",
        ),
        (
            config(with(source(), "lookbackDays", json!(1)), binding()),
            "unknown_key",
            "/sources/0/lookbackDays",
        ),
        (
            config(
                source(),
                with(binding(), "format", json!({"style": "date"})),
            ),
            "not_applicable",
            "/bindings/0/format/style",
        ),
        (
            config(
                source(),
                with(binding(), "format", json!({"style": "currency"})),
            ),
            "required",
            "/bindings/0/format/currency",
        ),
        (
            config(
                source(),
                with(
                    binding(),
                    "format",
                    json!({"style": "decimal", "locale": "not-a-locale"}),
                ),
            ),
            "invalid_locale",
            "/bindings/0/format/locale",
        ),
    ] {
        assert_eq!(
            problems(&config).first(),
            Some(&(code.to_owned(), pointer.to_owned())),
            "{config}"
        );
    }
}

#[test]
fn identifiers_are_unique() {
    let twice = json!({"version": 1, "sources": [{"id": "s", "kind": "send_data"}, {"id": "s", "kind": "send_data"}],
        "bindings": [{"id": "b", "sourceId": "s", "key": "k", "type": "string"}, {"id": "b", "sourceId": "s", "key": "l", "type": "string"}]});
    let expected = [
        ("duplicate_id", "/sources/1/id"),
        ("duplicate_id", "/bindings/1/id"),
    ];
    assert_eq!(
        problems(&twice),
        expected.map(|(code, pointer)| (code.to_owned(), pointer.to_owned()))
    );
}
