//! When campaigns run: their begin and end, days, windows, quiet hours that defer or drop (contract 8, Schedule).

use nudge_campaigns::settings::{OnQuiet, QuietHours};
use serde_json::{Value, json};
use tests::session::{instruction_ids, text};
use tests::{Session, TestApp, on_both_backends};
use uuid::Uuid;

use crate::guests;

on_both_backends!(
    nothing_fires_before_the_start,
    what_is_over_is_completed_by_itself,
    the_end_is_noticed_after_a_restart,
    days_and_windows_are_kept,
    what_falls_into_quiet_hours_waits_for_their_end,
    the_apps_quiet_hours_are_by_the_persons_clock,
    quiet_hours_can_drop,
    what_waits_is_judged_again_when_it_is_due,
    what_waits_goes_with_its_campaign,
    a_cancelling_event_cancels_what_quiet_hours_put_off,
    a_cancelling_event_cancels_what_a_pause_puts_off,
    a_request_cancels_what_it_has_begun_before,
    no_plugin_fires_past_the_schedule,
    a_bad_schedule_is_named_by_a_pointer,
);

async fn survey_on(app: &TestApp, schedule: Value) -> Uuid {
    let trigger = json!({"kind": "event", "eventName": "purchase"});
    app.survey_with(&json!({"trigger": trigger, "schedule": schedule}))
        .await
}

async fn buys(app: &TestApp, session: &Session) -> usize {
    app.fires(session, "purchase", &json!({})).await
}

/// The reasons that were noted for what was suppressed, in order.
async fn reasons(app: &TestApp) -> Vec<String> {
    let rows: Vec<(String,)> = app
        .rows("SELECT suppressed_by FROM instructions WHERE status = 'suppressed' ORDER BY suppressed_by")
        .await;
    rows.into_iter().map(|(reason,)| reason).collect()
}

/// The time of day so many seconds from now, in UTC.
fn hour(app: &TestApp, seconds: i64) -> String {
    app.time(seconds)[11..16].to_owned()
}

pub(crate) async fn status(app: &TestApp, survey: Uuid) -> String {
    let path = app.path(&format!("/surveys/{survey}"));
    text(&app.get(&path, &app.viewer()).await.ok(), "status")
}

async fn waiting(app: &TestApp) -> usize {
    app.rows::<(i64,)>("SELECT due_at FROM occasions")
        .await
        .len()
}

async fn nothing_fires_before_the_start(app: &mut TestApp) {
    survey_on(app, json!({"startAt": app.time(100)})).await;
    let ada = app.session("ada").await;
    assert_eq!(buys(app, &ada).await, 0);
    assert_eq!(buys(app, &ada).await, 0);
    assert_eq!(reasons(app).await, ["not_started"], "noted once a day");
    assert!(instruction_ids(&app.offered(&ada).await).is_empty());
    app.advance(101);
    assert_eq!(buys(app, &ada).await, 1);
}

async fn what_is_over_is_completed_by_itself(app: &mut TestApp) {
    let survey = survey_on(app, json!({"endAt": app.time(100)})).await;
    let other = survey_on(app, json!({"endAt": app.time(100_000)})).await;
    let ada = app.session("ada").await;
    assert_eq!(buys(app, &ada).await, 2);
    app.advance(101);
    app.until("it is completed", async || {
        status(app, survey).await == "completed"
    })
    .await;
    assert_eq!(status(app, other).await, "active");
    assert_eq!(buys(app, &ada).await, 1);
    let entries = app.audited("survey.completed").await;
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0]["actor"], "server");
    assert_eq!(entries[0]["resource"], json!(format!("survey/{survey}")));
    let path = app.path(&format!("/surveys/{survey}"));
    assert_eq!(app.get(&path, &app.viewer()).await.ok()["version"], 2);
}

