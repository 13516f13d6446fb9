//! What is removed when its time is over (contract 13, `retention`).

use std::time::Duration;

use nudge_apps::key::Kind;
use nudge_db::Dialect;
use nudge_platform::rounds::Round;
use serde_json::json;
use tempfile::TempDir;
use tests::session::text;
use tests::{TestApp, on_both_backends};
use uuid::Uuid;

use crate::concurrency::join;
use crate::two_servers::node_with;

on_both_backends!(
    dead_letters_go_after_their_days,
    events_go_only_where_an_app_says_so,
    an_event_that_a_timer_needs_stays,
    an_event_that_was_removed_is_known_as_long_as_it_may_be_sent,
    events_with_requests_stay_and_those_behind_them_go,
    one_process_at_a_time_has_a_round,
    jobs_go_thirty_days_after_their_end,
    refused_events_go_whatever_becomes_of_another_apps,
);

const DAY: u64 = 24 * 3600;
/// The round of the server, which is not due in between.
const ROUND: Round = Round {
    name: "retention",
    pause: Duration::from_hours(1),
};

async fn set(app: &TestApp, body: serde_json::Value) {
    app.patch(
        &app.path("/settings"),
        &app.admin(),
        &json!({"retention": body}),
    )
    .await
    .ok();
}

/// Waits until the server's next round has ended.
pub(crate) async fn round(app: &TestApp) {
    app.advance(3600);
    app.until("the round does not end", async || {
        let rounds: Vec<(i64,)> = app
            .rows("SELECT next_at FROM rounds WHERE name = 'retention'")
            .await;
        rounds.iter().any(|(next_at,)| *next_at > app.clock.now().0)
    })
    .await;
}

/// Two rounds: the first one notes the ids of events that may still be sent again, the second one removes them.
async fn two_rounds(app: &TestApp) {
    round(app).await;
    round(app).await;
}

/// Read from the database: the demo app's access tokens last for thirty days.
async fn letters(app: &TestApp) -> usize {
    let rows: Vec<(String,)> = app.rows("SELECT event_name FROM dead_letters").await;
    rows.len()
}

async fn dead_letters_go_after_their_days(app: &mut TestApp) {
    app.define(
        "strict",
        &json!({"properties": [{"name": "total", "type": "number", "required": true}]}),
    )
    .await;
    let ada = app.session("ada").await;
    let event = app.event(&ada, "strict", &json!({}));
    assert_eq!(app.ingest(&ada, &[event]).await.ok()["rejected"], 1);
    assert_eq!(letters(app).await, 1);
    // As if another had been replayed that came at the same time.
    let mut tx = app.services().db.write().await.unwrap();
    tx.sql("INSERT INTO replayed_letters (id, app_id, received_at) SELECT $1, app_id, received_at FROM dead_letters")
        .bind(app.id())
        .execute()
        .await
        .unwrap();
    tx.commit().await.unwrap();
    app.advance(29 * DAY);
    let ben = app.session("ben").await;
    let event = app.event(&ben, "strict", &json!({}));
    app.ingest(&ben, &[event]).await.ok();
    app.advance(DAY + 3600);
    app.until("the older letter stays", async || letters(app).await == 1)
        .await;
    app.until("it is known for ever what was replayed", async || {
        app.count("replayed_letters").await == 0
    })
    .await;

    app.set(|settings| settings.retention.dead_letters_days = 1)
        .await;
    app.advance(3600);
    app.until("the letter outlives its days", async || {
        letters(app).await == 0
    })
    .await;
}

async fn events_go_only_where_an_app_says_so(app: &mut TestApp) {
    for number in 0..250 {
        let someone = app.session(&format!("someone-{number}")).await;
        let events = [
            app.event(&someone, "old", &json!({})),
            app.event(&someone, "old", &json!({})),
        ];
        app.ingest(&someone, &events).await.ok();
    }
    app.settle().await;
    app.advance(10 * DAY);
    let ada = app.session("ada").await;
    let young = app.event(&ada, "young", &json!({}));
    app.ingest(&ada, &[young]).await.ok();
    app.settle().await;
    app.advance(3600);
    app.settle().await;
    assert_eq!(
        app.stored("old").await,
        500,
        "without a setting nothing goes"
    );

    set(app, json!({"eventsDays": 10})).await;
    two_rounds(app).await;
    assert_eq!(app.stored("old").await, 0);
    assert_eq!(app.stored("young").await, 1);
}

