//! Many at once: one subject, one event, one winner.

use nudge_db::Dialect;
use nudge_people::privacy::exports;
use nudge_platform::jobs::{self, NewJob};
use serde_json::{Value, json};
use tests::session::{instruction_ids, text};
use tests::{Session, TestApp, client, on_both_backends};

on_both_backends!(
    sessions_that_race_make_one_subject,
    users_that_race_make_one_subject,
    an_event_that_is_sent_many_times_at_once_is_stored_and_fires_once,
    changes_that_race_are_all_made_or_refused,
    changes_of_whatever_version_that_race_are_all_made,
    definitions_that_race_are_one,
    subjects_do_not_get_in_each_others_way,
    a_replay_that_races_itself_stores_once,
    jobs_that_race_are_as_many_as_an_app_may_have,
    exports_that_race_are_as_many_as_an_app_may_have,
);

const MANY: usize = 16;

async fn sessions_that_race_make_one_subject(app: &mut TestApp) {
    let body = json!({"anonymousId": "ada"});
    let sdk = app.sdk();
    let answers = join((0..MANY).map(|_| app.post("/v1/sdk/session", &sdk, &body))).await;

    let mut ids: Vec<String> = answers
        .iter()
        .map(|answer| text(&answer.ok()["subject"], "subjectId"))
        .collect();
    ids.dedup();
    assert_eq!(ids.len(), 1);
    let subjects: Vec<(i64,)> = app.rows("SELECT event_count FROM subjects").await;
    assert_eq!(subjects.len(), 1);
}

async fn users_that_race_make_one_subject(app: &mut TestApp) {
    let backend = app.backend();
    let bodies: Vec<Value> = (0..MANY)
        .map(|number| json!({"userId": "u-1", "events": [{"name": "paid", "timestamp": app.time(0), "properties": {"n": number}}]}))
        .collect();
    for answer in join(
        bodies
            .iter()
            .map(|body| app.post("/v1/sdk/ingest", &backend, body)),
    )
    .await
    {
        assert_eq!(answer.ok()["accepted"], 1);
    }
    app.settle().await;
    let counts: Vec<(i64,)> = app.rows("SELECT event_count FROM subjects").await;
    assert_eq!(counts, [(16,)]);
}

async fn an_event_that_is_sent_many_times_at_once_is_stored_and_fires_once(app: &mut TestApp) {
    app.survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    let ada = app.session("ada").await;
    let events = [app.event(&ada, "purchase", &json!({}))];
    let answers = join((0..MANY).map(|_| app.ingest_and_ask(&ada, &events))).await;

    app.settle().await;
    let offered = instruction_ids(&app.offered(&ada).await);
    assert_eq!(offered.len(), 1);
    for data in answers {
        assert_eq!(data["accepted"], 1);
        let at_once = instruction_ids(&data["instructions"]);
        assert!(at_once.is_empty() || at_once == offered, "{at_once:?}");
    }
    assert_eq!(app.stored("purchase").await, 1);
    let counts: Vec<(i64,)> = app.rows("SELECT event_count FROM subjects").await;
    assert_eq!(counts, [(1,)]);
}

async fn changes_that_race_are_all_made_or_refused(app: &mut TestApp) {
    let survey = app.survey_with(&json!({"status": "draft"})).await;
    let path = app.path(&format!("/surveys/{survey}"));
    let changes = (0..MANY).map(|number| {
        let request = app.request(reqwest::Method::PATCH, &path, &app.editor());
        client::send(
            request
                .header("if-match", "\"1\"")
                .json(&json!({"description": number.to_string()})),
        )
    });
    let answers = join(changes).await;

    let made: Vec<Value> = answers
        .iter()
        .filter(|answer| answer.status == 200)
        .map(client::Answer::ok)
        .collect();
    assert_eq!(made.len(), 1);
    for answer in answers.iter().filter(|answer| answer.status != 200) {
        answer.refused(412, "version_mismatch");
    }
    let now = app.get(&path, &app.viewer()).await.ok();
    assert_eq!(
        (&now["version"], &now["description"]),
        (&json!(2), &made[0]["description"])
    );
}

async fn changes_of_whatever_version_that_race_are_all_made(app: &mut TestApp) {
    let hook = json!({"url": "http://127.0.0.1:9/hook", "eventTypes": ["sent"]});
    for (list, body) in [
        (app.path("/surveys"), json!({"name": "n"})),
        (app.path("/campaigns"), json!({"name": "n"})),
        (app.path("/event-definitions"), json!({"name": "n"})),
        (app.path("/push/webhooks"), hook),
    ] {
        let made = app.post(&list, &app.admin(), &body).await.data(201);
        let path = format!("{list}/{}", text(&made, "id"));
        let bodies: Vec<Value> = (0..3 * MANY)
            .map(|number| json!({"description": number.to_string()}))
            .collect();
        let admin = app.admin();
        let changes = bodies.iter().map(|body| app.patch(&path, &admin, body));
        for answer in join(changes).await {
            answer.ok();
        }
        let now = app.get(&path, &admin).await.ok();
        assert_eq!(now["version"], 3 * MANY + 1, "{path}");
    }
}

async fn definitions_that_race_are_one(app: &mut TestApp) {
    let body = json!({"name": "purchase"});
    let (path, editor) = (app.path("/event-definitions"), app.editor());
    let answers = join((0..MANY).map(|_| app.post(&path, &editor, &body))).await;
    assert_eq!(
        answers.iter().filter(|answer| answer.status == 201).count(),
        1
    );
    for answer in answers.iter().filter(|answer| answer.status != 201) {
        answer.refused(409, "event_definition_exists");
    }
}