async fn the_end_is_noticed_after_a_restart(app: &mut TestApp) {
    let survey = survey_on(app, json!({"endAt": app.time(100)})).await;
    app.stop().await;
    app.advance(101);
    app.resume().await;
    app.until("it is completed", async || {
        status(app, survey).await == "completed"
    })
    .await;
}

async fn days_and_windows_are_kept(app: &mut TestApp) {
    // The zone is one that nobody in the test is in.
    let window = json!([{"from": hour(app, 3_600), "to": hour(app, 3 * 3_600)}]);
    survey_on(app, json!({"timezone": "UTC", "timeWindows": window})).await;
    let ada = app.session("ada").await;
    assert_eq!(buys(app, &ada).await, 0);
    app.advance(2 * 3_600);
    assert_eq!(buys(app, &ada).await, 1);
    app.advance(2 * 3_600);
    assert_eq!(buys(app, &ada).await, 0);
    assert_eq!(reasons(app).await[0], "outside_hours");
}

async fn what_falls_into_quiet_hours_waits_for_their_end(app: &mut TestApp) {
    let quiet = app.an_hour_of_quiet("defer");
    survey_on(app, json!({"timezone": "UTC", "quietHours": quiet})).await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    let event = app.event(&ada, "purchase", &json!({}));
    for _ in 0..2 {
        let data = app.ingest_and_ask(&ada, std::slice::from_ref(&event)).await;
        assert!(instruction_ids(&data["instructions"]).is_empty());
    }
    assert_eq!(waiting(app).await, 1, "sent again it is the same firing");
    assert!(reasons(app).await.is_empty());
    assert!(instruction_ids(&app.offered(&ada).await).is_empty());

    app.restart().await;
    app.advance(2 * 3_600);
    app.until("the firing takes effect", async || {
        !instruction_ids(&app.offered(&ada).await).is_empty()
    })
    .await;
    assert_eq!(waiting(app).await, 0);
    let offered = app.offered(&ada).await;
    assert_eq!(instruction_ids(&offered).len(), 1);
    assert_eq!(offered[0]["trigger"]["eventId"], event["eventId"]);
    app.restart().await;
    assert_eq!(instruction_ids(&app.offered(&ada).await).len(), 1, "once");
    assert_eq!(buys(app, &bob).await, 1, "quiet hours are over");
}

async fn the_apps_quiet_hours_are_by_the_persons_clock(app: &mut TestApp) {
    // One o'clock in the zone of Ada, five hours ahead; in UTC it is eight in the evening.
    let quiet = QuietHours {
        from: hour(app, 5 * 3_600 - 3_600),
        to: hour(app, 5 * 3_600 + 3_600),
        on_quiet: OnQuiet::Defer,
    };
    app.set(|settings| settings.quiet_hours = Some(quiet)).await;
    survey_on(app, json!({})).await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    let mut body = ada.batch(&[app.event(&ada, "purchase", &json!({}))]);
    body["context"]["timezone"] = json!("Etc/GMT-5");
    app.post_batch(&ada, &body).await.ok();
    app.settle().await;
    assert_eq!(waiting(app).await, 1);
    assert_eq!(
        buys(app, &bob).await,
        1,
        "nobody knows another clock of his than UTC"
    );
    app.advance(2 * 3_600);
    app.until("the firing takes effect", async || {
        !instruction_ids(&app.offered(&ada).await).is_empty()
    })
    .await;
}

async fn quiet_hours_can_drop(app: &mut TestApp) {
    let quiet = app.an_hour_of_quiet("drop");
    survey_on(app, json!({"timezone": "UTC", "quietHours": quiet})).await;
    let ada = app.session("ada").await;
    assert_eq!(buys(app, &ada).await, 0);
    assert_eq!(reasons(app).await, ["quiet_hours"]);
    assert_eq!(waiting(app).await, 0);
    app.advance(2 * 3_600);
    assert_eq!(buys(app, &ada).await, 1);
}