async fn an_event_that_a_timer_needs_stays(app: &mut TestApp) {
    app.survey(&json!({
        "kind": "event", "eventName": "purchase", "occurrence": {"mode": "every"}, "delaySeconds": 3 * DAY,
    }))
    .await;
    set(app, json!({"eventsDays": 1})).await;
    let ada = app.session("ada").await;
    let events = [
        app.event(&ada, "purchase", &json!({})),
        app.event(&ada, "visit", &json!({})),
    ];
    app.ingest(&ada, &events).await.ok();
    app.settle().await;
    app.advance(DAY);
    two_rounds(app).await;
    assert_eq!(app.stored("visit").await, 0);
    assert_eq!(app.stored("purchase").await, 1);

    app.advance(2 * DAY);
    let ada = app.session("ada").await;
    app.until("the timer never fires", async || {
        app.offered(&ada).await.as_array().unwrap().len() == 1
    })
    .await;
}

/// More events than one step takes wait for a request of their alias, and hide none that are to go.
async fn events_with_requests_stay_and_those_behind_them_go(app: &mut TestApp) {
    let (ada, ben) = (app.session("ada").await, app.session("ben").await);
    for someone in [&ada, &ben] {
        for _ in 0..6 {
            let events: Vec<_> = (0..100)
                .map(|_| app.event(someone, "old", &json!({})))
                .collect();
            app.ingest(someone, &events).await.ok();
        }
    }
    app.settle().await;
    let mut tx = app.services().db.write().await.unwrap();
    // In the hands of nobody whom this process would take it from.
    tx.sql("INSERT INTO pending (id, app_id, alias_number, ordinal, node) SELECT 1000000, app_id, alias_number, 0, id FROM events, nodes ORDER BY seq LIMIT 1")
        .execute()
        .await
        .unwrap();
    tx.commit().await.unwrap();
    set(app, json!({"eventsDays": 1})).await;
    app.advance(DAY);
    two_rounds(app).await;
    assert_eq!(app.stored("old").await, 600);
    let mut tx = app.services().db.write().await.unwrap();
    tx.sql("DELETE FROM pending WHERE id = 1000000")
        .execute()
        .await
        .unwrap();
    tx.commit().await.unwrap();
    two_rounds(app).await;
    assert_eq!(app.stored("old").await, 0);
}

async fn an_event_that_was_removed_is_known_as_long_as_it_may_be_sent(app: &mut TestApp) {
    app.survey(&json!({
        "kind": "event", "eventName": "purchase", "occurrence": {"mode": "every"},
    }))
    .await;
    set(app, json!({"eventsDays": 1})).await;
    let ada = app.session("ada").await;
    let event = app.event(&ada, "purchase", &json!({}));
    app.ingest(&ada, std::slice::from_ref(&event)).await.ok();
    app.settle().await;
    let fired = app.count("instructions").await;
    assert_eq!(fired, 1);
    app.advance(DAY);
    two_rounds(app).await;
    assert_eq!(app.stored("purchase").await, 0);

    let ada = app.session("ada").await;
    let answer = app.ingest(&ada, std::slice::from_ref(&event)).await.ok();
    assert_eq!(answer["accepted"], 1, "{answer}");
    // From another device of hers, too.
    let backend = crate::identity::Backend::new(app).await;
    let ada = backend.identify(app, "ada", "e-ada").await;
    let tablet = backend.identify(app, "tablet", "e-ada").await;
    assert_eq!(tablet.subject_id, ada.subject_id);
    let mut again = event.clone();
    again["anonymousId"] = json!("tablet");
    let answer = app.ingest(&tablet, &[again]).await.ok();
    assert_eq!(answer["accepted"], 1, "{answer}");
    // In a form in which it would not be taken.
    let mut bad = event.clone();
    bad["name"] = json!("");
    let answer = app.ingest(&ada, &[bad]).await.ok();
    assert_eq!(answer["accepted"], 1, "{answer}");
    app.settle().await;
    assert_eq!(app.stored("purchase").await, 0);
    assert_eq!(app.count("instructions").await, fired);
    // Another one of the same time is new.
    let mut other = event.clone();
    other["eventId"] = json!(app.id());
    app.ingest(&ada, &[other]).await.ok();
    app.settle().await;
    assert_eq!(app.stored("purchase").await, 1);

    app.advance(29 * DAY);
    round(app).await;
    let ada = backend.identify(app, "ada", "e-ada").await;
    let answer = app.ingest(&ada, &[event]).await.ok();
    assert_eq!(answer["errors"][0]["code"], "timestamp_out_of_window");
    assert_eq!(app.count("removed_events").await, 0);
}

