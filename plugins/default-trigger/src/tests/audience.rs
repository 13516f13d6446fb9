//! Whom campaigns are for.

use std::time::Duration;

use nudge_guest::serde_json::{Value, json};

use super::Campaign;

/// A campaign that every `go` fires, for an audience.
fn campaign(audience: Value) -> Campaign {
    let trigger = json!({"kind": "event", "eventName": "go"});
    Campaign::new(&json!({"trigger": trigger, "audience": audience})).unwrap()
}

fn included(leaf: Value) -> Campaign {
    campaign(json!({"include": {"all": [leaf]}}))
}

fn goes(campaign: &mut Campaign, subject: &str) -> bool {
    campaign.send(subject, "go", json!({}))
}

#[test]
fn everybody_is_in_an_empty_audience() {
    for audience in [
        json!({}),
        json!({"include": {}}),
        json!({"exclude": {}, "samplePercent": 0}),
        json!({"include": {"all": []}, "exclude": {"any": []}}),
    ] {
        assert!(goes(&mut campaign(audience), "ana"));
    }
}

#[test]
fn saved_properties_are_asked_by_their_literal_keys() {
    let filter =
        json!({"property": "plan.tier", "type": "string", "operator": "in", "value": ["pro"]});
    let mut campaign = included(json!({"kind": "user_property", "filter": filter}));
    assert_eq!(campaign.reads().subject_properties, ["plan.tier"]);
    assert!(!goes(&mut campaign, "ana"));
    campaign.set_property("ana", "plan.tier", json!("pro"));
    assert!(goes(&mut campaign, "ana"));
    campaign.set_property("ana", "plan.tier", json!(1));
    assert!(!goes(&mut campaign, "ana"));
}

#[test]
fn a_filter_over_several_properties_sees_each() {
    let filter = json!({"any": [
        {"property": "age", "type": "number", "operator": "gte", "value": 18},
        {"property": "guardian", "type": "boolean", "operator": "is", "value": true},
    ]});
    let mut campaign = included(json!({"kind": "user_property", "filter": filter}));
    campaign.set_property("ana", "guardian", json!(true));
    campaign.set_property("bob", "age", json!(18));
    campaign.set_property("cy", "age", json!(17));
    assert!(goes(&mut campaign, "ana"));
    assert!(goes(&mut campaign, "bob"));
    assert!(!goes(&mut campaign, "cy"));
}

#[test]
fn events_are_counted_within_days() {
    for (operator, n, expected) in [
        ("eq", 2, [false, false, true, false]),
        ("neq", 2, [true, true, false, true]),
        ("gt", 2, [false, false, false, true]),
        ("gte", 2, [false, false, true, true]),
        ("lt", 2, [true, true, false, false]),
        ("lte", 2, [true, true, true, false]),
        ("gte", 0, [true, true, true, true]),
        ("lt", 0, [false, false, false, false]),
    ] {
        let leaf = json!({"kind": "event", "eventName": "bought", "withinDays": 1,
                          "count": {"operator": operator, "n": n}});
        let mut campaign = included(leaf);
        let mut seen = Vec::new();
        for _ in 0..4 {
            seen.push(goes(&mut campaign, "ana"));
            campaign.send("ana", "bought", json!({}));
        }
        assert_eq!(seen, expected, "{operator} {n}");
    }
}

#[test]
fn events_of_longer_ago_do_not_count() {
    let leaf = json!({"kind": "event", "eventName": "bought", "withinDays": 1});
    let mut campaign = included(leaf);
    campaign.send("ana", "bought", json!({}));
    campaign.advance(Duration::from_hours(24));
    assert!(goes(&mut campaign, "ana"));
    campaign.advance(Duration::from_secs(1));
    assert!(!goes(&mut campaign, "ana"));
}

#[test]
fn filters_look_as_far_back_as_they_have_to_and_say_where_that_is_not_enough() {
    let leaf = json!({
        "kind": "event", "eventName": "bought", "withinDays": 7, "count": {"operator": "lt", "n": 1},
        "filters": {"all": [{"property": "total", "type": "number", "operator": "gt", "value": 10}]},
    });
    for (others, known) in [(199, true), (200, true), (999, true), (1_000, false)] {
        let mut campaign = included(leaf.clone());
        let one = |total: u32| ("ana", "bought", json!({"total": total}));
        campaign.send_all([one(11)]);
        campaign.send_all((0..others).map(|_| one(1)));
        assert_eq!(goes(&mut campaign, "ana"), !known, "{others}");
        let explained = campaign.explanations();
        let says = explained.iter().any(|it| it.check == "history");
        assert_eq!(says, !known, "{others}");
    }
}

