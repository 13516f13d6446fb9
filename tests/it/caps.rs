//! How often a person is reached: caps, pauses, and what becomes of what they hold back (contract 4 and 8).

use std::time::Duration;

use nudge_campaigns::settings::Cap;
use serde_json::{Value, json};
use tests::session::{instruction_ids, text};
use tests::{Session, TestApp, on_both_backends};
use uuid::Uuid;

use crate::guests;
use crate::identity::Backend;
use crate::two_servers::pair;

on_both_backends!(
    a_cap_holds_within_a_batch_and_after_it,
    what_was_not_displayed_is_given_back,
    what_was_displayed_counts_until_the_window_is_over,
    a_display_counts_from_its_own_time_but_not_before_its_issue,
    what_expires_is_given_back,
    what_is_short_on_offer_holds_the_apps_pause,
    pauses_are_after_the_campaign_itself_and_after_its_kind,
    the_apps_cap_is_for_all_surveys_together,
    the_apps_pause_is_between_presentations,
    what_the_apps_pause_keeps_back_waits_for_its_turn,
    the_most_important_takes_what_the_cap_leaves,
    what_waits_for_its_turn_comes_in_the_order_of_importance,
    caps_are_united_with_the_people,
    what_was_suppressed_is_offered_to_nobody,
    no_plugin_fires_past_caps_and_consent,
    a_bad_cap_is_named_by_a_pointer,
);

async fn capped(app: &TestApp, cap: Value) -> Uuid {
    let trigger = json!({"kind": "event", "eventName": "purchase"});
    app.survey_with(&json!({"trigger": trigger, "frequencyCap": cap}))
        .await
}

fn at_most(max: u32, window: Value) -> Value {
    json!({"perSubject": {"max": max, "windowDays": window}})
}

async fn buys(app: &TestApp, session: &Session) -> usize {
    app.fires(session, "purchase", &json!({})).await
}

/// Acknowledges everything on offer.
async fn all_are(app: &TestApp, session: &Session, status: &str) {
    for id in instruction_ids(&app.offered(session).await) {
        app.acknowledge(session, &id, status).await;
    }
}

async fn reasons(app: &TestApp) -> Vec<String> {
    let rows: Vec<(String,)> = app
        .rows("SELECT suppressed_by FROM instructions WHERE status = 'suppressed' ORDER BY suppressed_by")
        .await;
    rows.into_iter().map(|(reason,)| reason).collect()
}

async fn a_cap_holds_within_a_batch_and_after_it(app: &mut TestApp) {
    capped(app, at_most(2, json!("lifetime"))).await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    let events: Vec<Value> = (0..5)
        .map(|_| app.event(&ada, "purchase", &json!({})))
        .collect();
    let data = app.ingest_and_ask(&ada, &events).await;
    let instructions = data["instructions"].as_array().unwrap();
    let fired: Vec<&Value> = instructions
        .iter()
        .map(|it| &it["trigger"]["eventId"])
        .collect();
    assert_eq!(
        fired,
        [&events[0]["eventId"], &events[1]["eventId"]],
        "the first two"
    );
    assert_eq!(buys(app, &ada).await, 0);
    assert_eq!(reasons(app).await, ["frequency_cap"]);
    assert_eq!(
        buys(app, &bob).await,
        1,
        "each person has a cap of their own"
    );
}

async fn what_was_not_displayed_is_given_back(app: &mut TestApp) {
    capped(app, at_most(1, json!("lifetime"))).await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    assert_eq!(buys(app, &ada).await, 1);
    all_are(app, &ada, "received").await;
    assert_eq!(buys(app, &ada).await, 0, "reserved");
    all_are(app, &ada, "discarded").await;
    assert_eq!(buys(app, &ada).await, 1, "given back");

    assert_eq!(buys(app, &bob).await, 1);
    app.advance(570);
    assert_eq!(buys(app, &bob).await, 0, "reserved for ten minutes");
    app.advance(31);
    assert_eq!(buys(app, &bob).await, 1, "and no longer");
}

/// What is reserved for ten minutes is given back when it expires before (contract 4).
async fn what_expires_is_given_back(app: &mut TestApp) {
    let parts = json!({"expiresAfterSeconds": 60, "frequencyCap": at_most(1, json!("lifetime"))});
    crate::in_app::message(app, parts).await;
    let ada = app.session("ada").await;
    assert_eq!(buys(app, &ada).await, 1);
    app.advance(58);
    assert_eq!(buys(app, &ada).await, 0, "on offer");
    app.advance(3);
    assert_eq!(buys(app, &ada).await, 1, "given back");
    assert_eq!(buys(app, &ada).await, 0, "once");
    all_are(app, &ada, "displayed").await;
    app.advance(61);
    assert_eq!(buys(app, &ada).await, 0, "seen in time");
}

