//! Why campaigns fire or do not, for an event and a subject (contract 13, `explain`).

use serde_json::{Value, json};
use tests::session::{event_id, text};
use tests::{Session, TestApp, on_both_backends};
use uuid::Uuid;

use crate::guests;

on_both_backends!(
    what_fired_is_explained_by_the_plugin_that_decided,
    the_audience_is_explained_leaf_by_leaf_as_it_was,
    a_filter_that_fails_is_named,
    an_audience_that_fails_is_the_reason_and_says_what_it_met,
    a_sample_that_fails_is_the_reason,
    status_and_consent_are_those_of_the_event,
    what_waits_says_until_when,
    a_delay_is_explained_while_it_goes_on_and_when_it_is_over,
    what_was_decided_after_a_delay_is_explained_as_of_then,
    a_delay_that_was_cancelled_is_explained,
    paused_campaigns_and_other_events_are_explained,
    plugins_of_the_apps_own_are_named,
    push_campaigns_are_explained,
    what_no_event_triggers_is_explained,
    a_campaign_that_came_after_the_event_is_explained,
    nothing_is_known_of_unknown_things,
);

pub(crate) async fn explain(
    app: &TestApp,
    campaign: Uuid,
    session: &Session,
    event: &str,
) -> Value {
    let subject = &session.subject_id;
    let query = format!("/explain?campaignId={campaign}&subjectId={subject}&eventId={event}");
    app.get(&app.path(&query), &app.viewer()).await.ok()
}

/// Sends an event and answers its id.
pub(crate) async fn sends(
    app: &TestApp,
    session: &Session,
    name: &str,
    properties: Value,
) -> String {
    let event = app.event(session, name, &properties);
    app.ingest_and_ask(session, std::slice::from_ref(&event))
        .await;
    app.settle().await;
    event_id(&event)
}

/// Whether the checks of a name hold, in order.
pub(crate) fn checks(explained: &Value, check: &str) -> Vec<bool> {
    let steps = explained["steps"].as_array().unwrap().iter();
    let of_name = steps.filter(|step| step["check"] == check);
    of_name
        .map(|step| step["passed"].as_bool().unwrap())
        .collect()
}

pub(crate) fn details(explained: &Value, check: &str) -> Vec<String> {
    let steps = explained["steps"].as_array().unwrap().iter();
    let of_name = steps.filter(|step| step["check"] == check);
    of_name.map(|step| text(step, "detail")).collect()
}

pub(crate) fn trigger() -> Value {
    json!({"kind": "event", "eventName": "purchase"})
}

/// The explanation is found by each name of the person, who is named once and by the right kind of name.
async fn is_found_by_names(app: &TestApp, survey: Uuid, event: &str, explained: &Value) {
    let query = format!("/explain?campaignId={survey}&eventId={event}");
    for (who, status) in [
        ("&anonymousId=ada", 200),
        ("&anonymousId=eve", 404),
        ("&externalId=ada", 404),
    ] {
        let answer = app
            .get(&app.path(&format!("{query}{who}")), &app.viewer())
            .await;
        assert_eq!(answer.status, status, "{who}: {}", answer.text);
        if status == 200 {
            assert_eq!(answer.ok(), *explained);
        }
    }
    for who in ["", "&anonymousId=ada&externalId=ada"] {
        let answer = app
            .get(&app.path(&format!("{query}{who}")), &app.viewer())
            .await;
        answer.refused(422, "validation_failed");
        assert_eq!(answer.pointers(), ["/subjectId"]);
    }
    let answer = app.get(&app.path("/explain"), &app.viewer()).await;
    answer.refused(422, "validation_failed");
    assert_eq!(answer.pointers(), ["/campaignId", "/eventId"]);
}

async fn what_fired_is_explained_by_the_plugin_that_decided(app: &mut TestApp) {
    let survey = app.survey(&trigger()).await;
    let ada = app.session("ada").await;
    let event = sends(app, &ada, "purchase", json!({})).await;

    let explained = explain(app, survey, &ada, &event).await;
    is_found_by_names(app, survey, &event, &explained).await;
    assert_eq!(explained["outcome"], "fired");
    for check in [
        "event",
        "consent",
        "status",
        "trigger",
        "occurrence",
        "schedule",
        "caps",
    ] {
        assert_eq!(checks(&explained, check), [true], "{check}: {explained}");
    }
    let decided = &details(&explained, "trigger")[0];
    assert!(
        decided.contains("default-trigger 0.1.0, as it was decided"),
        "{decided}"
    );
}

