//! What the host holds back has not fired: it does not use up the one firing of `once` and `once_per_session`
//! (contract 8, occurrence; contract 13, what makes a campaign fire).

use nudge_campaigns::settings::Cap;
use serde_json::{Value, json};
use tests::session::instruction_ids;
use tests::{Session, TestApp, on_both_backends};
use uuid::Uuid;

use crate::identity::Backend;

on_both_backends!(
    a_cap_does_not_use_up_the_one_firing,
    neither_does_consent_nor_the_sample_nor_a_window,
    of_one_batch_one_fires,
    the_one_of_a_session_is_the_sessions,
    after_a_delay_it_is_the_same,
    what_waited_and_came_to_nothing_has_not_fired,
    what_had_an_effect_has_fired_whatever_became_of_it,
    modes_that_count_events_count_them,
    what_one_of_two_has_had_is_not_fired_again_when_they_become_one,
    what_neither_of_two_has_had_fires_when_they_become_one,
    of_two_who_wait_when_they_become_one_one_waits_on,
    nobody_waits_for_what_one_of_two_has_had,
);

fn trigger(occurrence: Value) -> Value {
    json!({"kind": "event", "eventName": "purchase", "occurrence": occurrence})
}

fn once() -> Value {
    trigger(json!({"mode": "once"}))
}

async fn buys(app: &TestApp, session: &Session) -> usize {
    app.fires(session, "purchase", &json!({})).await
}

async fn may_message(app: &TestApp, session: &Session, messaging: bool) {
    let body = json!({"anonymousId": session.anonymous_id, "messaging": messaging});
    app.post("/v1/sdk/consent", &session.credential(), &body)
        .await
        .ok();
}

/// A schedule by which what fires within the next hour waits until that is over.
fn quiet_schedule(app: &TestApp) -> Value {
    json!({"timezone": "UTC", "quietHours": app.an_hour_of_quiet("defer")})
}

async fn patch(app: &TestApp, survey: Uuid, change: Value) {
    let path = app.path(&format!("/surveys/{survey}"));
    app.patch(&path, &app.editor(), &change).await.ok();
}

/// Something else, which takes the room that a cap leaves.
async fn in_the_way(app: &TestApp, session: &Session) {
    app.set(|settings| {
        settings.frequency.surveys = Some(Cap {
            max: 1,
            window_days: 1,
        });
    })
    .await;
    app.survey(&json!({"kind": "event", "eventName": "visit"}))
        .await;
    assert_eq!(app.fires(session, "visit", &json!({})).await, 1);
}

async fn a_cap_does_not_use_up_the_one_firing(app: &mut TestApp) {
    let ada = app.session("ada").await;
    in_the_way(app, &ada).await;
    app.survey(&once()).await;
    assert_eq!(buys(app, &ada).await, 0);
    assert_eq!(buys(app, &ada).await, 0, "still");
    app.restart().await;
    app.advance(601);
    assert_eq!(buys(app, &ada).await, 1);
    app.advance(601);
    assert_eq!(buys(app, &ada).await, 0, "it has fired");
}

async fn neither_does_consent_nor_the_sample_nor_a_window(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let survey = app
        .survey_with(&json!({"trigger": once(), "audience": {"samplePercent": 0}}))
        .await;
    assert_eq!(buys(app, &ada).await, 0);
    let quiet = app.an_hour_of_quiet("drop");
    patch(
        app,
        survey,
        json!({"audience": null, "schedule": {"timezone": "UTC", "quietHours": quiet}}),
    )
    .await;
    assert_eq!(buys(app, &ada).await, 0);
    patch(app, survey, json!({"schedule": null})).await;
    may_message(app, &ada, false).await;
    assert_eq!(buys(app, &ada).await, 0);
    may_message(app, &ada, true).await;
    assert_eq!(buys(app, &ada).await, 1);
    assert_eq!(buys(app, &ada).await, 0);
}