#[test]
fn filters_choose_the_events_that_count() {
    let leaf = json!({
        "kind": "event", "eventName": "bought", "withinDays": 7, "count": {"operator": "gte", "n": 2},
        "filters": {"all": [{"property": "cart.total", "type": "number", "operator": "gte", "value": 50}]},
    });
    let mut campaign = included(leaf);
    for total in [50, 49, 80] {
        assert!(!goes(&mut campaign, "ana"));
        campaign.send("ana", "bought", json!({"cart": {"total": total}}));
    }
    assert!(goes(&mut campaign, "ana"));
}

#[test]
fn platform_and_country_are_one_of_a_list() {
    let mut campaign = campaign(json!({"include": {"all": [
        {"kind": "platform", "in": ["ios", "android"]}, {"kind": "country", "in": ["AT"]},
    ]}}));
    campaign.set_fact("ana", "platform", json!("iOS"));
    assert!(!goes(&mut campaign, "ana"), "the country is not known");
    campaign.set_fact("ana", "country", json!("AT"));
    assert!(goes(&mut campaign, "ana"));
    campaign.set_fact("ana", "platform", json!("web"));
    assert!(!goes(&mut campaign, "ana"));
}

#[test]
fn a_language_covers_its_locales() {
    let mut campaign = included(json!({"kind": "locale", "in": ["de", "en-US"]}));
    for (locale, expected) in [
        ("de", true),
        ("de-AT", true),
        ("de_CH", true),
        ("en-us", true),
        ("en", false),
        ("en-GB", false),
        ("den", false),
    ] {
        campaign.set_fact("ana", "locale", json!(locale));
        assert_eq!(goes(&mut campaign, "ana"), expected, "{locale}");
    }
}

#[test]
fn app_versions_are_compared_by_their_numbers() {
    let mut campaign = included(json!({"kind": "app_version", "operator": "gte", "value": "2.10"}));
    for (version, expected) in [
        ("2.9.9", false),
        ("2.10.0", true),
        ("3", true),
        ("x", false),
    ] {
        campaign.set_fact("ana", "app_version", json!(version));
        assert_eq!(goes(&mut campaign, "ana"), expected, "{version}");
    }
}

#[test]
fn the_first_and_last_visit_are_instants() {
    let mut first =
        included(json!({"kind": "first_seen", "operator": "before", "value": "2025-06-01"}));
    first.set_fact("ana", "first_seen_at", json!("2025-05-31T23:59:59.999Z"));
    first.set_fact("bob", "first_seen_at", json!("2025-06-01T00:00:00.000Z"));
    assert!(goes(&mut first, "ana"));
    assert!(!goes(&mut first, "bob"));
    let span = json!({"amount": 2, "unit": "days"});
    let mut last = included(json!({"kind": "last_seen", "operator": "within_last", "value": span}));
    last.set_fact("ana", "last_seen_at", json!("2025-12-30T00:00:00.000Z"));
    last.set_fact("bob", "last_seen_at", json!("2025-12-29T23:59:59.999Z"));
    assert!(goes(&mut last, "ana"));
    assert!(!goes(&mut last, "bob"));
    assert!(!goes(&mut last, "nobody knows"));
}

#[test]
fn interactions_are_of_some_campaigns_or_any_and_within_days() {
    let done = json!({"s1": {"displayed": "2025-12-01T00:00:00.000Z", "completed": "2025-12-31T12:00:00.000Z"},
        "s3": {"started": "2025-12-31T12:00:00.000Z"}});
    let leaf = |more: Value| {
        let mut leaf = json!({"kind": "survey_interaction", "interaction": "completed"});
        for (key, value) in more.as_object().unwrap() {
            leaf[key] = value.clone();
        }
        leaf
    };
    for (more, expected) in [
        (json!({}), true),
        (json!({"surveyIds": ["S1", "s2"]}), true),
        (json!({"surveyIds": ["s2"]}), false),
        (json!({"interaction": "dismissed"}), false),
        (json!({"interaction": "started"}), true),
        (json!({"interaction": "answered"}), false),
        (json!({"interaction": "shown"}), true),
        (json!({"withinDays": 1}), true),
        (json!({"interaction": "displayed", "withinDays": 30}), false),
        (json!({"interaction": "displayed", "withinDays": 31}), true),
    ] {
        let mut campaign = included(leaf(more.clone()));
        campaign.set_fact("ana", "survey_interactions", done.clone());
        assert_eq!(goes(&mut campaign, "ana"), expected, "{more}");
        assert!(!goes(&mut campaign, "bob"));
    }
    let clicked =
        json!({"kind": "message_interaction", "campaignIds": ["c1"], "interaction": "clicked"});
    let mut campaign = included(clicked);
    campaign.set_fact(
        "ana",
        "message_interactions",
        json!({"c1": {"clicked": "2025-12-31T00:00:00.000Z"}}),
    );
    assert!(goes(&mut campaign, "ana"));
    assert!(!goes(&mut campaign, "bob"));
}

