//! Whom campaigns are for: facts of the host, and the sample (contract 8, Audience).

use serde_json::{Value, json};
use tests::providers::apns;
use tests::session::{instruction_ids, text};
use tests::{Session, TestApp, on_both_backends};

use crate::attempts;

on_both_backends!(
    null_removes_an_audience_wherever_there_need_be_none,
    an_event_says_where_its_subject_is,
    without_a_time_zone_the_locale_says_which_country,
    saved_properties_decide,
    events_of_all_names_of_a_subject_are_counted,
    what_became_of_surveys_is_known,
    an_attempt_that_was_dismissed_is_known,
    whoever_only_opened_a_survey_has_not_answered_it,
    what_became_of_messages_is_known,
    a_test_is_no_interaction,
    a_sample_is_the_same_people_every_time,
    who_left_out_a_sample_does_not_matter_to_the_rest,
    a_hundred_campaigns_are_decided_together,
    after_a_delay_the_audience_is_asked_again,
    a_bad_audience_is_named_by_a_pointer,
    a_name_that_no_event_has_is_refused,
    a_name_that_no_event_has_holds_nobody_up,
    decisions_with_audiences_can_be_made_again,
);

const PURCHASE: &str = r#"{"kind": "event", "eventName": "purchase"}"#;

async fn survey_for(app: &TestApp, audience: Value) -> String {
    let trigger: Value = serde_json::from_str(PURCHASE).unwrap();
    let parts = json!({"trigger": trigger, "audience": audience});
    app.survey_with(&parts).await.to_string()
}

/// Sends a purchase from a phone, or whatever the context says, and answers how many instructions it fires.
async fn buys_with(app: &TestApp, session: &Session, context: Value) -> usize {
    let event = app.event(session, "purchase", &json!({}));
    let mut body = session.batch(&[event]);
    for (key, value) in context.as_object().unwrap() {
        body["context"][key] = value.clone();
    }
    body["delivery"] = json!({"eventIds": [body["events"][0]["eventId"]]});
    let data = app.post_batch(session, &body).await.ok();
    data["instructions"].as_array().unwrap().len()
}

async fn buys(app: &TestApp, session: &Session) -> usize {
    app.fires(session, "purchase", &json!({})).await
}

async fn without_a_time_zone_the_locale_says_which_country(app: &mut TestApp) {
    survey_for(
        app,
        json!({"include": {"all": [{"kind": "country", "in": ["AT"]}]}}),
    )
    .await;
    let ada = app.session("ada").await;
    for (context, fires) in [
        (json!({"locale": "de"}), 0),
        (json!({"locale": "de-AT"}), 1),
        (json!({"locale": "de_DE"}), 0),
        (json!({"locale": "de-DE", "timezone": "Europe/Vienna"}), 1),
        // The zone is known from now on.
        (json!({"locale": "de-DE"}), 1),
        (json!({"locale": "de-AT", "timezone": "Europe/Berlin"}), 0),
    ] {
        assert_eq!(
            buys_with(app, &ada, context.clone()).await,
            fires,
            "{context}"
        );
    }
}

async fn an_event_says_where_its_subject_is(app: &mut TestApp) {
    survey_for(
        app,
        json!({"include": {"all": [
            {"kind": "platform", "in": ["ios"]},
            {"kind": "country", "in": ["AT"]},
            {"kind": "locale", "in": ["de"]},
            {"kind": "app_version", "operator": "gte", "value": "2.10"},
        ]}}),
    )
    .await;
    let there = json!({"platform": "ios", "locale": "de-DE", "timezone": "Europe/Vienna", "appVersion": "2.11.0"});
    let ada = app.session("ada").await;
    assert_eq!(
        buys_with(app, &ada, there.clone()).await,
        1,
        "the first event ever"
    );
    for (key, value) in [
        ("platform", "android"),
        ("timezone", "Europe/Berlin"),
        ("locale", "en-AT"),
        ("appVersion", "2.9.0"),
    ] {
        let mut elsewhere = there.clone();
        elsewhere[key] = json!(value);
        assert_eq!(buys_with(app, &ada, elsewhere).await, 0, "{key} {value}");
        assert_eq!(buys_with(app, &ada, there.clone()).await, 1);
    }
}