async fn one_process_at_a_time_has_a_round(app: &mut TestApp) {
    let now = app.clock.now();
    let db = &app.services().db;
    let begin = |node: Uuid, at| async move {
        let mut tx = db.write().await.unwrap();
        let begun = ROUND.begin(&mut tx, node, at).await.unwrap();
        tx.commit().await.unwrap();
        begun
    };
    let end = |node: Uuid, at| async move {
        let mut tx = db.write().await.unwrap();
        ROUND.end(&mut tx, node, at).await.unwrap();
        tx.commit().await.unwrap();
    };
    let pause = |node: Option<Uuid>| async move {
        let mut tx = db.write().await.unwrap();
        tx.sql("UPDATE rounds SET next_at = 0, node = $1")
            .bind(node)
            .execute()
            .await
            .unwrap();
        tx.commit().await.unwrap();
    };
    app.until("the server's first round does not end", async || {
        let rounds: Vec<(i64,)> = app.rows("SELECT next_at FROM rounds").await;
        rounds[0].0 > 0
    })
    .await;
    let nodes: Vec<Uuid> = (0..8).map(|_| app.id()).collect();
    pause(None).await;
    let outcomes = join(nodes.iter().map(|node| begin(*node, now))).await;
    let winners: Vec<&Uuid> = nodes
        .iter()
        .zip(&outcomes)
        .filter(|it| *it.1)
        .map(|it| it.0)
        .collect();
    assert_eq!(winners.len(), 1);
    let winner = winners[0];
    let other = nodes.iter().find(|node| *node != winner).unwrap();
    assert!(
        begin(*winner, now).await,
        "it goes on with what it has begun"
    );

    let next_at = now.plus(ROUND.pause);
    end(*other, next_at).await;
    assert!(!begin(*other, now).await, "what another has is not ended");
    end(*winner, next_at).await;
    assert!(!begin(*winner, now).await, "it is not due");
    let set_back = now.minus(Duration::from_secs(1));
    assert!(begin(*other, set_back).await, "a clock put it off");
    // The server's own loop may have it now: it is left as after a round.
    end(*other, next_at).await;
}

/// A process has the round and falls silent in it. Until that is noticed, no other one removes anything.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_round_that_was_not_finished_is_another_processs() {
    let url = tests::postgres::database().await;
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let silence = 20 * DAY;
    let one = node_with(&url, folder.path(), "one", |config| {
        config.pipeline.node_timeout_seconds = silence;
    })
    .await;
    let ada = one.session("ada").await;
    let event = one.event(&ada, "old", &json!({}));
    one.ingest(&ada, &[event]).await.ok();
    one.settle().await;
    set(&one, json!({"eventsDays": 1})).await;
    let rounds = || one.rows::<(Option<Uuid>, i64)>("SELECT node, next_at FROM rounds");
    one.until("the first round does not end", async || {
        rounds().await[0].1 > 0
    })
    .await;
    let gone = one.id();
    let mut tx = one.services().db.write().await.unwrap();
    tx.sql("INSERT INTO nodes (id, started_at, heartbeat_at) VALUES ($1, $2, $2)")
        .bind(gone)
        .bind(one.clock.now())
        .execute()
        .await
        .unwrap();
    tx.sql("UPDATE rounds SET node = $1, next_at = 0")
        .bind(gone)
        .execute()
        .await
        .unwrap();
    tx.commit().await.unwrap();

    // What every process removes tells that the loop has come past the round, twice.
    for days in [2, 2] {
        let refused = json!({"name": "", "timestamp": one.time(0)});
        let ada = one.session("ada").await;
        one.ingest(&ada, &[refused]).await;
        assert_eq!(one.count("rejected_events").await, 1);
        one.advance(days * DAY);
        one.until("refused events stay", async || {
            one.count("rejected_events").await == 0
        })
        .await;
    }
    assert_eq!(one.stored("old").await, 1);

    one.advance(silence);
    one.until("nobody goes on with the round", async || {
        // Who may not begin asks again a little later.
        one.advance(60);
        one.stored("old").await == 0
    })
    .await;
    one.until("the round is in no hand", async || {
        rounds().await[0].0.is_none()
    })
    .await;
    one.finish().await;
}

