//! Between the moment when a deletion is queued and its end nothing that reads shows anything of the person (contract 6).

use std::time::Duration;

use nudge_db::Timestamp;
use nudge_people::privacy::{self, Reference, exports};
use reqwest::Method;
use serde_json::{Value, json};
use tests::session::text;
use tests::{Credential, TestApp, on_both_backends};
use uuid::Uuid;

use crate::attempts::{answer, start};
use crate::backtest::{ask, result};
use crate::deletion::deleted;
use crate::guests::{deploy, name, set_slot, upload};
use crate::person::{SECRETS, everything, execute};

on_both_backends!(
    nothing_that_reads_shows_anything_of_the_person,
    results_show_nothing_while_the_person_is_erased,
    an_export_ends_when_the_deletion_is_queued,
    an_export_that_waits_is_not_made,
    what_is_shown_of_others_stays,
    a_backtest_that_runs_shows_nothing_of_the_person,
);

/// So many seconds from now a job waits, as long as no clock comes there: less than a failed one waits at the most, since
/// of a job that waits for longer the server thinks that the clock was set back.
const LATER: i64 = 240;

/// Has a job wait.
async fn hold(tx: &mut nudge_db::Tx, job_id: Uuid, until: Timestamp) {
    tx.sql("UPDATE jobs SET run_at = $2 WHERE id = $1")
        .bind(job_id)
        .bind(until)
        .execute()
        .await
        .unwrap();
}

fn later(app: &TestApp) -> Timestamp {
    Timestamp(app.clock.now().0 + LATER * 1_000_000)
}

/// Queues a deletion that does not begin yet.
async fn queued(app: &TestApp, anonymous_id: &str) -> Uuid {
    let services = app.services();
    let (now, until) = (app.clock.now(), later(app));
    let mut tx = services.db.write().await.unwrap();
    let reference = Reference::AnonymousId(anonymous_id.to_owned());
    let app_id = app.access.app_id;
    let queued = privacy::delete(
        &mut tx,
        &services.pseudonyms,
        app_id,
        &reference,
        "a test",
        now,
    );
    let job_id = queued.await.unwrap().unwrap().job_id;
    hold(&mut tx, job_id, until).await;
    tx.commit().await.unwrap();
    job_id
}

/// Lets the deletion go on, and waits for its end.
async fn goes_on(app: &TestApp, job_id: Uuid) {
    let mut tx = app.services().db.write().await.unwrap();
    hold(&mut tx, job_id, app.clock.now()).await;
    tx.commit().await.unwrap();
    deleted(app, &job_id.to_string()).await;
}

async fn ids(app: &TestApp, sql: &'static str) -> Vec<Uuid> {
    let rows: Vec<(Uuid,)> = app.rows(sql).await;
    rows.into_iter().map(|row| row.0).collect()
}