async fn the_audience_is_explained_leaf_by_leaf_as_it_was(app: &mut TestApp) {
    let visits = json!({"kind": "event", "eventName": "visit", "withinDays": 7});
    let pro = json!({"property": "plan", "type": "string", "operator": "equals", "value": "pro"});
    let audience = json!({"include": {"all": [visits, {"kind": "user_property", "filter": pro}]}});
    let parts = json!({"trigger": trigger(), "audience": audience});
    let survey = app.survey_with(&parts).await;
    let ada = app.session("ada").await;
    let event = sends(app, &ada, "purchase", json!({})).await;
    // What changes afterwards is not what decided.
    sends(app, &ada, "visit", json!({})).await;
    let path = app.path(&format!("/surveys/{survey}"));
    app.patch(&path, &app.editor(), &json!({"audience": null}))
        .await
        .ok();

    let explained = explain(app, survey, &ada, &event).await;
    assert_eq!(explained["outcome"], "not_fired");
    assert_eq!(checks(&explained, "trigger"), [true]);
    assert_eq!(
        checks(&explained, "audience_leaf"),
        [false, false],
        "{explained}"
    );
    assert_eq!(checks(&explained, "audience"), [false]);

    let later = sends(app, &ada, "purchase", json!({})).await;
    let explained = explain(app, survey, &ada, &later).await;
    assert_eq!(explained["outcome"], "fired", "{explained}");
}

async fn a_filter_that_fails_is_named(app: &mut TestApp) {
    let total = json!({"property": "total", "type": "number", "operator": "gte", "value": 50});
    let mut filtered = trigger();
    filtered["filters"] = json!({"all": [total]});
    filtered["occurrence"] = json!({"mode": "once"});
    let survey = app.survey(&filtered).await;
    let ada = app.session("ada").await;
    let small = sends(app, &ada, "purchase", json!({"total": 49})).await;
    let large = sends(app, &ada, "purchase", json!({"total": 50})).await;
    let second = sends(app, &ada, "purchase", json!({"total": 51})).await;

    let explained = explain(app, survey, &ada, &small).await;
    assert_eq!(
        (&explained["outcome"], checks(&explained, "filter")),
        (&json!("not_fired"), vec![false])
    );
    assert_eq!(details(&explained, "filter"), ["total = 49; gte 50"]);
    let text = sends(app, &ada, "purchase", json!({"total": "80"})).await;
    let explained = explain(app, survey, &ada, &text).await;
    assert_eq!(
        details(&explained, "filter"),
        ["total = \"80\", a string; gte 50 wants a number"]
    );
    assert_eq!(explain(app, survey, &ada, &large).await["outcome"], "fired");
    let explained = explain(app, survey, &ada, &second).await;
    assert_eq!(
        (&explained["outcome"], checks(&explained, "occurrence")),
        (&json!("not_fired"), vec![false])
    );
    assert!(
        details(&explained, "occurrence")[0].starts_with("once"),
        "in the contract's words: {explained}"
    );
}

async fn an_audience_that_fails_is_the_reason_and_says_what_it_met(app: &mut TestApp) {
    let pro = json!({"property": "plan", "type": "string", "operator": "equals", "value": "pro"});
    let visits = json!({"kind": "event", "eventName": "visit", "withinDays": 7, "count": {"operator": "gte", "n": 3}});
    let audience = json!({"include": {"all": [visits, {"kind": "user_property", "filter": pro}]}});
    let mut once = trigger();
    once["occurrence"] = json!({"mode": "once"});
    let parts = json!({"trigger": once, "audience": audience});
    let survey = app.survey_with(&parts).await;
    let ada = app.session("ada").await;
    sends(app, &ada, "visit", json!({})).await;
    let body = json!({"anonymousId": "ada", "mutationId": app.id(), "set": {"plan": "free"}});
    app.post("/v1/sdk/user-properties", &ada.credential(), &body)
        .await
        .ok();
    app.settle().await;
    let event = sends(app, &ada, "purchase", json!({})).await;

    let explained = explain(app, survey, &ada, &event).await;
    assert_eq!(explained["outcome"], "not_fired");
    assert_eq!(checks(&explained, "audience"), [false]);
    assert!(checks(&explained, "occurrence").is_empty(), "{explained}");
    assert_eq!(
        details(&explained, "audience_leaf"),
        [
            "include: event visit gte 3 does not hold: counted 1",
            "include: user_property plan equals does not hold: plan = \"free\"; equals \"pro\"",
        ]
    );
}