#[test]
fn whom_exclude_covers_is_out() {
    let ios = json!({"kind": "platform", "in": ["ios"]});
    let mut campaign =
        campaign(json!({"exclude": {"any": [ios, {"kind": "country", "in": ["AT"]}]}}));
    campaign.set_fact("ana", "platform", json!("ios"));
    campaign.set_fact("bob", "country", json!("DE"));
    assert!(!goes(&mut campaign, "ana"));
    assert!(goes(&mut campaign, "bob"));
    assert!(goes(&mut campaign, "nobody knows"));
}

#[test]
fn the_one_firing_is_kept_for_when_the_subject_is_in_the_audience() {
    let trigger = json!({"kind": "event", "eventName": "go", "occurrence": {"mode": "once"}});
    let audience = json!({"include": {"kind": "platform", "in": ["ios"]}});
    let mut campaign = Campaign::new(&json!({"trigger": trigger, "audience": audience})).unwrap();
    assert!(!goes(&mut campaign, "ana"));
    campaign.set_fact("ana", "platform", json!("ios"));
    assert!(goes(&mut campaign, "ana"));
    assert!(!goes(&mut campaign, "ana"));
}

#[test]
fn after_a_delay_the_audience_is_asked_again() {
    let trigger = json!({"kind": "event", "eventName": "go", "delaySeconds": 60});
    let bought = json!({"kind": "event", "eventName": "bought", "withinDays": 1});
    let mut campaign =
        Campaign::new(&json!({"trigger": trigger, "audience": {"exclude": bought}})).unwrap();
    goes(&mut campaign, "ana");
    goes(&mut campaign, "bob");
    campaign.send("ana", "bought", json!({}));
    let fired = campaign.advance(Duration::from_mins(1));
    let fired: Vec<&str> = fired.iter().map(|firing| firing.subject.as_str()).collect();
    assert_eq!(fired, ["bob"]);
}

#[test]
fn every_leaf_is_explained() {
    let mut campaign = campaign(json!({
        "include": {"any": [{"kind": "platform", "in": ["ios"]}, {"kind": "country", "in": ["AT"]}]},
        "exclude": {"kind": "event", "eventName": "bought", "withinDays": 1},
    }));
    campaign.set_fact("ana", "country", json!("AT"));
    assert!(goes(&mut campaign, "ana"));
    let explained: Vec<(String, bool, String)> = campaign
        .explanations()
        .into_iter()
        .filter(|explanation| explanation.check.starts_with("audience"))
        .map(|explanation| (explanation.check, explanation.passed, explanation.detail))
        .collect();
    let leaf = |passed: bool, detail: &str| ("audience_leaf".to_owned(), passed, detail.to_owned());
    assert_eq!(
        explained,
        [
            leaf(false, "include: platform in ios does not hold: not known"),
            leaf(true, "include: country in AT holds: it is AT"),
            leaf(true, "exclude: event bought gte 1 does not hold: counted 0"),
            (
                "audience".to_owned(),
                true,
                "the subject is in the audience".to_owned()
            ),
        ]
    );
}

