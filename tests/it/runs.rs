//! Campaigns that the calendar begins, for everybody at once (contract 7, `mode: scheduled`; contract 8, trigger
//! kind `schedule`).

use nudge_db::Dialect;
use serde_json::{Value, json};
use tests::session::text;
use tests::{Session, TestApp, on_both_backends};
use uuid::Uuid;

on_both_backends!(
    everybody_gets_it_once,
    what_a_run_makes_need_not_be_claimed,
    a_run_begins_when_it_is_said,
    a_run_by_a_rule_comes_round,
    a_run_that_was_missed_is_made_up_for_once,
    by_everybodys_own_clock,
    who_is_yet_to_see_the_time_of_today_gets_todays_run,
    runs_that_were_missed_reach_everybody_once,
    a_paused_run_goes_on_when_it_is_resumed,
    nothing_is_left_of_a_run_whose_campaign_is_over,
    a_delay_holds_for_a_run_too,
    a_delay_of_a_run_that_was_paused_goes_on,
    a_decision_about_an_occasion_can_be_made_again,
    nobody_can_send_the_event_of_an_occasion,
    mistakes_in_a_rule_are_named,
    a_broadcast_goes_to_everybody_once,
    nothing_of_a_broadcast_is_sent_while_it_rests,
    what_waits_of_a_paused_broadcast_goes_on,
);

const DAY: u64 = 86_400;

pub(crate) async fn scheduled(app: &TestApp, parts: Value) -> Uuid {
    let mut body = json!({"mode": "scheduled", "trigger": null});
    let body = body.as_object_mut().unwrap();
    body.extend(parts.as_object().unwrap().clone());
    app.survey_with(&json!(body)).await
}

pub(crate) async fn set(app: &TestApp, survey: Uuid, change: Value) {
    let path = app.path(&format!("/surveys/{survey}"));
    app.patch(&path, &app.editor(), &change).await.ok();
}

/// How many instructions there are, and of how many people.
pub(crate) async fn issued(app: &TestApp) -> (i64, i64) {
    let counts: Vec<(i64, i64)> = app
        .rows("SELECT count(*), count(DISTINCT subject_id) FROM instructions")
        .await;
    counts[0]
}

/// Waits until every run that has begun is through with everybody.
pub(crate) async fn over(app: &TestApp, runs: usize) {
    app.until("the runs end", async || {
        let jobs: Vec<(String,)> = app
            .rows("SELECT state FROM jobs WHERE kind = 'campaign.run'")
            .await;
        let ended = jobs.iter().filter(|(state,)| state == "completed").count();
        assert!(ended <= runs, "more runs than there should be");
        ended == runs && waiting(app).await == 0
    })
    .await;
}

/// How many occasions and timers are due and not done.
pub(crate) async fn waiting(app: &TestApp) -> i64 {
    let now = app.clock.now();
    let due: Vec<(i64,)> = app
        .rows("SELECT due_at FROM occasions UNION ALL SELECT due_at FROM timers")
        .await;
    let due = due.iter().filter(|(at,)| *at <= now.0).count();
    i64::try_from(due).unwrap()
}

pub(crate) async fn in_zone(app: &TestApp, name: &str, zone: &str) -> Session {
    let session = app.session(name).await;
    let event = app.event(&session, "opened", &json!({}));
    let mut batch = session.batch(&[event]);
    batch["context"]["timezone"] = json!(zone);
    app.post_batch(&session, &batch).await.ok();
    app.settle().await;
    session
}

async fn everybody_gets_it_once(app: &mut TestApp) {
    // More than two pages.
    app.people(1_200).await;
    let ada = app.session("ada").await;
    let survey = scheduled(app, json!({})).await;
    over(app, 1).await;
    assert_eq!(issued(app).await, (1_201, 1_201));
    let offered = app.offered(&ada).await;
    assert_eq!(offered[0]["campaignId"], json!(survey));
    assert!(offered[0].get("trigger").is_none());

    // Who comes later is not in it, and nothing begins it again.
    app.session("bob").await;
    set(app, survey, json!({"status": "paused"})).await;
    set(app, survey, json!({"status": "active", "name": "Again?"})).await;
    app.restart().await;
    app.advance(DAY);
    set(app, survey, json!({"status": "draft"})).await;
    set(app, survey, json!({"status": "active"})).await;
    for late in ["bob", "carl"] {
        let late = app.session(late).await;
        assert_eq!(app.poll(&late, "?wait=1").await.ok()["items"], json!([]));
    }
    over(app, 1).await;
    assert_eq!(issued(app).await, (1_201, 1_201));
}