async fn a_sample_that_fails_is_the_reason(app: &mut TestApp) {
    let mut once = trigger();
    once["occurrence"] = json!({"mode": "once"});
    let parts = json!({"trigger": once, "audience": {"samplePercent": 0}});
    let survey = app.survey_with(&parts).await;
    let ada = app.session("ada").await;
    // Of one request the plugin has the first fire; that it did not is the host's.
    let events = [(); 2].map(|()| app.event(&ada, "purchase", &json!({})));
    app.ingest_and_ask(&ada, &events).await;
    app.settle().await;
    let later = sends(app, &ada, "purchase", json!({})).await;

    for event in [event_id(&events[0]), event_id(&events[1]), later] {
        let explained = explain(app, survey, &ada, &event).await;
        assert_eq!(explained["outcome"], "not_fired", "{explained}");
        assert_eq!(checks(&explained, "trigger"), [true]);
        assert!(!checks(&explained, "occurrence").contains(&false));
        assert_eq!(checks(&explained, "sample"), [false]);
        assert_eq!(
            details(&explained, "sample"),
            ["the subject is not in the campaign's sample of 0 %"]
        );
    }
}

async fn status_and_consent_are_those_of_the_event(app: &mut TestApp) {
    let survey = app.survey(&trigger()).await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    let say = async |session: &Session, messaging: bool| {
        let body = json!({"anonymousId": session.anonymous_id, "messaging": messaging});
        app.post("/v1/sdk/consent", &session.credential(), &body)
            .await
            .ok();
    };
    let set = async |status: &str| {
        // Changes and events are told apart by their times.
        app.advance(1);
        let path = app.path(&format!("/surveys/{survey}"));
        let change = json!({"status": status});
        app.patch(&path, &app.editor(), &change).await.ok();
        app.advance(1);
    };
    say(&bob, false).await;
    let fired = sends(app, &ada, "purchase", json!({})).await;
    let refused = [
        sends(app, &bob, "purchase", json!({})).await,
        sends(app, &bob, "purchase", json!({})).await,
    ];
    set("paused").await;
    let rested = sends(app, &ada, "purchase", json!({})).await;
    say(&ada, false).await;
    say(&bob, true).await;

    let stands = async |session: &Session, event: &str| {
        let explained = explain(app, survey, session, event).await;
        let check = |name: &str| checks(&explained, name)[0];
        (
            text(&explained, "outcome"),
            check("status"),
            check("consent"),
        )
    };
    let expected =
        |outcome: &str, status: bool, consent: bool| (outcome.to_owned(), status, consent);
    assert_eq!(stands(&ada, &fired).await, expected("fired", true, true));
    for event in &refused {
        // The day's first is noted with its event, others follow from the decision.
        assert_eq!(
            stands(&bob, event).await,
            expected("suppressed", true, false)
        );
    }
    set("active").await;
    let explained = explain(app, survey, &ada, &rested).await;
    assert_eq!(explained["outcome"], "not_fired", "{explained}");
    assert_eq!(checks(&explained, "status"), [false], "{explained}");
    assert!(details(&explained, "status")[0].contains("was paused, in version 2"));
    assert!(details(&explained, "consent")[0].ends_with("as of now"));
}

async fn what_waits_says_until_when(app: &mut TestApp) {
    let quiet = app.an_hour_of_quiet("defer");
    let schedule = json!({"timezone": "UTC", "quietHours": quiet});
    let deferred = app
        .survey_with(&json!({"trigger": trigger(), "schedule": schedule}))
        .await;
    let mut late = trigger();
    late["delaySeconds"] = json!(600);
    let delayed = app.survey(&late).await;
    let ada = app.session("ada").await;
    let event = sends(app, &ada, "purchase", json!({})).await;

    let explained = explain(app, deferred, &ada, &event).await;
    assert_eq!(explained["outcome"], "deferred", "{explained}");
    assert!(checks(&explained, "schedule").contains(&false));
    let explained = explain(app, delayed, &ada, &event).await;
    assert_eq!(explained["outcome"], "waiting", "{explained}");
    app.advance(2 * 3_600);
    for survey in [deferred, delayed] {
        app.until("it fires", async || {
            explain(app, survey, &ada, &event).await["outcome"] == "fired"
        })
        .await;
    }
}