/// The app's pause is from what was issued on, however short it is on offer.
async fn what_is_short_on_offer_holds_the_apps_pause(app: &mut TestApp) {
    app.set(|settings| settings.frequency.min_seconds_between_presentations = 120)
        .await;
    crate::in_app::message(app, json!({"expiresAfterSeconds": 60})).await;
    app.survey(&json!({"kind": "event", "eventName": "seen"}))
        .await;
    let ada = app.session("ada").await;
    assert_eq!(buys(app, &ada).await, 1);
    app.advance(1);
    assert_eq!(app.fires(&ada, "seen", &json!({})).await, 0);
}

async fn what_was_displayed_counts_until_the_window_is_over(app: &mut TestApp) {
    capped(app, at_most(1, json!(1))).await;
    let ada = app.session("ada").await;
    assert_eq!(buys(app, &ada).await, 1);
    all_are(app, &ada, "displayed").await;
    app.advance(1_200);
    assert_eq!(buys(app, &ada).await, 0, "displayed is consumed");
    // What comes of it afterwards gives nothing back.
    let shown: Vec<(Uuid,)> = app
        .rows("SELECT id FROM instructions WHERE status = 'displayed'")
        .await;
    let id = shown[0].0.to_string();
    app.acknowledge(&ada, &id, "dismissed").await;
    app.acknowledge(&ada, &id, "discarded").await;
    assert_eq!(buys(app, &ada).await, 0);
    app.advance(86_400 - 1_300);
    let ada = app.session("ada").await;
    assert_eq!(buys(app, &ada).await, 0);
    app.advance(200);
    let ada = app.session("ada").await;
    assert_eq!(buys(app, &ada).await, 1);
}

async fn a_display_counts_from_its_own_time_but_not_before_its_issue(app: &mut TestApp) {
    capped(app, at_most(1, json!(1))).await;
    let ada = app.session("ada").await;
    assert_eq!(buys(app, &ada).await, 1);
    let id = instruction_ids(&app.offered(&ada).await).remove(0);
    let acks = json!([{"instructionId": id, "status": "displayed", "at": "2001-01-01T00:00:00Z"}]);
    let body = json!({"anonymousId": "ada", "acks": acks});
    app.post("/v1/sdk/instructions/ack", &ada.credential(), &body)
        .await
        .ok();
    assert_eq!(
        buys(app, &ada).await,
        0,
        "nobody saw it before there was anything to see"
    );
    app.advance(86_401);
    let ada = app.session("ada").await;
    assert_eq!(buys(app, &ada).await, 1);
}

async fn pauses_are_after_the_campaign_itself_and_after_its_kind(app: &mut TestApp) {
    let visit = json!({"kind": "event", "eventName": "visit"});
    app.survey(&visit).await;
    capped(app, json!({"cooldownDays": {"self": 2, "sameType": 1}})).await;
    let ada = app.session("ada").await;
    assert_eq!(app.fires(&ada, "visit", &json!({})).await, 1);
    all_are(app, &ada, "displayed").await;
    assert_eq!(buys(app, &ada).await, 0);
    assert_eq!(reasons(app).await, ["cooldown_same_type"]);
    app.advance(86_401);
    let ada = app.session("ada").await;
    assert_eq!(buys(app, &ada).await, 1);
    all_are(app, &ada, "displayed").await;
    app.advance(86_401);
    let ada = app.session("ada").await;
    assert_eq!(buys(app, &ada).await, 0);
    assert_eq!(reasons(app).await, ["cooldown", "cooldown_same_type"]);
    assert_eq!(
        app.fires(&ada, "visit", &json!({})).await,
        1,
        "who has no pause needs none"
    );
    app.advance(86_401);
    let ada = app.session("ada").await;
    assert_eq!(buys(app, &ada).await, 1);
}

async fn the_apps_cap_is_for_all_surveys_together(app: &mut TestApp) {
    app.set(|settings| {
        settings.frequency.surveys = Some(Cap {
            max: 2,
            window_days: 1,
        });
    })
    .await;
    for _ in 0..3 {
        capped(app, json!({})).await;
    }
    let ada = app.session("ada").await;
    assert_eq!(buys(app, &ada).await, 2);
    assert_eq!(buys(app, &ada).await, 0);
    assert_eq!(reasons(app).await, ["global_cap"; 3]);
    capped(app, json!({"ignoreGlobalCap": true})).await;
    assert_eq!(buys(app, &ada).await, 1);
    all_are(app, &ada, "displayed").await;
    app.advance(86_401);
    let ada = app.session("ada").await;
    assert_eq!(buys(app, &ada).await, 3);
}