async fn saved_properties_decide(app: &mut TestApp) {
    let pro = json!({"property": "plan", "type": "string", "operator": "equals", "value": "pro"});
    survey_for(
        app,
        json!({"include": {"kind": "user_property", "filter": pro}}),
    )
    .await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    assert_eq!(buys(app, &ada).await, 0);
    let body = json!({"anonymousId": "ada", "mutationId": app.id(), "set": {"plan": "pro"}});
    let set = app
        .post("/v1/sdk/user-properties", &ada.credential(), &body)
        .await;
    assert_eq!(set.ok()["applied"], true);
    assert_eq!(buys(app, &ada).await, 1);
    assert_eq!(buys(app, &bob).await, 0);
}

async fn events_of_all_names_of_a_subject_are_counted(app: &mut TestApp) {
    let count = |operator: &str, n: u32| {
        json!({"kind": "event", "eventName": "visit", "withinDays": 7,
                                               "count": {"operator": operator, "n": n}})
    };
    survey_for(app, json!({"include": count("gte", 2)})).await;
    survey_for(app, json!({"exclude": count("gte", 1)})).await;
    let large = json!({"property": "pages", "type": "number", "operator": "gt", "value": 3});
    let mut filtered = count("eq", 1);
    filtered["filters"] = large;
    survey_for(app, json!({"include": filtered})).await;
    let ada = app.session("ada").await;
    let visit = |pages: u32| app.event(&ada, "visit", &json!({"pages": pages}));

    assert_eq!(buys(app, &ada).await, 1, "no visit");
    app.ingest(&ada, &[visit(1)]).await.ok();
    assert_eq!(buys(app, &ada).await, 0, "one visit");
    // Of one request too, the earlier events count.
    let purchase = app.event(&ada, "purchase", &json!({}));
    let data = app.ingest_and_ask(&ada, &[visit(9), purchase]).await;
    assert_eq!(
        instruction_ids(&data["instructions"]).len(),
        2,
        "two, one of them large"
    );
    app.advance(7 * 86_400 + 60);
    let ada = app.session("ada").await;
    assert_eq!(buys(app, &ada).await, 1, "none within a week");
}

async fn what_became_of_surveys_is_known(app: &mut TestApp) {
    let asked = app
        .survey(&json!({"kind": "event", "eventName": "visit"}))
        .await;
    let did = |interaction: &str| json!({"kind": "survey_interaction", "interaction": interaction, "surveyIds": [asked]});
    survey_for(
        app,
        json!({"include": did("displayed"), "exclude": did("completed")}),
    )
    .await;
    let mut lately = did("completed");
    lately["withinDays"] = json!(1);
    survey_for(app, json!({"include": lately})).await;
    let ada = app.session("ada").await;
    assert_eq!(buys(app, &ada).await, 0);
    assert_eq!(app.fires(&ada, "visit", &json!({})).await, 1);
    let id = instruction_ids(&app.offered(&ada).await).remove(0);
    assert_eq!(buys(app, &ada).await, 0, "issued is not displayed");
    app.acknowledge(&ada, &id, "displayed").await;
    assert_eq!(buys(app, &ada).await, 1, "displayed and not completed");
    app.acknowledge(&ada, &id, "completed").await;
    assert_eq!(buys(app, &ada).await, 1, "completed lately");
    app.advance(86_400 + 60);
    let ada = app.session("ada").await;
    assert_eq!(buys(app, &ada).await, 0, "completed long ago");
}

async fn an_attempt_that_was_dismissed_is_known(app: &mut TestApp) {
    let asked = app
        .survey_with(&json!({"mode": "link_only", "trigger": null}))
        .await;
    let dismissed =
        json!({"kind": "survey_interaction", "interaction": "dismissed", "surveyIds": [asked]});
    survey_for(app, json!({"include": dismissed})).await;
    let ada = app.session("ada").await;
    let body = json!({"anonymousId": "ada"});
    let path = format!("/v1/sdk/surveys/{asked}/attempts");
    let started = app.post(&path, &ada.credential(), &body).await.data(201);
    assert_eq!(buys(app, &ada).await, 0, "started");
    let path = format!("/v1/sdk/attempts/{}/dismiss", text(&started, "attemptId"));
    app.post(&path, &ada.credential(), &body).await.ok();
    assert_eq!(buys(app, &ada).await, 1, "dismissed");
}