async fn subjects_do_not_get_in_each_others_way(app: &mut TestApp) {
    app.survey(&json!({"kind": "event", "eventName": "purchase", "occurrence": {"mode": "every_nth", "n": 5}})).await;
    let mut sessions: Vec<Session> = Vec::new();
    for number in 0..MANY {
        sessions.push(app.session(&format!("user-{number}")).await);
    }
    for _ in 0..5 {
        let sending = sessions.iter().map(async |session| {
            let events: Vec<Value> = (0..4)
                .map(|_| app.event(session, "purchase", &json!({})))
                .collect();
            app.ingest(session, &events).await
        });
        for answer in join(sending).await {
            assert_eq!(answer.ok()["accepted"], 4);
        }
    }
    app.settle().await;
    for session in &sessions {
        assert_eq!(instruction_ids(&app.offered(session).await).len(), 4);
    }
    let counts: Vec<(i64,)> = app.rows("SELECT event_count FROM subjects").await;
    assert_eq!(counts, vec![(20,); MANY]);
}

async fn a_replay_that_races_itself_stores_once(app: &mut TestApp) {
    app.define(
        "purchase",
        &json!({"properties": [{"name": "total", "type": "number", "required": true}]}),
    )
    .await;
    let ada = app.session("ada").await;
    let event = app.event(&ada, "purchase", &json!({}));
    let data = app.ingest(&ada, &[event]).await.ok();
    let path = app.path(&format!(
        "/dead-letters/{}/replay",
        text(&data["errors"][0], "deadLetterId")
    ));
    let (editor, body) = (app.editor(), json!({"patch": {"total": 1}}));

    for answer in join((0..MANY).map(|_| app.post(&path, &editor, &body))).await {
        assert_eq!(answer.ok(), json!({"status": "replayed"}));
    }
    app.settle().await;
    assert_eq!(app.stored("purchase").await, 1);
    let counts: Vec<(i64,)> = app.rows("SELECT event_count FROM subjects").await;
    assert_eq!(counts, [(1,)]);
}

/// Lets no job begin, so that none ends meanwhile.
async fn refuse_claims(app: &TestApp) {
    let mut tx = app.services().db.write().await.unwrap();
    let refuse_claims: &[&str] = match tx.dialect() {
        Dialect::Sqlite => &["CREATE TRIGGER unclaimed BEFORE UPDATE OF node ON jobs
             BEGIN SELECT RAISE(ABORT, 'claimed'); END"],
        Dialect::Postgres => &[
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''claimed''; END'",
            "CREATE TRIGGER unclaimed BEFORE UPDATE OF node ON jobs FOR EACH ROW EXECUTE FUNCTION refuse()",
        ],
    };
    for statement in refuse_claims {
        tx.sql(statement).execute().await.unwrap();
    }
    tx.commit().await.unwrap();
}

async fn jobs_that_race_are_as_many_as_an_app_may_have(app: &mut TestApp) {
    refuse_claims(app).await;
    let hook = json!({"url": "http://127.0.0.1:9/hook", "eventTypes": ["sent"]});
    let hooks = app.path("/push/webhooks");
    let hook = app.post(&hooks, &app.admin(), &hook).await.data(201);
    let recover = format!("/push/webhooks/{}/recover", text(&hook, "id"));
    for (path, body, most) in [
        ("/dead-letters/acknowledge", json!({"filter": {}}), 4),
        (&*recover, json!({"since": app.time(-60)}), 10),
    ] {
        let (path, admin) = (app.path(path), app.admin());
        let answers = join((0..MANY).map(|_| app.post(&path, &admin, &body))).await;
        let (queued, refused): (Vec<_>, Vec<_>) =
            answers.iter().partition(|answer| answer.status == 202);
        assert_eq!(queued.len(), most, "{path}");
        for answer in refused {
            answer.refused(422, "limit_exceeded");
        }
    }
}

/// Each is of a person of its own, so that no two wait for one row.
async fn exports_that_race_are_as_many_as_an_app_may_have(app: &mut TestApp) {
    const LEFT: usize = 4;
    refuse_claims(app).await;
    let mut people = Vec::new();
    for number in 0..MANY {
        people.push(app.session(&format!("person-{number}")).await);
    }
    let mut tx = app.services().db.write().await.unwrap();
    for _ in LEFT..100 {
        let job = NewJob {
            app_id: app.access.app_id,
            kind: exports::KIND,
            input: json!({}),
            requested_by: "somebody",
        };
        jobs::queue(&mut tx, &job, app.clock.now()).await.unwrap();
    }
    tx.commit().await.unwrap();
    let (path, admin) = (app.path("/gdpr/export"), app.admin());
    let bodies: Vec<Value> = people
        .iter()
        .map(|session| json!({"anonymousId": session.anonymous_id}))
        .collect();
    let answers = join(bodies.iter().map(|body| app.post(&path, &admin, body))).await;
    let (queued, refused): (Vec<_>, Vec<_>) =
        answers.iter().partition(|answer| answer.status == 202);
    assert_eq!(queued.len(), LEFT);
    for answer in refused {
        answer.refused(422, "limit_exceeded");
    }
}

/// Runs all at once and answers all outcomes, in order.
pub(crate) async fn join<T>(futures: impl Iterator<Item = impl Future<Output = T>>) -> Vec<T> {
    futures_util::future::join_all(futures).await
}