#[test]
fn leaves_say_what_they_met() {
    let age = json!({"property": "age", "type": "number", "operator": "gte", "value": 18});
    let seen = json!({"kind": "survey_interaction", "interaction": "completed"});
    let mut campaign = campaign(json!({"include": {"all": [
        {"kind": "user_property", "filter": age}, seen,
        {"kind": "event", "eventName": "bought", "withinDays": 1, "count": {"operator": "lt", "n": 1}},
    ]}}));
    campaign.set_property("ana", "age", json!("20"));
    let done = json!({"s1": {"completed": "2025-12-01T00:00:00.000Z"}, "s2": {"completed": "2025-12-02T00:00:00.000Z"}});
    campaign.set_fact("ana", "survey_interactions", done);
    campaign.send("ana", "bought", json!({}));
    assert!(!goes(&mut campaign, "ana"));
    let explained = campaign.explanations().into_iter();
    let leaves = explained.filter(|explanation| explanation.check == "audience_leaf");
    let details: Vec<String> = leaves.map(|explanation| explanation.detail).collect();
    assert_eq!(
        details,
        [
            "include: user_property age gte does not hold: age = \"20\", a string; gte 18 wants a number",
            "include: survey_interaction completed holds: last at 2025-12-02T00:00:00.000Z",
            "include: event bought lt 1 does not hold: counted 1 or more",
        ]
    );
}