async fn of_one_batch_one_fires(app: &mut TestApp) {
    let ada = app.session("ada").await;
    app.survey(&once()).await;
    may_message(app, &ada, false).await;
    assert_eq!(buys(app, &ada).await, 0);
    may_message(app, &ada, true).await;
    let events: Vec<Value> = (0..3)
        .map(|_| app.event(&ada, "purchase", &json!({})))
        .collect();
    let data = app.ingest_and_ask(&ada, &events).await;
    assert_eq!(instruction_ids(&data["instructions"]).len(), 1);
    assert_eq!(buys(app, &ada).await, 0);
}

async fn the_one_of_a_session_is_the_sessions(app: &mut TestApp) {
    let ada = app.session("ada").await;
    app.survey(&trigger(json!({"mode": "once_per_session"})))
        .await;
    may_message(app, &ada, false).await;
    assert_eq!(buys(app, &ada).await, 0);
    may_message(app, &ada, true).await;
    assert_eq!(buys(app, &ada).await, 1);
    assert_eq!(buys(app, &ada).await, 0);
    app.advance(1_801);
    assert_eq!(buys(app, &ada).await, 1, "another session");
    assert_eq!(buys(app, &ada).await, 0);
}

async fn after_a_delay_it_is_the_same(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let mut late = once();
    late["delaySeconds"] = json!(60);
    app.survey(&late).await;
    assert_eq!(buys(app, &ada).await, 0);
    may_message(app, &ada, false).await;
    app.advance(61);
    app.until("it is held back", async || {
        app.rows::<(Uuid,)>("SELECT id FROM instructions WHERE suppressed_by = 'consent'")
            .await
            .len()
            == 1
    })
    .await;
    may_message(app, &ada, true).await;
    for _ in 0..2 {
        assert_eq!(buys(app, &ada).await, 0);
        app.advance(61);
        app.until("it fires", async || {
            app.count("timers").await == 0 && instruction_ids(&app.offered(&ada).await).len() == 1
        })
        .await;
    }
}

async fn what_waited_and_came_to_nothing_has_not_fired(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let survey = app
        .survey_with(&json!({"trigger": once(), "schedule": quiet_schedule(app)}))
        .await;
    assert_eq!(buys(app, &ada).await, 0);
    assert_eq!(buys(app, &ada).await, 0, "the first of them waits");
    assert_eq!(app.count("occasions").await, 1);
    patch(app, survey, json!({"status": "paused"})).await;
    app.advance(2 * 3_600);
    app.until("it is dropped", async || app.count("occasions").await == 0)
        .await;
    patch(app, survey, json!({"status": "active"})).await;
    assert_eq!(buys(app, &ada).await, 1);
    assert_eq!(buys(app, &ada).await, 0);
}

async fn what_had_an_effect_has_fired_whatever_became_of_it(app: &mut TestApp) {
    let ada = app.session("ada").await;
    app.survey(&once()).await;
    assert_eq!(buys(app, &ada).await, 1);
    let id = instruction_ids(&app.offered(&ada).await).remove(0);
    app.acknowledge(&ada, &id, "discarded").await;
    assert_eq!(
        buys(app, &ada).await,
        0,
        "the cap is given back, the firing was one"
    );
}

async fn modes_that_count_events_count_them(app: &mut TestApp) {
    let ada = app.session("ada").await;
    app.survey(&trigger(json!({"mode": "first"}))).await;
    app.survey(&trigger(json!({"mode": "nth", "n": 2}))).await;
    may_message(app, &ada, false).await;
    assert_eq!(buys(app, &ada).await, 0);
    may_message(app, &ada, true).await;
    assert_eq!(buys(app, &ada).await, 1, "the second, and no first again");
    assert_eq!(buys(app, &ada).await, 0);
}