async fn the_apps_pause_is_between_presentations(app: &mut TestApp) {
    app.set(|settings| settings.frequency.min_seconds_between_presentations = 60)
        .await;
    let trigger = json!({"kind": "event", "eventName": "purchase"});
    app.survey(&trigger).await;
    app.survey(&trigger).await;
    let ada = app.session("ada").await;
    assert_eq!(buys(app, &ada).await, 1);
    all_are(app, &ada, "dismissed").await;
    app.advance(30);
    assert_eq!(buys(app, &ada).await, 0);
    assert_eq!(reasons(app).await, ["pause"], "it was just there");
    assert!(instruction_ids(&app.offered(&ada).await).is_empty());
    app.advance(31);
    app.until("the other one comes, once", async || {
        instruction_ids(&app.offered(&ada).await).len() == 1 && reasons(app).await.len() == 2
    })
    .await;
    all_are(app, &ada, "dismissed").await;
    app.advance(61);
    assert_eq!(buys(app, &ada).await, 1);
}

async fn what_the_apps_pause_keeps_back_waits_for_its_turn(app: &mut TestApp) {
    app.set(|settings| settings.frequency.min_seconds_between_presentations = 60)
        .await;
    let trigger = json!({"kind": "event", "eventName": "purchase", "occurrence": {"mode": "once"}});
    let mut ids = Vec::new();
    for priority in [1, 9, 5] {
        let parts = json!({"trigger": trigger, "priority": priority});
        ids.push(app.survey_with(&parts).await);
    }
    let ada = app.session("ada").await;
    assert_eq!(buys(app, &ada).await, 1);
    let offered = app.offered(&ada).await;
    assert_eq!(offered[0]["campaignId"], json!(ids[1]));
    for there in 2..=3 {
        app.advance(30);
        app.settle().await;
        assert_eq!(instruction_ids(&app.offered(&ada).await).len(), there - 1);
        app.restart().await;
        app.advance(31);
        app.until("the next one comes", async || {
            instruction_ids(&app.offered(&ada).await).len() == there
        })
        .await;
    }
    let mut campaigns: Vec<String> = Vec::new();
    for offer in app.offered(&ada).await.as_array().unwrap() {
        campaigns.push(text(offer, "campaignId"));
    }
    campaigns.sort();
    let mut all: Vec<String> = ids.iter().map(Uuid::to_string).collect();
    all.sort();
    assert_eq!(campaigns, all);
    app.advance(61);
    assert_eq!(buys(app, &ada).await, 0, "all have fired");
    assert_eq!(reasons(app).await, Vec::<String>::new());
}

async fn the_most_important_takes_what_the_cap_leaves(app: &mut TestApp) {
    app.set(|settings| {
        settings.frequency.surveys = Some(Cap {
            max: 1,
            window_days: 1,
        });
    })
    .await;
    let trigger = json!({"kind": "event", "eventName": "purchase"});
    let mut ids = Vec::new();
    for priority in [1, 9, 5] {
        let parts = json!({"trigger": trigger, "priority": priority});
        ids.push(app.survey_with(&parts).await);
    }
    let ada = app.session("ada").await;
    let events = [app.event(&ada, "purchase", &json!({}))];
    let data = app.ingest_and_ask(&ada, &events).await;
    assert_eq!(data["instructions"].as_array().unwrap().len(), 1);
    assert_eq!(data["instructions"][0]["campaignId"], json!(ids[1]));
    let offered = app.offered(&ada).await;
    assert_eq!(
        instruction_ids(&offered),
        instruction_ids(&data["instructions"]),
        "and by polling the same"
    );
}

async fn what_waits_for_its_turn_comes_in_the_order_of_importance(app: &mut TestApp) {
    app.set(|settings| settings.frequency.min_seconds_between_presentations = 60)
        .await;
    let trigger = json!({"kind": "event", "eventName": "purchase"});
    for priority in [3, 1, 9, 5, 7] {
        app.survey_with(&json!({"trigger": trigger, "priority": priority}))
            .await;
    }
    let ada = app.session("ada").await;
    assert_eq!(buys(app, &ada).await, 1);
    for there in 2..=5 {
        app.advance(61);
        app.until("the next one comes", async || {
            instruction_ids(&app.offered(&ada).await).len() == there
        })
        .await;
    }
    let issued: Vec<(i64,)> = app
        .rows("SELECT priority FROM instructions ORDER BY position")
        .await;
    assert_eq!(issued, [(9,), (7,), (5,), (3,), (1,)]);
}