#[test]
fn who_is_not_in_the_audience_is_not_told_that_the_occurrence_failed() {
    for mode in ["once", "once_per_session"] {
        let trigger = json!({"kind": "event", "eventName": "go", "occurrence": {"mode": mode}});
        let audience = json!({"include": {"kind": "platform", "in": ["ios"]}});
        let parts = json!({"trigger": trigger, "audience": audience});
        let mut campaign = Campaign::new(&parts).unwrap();
        assert!(!goes(&mut campaign, "ana"));
        let explained = campaign.explanations();
        assert!(
            explained.iter().all(|it| it.check != "occurrence"),
            "{explained:?}"
        );
        assert!(
            explained
                .iter()
                .any(|it| it.check == "audience" && !it.passed)
        );
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn mistakes_are_named_by_their_place() {
    let leaf = |leaf: Value| json!({"include": {"all": [leaf]}});
    let many = |count: usize| {
        let leaves = vec![json!({"kind": "platform", "in": ["ios"]}); count];
        json!({"include": {"any": leaves}})
    };
    let two_groups = |first: usize, second: usize| {
        let mut audience = many(first);
        audience["exclude"] = many(second)["include"].clone();
        audience
    };
    let nested = |depth: usize| {
        let ios = json!({"kind": "platform", "in": ["ios"]});
        let tree = (0..depth).fold(ios, |inner, _| json!({"all": [inner]}));
        json!({"include": tree})
    };
    let event = |more: Value| {
        let mut event = json!({"kind": "event", "eventName": "x", "withinDays": 1});
        for (key, value) in more.as_object().unwrap() {
            event[key] = value.clone();
        }
        leaf(event)
    };
    let total = json!({"property": "t", "type": "number", "operator": "gt", "value": 1});
    for (audience, code, pointer) in [
        (
            json!({"samplePercent": 101}),
            "out_of_range",
            "/samplePercent",
        ),
        (json!({"who": {}}), "unknown_key", "/who"),
        (
            leaf(json!({"kind": "mood"})),
            "unknown_kind",
            "/include/all/0/kind",
        ),
        (
            json!({"include": {"kind": "platform"}}),
            "required",
            "/include/in",
        ),
        (
            event(json!({"withinDays": 91})),
            "out_of_range",
            "/include/all/0/withinDays",
        ),
        (
            event(json!({"withinDays": 0})),
            "out_of_range",
            "/include/all/0/withinDays",
        ),
        (
            event(json!({"count": {"operator": "between", "n": 1}})),
            "unknown_operator",
            "/include/all/0/count/operator",
        ),
        (
            event(json!({"count": {"operator": "eq", "n": 1000}})),
            "out_of_range",
            "/include/all/0/count/n",
        ),
        (
            event(json!({"filters": total, "count": {"operator": "eq", "n": 1_000}})),
            "out_of_range",
            "/include/all/0/count/n",
        ),
        (
            leaf(json!({"kind": "app_version", "operator": "eq", "value": "new"})),
            "invalid_version",
            "/include/all/0/value",
        ),
        (
            leaf(json!({"kind": "first_seen", "operator": "on", "value": "2026-01-01"})),
            "unknown_operator",
            "/include/all/0/operator",
        ),
        (
            leaf(json!({"kind": "survey_interaction", "interaction": "liked"})),
            "unknown_interaction",
            "/include/all/0/interaction",
        ),
        (many(51), "out_of_range", "/include/any"),
        (two_groups(26, 25), "too_many", "/exclude/any/24"),
        (nested(5), "too_deep", "/include/all/0/all/0/all/0/all/0"),
    ] {
        let problems = Campaign::new(&json!({"audience": audience}))
            .err()
            .unwrap_or_default();
        let problems: Vec<(&str, &str)> = problems
            .iter()
            .map(|problem| (problem.code.as_str(), problem.pointer.as_str()))
            .collect();
        let pointer = format!("/audience{pointer}");
        assert_eq!(problems, [(code, pointer.as_str())], "{audience}");
    }
    for audience in [
        many(50),
        two_groups(25, 25),
        nested(4),
        event(json!({"count": {"operator": "eq", "n": 999}})),
    ] {
        assert!(
            Campaign::new(&json!({"audience": audience})).is_ok(),
            "{audience}"
        );
    }
}

fn segment(id: &str, is_in: bool, audience: Value) -> Value {
    json!({"kind": "segment", "segmentId": id, "in": is_in, "audience": audience})
}

fn pro() -> Value {
    let filter =
        json!({"property": "plan", "type": "string", "operator": "equals", "value": "pro"});
    json!({"include": {"all": [{"kind": "user_property", "filter": filter}]}})
}

#[test]
fn segments_are_asked_by_their_conditions() {
    let mut members = included(segment("s1", true, pro()));
    let mut others = included(segment("s1", false, pro()));
    assert_eq!(members.reads().subject_properties, ["plan"]);
    assert!(!goes(&mut members, "ana") && goes(&mut others, "ana"));
    members.set_property("ana", "plan", json!("pro"));
    others.set_property("ana", "plan", json!("pro"));
    assert!(goes(&mut members, "ana") && !goes(&mut others, "ana"));
    let told = members.explanations();
    let told = told.iter().filter(|told| told.check == "audience_leaf");
    let details: Vec<&str> = told.map(|told| &*told.detail).collect();
    assert!(
        details.contains(&"include: segment with s1 holds: the subject is in the segment"),
        "{details:?}"
    );
}

#[test]
fn segments_nest_and_exclude() {
    let bought = json!({"kind": "event", "eventName": "bought", "withinDays": 30});
    let inner = json!({"include": {"any": [segment("pros", true, pro())]}, "exclude": bought});
    let mut campaign = included(segment("idle", true, inner));
    campaign.set_property("ana", "plan", json!("pro"));
    assert!(goes(&mut campaign, "ana"));
    campaign.send("ana", "bought", json!({}));
    assert!(!goes(&mut campaign, "ana"));
    assert_eq!(campaign.reads().history, ["bought"]);
}

#[test]
fn what_is_wrong_with_a_segment_is_named() {
    let deep = (0..5).fold(
        pro(),
        |audience, number| json!({"include": segment(&format!("s{number}"), true, audience)}),
    );
    let many: Vec<Value> = (0..26)
        .map(|_| json!({"kind": "platform", "in": ["ios"]}))
        .collect();
    let many = json!({"include": {"all": many}});
    for (audience, code) in [
        (deep, "too_deep"),
        (
            json!({"include": {"all": [segment("a", true, many.clone()), segment("b", true, many)]}}),
            "too_many",
        ),
        (
            json!({"include": {"kind": "segment", "segmentId": "a", "in": true}}),
            "required",
        ),
        (
            json!({"include": segment("a", true, json!({"samplePercent": 5}))}),
            "unknown_key",
        ),
    ] {
        let trigger = json!({"kind": "event", "eventName": "go"});
        let problems = Campaign::new(&json!({"trigger": trigger, "audience": audience}))
            .err()
            .unwrap_or_default();
        let codes: Vec<&str> = problems.iter().map(|problem| &*problem.code).collect();
        assert_eq!(codes, [code]);
    }
}

#[test]
fn what_a_segment_changes_fires_by_the_hosts_occasion() {
    let trigger = json!({"kind": "segment", "segmentId": "s1", "on": "enter", "cancelOn": [{"eventName": "left"}]});
    let campaign = Campaign::new(&json!({"trigger": trigger})).unwrap();
    assert_eq!(campaign.reads().event_names, ["$scheduled", "left"]);
    for (key, value) in [
        ("on", json!("stay")),
        ("segmentId", json!(1)),
        ("filters", json!({})),
    ] {
        let mut wrong = trigger.clone();
        wrong[key] = value;
        assert!(Campaign::new(&json!({"trigger": wrong})).is_err());
    }
}