/// What reads, and a text of the person's that it shows.
async fn reads(app: &TestApp, subject_id: &str) -> Vec<(String, String)> {
    let id = |texts: &[Uuid]| texts.first().map(Uuid::to_string).unwrap_or_default();
    let letter = id(&ids(
        app,
        "SELECT id FROM dead_letters WHERE stage = 'validation'",
    )
    .await);
    let attempts: Vec<(Uuid, Uuid)> = app.rows("SELECT survey_id, id FROM survey_attempts").await;
    let (survey, attempt) = attempts[0];
    let fired: Vec<(Uuid, Uuid)> = app
        .rows("SELECT campaign_id, trigger_event_id FROM instructions WHERE trigger_event_id IS NOT NULL")
        .await;
    let (campaign, event) = fired[0];
    let delivery = id(&ids(app, "SELECT id FROM deliveries").await);
    let webhook = id(&ids(app, "SELECT id FROM webhooks").await);
    let message = id(&ids(app, "SELECT id FROM webhook_messages").await);
    let subject = || subject_id.to_owned();
    let secret = |index: usize| SECRETS[index].to_owned();
    vec![
        ("/users".to_owned(), subject()),
        (format!("/users?q={}", &SECRETS[0][..12]), subject()),
        (format!("/users?q={}", &SECRETS[4][..12]), subject()),
        (format!("/users?q={}", &subject_id[..9]), subject()),
        (format!("/users/{}", SECRETS[0]), secret(4)),
        (format!("/users/{}", SECRETS[1]), secret(4)),
        (format!("/users/{}", SECRETS[2]), secret(4)),
        (format!("/users/externalId:{}", SECRETS[2]), secret(4)),
        (format!("/users/{}/events", SECRETS[0]), secret(5)),
        (
            format!("/users/{}/plugin-state", SECRETS[0]),
            "\"state\"".to_owned(),
        ),
        ("/dead-letters".to_owned(), secret(0)),
        ("/dead-letters/summary".to_owned(), "checked".to_owned()),
        (format!("/dead-letters/{letter}"), secret(6)),
        ("/push/deliveries".to_owned(), secret(4)),
        (
            format!("/push/deliveries?subjectId={subject_id}"),
            subject(),
        ),
        (format!("/push/deliveries/{delivery}"), subject()),
        ("/decisions".to_owned(), "decisionId".to_owned()),
        (
            format!("/decisions?subjectId={subject_id}"),
            "decisionId".to_owned(),
        ),
        (format!("/surveys/{survey}/responses"), secret(9)),
        (format!("/surveys/{survey}/attempts"), secret(9)),
        (format!("/surveys/{survey}/attempts/{attempt}"), secret(9)),
        (format!("/surveys/{survey}/recipients"), subject()),
        (format!("/surveys/{campaign}/recipients"), subject()),
        (format!("/surveys/{survey}/analytics"), secret(9)),
        (
            format!("/explain?campaignId={campaign}&subjectId={subject_id}&eventId={event}"),
            "trigger".to_owned(),
        ),
        ("/plugins/default-trigger/logs".to_owned(), secret(4)),
        (format!("/push/webhooks/{webhook}/attempts"), message),
    ]
}

/// Puts what the test of deletion only stores where routes find it.
async fn within_reach(app: &TestApp) {
    let webhook = json!({"url": format!("{}/hook", app.access.base_url), "eventTypes": ["sent"], "active": false,
        "description": ""});
    let path = app.path("/push/webhooks");
    let webhook = app.post(&path, &app.admin(), &webhook).await.data(201);
    let mut tx = app.services().db.write().await.unwrap();
    tx.sql("UPDATE webhook_attempts SET webhook_id = $1")
        .bind(Uuid::parse_str(&text(&webhook, "id")).unwrap())
        .execute()
        .await
        .unwrap();
    tx.sql("UPDATE plugin_log SET name = 'default-trigger', owner_id = $1 WHERE name = 'cart'")
        .bind(Uuid::nil())
        .execute()
        .await
        .unwrap();
    tx.commit().await.unwrap();
}

async fn nothing_that_reads_shows_anything_of_the_person(app: &mut TestApp) {
    let ada = everything(app).await;
    within_reach(app).await;
    let reads = reads(app, &ada.subject_id).await;
    for (path, shown) in &reads {
        let data = app.get(&app.path(path), &app.admin()).await.ok();
        assert!(data.to_string().contains(shown), "{path}: {data}");
    }
    let decisions = app.get(&app.path("/decisions"), &app.viewer()).await.ok();
    let decision = text(&decisions["items"][0], "decisionId");
    let definitions = app
        .get(&app.path("/event-definitions"), &app.viewer())
        .await
        .ok();
    let definition = text(&definitions["items"][0], "id");
    let tried = app.path(&format!("/event-definitions/{definition}/dry-run"));
    let since = json!({"sinceHours": 1});
    let before = app.post(&tried, &app.editor(), &since).await.ok();
    assert_eq!(before["failed"], 1, "{before}");

    let job_id = queued(app, SECRETS[0]).await;

    for (path, shown) in &reads {
        let answer = app.get(&app.path(path), &app.admin()).await;
        let body = answer.json().to_string();
        assert!(!body.contains(shown), "{path}: {body}");
        for secret in SECRETS.iter().chain([&ada.subject_id.as_str()]) {
            // What the request says itself may stand in its refusal.
            assert!(
                path.contains(&secret[..8]) || !body.contains(secret),
                "{path}: {body}"
            );
        }
        if path.starts_with("/users?") {
            assert_eq!(answer.ok()["total"], 0, "{path}");
        }
    }
    let after = app.post(&tried, &app.editor(), &since).await.ok();
    assert_eq!(after["failed"], 0, "{after}");
    let state = app.path(&format!("/users/{}/plugin-state", SECRETS[0]));
    app.delete(&state, &app.admin())
        .await
        .refused(404, "not_found");
    let rerun = app.path(&format!("/decisions/{decision}/rerun"));
    app.post(&rerun, &app.editor(), &json!({}))
        .await
        .refused(404, "not_found");
    let preview = json!({"surface": "push", "content": {"title": "t", "body": "b", "weight": 1,
        "openAction": {"action": "open_app"}}, "subjectId": ada.subject_id});
    app.post(
        &app.path("/personalization/preview"),
        &app.viewer(),
        &preview,
    )
    .await
    .refused(404, "subject_not_found");
    goes_on(app, job_id).await;
}