async fn whoever_only_opened_a_survey_has_not_answered_it(app: &mut TestApp) {
    let asked = app
        .survey_with(
            &json!({"mode": "link_only", "trigger": null, "flow": {"questions": [
                {"id": "q1", "type": "statement", "title": "Hello"},
                {"id": "q2", "type": "nps", "title": "How?"},
            ]}}),
        )
        .await;
    let answered =
        json!({"kind": "survey_interaction", "interaction": "answered", "surveyIds": [asked]});
    survey_for(app, json!({"include": answered})).await;
    let ada = app.session("ada").await;
    let attempt = attempts::start(app, &ada, asked).await;
    assert_eq!(buys(app, &ada).await, 0, "started");
    attempts::answer(app, &ada, &attempt, json!([["q1", null]]))
        .await
        .ok();
    assert_eq!(buys(app, &ada).await, 0, "read");
    attempts::answer(app, &ada, &attempt, json!([["q2", 9]]))
        .await
        .ok();
    assert_eq!(buys(app, &ada).await, 1, "answered");
}

async fn what_became_of_messages_is_known(app: &mut TestApp) {
    let providers = app.with_providers().await;
    app.credential(&providers.apns.credential()).await;
    let campaign = app.transactional_campaign().await;
    let did = |interaction: &str| json!({"include": {"kind": "message_interaction", "interaction": interaction, "campaignIds": [campaign]}});
    let ada = app.session("ada").await;
    for (place, interaction) in ["delivered", "failed", "bounced"].into_iter().enumerate() {
        survey_for(app, did(interaction)).await;
        assert_eq!(buys(app, &ada).await, place, "not {interaction} yet");
        app.push_token(&ada, "phone", &providers.apns.token(1))
            .await;
        match interaction {
            "failed" => {
                providers
                    .apns
                    .refuse(&apns::device_token(1), 400, "BadTopic");
            }
            "bounced" => {
                providers
                    .apns
                    .refuse(&apns::device_token(1), 410, "Unregistered");
            }
            _ => {}
        }
        let body = json!({"campaignId": campaign, "anonymousId": "ada"});
        let id = text(&app.transactional(&body).await.data(202), "deliveryId");
        app.delivery_in(&id, interaction).await;
        assert_eq!(buys(app, &ada).await, place + 1, "{interaction}");
    }
}

async fn a_test_is_no_interaction(app: &mut TestApp) {
    let (_providers, ada, campaign) = app.with_phone_and_campaign().await;
    let delivered = json!({"kind": "message_interaction", "interaction": "delivered", "campaignIds": [campaign]});
    survey_for(app, json!({"include": delivered})).await;
    let path = app.path(&format!("/campaigns/{campaign}/test-send"));
    let to_ada = json!({"anonymousId": "ada"});
    let tested = app.post(&path, &app.editor(), &to_ada).await.data(202);
    app.delivery_in(&text(&tested, "deliveryId"), "delivered")
        .await;
    assert_eq!(buys(app, &ada).await, 0);

    let body = json!({"campaignId": campaign, "anonymousId": "ada"});
    let sent = app.transactional(&body).await.data(202);
    app.delivery_in(&text(&sent, "deliveryId"), "delivered")
        .await;
    assert_eq!(buys(app, &ada).await, 1);
}

async fn a_sample_is_the_same_people_every_time(app: &mut TestApp) {
    survey_for(app, json!({"samplePercent": 50})).await;
    survey_for(app, json!({"samplePercent": 0})).await;
    survey_for(app, json!({"samplePercent": 100})).await;
    let mut sampled = 0;
    for number in 0..40 {
        let session = app.session(&format!("person-{number}")).await;
        let fired = buys(app, &session).await;
        assert_eq!(buys(app, &session).await, fired);
        sampled += fired - 1;
    }
    assert!((5..=35).contains(&sampled), "{sampled} of 40");
    let suppressed: Vec<(String,)> = app
        .rows("SELECT suppressed_by FROM instructions WHERE suppressed_by IS NOT NULL")
        .await;
    assert!(suppressed.is_empty(), "{suppressed:?}");
}

async fn who_left_out_a_sample_does_not_matter_to_the_rest(app: &mut TestApp) {
    app.set(|settings| {
        settings.frequency.surveys = Some(nudge_campaigns::settings::Cap {
            max: 1,
            window_days: 1,
        });
    })
    .await;
    let trigger: Value = serde_json::from_str(PURCHASE).unwrap();
    let first = json!({"trigger": trigger, "audience": {"samplePercent": 0}, "priority": 9});
    app.survey_with(&first).await;
    survey_for(app, json!({})).await;
    let ada = app.session("ada").await;
    assert_eq!(
        buys(app, &ada).await,
        1,
        "what is not theirs takes nothing of the cap"
    );
}