/// It goes straight to the pipeline of the process that runs it.
async fn what_a_run_makes_need_not_be_claimed(app: &mut TestApp) {
    app.people(600).await;
    let mut tx = app.services().db.write().await.unwrap();
    let refuse_claims: &[&str] = match tx.dialect() {
        Dialect::Sqlite => &["CREATE TRIGGER unclaimed BEFORE UPDATE OF node ON occasions
             BEGIN SELECT RAISE(ABORT, 'claimed'); END"],
        Dialect::Postgres => &[
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''claimed''; END'",
            "CREATE TRIGGER unclaimed BEFORE UPDATE OF node ON occasions FOR EACH ROW EXECUTE FUNCTION refuse()",
        ],
    };
    for statement in refuse_claims {
        tx.sql(statement).execute().await.unwrap();
    }
    tx.commit().await.unwrap();
    scheduled(app, json!({})).await;
    over(app, 1).await;
    assert_eq!(issued(app).await, (600, 600));
}

async fn a_run_begins_when_it_is_said(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let schedule = json!({"startAt": app.time(3_600)});
    scheduled(app, json!({"schedule": schedule})).await;
    app.advance(3_500);
    app.restart().await;
    assert_eq!(app.offered(&ada).await, json!([]));
    let jobs: Vec<(String,)> = app.rows("SELECT state FROM jobs").await;
    assert!(jobs.is_empty());

    app.advance(101);
    let polled = app.poll(&ada, "?wait=25").await.ok();
    assert_eq!(polled["items"].as_array().unwrap().len(), 1);
    over(app, 1).await;
    assert_eq!(issued(app).await, (1, 1));
}

pub(crate) fn daily(zone: &str) -> Value {
    json!({
        "trigger": {"kind": "schedule", "every": "day", "at": "09:00"},
        "schedule": {"timezone": zone},
    })
}

/// Moves the clock to shortly after the next 09:00 UTC.
pub(crate) fn next_morning(app: &TestApp) {
    let day = i64::try_from(DAY).unwrap();
    let into_the_day = app.clock.now().seconds().rem_euclid(day);
    let until = (9 * 3_600 + 1 - into_the_day).rem_euclid(day);
    app.advance(u64::try_from(until).unwrap().max(1));
}

async fn a_run_by_a_rule_comes_round(app: &mut TestApp) {
    app.people(3).await;
    let survey = scheduled(app, daily("UTC")).await;
    for round in 1..4 {
        next_morning(app);
        over(app, usize::try_from(round).unwrap()).await;
        assert_eq!(issued(app).await, (3 * round, 3));
        app.advance(60);
    }
    let view = app
        .get(&app.path(&format!("/surveys/{survey}")), &app.viewer())
        .await
        .ok();
    assert_eq!(view["status"], "active");

    // What comes round while it rests is not made up for.
    set(app, survey, json!({"status": "paused"})).await;
    app.advance(3 * DAY);
    set(app, survey, json!({"status": "active"})).await;
    over(app, 3).await;
    next_morning(app);
    over(app, 4).await;
    assert_eq!(issued(app).await, (12, 3));
}

async fn a_run_that_was_missed_is_made_up_for_once(app: &mut TestApp) {
    app.people(3).await;
    scheduled(app, daily("UTC")).await;
    next_morning(app);
    over(app, 1).await;
    app.stop().await;
    app.advance(3 * DAY + 3_600);
    app.resume().await;
    over(app, 2).await;
    assert_eq!(issued(app).await, (6, 3));
}

async fn by_everybodys_own_clock(app: &mut TestApp) {
    // To 12:00 UTC: the next 09:00 anywhere is Kiritimati's, at 19:00 UTC.
    next_morning(app);
    app.advance(3 * 3_600);
    let kiritimati = in_zone(app, "early", "Pacific/Kiritimati").await;
    let kathmandu = in_zone(app, "kathmandu", "Asia/Kathmandu").await;
    let midway = in_zone(app, "late", "Pacific/Midway").await;
    let nowhere = app.session("nowhere").await;
    scheduled(app, daily("subject")).await;

    // Midway's of today and Kiritimati's of tomorrow are over at 20:00, Kathmandu's at 03:15, UTC's at 09:00, and
    // Kiritimati's next at 19:00.
    let everybody = [&kiritimati, &midway, &kathmandu, &nowhere];
    for (hours, gotten) in [
        (7, [1, 0, 0, 0]),
        (1, [1, 1, 0, 0]),
        (8, [1, 1, 1, 0]),
        (6, [1, 1, 1, 1]),
        (9, [2, 1, 1, 1]),
        (2, [2, 2, 1, 1]),
    ] {
        app.advance(hours * 3_600);
        app.until("it is morning there", async || {
            gotten_by(app, &everybody).await == gotten
        })
        .await;
    }
}

/// How many instructions people have been given.
async fn gotten_by(app: &TestApp, people: &[&Session]) -> Vec<usize> {
    let rows: Vec<(Uuid,)> = app.rows("SELECT subject_id FROM instructions").await;
    let of = |person: &&Session| {
        let id = Uuid::parse_str(&person.subject_id).unwrap();
        rows.iter()
            .filter(|(subject_id,)| *subject_id == id)
            .count()
    };
    people.iter().map(of).collect()
}

async fn who_is_yet_to_see_the_time_of_today_gets_todays_run(app: &mut TestApp) {
    // To 12:00:01 UTC: 09:00 of today has been in Vienna and is yet to come in Los Angeles and Midway.
    next_morning(app);
    app.advance(3 * 3_600);
    let vienna = in_zone(app, "vienna", "Europe/Vienna").await;
    let angeles = in_zone(app, "angeles", "America/Los_Angeles").await;
    let midway = in_zone(app, "midway", "Pacific/Midway").await;
    let survey = scheduled(app, daily("subject")).await;
    let everybody = [&vienna, &angeles, &midway];
    over(app, 1).await;
    assert_eq!(gotten_by(app, &everybody).await, [0, 0, 0]);

    // 18:00 UTC, before Kiritimati's next: 09:00 or 10:00 in Los Angeles.
    app.advance(6 * 3_600);
    app.until("it is morning there", async || {
        gotten_by(app, &everybody).await == [0, 1, 0]
    })
    .await;
    // Nothing comes twice because the campaign rests and goes on within the day.
    set(app, survey, json!({"status": "paused"})).await;
    app.restart().await;
    set(app, survey, json!({"status": "active"})).await;
    app.advance(2 * 3_600);
    app.until("it is morning there", async || {
        gotten_by(app, &everybody).await == [0, 1, 1]
    })
    .await;

    // 09:00 UTC of tomorrow, and 20:00.
    app.advance(13 * 3_600);
    app.until("it is morning there", async || {
        gotten_by(app, &everybody).await == [1, 1, 1]
    })
    .await;
    app.advance(11 * 3_600);
    app.until("it is morning there", async || {
        gotten_by(app, &everybody).await == [1, 2, 2]
    })
    .await;
}

async fn runs_that_were_missed_reach_everybody_once(app: &mut TestApp) {
    next_morning(app);
    app.advance(3 * 3_600);
    let kiritimati = in_zone(app, "kiritimati", "Pacific/Kiritimati").await;
    let midway = in_zone(app, "midway", "Pacific/Midway").await;
    scheduled(app, daily("subject")).await;
    over(app, 1).await;
    app.stop().await;
    // To 19:30 UTC three days on: in Kiritimati 09:00 was half an hour ago; in Midway it is in half an hour.
    app.advance(3 * DAY + 7 * 3_600 + 1_800);
    app.resume().await;
    let everybody = [&kiritimati, &midway];
    // Both get one for what was missed: the newest of their own clock.
    app.until("what was missed is made up for", async || {
        gotten_by(app, &everybody).await == [1, 1]
    })
    .await;
    app.advance(1_800);
    app.until("it is morning there", async || {
        gotten_by(app, &everybody).await == [1, 2]
    })
    .await;
}

async fn a_paused_run_goes_on_when_it_is_resumed(app: &mut TestApp) {
    next_morning(app);
    app.advance(3 * 3_600);
    app.people(20).await;
    let survey = scheduled(app, daily("subject")).await;
    // The run has begun where it is 09:00 first; these have no zone, and wait for UTC's.
    app.advance(8 * 3_600);
    app.until("they wait", async || {
        let waiting: Vec<(i64,)> = app.rows("SELECT due_at FROM occasions").await;
        waiting.len() == 20
    })
    .await;
    set(app, survey, json!({"status": "paused"})).await;
    app.advance(14 * 3_600);
    app.until("they are put off", async || waiting(app).await == 0)
        .await;
    assert_eq!(issued(app).await, (0, 0));
    let kept: Vec<(i64,)> = app.rows("SELECT due_at FROM occasions").await;
    assert_eq!(kept.len(), 20);

    app.restart().await;
    set(app, survey, json!({"status": "active"})).await;
    app.until("they get it", async || {
        // Whoever was taken for paused still is looked at again two seconds later.
        app.advance(1);
        issued(app).await == (20, 20)
    })
    .await;
    let kept: Vec<(i64,)> = app.rows("SELECT due_at FROM occasions").await;
    assert!(kept.is_empty());
}

async fn nothing_is_left_of_a_run_whose_campaign_is_over(app: &mut TestApp) {
    next_morning(app);
    app.advance(3 * 3_600);
    app.people(20).await;
    let mut surveys = Vec::new();
    for _ in 0..2 {
        surveys.push(scheduled(app, daily("subject")).await);
    }
    app.advance(8 * 3_600);
    app.until("they wait", async || {
        let waiting: Vec<(i64,)> = app.rows("SELECT due_at FROM occasions").await;
        waiting.len() == 40
    })
    .await;
    set(app, surveys[0], json!({"status": "archived"})).await;
    let path = app.path(&format!("/surveys/{}", surveys[1]));
    app.delete(&path, &app.editor()).await.data(204);
    app.advance(2);
    app.until("they are gone", async || {
        let waiting: Vec<(i64,)> = app.rows("SELECT due_at FROM occasions").await;
        waiting.is_empty()
    })
    .await;
    let rows: Vec<(i64,)> = app.rows("SELECT count(*) FROM campaign_runs").await;
    assert_eq!(rows, [(1,)]);
    assert_eq!(issued(app).await, (0, 0));
}

async fn a_delay_holds_for_a_run_too(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let trigger = json!({"kind": "schedule", "delaySeconds": 600});
    scheduled(app, json!({"trigger": trigger})).await;
    over(app, 1).await;
    assert_eq!(issued(app).await, (0, 0));
    app.restart().await;
    app.advance(601);
    let polled = app.poll(&ada, "?wait=25").await.ok();
    assert_eq!(polled["items"].as_array().unwrap().len(), 1);
    assert_eq!(issued(app).await, (1, 1));
}

async fn a_delay_of_a_run_that_was_paused_goes_on(app: &mut TestApp) {
    app.people(20).await;
    let trigger = json!({"trigger": {"kind": "schedule", "delaySeconds": 600}});
    let resumed = scheduled(app, trigger.clone()).await;
    let archived = scheduled(app, trigger).await;
    over(app, 2).await;
    set(app, resumed, json!({"status": "paused"})).await;
    set(app, archived, json!({"status": "paused"})).await;
    app.advance(601);
    app.until("they are put off", async || waiting(app).await == 0)
        .await;
    assert_eq!(app.count("timers").await, 40);

    app.restart().await;
    set(app, resumed, json!({"status": "active"})).await;
    set(app, archived, json!({"status": "archived"})).await;
    app.until("nothing is left", async || {
        app.advance(1);
        app.count("timers").await + app.count("run_firings").await == 0
    })
    .await;
    assert_eq!(issued(app).await, (20, 20));
}

async fn a_decision_about_an_occasion_can_be_made_again(app: &mut TestApp) {
    let ada = app.session("ada").await;
    scheduled(app, json!({})).await;
    over(app, 1).await;
    let path = app.path(&format!("/decisions?subjectId={}", ada.subject_id));
    let decisions = app.get(&path, &app.viewer()).await.ok();
    let id = text(&decisions["items"][0], "decisionId");
    let path = app.path(&format!("/decisions/{id}/rerun"));
    let rerun = app.post(&path, &app.admin(), &json!({})).await.ok();
    assert_eq!(rerun["same"], true, "{rerun}");
    assert_eq!(rerun["rerun"]["fired"].as_array().unwrap().len(), 1);
}

async fn nobody_can_send_the_event_of_an_occasion(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let event = app.event(&ada, "$scheduled", &json!({}));
    let data = app.ingest(&ada, &[event]).await.ok();
    assert_eq!(data["errors"][0]["code"], "invalid_name");
    let body = json!({"anonymousId": "bob"});
    scheduled(app, daily("UTC")).await;
    let session = app.post("/v1/sdk/session", &app.sdk(), &body).await.ok();
    assert_eq!(session["sdkConfig"]["immediateTriggers"], json!([]));
}

async fn mistakes_in_a_rule_are_named(app: &mut TestApp) {
    let mut body = tests::session::survey_body();
    body["mode"] = json!("scheduled");
    for (trigger, pointer) in [
        (
            json!({"kind": "schedule", "every": "year", "at": "09:00"}),
            "/trigger/every",
        ),
        (
            json!({"kind": "schedule", "every": "day", "at": "9"}),
            "/trigger/at",
        ),
        (
            json!({"kind": "schedule", "every": "month", "at": "09:00", "dayOfMonth": 32}),
            "/trigger/dayOfMonth",
        ),
    ] {
        body["trigger"] = trigger;
        let answer = app.post(&app.path("/surveys"), &app.editor(), &body).await;
        answer.refused(422, "validation_failed");
        assert_eq!(answer.pointers(), [pointer]);
    }
}

pub(crate) async fn broadcast(app: &TestApp, parts: Value) -> Uuid {
    let mut body = json!({
        "name": "News", "type": "push", "mode": "broadcast", "status": "active",
        "variants": [{"title": "Hello", "body": "There is news"}],
    });
    let whole = body.as_object_mut().unwrap();
    whole.extend(parts.as_object().unwrap().clone());
    let made = app
        .post(&app.path("/campaigns"), &app.editor(), &body)
        .await
        .data(201);
    Uuid::parse_str(&text(&made, "id")).unwrap()
}

/// How many deliveries there are, and of how many people.
pub(crate) async fn delivered(app: &TestApp) -> (i64, i64) {
    let counts: Vec<(i64, i64)> = app
        .rows("SELECT count(*), count(DISTINCT subject_id) FROM deliveries")
        .await;
    counts[0]
}

async fn status_of(app: &TestApp, campaign: Uuid) -> String {
    let path = app.path(&format!("/campaigns/{campaign}"));
    text(&app.get(&path, &app.viewer()).await.ok(), "status")
}

async fn a_broadcast_goes_to_everybody_once(app: &mut TestApp) {
    app.people(600).await;
    // What it would wait for is nothing to a broadcast.
    let trigger = json!({"kind": "event", "eventName": "purchase"});
    let campaign = broadcast(app, json!({"trigger": trigger})).await;
    app.until("it is completed by itself", async || {
        status_of(app, campaign).await == "completed"
    })
    .await;
    assert_eq!(delivered(app).await, (600, 600));
    assert_eq!(app.audited("campaign.completed").await.len(), 1);

    // Nothing begins it again.
    let path = app.path(&format!("/campaigns/{campaign}"));
    let active = json!({"status": "active"});
    app.patch(&path, &app.editor(), &active).await.ok();
    let ada = app.session("ada").await;
    app.fires(&ada, "purchase", &json!({})).await;
    app.restart().await;
    over(app, 1).await;
    assert_eq!(delivered(app).await, (600, 600));

    // Who has it active again has it completed again, whenever it is to start.
    let later = json!({"status": "active", "schedule": {"startAt": app.time(600)}});
    for (change, completed) in [(None, 2), (Some(later), 3)] {
        if let Some(change) = change {
            app.patch(&path, &app.editor(), &change).await.ok();
        }
        app.until("it is completed again", async || {
            status_of(app, campaign).await == "completed"
        })
        .await;
        assert_eq!(app.audited("campaign.completed").await.len(), completed);
    }
    app.advance(601);
    over(app, 1).await;
    assert_eq!(delivered(app).await, (600, 600));
}

async fn nothing_of_a_broadcast_is_sent_while_it_rests(app: &mut TestApp) {
    app.people(20).await;
    let schedule = json!({"startAt": app.time(600)});
    let campaign = broadcast(app, json!({"schedule": schedule})).await;
    let path = app.path(&format!("/campaigns/{campaign}"));
    let set = async |status: &str| {
        let change = json!({"status": status});
        app.patch(&path, &app.editor(), &change).await.ok();
    };
    set("paused").await;
    app.advance(601);
    set("draft").await;
    assert_eq!(delivered(app).await, (0, 0));
    set("active").await;
    app.until("it is completed by itself", async || {
        status_of(app, campaign).await == "completed"
    })
    .await;
    assert_eq!(delivered(app).await, (20, 20));
    app.delete(&path, &app.editor()).await.data(204);
    let rows: Vec<(i64,)> = app.rows("SELECT count(*) FROM campaign_runs").await;
    assert_eq!(rows, [(0,)]);
}

async fn what_waits_of_a_paused_broadcast_goes_on(app: &mut TestApp) {
    app.people(20).await;
    let quiet = app.an_hour_of_quiet("defer");
    let schedule = json!({"timezone": "UTC", "quietHours": quiet});
    let campaign = broadcast(app, json!({"schedule": schedule})).await;
    over(app, 1).await;
    let path = app.path(&format!("/campaigns/{campaign}"));
    for change in [json!({"status": "paused"}), json!({"status": "active"})] {
        app.patch(&path, &app.editor(), &change).await.ok();
        app.advance(2 * 3_600);
        app.until("they are put off", async || waiting(app).await == 0)
            .await;
    }
    app.until("it is completed by itself", async || {
        app.advance(1);
        status_of(app, campaign).await == "completed"
    })
    .await;
    assert_eq!(delivered(app).await, (20, 20));
    assert_eq!(app.count("occasions").await, 0);
}