/// A survey after ten minutes, for whoever has visited, and an event for it.
pub(crate) async fn delayed(app: &TestApp, session: &Session, more: Value) -> (Uuid, String) {
    let mut late = trigger();
    late["delaySeconds"] = json!(600);
    late["cancelOn"] = json!([{"eventName": "refunded"}]);
    let visits = json!({"kind": "event", "eventName": "visit", "withinDays": 7});
    let mut parts = json!({"trigger": late, "audience": {"include": {"all": [visits]}}});
    let parts_map = parts.as_object_mut().unwrap();
    parts_map.extend(more.as_object().unwrap().clone());
    let survey = app.survey_with(&parts).await;
    let event = sends(app, session, "purchase", json!({})).await;
    (survey, event)
}

/// What is explained once the delay is over.
pub(crate) async fn after_the_delay(
    app: &TestApp,
    survey: Uuid,
    session: &Session,
    event: &str,
) -> Value {
    app.advance(601);
    app.until("the timer is done", async || app.count("timers").await == 0)
        .await;
    app.settle().await;
    explain(app, survey, session, event).await
}

async fn a_delay_is_explained_while_it_goes_on_and_when_it_is_over(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let (survey, event) = delayed(app, &ada, json!({})).await;
    let explained = explain(app, survey, &ada, &event).await;
    assert_eq!(explained["outcome"], "waiting", "{explained}");
    assert_eq!(checks(&explained, "delay"), [false]);
    let until = app.time(600)[..16].to_owned();
    let said = &details(&explained, "delay")[0];
    assert!(said.contains(&format!("waits until {until}")), "{said}");
    let last = |explained: &Value, check: &str| *checks(explained, check).last().unwrap();
    assert!(!last(&explained, "audience"), "as of now: {explained}");

    sends(app, &ada, "visit", json!({})).await;
    let explained = explain(app, survey, &ada, &event).await;
    assert!(last(&explained, "audience"), "as of now: {explained}");
    assert!(
        details(&explained, "trigger")
            .last()
            .unwrap()
            .ends_with("fires, as of now")
    );

    let explained = after_the_delay(app, survey, &ada, &event).await;
    assert_eq!(explained["outcome"], "fired", "{explained}");
    assert_eq!(checks(&explained, "delay"), [true]);
    assert!(last(&explained, "audience"), "{explained}");
    let said = details(&explained, "trigger").pop().unwrap();
    assert!(said.ends_with("fires, as it was decided"), "{said}");
}

async fn what_was_decided_after_a_delay_is_explained_as_of_then(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let (survey, event) = delayed(app, &ada, json!({})).await;
    after_the_delay(app, survey, &ada, &event).await;
    // What changes afterwards is not what decided.
    sends(app, &ada, "visit", json!({})).await;
    let explained = explain(app, survey, &ada, &event).await;
    assert_eq!(explained["outcome"], "not_fired", "{explained}");
    assert_eq!(checks(&explained, "delay"), [true]);
    assert!(
        !checks(&explained, "audience").last().unwrap(),
        "{explained}"
    );
}

async fn a_delay_that_was_cancelled_is_explained(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let (survey, event) = delayed(app, &ada, json!({"audience": null})).await;
    sends(app, &ada, "refunded", json!({})).await;
    let explained = explain(app, survey, &ada, &event).await;
    assert_eq!(explained["outcome"], "not_fired", "{explained}");
    assert_eq!(checks(&explained, "delay"), [false]);
    assert!(
        details(&explained, "delay")[0].contains("cancelled"),
        "{explained}"
    );
}

async fn paused_campaigns_and_other_events_are_explained(app: &mut TestApp) {
    let survey = app.survey(&trigger()).await;
    let path = app.path(&format!("/surveys/{survey}"));
    app.patch(&path, &app.editor(), &json!({"status": "paused"}))
        .await
        .ok();
    let ada = app.session("ada").await;
    let event = sends(app, &ada, "purchase", json!({})).await;
    let explained = explain(app, survey, &ada, &event).await;
    assert_eq!(explained["outcome"], "not_fired");
    assert_eq!(checks(&explained, "status"), [false]);
    assert_eq!(
        checks(&explained, "trigger"),
        [true],
        "but for that it would"
    );
    let other = sends(app, &ada, "visit", json!({})).await;
    let explained = explain(app, survey, &ada, &other).await;
    assert_eq!(checks(&explained, "trigger"), [false]);
    assert!(details(&explained, "trigger")[0].contains("does not read events named visit"));
}

