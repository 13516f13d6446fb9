//! Mistakes in triggers, named by their place.

use nudge_guest::serde_json::{Value, json};

use super::Campaign;

/// The codes and pointers of what is wrong with a configuration.
fn problems(config: &Value) -> Vec<(String, String)> {
    let problems = Campaign::new(config).err().unwrap_or_default();
    problems
        .into_iter()
        .map(|problem| (problem.code, problem.pointer))
        .collect()
}

#[test]
fn an_unknown_kind_is_told_all_kinds() {
    let problems = Campaign::new(&json!({"trigger": {"kind": "click"}})).err();
    let problem = &problems.unwrap_or_default()[0];
    assert_eq!(
        problem.message,
        "`click` is not one of event, screen_view, session_start, property_changed, schedule, manual, segment, plugin"
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn mistakes_are_named_by_their_place() {
    let event = |key: &str, value: Value| {
        let mut trigger = json!({"kind": "event", "eventName": "bought"});
        trigger[key] = value;
        json!({"trigger": trigger})
    };
    let leaf = |leaf: Value| event("filters", json!({"all": [leaf]}));
    for (config, code, pointer) in [
        (json!({"trigger": {}}), "required", "/trigger/kind"),
        (
            json!({"trigger": {"kind": "event"}}),
            "required",
            "/trigger/eventName",
        ),
        (
            json!({"trigger": {"kind": "click"}}),
            "unknown_kind",
            "/trigger/kind",
        ),
        (
            json!({"trigger": {"kind": "plugin", "plugin": "p"}}),
            "unsupported",
            "/trigger/kind",
        ),
        (
            json!({"trigger": {"kind": "session_start", "eventName": "x"}}),
            "unknown_key",
            "/trigger/eventName",
        ),
        (
            json!({"trigger": {"kind": "screen_view"}}),
            "required",
            "/trigger/screenName",
        ),
        (json!({"trigger": []}), "wrong_type", "/trigger"),
        (
            event("eventName", json!("*")),
            "invalid_name",
            "/trigger/eventName",
        ),
        (
            event("delaySeconds", json!(-1)),
            "out_of_range",
            "/trigger/delaySeconds",
        ),
        (
            event("delaySeconds", json!(7_776_001)),
            "out_of_range",
            "/trigger/delaySeconds",
        ),
        (
            event("occurrence", json!({"mode": "nth"})),
            "required",
            "/trigger/occurrence/n",
        ),
        (
            event("occurrence", json!({"mode": "nth", "n": 0})),
            "out_of_range",
            "/trigger/occurrence/n",
        ),
        (
            event("occurrence", json!({"mode": "twice"})),
            "unknown_mode",
            "/trigger/occurrence/mode",
        ),
        (
            event("occurrence", json!({"mode": "once", "n": 1})),
            "unknown_key",
            "/trigger/occurrence/n",
        ),
        (
            event("cancelOn", json!([{"filters": {}}])),
            "required",
            "/trigger/cancelOn/0/eventName",
        ),
        (event("colour", json!(1)), "unknown_key", "/trigger/colour"),
        (
            leaf(json!({"property": "a", "type": "number", "operator": "equals", "value": 1})),
            "unknown_operator",
            "/trigger/filters/all/0/operator",
        ),
        (
            leaf(json!({"property": "a", "type": "string", "operator": "matches", "value": "("})),
            "invalid_pattern",
            "/trigger/filters/all/0/value",
        ),
        (
            leaf(json!({"property": "a", "type": "number", "operator": "gt", "value": "1"})),
            "wrong_type",
            "/trigger/filters/all/0/value",
        ),
        (
            leaf(json!({"property": "a", "type": "number", "operator": "gt"})),
            "required",
            "/trigger/filters/all/0/value",
        ),
    ] {
        assert_eq!(
            problems(&config),
            [(code.to_owned(), pointer.to_owned())],
            "{config}"
        );
    }
}

#[test]
fn a_campaign_may_have_no_trigger() {
    for config in [
        json!({}),
        json!({"trigger": null, "audience": null}),
        json!({"audience": {}}),
    ] {
        let campaign = Campaign::new(&config).unwrap();
        assert_eq!(campaign.reads().event_names, ["$scheduled"]);
    }
}

#[test]
fn several_mistakes_are_reported_together() {
    let config = json!({"trigger": {"kind": "event", "delaySeconds": "1", "colour": 1}});
    assert_eq!(problems(&config).len(), 3);
}