async fn what_waits_is_judged_again_when_it_is_due(app: &mut TestApp) {
    let quiet = app.an_hour_of_quiet("defer");
    let trigger = json!({"kind": "event", "eventName": "purchase"});
    let cap = json!({"perSubject": {"max": 1, "windowDays": "lifetime"}});
    let schedule = json!({"timezone": "UTC", "quietHours": quiet});
    app.survey_with(&json!({"trigger": trigger, "schedule": schedule, "frequencyCap": cap}))
        .await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    for session in [&ada, &ada, &bob] {
        assert_eq!(buys(app, session).await, 0);
    }
    assert_eq!(waiting(app).await, 3);
    let refusal = json!({"anonymousId": "bob", "messaging": false});
    app.post("/v1/sdk/consent", &bob.credential(), &refusal)
        .await
        .ok();

    app.advance(2 * 3_600);
    app.until("nothing waits", async || waiting(app).await == 0)
        .await;
    assert_eq!(
        instruction_ids(&app.offered(&ada).await).len(),
        1,
        "the cap holds when it is due"
    );
    assert!(instruction_ids(&app.offered(&bob).await).is_empty());
    assert_eq!(reasons(app).await, ["consent", "frequency_cap"]);
}

async fn what_waits_goes_with_its_campaign(app: &mut TestApp) {
    let quiet = app.an_hour_of_quiet("defer");
    let schedule = json!({"timezone": "UTC", "quietHours": quiet});
    let (paused, deleted) = (
        survey_on(app, schedule.clone()).await,
        survey_on(app, schedule).await,
    );
    let ada = app.session("ada").await;
    assert_eq!(buys(app, &ada).await, 0);
    assert_eq!(waiting(app).await, 2);
    let path = |survey: Uuid| app.path(&format!("/surveys/{survey}"));
    app.delete(&path(deleted), &app.editor()).await;
    assert_eq!(waiting(app).await, 1);
    app.patch(&path(paused), &app.editor(), &json!({"status": "paused"}))
        .await
        .ok();
    app.advance(2 * 3_600);
    app.until("nothing waits", async || waiting(app).await == 0)
        .await;
    app.patch(&path(paused), &app.editor(), &json!({"status": "active"}))
        .await
        .ok();
    assert!(instruction_ids(&app.offered(&ada).await).is_empty());
}

fn cancelled_by_a_refund(occurrence: &str) -> Value {
    json!({"kind": "event", "eventName": "purchase", "occurrence": {"mode": occurrence},
        "cancelOn": [{"eventName": "refund"}]})
}

async fn a_cancelling_event_cancels_what_quiet_hours_put_off(app: &mut TestApp) {
    let quiet = app.an_hour_of_quiet("defer");
    let schedule = json!({"timezone": "UTC", "quietHours": quiet});
    let at_once = cancelled_by_a_refund("once");
    let mut late = at_once.clone();
    late["delaySeconds"] = json!(60);
    for trigger in [at_once, late] {
        let parts = json!({"trigger": trigger, "schedule": schedule});
        app.survey_with(&parts).await;
        app.campaign(&parts).await;
    }
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    for session in [&ada, &bob] {
        assert_eq!(buys(app, session).await, 0);
    }
    app.advance(61);
    app.until("all of them wait for the morning", async || {
        waiting(app).await == 8
    })
    .await;
    assert_eq!(app.fires(&ada, "refund", &json!({})).await, 0);
    assert_eq!(waiting(app).await, 4, "those of the other");

    app.advance(2 * 3_600);
    app.until("nothing waits", async || waiting(app).await == 0)
        .await;
    assert_eq!(instruction_ids(&app.offered(&bob).await).len(), 2);
    assert!(instruction_ids(&app.offered(&ada).await).is_empty());
    assert_eq!(app.count("deliveries").await, 2);
    // What was cancelled has not fired, and does not use up the one firing.
    assert_eq!(buys(app, &bob).await, 0);
    assert_eq!(buys(app, &ada).await, 1);
    app.advance(61);
    app.until("what waits longer fires too", async || {
        instruction_ids(&app.offered(&ada).await).len() == 2 && app.count("deliveries").await == 4
    })
    .await;
}