async fn plugins_of_the_apps_own_are_named(app: &mut TestApp) {
    guests::deploy(app, 1, 1).await;
    let survey = app
        .survey(&guests::trigger(1, json!({"events": ["purchase"]})))
        .await;
    let ada = app.session("ada").await;
    let event = sends(app, &ada, "purchase", json!({})).await;
    // The version that decided explains, whatever is active since.
    guests::deploy(app, 1, 2).await;
    let explained = explain(app, survey, &ada, &event).await;
    is_found_by_names(app, survey, &event, &explained).await;
    assert_eq!(explained["outcome"], "fired");
    let named = format!("{} {} fires", guests::name(1), guests::version(1));
    assert!(
        details(&explained, "trigger")[0].contains(&named),
        "{explained}"
    );
}

async fn nothing_is_known_of_unknown_things(app: &mut TestApp) {
    let survey = app.survey(&trigger()).await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    let event = sends(app, &bob, "purchase", json!({})).await;
    let explained = explain(app, survey, &ada, &event).await;
    assert_eq!(
        explained["outcome"], "unknown_event",
        "it is somebody else's"
    );
    let path = |campaign: Uuid, subject: &str| {
        app.path(&format!(
            "/explain?campaignId={campaign}&subjectId={subject}&eventId={event}"
        ))
    };
    let nobody = app.id().to_string();
    for path in [path(app.id(), &ada.subject_id), path(survey, &nobody)] {
        app.get(&path, &app.viewer())
            .await
            .refused(404, "not_found");
    }
    let answer = app
        .get(&app.path("/explain?campaignId=x"), &app.viewer())
        .await;
    answer.refused(422, "validation_failed");
    let mut session = ada;
    session.subject_id.clone_from(&bob.subject_id);
    assert_eq!(
        explain(app, survey, &session, &event).await["outcome"],
        "fired"
    );
}

async fn push_campaigns_are_explained(app: &mut TestApp) {
    let campaign = app.campaign(&json!({"trigger": trigger()})).await;
    let campaign = Uuid::parse_str(&campaign).unwrap();
    let ada = app.session("ada").await;
    let event = sends(app, &ada, "purchase", json!({})).await;
    let other = sends(app, &ada, "visit", json!({})).await;

    let explained = explain(app, campaign, &ada, &event).await;
    assert_eq!(explained["outcome"], "fired", "{explained}");
    assert_eq!(checks(&explained, "trigger"), [true]);
    app.delivered_to(&ada, "skipped", 1).await;
    let explained = explain(app, campaign, &ada, &event).await;
    assert_eq!(explained["outcome"], "fired", "{explained}");
    assert_eq!(checks(&explained, "delivery"), [false]);
    let detail = &details(&explained, "delivery")[0];
    assert!(detail.ends_with("is skipped: no_active_device"), "{detail}");
    let explained = explain(app, campaign, &ada, &other).await;
    assert_eq!(explained["outcome"], "not_fired", "{explained}");
}

async fn what_no_event_triggers_is_explained(app: &mut TestApp) {
    let campaign = json!({"mode": "transactional", "trigger": null});
    let campaign = Uuid::parse_str(&app.campaign(&campaign).await).unwrap();
    let ada = app.session("ada").await;
    let event = sends(app, &ada, "purchase", json!({})).await;
    let explained = explain(app, campaign, &ada, &event).await;
    assert_eq!(explained["outcome"], "not_fired", "{explained}");
    assert_eq!(checks(&explained, "trigger"), [false]);
    assert!(details(&explained, "trigger")[0].contains("backends send it"));
}

async fn a_campaign_that_came_after_the_event_is_explained(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let event = sends(app, &ada, "purchase", json!({})).await;
    app.advance(1);
    let survey = app.survey(&trigger()).await;
    let explained = explain(app, survey, &ada, &event).await;
    assert_eq!(explained["outcome"], "not_fired", "{explained}");
    assert_eq!(checks(&explained, "status"), [false]);
    assert!(details(&explained, "status")[0].contains("after the event arrived"));
}