async fn results_show_nothing_while_the_person_is_erased(app: &mut TestApp) {
    everything(app).await;
    let attempts: Vec<(Uuid,)> = app.rows("SELECT survey_id FROM survey_attempts").await;
    let path = app.path(&format!("/surveys/{}/analytics", attempts[0].0));
    let job_id = queued(app, SECRETS[0]).await;
    let erased = goes_on(app, job_id);
    tokio::pin!(erased);
    loop {
        let admin = app.admin();
        let shown = tokio::select! {
            () = &mut erased => return,
            answer = app.get(&path, &admin) => answer.ok(),
        };
        assert_eq!(shown["totals"]["started"], 0, "{shown}");
        assert!(!shown.to_string().contains(SECRETS[10]), "{shown}");
    }
}

async fn an_export_ends_when_the_deletion_is_queued(app: &mut TestApp) {
    app.session("ada").await;
    let id = crate::exports::export(app, &json!({"anonymousId": "ada"})).await;
    let done = crate::exports::reaches(app, &id, "completed").await;
    let url = text(&done, "downloadUrl");
    let url = url[url.find("/v1/").unwrap()..].to_owned();
    let link = || app.request(Method::GET, &url, &Credential::none());
    assert_eq!(link().send().await.unwrap().status(), 200);

    let job_id = queued(app, "ada").await;

    assert_eq!(link().send().await.unwrap().status(), 404);
    let path = app.path(&format!("/gdpr/exports/{id}"));
    let view = app.get(&path, &app.admin()).await.ok();
    assert_eq!(
        (&view["status"], &view["subject"], view.get("downloadUrl")),
        (&json!("expired"), &Value::Null, None)
    );
    app.post(
        &app.path("/gdpr/export"),
        &app.admin(),
        &json!({"anonymousId": "ada"}),
    )
    .await
    .refused(404, "not_found");
    goes_on(app, job_id).await;
}

async fn an_export_that_waits_is_not_made(app: &mut TestApp) {
    app.session("ada").await;
    let services = app.services();
    let (now, until) = (app.clock.now(), later(app));
    let mut tx = services.db.write().await.unwrap();
    let reference = Reference::AnonymousId("ada".to_owned());
    let app_id = app.access.app_id;
    let export = exports::queue(
        &mut tx,
        &services.pseudonyms,
        app_id,
        &reference,
        "a test",
        now,
    );
    let export_id = export.await.unwrap();
    hold(&mut tx, export_id, until).await;
    tx.commit().await.unwrap();

    let job_id = queued(app, "ada").await;

    let mut tx = services.db.write().await.unwrap();
    hold(&mut tx, export_id, app.clock.now()).await;
    tx.commit().await.unwrap();
    let failed = crate::exports::reaches(app, &export_id.to_string(), "failed").await;
    assert_eq!(failed.get("downloadUrl"), None);
    let pieces: Vec<(i64,)> = app.rows("SELECT count(*) FROM privacy_export_chunks").await;
    assert_eq!(pieces, [(0,)]);
    goes_on(app, job_id).await;
}