async fn a_hundred_campaigns_are_decided_together(app: &mut TestApp) {
    for n in 0..100 {
        survey_for(
            app,
            json!({"include": {"all": [
                {"kind": "event", "eventName": "visit", "withinDays": 1 + n % 90, "count": {"operator": "gte", "n": 1 + n / 50}},
                {"kind": "platform", "in": ["web"]},
            ]}}),
        )
        .await;
    }
    let ada = app.session("ada").await;
    let mut events = vec![app.event(&ada, "visit", &json!({}))];
    events.extend((0..20).map(|_| app.event(&ada, "purchase", &json!({}))));
    let mut body = ada.batch(&events);
    body["context"]["platform"] = json!("web");
    app.post_batch(&ada, &body).await.ok();
    app.settle().await;

    let fired: Vec<(i64,)> = app.rows("SELECT count(*) FROM instructions").await;
    assert_eq!(fired, [(50 * 20,)]);
    let decisions: Vec<(i64,)> = app.rows("SELECT count(*) FROM decisions").await;
    assert_eq!(
        decisions,
        [(1,)],
        "one call, which stayed within its limits"
    );
}

async fn after_a_delay_the_audience_is_asked_again(app: &mut TestApp) {
    let trigger = json!({"kind": "event", "eventName": "cart", "delaySeconds": 60});
    let bought = json!({"kind": "event", "eventName": "purchase", "withinDays": 1});
    app.survey_with(&json!({"trigger": trigger, "audience": {"exclude": bought}}))
        .await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    for session in [&ada, &bob] {
        app.fires(session, "cart", &json!({})).await;
    }
    app.fires(&ada, "purchase", &json!({})).await;
    app.advance(61);
    app.until("the delay of who did not buy ends", async || {
        !instruction_ids(&app.offered(&bob).await).is_empty()
    })
    .await;
    app.until("no timer is left", async || {
        app.rows::<(i64,)>("SELECT due_at FROM timers")
            .await
            .is_empty()
    })
    .await;
    assert!(instruction_ids(&app.offered(&ada).await).is_empty());
}

async fn a_bad_audience_is_named_by_a_pointer(app: &mut TestApp) {
    for (audience, pointer) in [
        (json!({"samplePercent": 100.1}), "/audience/samplePercent"),
        (
            json!({"include": {"kind": "platform", "in": []}}),
            "/audience/include/in",
        ),
        (
            json!({"include": {"all": [{"kind": "event", "eventName": "x", "withinDays": 91}]}}),
            "/audience/include/all/0/withinDays",
        ),
    ] {
        let mut body = tests::session::survey_body();
        body["audience"] = audience.clone();
        let answer = app.post(&app.path("/surveys"), &app.editor(), &body).await;
        answer.refused(422, "validation_failed");
        assert_eq!(answer.pointers(), [pointer], "{audience}");
    }
}

/// A condition on events of a name.
fn happened(name: &str) -> Value {
    json!({"kind": "event", "eventName": name, "count": {"operator": "gte", "n": 1}, "withinDays": 5})
}

async fn a_name_that_no_event_has_is_refused(app: &mut TestApp) {
    for name in ["a\0b", "a\nb"] {
        let audience = json!({"include": {"all": [happened("a"), {"any": [happened(name)]}]}});
        let of_audience = "/audience/include/all/1/any/0/eventName";
        let named = json!({"kind": "event", "eventName": name});
        let cancelled =
            json!({"kind": "event", "eventName": "a", "cancelOn": [{"eventName": name}]});
        let mut survey = tests::session::survey_body();
        survey["audience"] = audience.clone();
        let mut waiting = tests::session::survey_body();
        waiting["trigger"] = named;
        let mut delayed = tests::session::survey_body();
        delayed["trigger"] = cancelled;
        let segment = json!({"name": "s", "audience": audience});
        let preview = json!({"audience": audience});
        for (path, body, pointer) in [
            ("/surveys", survey, of_audience),
            ("/surveys", waiting, "/trigger/eventName"),
            ("/surveys", delayed, "/trigger/cancelOn/0/eventName"),
            ("/segments", segment, of_audience),
            ("/segments/preview", preview, of_audience),
        ] {
            let answer = app.post(&app.path(path), &app.editor(), &body).await;
            answer.refused(422, "validation_failed");
            assert_eq!(answer.pointers(), [pointer], "{path} {body}");
        }
    }
}

/// Puts a NUL into the name `azb` wherever a campaign has it, as campaigns have it that were saved before it was refused.
pub(crate) async fn put_nul_into_names(app: &mut TestApp) {
    let mut tx = app.services().db.write().await.unwrap();
    let changed = tx
        .sql("UPDATE campaigns SET body = replace(body, '\"azb\"', '\"a\\u0000b\"') WHERE body LIKE '%\"azb\"%'")
        .execute()
        .await;
    assert_eq!(changed.unwrap(), 1);
    tx.commit().await.unwrap();
    app.restart().await;
}