async fn what_one_of_two_has_had_is_not_fired_again_when_they_become_one(app: &mut TestApp) {
    app.survey(&once()).await;
    let backend = Backend::new(app).await;
    let phone = backend.identify(app, "phone", "e-1").await;
    may_message(app, &phone, false).await;
    assert_eq!(buys(app, &phone).await, 0);
    app.settle().await;
    let web = app.session("web").await;
    assert_eq!(buys(app, &web).await, 1);
    may_message(app, &phone, true).await;

    let merged = backend.identify(app, "web", "e-1").await;
    assert_eq!(buys(app, &merged).await, 0);
}

async fn what_neither_of_two_has_had_fires_when_they_become_one(app: &mut TestApp) {
    app.survey(&once()).await;
    let backend = Backend::new(app).await;
    let phone = backend.identify(app, "phone", "e-1").await;
    let web = app.session("web").await;
    for session in [&phone, &web] {
        may_message(app, session, false).await;
        assert_eq!(buys(app, session).await, 0);
    }
    app.settle().await;
    may_message(app, &phone, true).await;

    let merged = backend.identify(app, "web", "e-1").await;
    assert_eq!(buys(app, &merged).await, 1);
    assert_eq!(buys(app, &merged).await, 0);
}

/// How many waiting firings each merge has dropped that dropped anything.
async fn dropped(app: &TestApp) -> Value {
    let entries = app.audited("person.merged").await;
    let counts = entries.iter().map(|entry| &entry["detail"]["dropped"]);
    counts
        .map(|dropped| dropped["waitingFirings"].clone())
        .collect()
}

async fn of_two_who_wait_when_they_become_one_one_waits_on(app: &mut TestApp) {
    app.survey_with(&json!({"trigger": once(), "schedule": quiet_schedule(app)}))
        .await;
    let backend = Backend::new(app).await;
    let phone = backend.identify(app, "phone", "e-1").await;
    let web = app.session("web").await;
    for session in [&phone, &web] {
        assert_eq!(buys(app, session).await, 0);
    }
    assert_eq!(app.count("occasions").await, 2);

    backend.identify(app, "web", "e-1").await;
    assert_eq!(app.count("occasions").await, 1);
    assert_eq!(dropped(app).await, json!([1]));
    app.advance(2 * 3_600);
    app.until("it takes effect", async || {
        app.count("occasions").await == 0 && app.count("instructions").await > 0
    })
    .await;
    let merged = backend.identify(app, "web", "e-1").await;
    assert_eq!(instruction_ids(&app.offered(&merged).await).len(), 1);
    assert_eq!(buys(app, &merged).await, 0, "it has fired");
}

async fn nobody_waits_for_what_one_of_two_has_had(app: &mut TestApp) {
    let survey = app.survey(&once()).await;
    let backend = Backend::new(app).await;
    let phone = backend.identify(app, "phone", "e-1").await;
    let tablet = backend.identify(app, "tablet", "e-2").await;
    let (web, other) = (app.session("web").await, app.session("other").await);
    // Ada has had it on her phone, Bob where nobody knew that it was he.
    for session in [&phone, &other] {
        assert_eq!(buys(app, session).await, 1);
    }
    // A cap is given back. The firing was one.
    let shown = instruction_ids(&app.offered(&phone).await).remove(0);
    app.acknowledge(&phone, &shown, "discarded").await;
    patch(app, survey, json!({"schedule": quiet_schedule(app)})).await;
    for session in [&web, &tablet] {
        assert_eq!(buys(app, session).await, 0);
    }
    assert_eq!(app.count("occasions").await, 2);

    let both = [("web", "e-1", 0), ("other", "e-2", 1)];
    for (device, person, _) in both {
        backend.identify(app, device, person).await;
    }
    assert_eq!(app.count("occasions").await, 0);
    assert_eq!(dropped(app).await, json!([1, 1]));
    app.advance(2 * 3_600);
    for (device, person, left) in both {
        let session = backend.identify(app, device, person).await;
        assert_eq!(buys(app, &session).await, 0);
        assert_eq!(instruction_ids(&app.offered(&session).await).len(), left);
    }
}