/// What was done about somebody's privacy is on record for good.
async fn jobs_go_thirty_days_after_their_end(app: &mut TestApp) {
    let acknowledge = app.path("/dead-letters/acknowledge");
    let filter = json!({"filter": {"stage": "validation"}});
    let queued = app.post(&acknowledge, &app.admin(), &filter).await;
    let job = app.path(&format!("/jobs/{}", text(&queued.data(202), "jobId")));
    app.session("ada").await;
    let deletion = crate::deletion::delete(app, &json!({"anonymousId": "ada"})).await;
    let body = json!({"name": "Gone"});
    let gone = app.post("/v1/apps", &app.admin(), &body).await.data(201);
    app.delete(&format!("/v1/apps/{}", text(&gone, "id")), &app.admin())
        .await
        .data(204);
    app.finish_jobs().await;
    app.advance(29 * DAY);
    assert_eq!(
        app.get(&job, &app.viewer()).await.ok()["status"],
        "completed"
    );
    assert_eq!(
        crate::deletion::deletion(app, &deletion).await["status"],
        "completed"
    );

    app.advance(DAY + 3600);
    app.until("the job outlives its days", async || {
        let kinds: Vec<(String,)> = app.rows("SELECT kind FROM jobs ORDER BY kind").await;
        kinds == [("privacy.delete".to_owned(),)]
    })
    .await;
}

/// The database removes nothing of one app's.
async fn refused_events_go_whatever_becomes_of_another_apps(app: &mut TestApp) {
    app.another_app(app.access.workspace_id, Kind::Write, &[])
        .await;
    let mut tx = app.services().db.write().await.unwrap();
    let apps = nudge_campaigns::apps::versions(&mut tx).await.unwrap();
    assert_eq!(apps.len(), 2);
    for (number, (app_id, _)) in apps.iter().enumerate() {
        tx.sql(
            "INSERT INTO rejected_events (id, app_id, alias_number, name, received_at, source, errors)
             VALUES ($1, $2, 1, $3, $4, 'sdk', '[]')",
        )
        .bind(app.id())
        .bind(*app_id)
        .bind(if number == 0 { "stays" } else { "goes" })
        .bind(app.clock.now())
        .execute()
        .await
        .unwrap();
    }
    let refuse: &[&str] = match tx.dialect() {
        Dialect::Sqlite => &[
            "CREATE TRIGGER refuse BEFORE DELETE ON rejected_events WHEN old.name = 'stays'
             BEGIN SELECT RAISE(ABORT, 'refused'); END",
        ],
        Dialect::Postgres => &[
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN RAISE EXCEPTION 'refused'; END $$",
            "CREATE TRIGGER refuse BEFORE DELETE ON rejected_events FOR EACH ROW
             WHEN (old.name = 'stays') EXECUTE FUNCTION refuse()",
        ],
    };
    for statement in refuse {
        tx.sql(statement).execute().await.unwrap();
    }
    tx.commit().await.unwrap();

    app.advance(2 * 3600);
    app.until("the other app's goes", async || {
        let left: Vec<(String,)> = app.rows("SELECT name FROM rejected_events").await;
        left.iter().all(|(name,)| name == "stays")
    })
    .await;
    assert_eq!(app.count("rejected_events").await, 1);
}