async fn what_is_shown_of_others_stays(app: &mut TestApp) {
    let ada = everything(app).await;
    let bob = app.session("bob").await;
    app.ingest(&bob, &[app.event(&bob, "purchase", &json!({}))])
        .await
        .ok();
    let broken = app.event(&bob, "checked", &json!({"b": "of bob"}));
    app.ingest(&bob, &[broken]).await.ok();
    let surveys: Vec<(Uuid,)> = app
        .rows("SELECT DISTINCT survey_id FROM survey_attempts")
        .await;
    let survey = surveys[0].0;
    let attempt = start(app, &bob, survey).await;
    answer(app, &bob, &attempt, json!([["words", "of bob"]]))
        .await
        .ok();
    app.until("bob's event is decided", async || {
        let waiting: Vec<(i64,)> = app
            .rows("SELECT count(*) FROM pending WHERE node IS NULL OR device_id IS NOT NULL")
            .await;
        let kept: Vec<(i64,)> = app
            .rows("SELECT count(*) FROM instructions i JOIN aliases a ON a.subject_id = i.subject_id WHERE a.value = 'bob'")
            .await;
        waiting == [(0,)] && kept[0].0 > 0
    })
    .await;
    let job_id = queued(app, SECRETS[0]).await;

    for (path, shown) in [
        ("/users".to_owned(), &bob.subject_id),
        ("/users?q=bo".to_owned(), &bob.subject_id),
        ("/users/bob".to_owned(), &bob.subject_id),
        ("/dead-letters".to_owned(), &"of bob".to_owned()),
        ("/dead-letters/summary".to_owned(), &"checked".to_owned()),
        ("/decisions".to_owned(), &"decisionId".to_owned()),
        (format!("/surveys/{survey}/responses"), &"of bob".to_owned()),
        (format!("/surveys/{survey}/attempts"), &bob.subject_id),
        (format!("/surveys/{survey}/recipients"), &bob.subject_id),
        (format!("/surveys/{survey}/analytics"), &"of bob".to_owned()),
    ] {
        let data = app.get(&app.path(&path), &app.viewer()).await.ok();
        let data = data.to_string();
        assert!(data.contains(shown), "{path}: {data}");
        assert!(!data.contains(&ada.subject_id), "{path}: {data}");
    }
    let users = app.get(&app.path("/users"), &app.viewer()).await.ok();
    assert_eq!(users["total"], 1);
    execute(app, "UPDATE jobs SET run_at = 0", &[]).await;
    deleted(app, &job_id.to_string()).await;
}

async fn a_backtest_that_runs_shows_nothing_of_the_person(app: &mut TestApp) {
    app.config.plugins.deadline_ms = 250;
    app.restart().await;
    deploy(app, 1, 1).await;
    set_slot(app, &name(1)).await.ok();
    upload(app, test_guests::MISBEHAVING.to_vec())
        .await
        .data(201);
    // The active version fires on everything, the other one not on what is small, and takes its time over what is unlucky.
    let config = json!({"kind": "event", "eventName": "order", "mode": "slow_poison"});
    let survey = app.survey(&config).await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    let small = app.event(&ada, "order", &json!({"amount": 5}));
    app.ingest(&ada, &[small]).await.ok();
    let unlucky: Vec<Value> = (0..10)
        .map(|_| app.event(&bob, "order", &json!({"amount": 13})))
        .collect();
    app.ingest(&bob, &unlucky).await.ok();
    app.settle().await;

    let body = json!({"since": app.time(-3600), "campaignId": survey});
    let job = ask(app, "misbehaving", "1.0.0", &body).await.data(202);
    let path = app.path(&format!("/jobs/{}", text(&job, "jobId")));
    app.until("the backtest runs", async || {
        app.get(&path, &app.viewer()).await.ok()["status"] == "running"
    })
    .await;
    tokio::time::sleep(Duration::from_millis(700)).await;
    queued(app, "ada").await;
    let result = result(app, &job).await;
    assert_eq!(result["events"], 11, "{result}");
    assert_eq!(result["onlyActive"], 1, "{result}");
    assert_eq!(result["samples"], json!([]), "{result}");
}