async fn a_name_that_no_event_has_holds_nobody_up(app: &mut TestApp) {
    survey_for(app, json!({"exclude": happened("azb")})).await;
    let ada = app.session("ada").await;
    put_nul_into_names(app).await;
    assert_eq!(buys(app, &ada).await, 1);
}

async fn decisions_with_audiences_can_be_made_again(app: &mut TestApp) {
    let did = json!({"kind": "survey_interaction", "interaction": "displayed"});
    let counted = json!({"kind": "event", "eventName": "visit", "withinDays": 7});
    survey_for(app, json!({"include": {"any": [did, counted]}})).await;
    let ada = app.session("ada").await;
    app.fires(&ada, "visit", &json!({})).await;
    assert_eq!(buys(app, &ada).await, 1);
    let id = instruction_ids(&app.offered(&ada).await).remove(0);
    app.acknowledge(&ada, &id, "displayed").await;
    assert_eq!(buys(app, &ada).await, 1);
    // Whatever changes afterwards.
    app.acknowledge(&ada, &id, "dismissed").await;
    let list = app.get(&app.path("/decisions"), &app.viewer()).await.ok();
    let decisions = list["items"].as_array().unwrap().clone();
    assert_eq!(decisions.len(), 2);
    for decision in decisions {
        let path = app.path(&format!(
            "/decisions/{}/rerun",
            text(&decision, "decisionId")
        ));
        let again = app.post(&path, &app.editor(), &json!({})).await.ok();
        assert_eq!(
            (&again["same"], &again["newQuestions"]),
            (&json!(true), &json!(0)),
            "{again}"
        );
    }
}

async fn null_removes_an_audience_wherever_there_need_be_none(app: &mut TestApp) {
    let ios = json!({"include": {"kind": "platform", "in": ["ios"]}});
    let variants = json!([{"layout": "banner", "title": "Hello"}]);
    for (list, parts) in [
        ("surveys", json!({})),
        ("campaigns", json!({})),
        ("campaigns", json!({"type": "in_app", "variants": variants})),
    ] {
        let list = app.path(&format!("/{list}"));
        let mut body =
            json!({"name": "n", "trigger": {"kind": "event", "eventName": "go"}, "audience": null});
        let members = body.as_object_mut().unwrap();
        members.extend(parts.as_object().unwrap().clone());
        let made = app.post(&list, &app.editor(), &body).await.data(201);
        assert_eq!(made.get("audience"), None, "{made}");
        let path = format!("{list}/{}", text(&made, "id"));
        let change = async |body: Value| app.patch(&path, &app.editor(), &body).await.ok();
        // There is nothing to remove.
        assert_eq!(
            change(json!({"audience": null})).await.get("audience"),
            None
        );
        let with = change(json!({"audience": ios})).await;
        assert_eq!(with["audience"], ios);
        let part = change(json!({"audience": {"include": null, "samplePercent": 5}})).await;
        assert_eq!(part["audience"], json!({"samplePercent": 5}));
        let without = change(json!({"audience": null})).await;
        assert_eq!(without.get("audience"), None, "{without}");
        let read = app.get(&path, &app.viewer()).await.ok();
        assert_eq!((read.get("audience"), &read["version"]), (None, &json!(5)));
    }
    // Whoever it left out is meant then.
    let survey = survey_for(app, ios).await;
    let ada = app.session("ada").await;
    assert_eq!(buys(app, &ada).await, 0);
    let path = app.path(&format!("/surveys/{survey}"));
    app.patch(&path, &app.editor(), &json!({"audience": null}))
        .await
        .ok();
    assert_eq!(buys(app, &ada).await, 1);

    // A segment is its audience.
    let list = app.path("/segments");
    let body = json!({"name": "everybody", "audience": null});
    let none = app.post(&list, &app.editor(), &body).await;
    none.refused(422, "validation_failed");
    let body = json!({"name": "everybody", "audience": {}});
    let made = app.post(&list, &app.editor(), &body).await.data(201);
    let path = format!("{list}/{}", text(&made, "id"));
    let none = app
        .patch(&path, &app.editor(), &json!({"audience": null}))
        .await;
    assert_eq!(none.pointers(), ["/audience"]);
    none.refused(422, "validation_failed");
    let body = json!({"audience": null});
    app.post(&format!("{list}/preview"), &app.viewer(), &body)
        .await
        .refused(422, "validation_failed");
}