async fn caps_are_united_with_the_people(app: &mut TestApp) {
    capped(app, at_most(2, json!("lifetime"))).await;
    let backend = Backend::new(app).await;
    let phone = backend.identify(app, "phone", "e-1").await;
    let web = app.session("web").await;
    for session in [&phone, &web] {
        assert_eq!(buys(app, session).await, 1);
        all_are(app, session, "displayed").await;
    }
    let merged = backend.identify(app, "web", "e-1").await;
    assert_eq!(
        buys(app, &merged).await,
        0,
        "two people with one each are one with two"
    );
}

async fn what_was_suppressed_is_offered_to_nobody(app: &mut TestApp) {
    capped(app, at_most(1, json!("lifetime"))).await;
    let ada = app.session("ada").await;
    assert_eq!(buys(app, &ada).await, 1);
    all_are(app, &ada, "displayed").await;
    assert_eq!(buys(app, &ada).await, 0);
    assert!(instruction_ids(&app.offered(&ada).await).is_empty());
    let suppressed: Vec<(Uuid, i64)> = app
        .rows("SELECT id, CAST(expires_at - created_at AS BIGINT) FROM instructions WHERE status = 'suppressed'")
        .await;
    assert_eq!(suppressed.len(), 1);
    let id = suppressed[0].0.to_string();
    assert_eq!(
        app.acknowledge(&ada, &id, "displayed").await["unknown"],
        json!([id])
    );
    assert_eq!(reasons(app).await, ["frequency_cap"], "it stays what it is");
    // Noted once a day.
    assert_eq!(buys(app, &ada).await, 0);
    assert_eq!(reasons(app).await.len(), 1);
    app.advance(86_400);
    let ada = app.session("ada").await;
    assert_eq!(buys(app, &ada).await, 0);
    assert_eq!(reasons(app).await.len(), 2);
}

async fn no_plugin_fires_past_caps_and_consent(app: &mut TestApp) {
    guests::deploy(app, 1, 1).await;
    let always = guests::trigger(1, json!({"events": ["purchase"]}));
    app.survey_with(&json!({"trigger": always, "frequencyCap": at_most(1, json!(1))}))
        .await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    assert_eq!(buys(app, &ada).await, 1);
    assert_eq!(buys(app, &ada).await, 0);
    let refusal = json!({"anonymousId": "bob", "messaging": false});
    app.post("/v1/sdk/consent", &bob.credential(), &refusal)
        .await
        .ok();
    assert_eq!(buys(app, &bob).await, 0);
    assert_eq!(reasons(app).await, ["consent", "frequency_cap"]);
}

async fn a_bad_cap_is_named_by_a_pointer(app: &mut TestApp) {
    for (cap, pointer) in [
        (at_most(0, json!(1)), "/frequencyCap/perSubject/max"),
        (
            at_most(1, json!("forever")),
            "/frequencyCap/perSubject/windowDays",
        ),
        (
            json!({"cooldownDays": {"self": -1}}),
            "/frequencyCap/cooldownDays/self",
        ),
        (
            json!({"cooldownDays": {"other": 1}}),
            "/frequencyCap/cooldownDays/other",
        ),
        (
            json!({"ignoreGlobalCap": "yes"}),
            "/frequencyCap/ignoreGlobalCap",
        ),
    ] {
        let mut body = tests::session::survey_body();
        body["frequencyCap"] = cap.clone();
        let answer = app.post(&app.path("/surveys"), &app.editor(), &body).await;
        answer.refused(422, "validation_failed");
        assert_eq!(answer.pointers(), [pointer], "{cap}");
    }
}

/// Two firings at the same time, on two servers, never both pass a cap of one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_keep_one_cap() {
    let (_folder, one, two) = pair().await;
    let survey = capped(&one, at_most(1, json!("lifetime"))).await;
    two.until("the other server runs the survey", async || {
        let app = two
            .services()
            .apps
            .get(two.access.app_id)
            .await
            .unwrap()
            .unwrap();
        app.campaign(survey).is_some()
    })
    .await;
    for number in 0..15 {
        let person = one.session(&format!("person-{number}")).await;
        let (left, right) = tokio::join!(buys(&one, &person), buys(&two, &person));
        assert_eq!(left + right, 1, "person {number}");
        let (left, right) = tokio::join!(one.offered(&person), two.offered(&person));
        assert_eq!(instruction_ids(&left).len(), 1);
        assert_eq!(
            text(&left[0], "instructionId"),
            text(&right[0], "instructionId")
        );
    }
    tokio::time::timeout(Duration::from_mins(1), async {
        for node in [one, two] {
            node.finish().await;
        }
    })
    .await
    .unwrap();
}