async fn a_cancelling_event_cancels_what_a_pause_puts_off(app: &mut TestApp) {
    app.set(|settings| settings.frequency.min_seconds_between_presentations = 600)
        .await;
    app.survey(&json!({"kind": "event", "eventName": "visit"}))
        .await;
    app.survey(&cancelled_by_a_refund("every")).await;
    let ada = app.session("ada").await;
    assert_eq!(app.fires(&ada, "visit", &json!({})).await, 1);
    assert_eq!(buys(app, &ada).await, 0);
    assert_eq!(waiting(app).await, 1);
    assert_eq!(app.fires(&ada, "refund", &json!({})).await, 0);
    assert_eq!(waiting(app).await, 0);
}

async fn a_request_cancels_what_it_has_begun_before(app: &mut TestApp) {
    let quiet = app.an_hour_of_quiet("defer");
    let schedule = json!({"timezone": "UTC", "quietHours": quiet});
    let trigger = cancelled_by_a_refund("once");
    app.survey_with(&json!({"trigger": trigger, "schedule": schedule}))
        .await;
    let ada = app.session("ada").await;
    for (names, left) in [
        (["purchase", "refund"], 0),
        (["refund", "purchase"], 1),
        (["visit", "refund"], 0),
    ] {
        let events = names.map(|name| app.event(&ada, name, &json!({})));
        app.ingest_and_ask(&ada, &events).await;
        assert_eq!(waiting(app).await, left, "{names:?}");
    }
}

async fn no_plugin_fires_past_the_schedule(app: &mut TestApp) {
    guests::deploy(app, 1, 1).await;
    let always = guests::trigger(1, json!({"events": ["purchase"]}));
    let quiet = app.an_hour_of_quiet("drop");
    for schedule in [
        json!({"startAt": app.time(3_600)}),
        json!({"timezone": "UTC", "timeWindows": [{"from": hour(app, 3_600), "to": hour(app, 7_200)}]}),
        json!({"timezone": "UTC", "quietHours": quiet}),
    ] {
        app.survey_with(&json!({"trigger": always, "schedule": schedule}))
            .await;
    }
    let ada = app.session("ada").await;
    assert_eq!(buys(app, &ada).await, 0);
    assert_eq!(
        reasons(app).await,
        ["not_started", "outside_hours", "quiet_hours"]
    );
    app.survey_with(&json!({"trigger": always})).await;
    assert_eq!(buys(app, &ada).await, 1, "it does fire");
}

async fn a_bad_schedule_is_named_by_a_pointer(app: &mut TestApp) {
    for (schedule, pointer) in [
        (json!({"endAt": "tomorrow"}), "/schedule/endAt"),
        (json!({"timezone": "Middle/Earth"}), "/schedule/timezone"),
        (
            json!({"timeWindows": [{"from": "08:00", "to": "25:00"}]}),
            "/schedule/timeWindows/0/to",
        ),
        (
            json!({"quietHours": {"from": "22:00", "to": "07:00"}}),
            "/schedule/quietHours/onQuiet",
        ),
        (json!({"days": [1]}), "/schedule/days"),
    ] {
        let mut body = tests::session::survey_body();
        body["schedule"] = schedule.clone();
        let answer = app.post(&app.path("/surveys"), &app.editor(), &body).await;
        answer.refused(422, "validation_failed");
        assert_eq!(answer.pointers(), [pointer], "{schedule}");
    }
    let kept = json!({"daysOfWeek": ["mon", 7], "timezone": "subject", "maxResponses": 5});
    let survey = survey_on(app, kept.clone()).await;
    let path = app.path(&format!("/surveys/{survey}"));
    assert_eq!(app.get(&path, &app.viewer()).await.ok()["schedule"], kept);
}
