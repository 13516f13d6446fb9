//! Deletion of a person's data (specification 4.1 rule 8, contract 6): what is erased, what comes late, receipts.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use aws_lc_rs::digest;
use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::future::BoxFuture;
use nudge_platform::analytics::{AnalyticsStore, Erasure, Unconfirmed};
use nudge_platform::tables;
use serde_json::{Value, json};
use tests::session::{hex, text};
use tests::{Credential, TestApp, on_both_backends};
use tokio::task::JoinSet;

use crate::person::{SECRETS, everything, execute, files_with, tables_with};

on_both_backends!(
    nothing_of_a_deleted_person_is_left_anywhere,
    nobody_who_is_deleted_is_a_place_among_people,
    exactly_one_reference_of_a_known_person,
    queueing_stops_everything_at_once,
    whoever_comes_back_under_a_deleted_name_is_nobody,
    the_same_request_answers_the_same_job,
    it_waits_for_the_analytics_store,
    it_waits_before_it_looks_once_more,
    a_restart_goes_on_where_it_was,
    the_list_has_pages,
);

pub(crate) async fn delete(app: &TestApp, reference: &Value) -> String {
    let path = app.path("/gdpr/delete");
    let data = app.post(&path, &app.admin(), reference).await.data(202);
    text(&data, "jobId")
}

pub(crate) async fn deletion(app: &TestApp, job_id: &str) -> Value {
    let path = app.path(&format!("/gdpr/deletions/{job_id}"));
    app.get(&path, &app.admin()).await.ok()
}

pub(crate) async fn deleted(app: &TestApp, job_id: &str) -> Value {
    reaches(app, job_id, "completed").await
}

pub(crate) async fn reaches(app: &TestApp, job_id: &str, status: &str) -> Value {
    app.until(&format!("the deletion is {status}"), async || {
        deletion(app, job_id).await["status"] == status
    })
    .await;
    deletion(app, job_id).await
}

async fn nothing_of_a_deleted_person_is_left_anywhere(app: &mut TestApp) {
    let bob = app.session("bob").await;
    let ada = everything(app).await;
    app.ingest(
        &bob,
        &[app.event(&bob, "purchase", &json!({"note": "of bob"}))],
    )
    .await
    .ok();
    app.until("bob's events are processed", async || {
        !app.offered(&bob).await.as_array().unwrap().is_empty()
    })
    .await;
    let mut secrets: Vec<String> = SECRETS.map(str::to_owned).into();
    secrets.push(ada.subject_id.clone());
    for secret in &secrets {
        assert!(
            !tables_with(app, secret).await.is_empty(),
            "{secret} is stored"
        );
    }
    let known: BTreeSet<&str> = tables::all().map(|table| table.name).collect();
    for (table, rows) in app.dump().await {
        assert!(
            known.contains(table.as_str()),
            "{table}: is it erased with the person? see tables.rs"
        );
        // Whoever is noted there is looked at at once, and not noted any longer.
        let personal =
            table != "segment_checks" && tables::personal().any(|store| store.table.name == table);
        assert!(
            !personal || !rows.is_empty(),
            "{table}: the person of this test has everything"
        );
    }

    let job_id = delete(app, &json!({"externalId": SECRETS[2]})).await;
    let done = deleted(app, &job_id).await;

    for secret in &secrets {
        assert_eq!(
            tables_with(app, secret).await,
            Vec::<String>::new(),
            "{secret}"
        );
        assert_eq!(
            files_with(&app.config.server.data_dir, secret),
            Vec::<std::path::PathBuf>::new(),
            "{secret}"
        );
    }
    for step in done["steps"].as_array().unwrap() {
        assert_eq!(step["state"], "completed", "{step}");
        assert!(step["completedAt"].is_string());
        let empty = step["store"] == "analytics" || step["store"] == "segment_checks";
        assert_eq!(step["deletedCount"] == 0, empty, "{step}");
    }
    assert_eq!(
        app.offered(&bob).await.as_array().unwrap().len(),
        1,
        "others keep what is theirs"
    );
    assert_eq!(app.stored("purchase").await, 1);
    verify(app, &done, &job_id).await;
    let audited = app.audited("person.deletion_queued").await;
    assert_eq!(audited[0]["resource"], format!("job/{job_id}"));
    app.restart().await;
    assert_eq!(deletion(app, &job_id).await, done);
}

/// Jobs and segments note the newest person and how far they have come, by somebody's id.
async fn nobody_who_is_deleted_is_a_place_among_people(app: &mut TestApp) {
    let backend = crate::identity::Backend::new(app).await;
    let bob = app.session("bob").await;
    let phone = backend.identify(app, "phone", "e-1").await;
    let ada = app.session("ada").await;
    let plan = crate::segments::plan("pro");
    crate::segments::segment(app, "s", plan).await;
    crate::runs::scheduled(app, json!({})).await;
    crate::runs::over(app, 1).await;
    app.until("everybody was looked at", async || {
        let jobs: Vec<(String,)> = app.rows("SELECT state FROM jobs").await;
        jobs.iter().all(|(state,)| state == "completed")
    })
    .await;
    assert!(
        !tables_with(app, &ada.subject_id)
            .await
            .contains(&"jobs".to_owned()),
        "a job that has ended has no place"
    );
    // As an older server left it.
    let job = "UPDATE jobs SET input = replace(input, '\"last\":\"', $1), progress = '{\"after\":\"' || $2 || '\"}'
               WHERE kind = 'campaign.run'";
    let last = format!("\"other\":\"{}\",\"last\":\"", ada.subject_id);
    execute(app, job, &[&last, &ada.subject_id]).await;
    backend.identify(app, "ada", "e-1").await;
    let named = tables_with(app, &ada.subject_id).await;
    for table in ["jobs", "segments"] {
        assert!(named.contains(&table.to_owned()), "{table}: {named:?}");
    }

    let job_id = delete(app, &json!({"externalId": "e-1"})).await;
    deleted(app, &job_id).await;

    for subject in [&ada, &phone] {
        let named = tables_with(app, &subject.subject_id).await;
        assert_eq!(named, Vec::<String>::new());
    }
    let newest: Vec<(uuid::Uuid,)> = app.rows("SELECT newest_subject FROM segments").await;
    assert_eq!(newest[0].0.to_string(), bob.subject_id);
}

/// Verifies a receipt with nothing of the server's but its public key.
async fn verify(app: &TestApp, done: &Value, job_id: &str) {
    let jws = text(&done["receipt"], "signature");
    let parts: Vec<&str> = jws.split('.').collect();
    let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).unwrap();
    let header: Value = serde_json::from_slice(&decode(parts[0])).unwrap();
    let keys = app
        .get("/.well-known/jwks.json", &Credential::none())
        .await
        .json();
    let key = keys["keys"]
        .as_array()
        .unwrap()
        .iter()
        .find(|key| key["kid"] == header["kid"])
        .unwrap();
    let key = UnparsedPublicKey::new(&ED25519, decode(key["x"].as_str().unwrap()));
    let signed = format!("{}.{}", parts[0], parts[1]);
    key.verify(signed.as_bytes(), &decode(parts[2])).unwrap();
    assert!(
        key.verify(signed.replace('.', "..").as_bytes(), &decode(parts[2]))
            .is_err()
    );

    let payload = decode(parts[1]);
    let hash = digest::digest(&digest::SHA256, &payload);
    let digest = hex(hash.as_ref());
    assert_eq!(done["receipt"]["digest"], digest);
    let receipt: Value = serde_json::from_slice(&payload).unwrap();
    // serde_json's objects are sorted: what comes out as it went in was canonical.
    assert_eq!(serde_json::to_vec(&receipt).unwrap(), payload);
    assert_eq!(receipt["jobId"], job_id);
    let counts = |steps: &Value| -> Vec<(String, i64)> {
        let steps = steps.as_array().unwrap().iter();
        steps
            .map(|step| (text(step, "store"), step["deletedCount"].as_i64().unwrap()))
            .collect()
    };
    assert_eq!(counts(&receipt["stores"]), counts(&done["steps"]));
    // It is no access token.
    let refused = app
        .get(&app.path("/surveys"), &Credential::bearer(&jws))
        .await;
    refused.refused(401, "invalid_credentials");
}

async fn exactly_one_reference_of_a_known_person(app: &mut TestApp) {
    app.session("ada").await;
    let path = app.path("/gdpr/delete");
    for body in [
        json!({}),
        json!({"anonymousId": "ada", "externalId": "e"}),
        json!({"anonymousId": ""}),
        json!({"anonymousId": "a".repeat(257)}),
        json!({"anonymousId": 1}),
        json!({"anonymousId": "ada", "subjectId": "x"}),
    ] {
        app.post(&path, &app.admin(), &body)
            .await
            .refused(422, "validation_failed");
    }
    for body in [
        json!({"anonymousId": "nobody"}),
        json!({"externalId": "ada"}),
    ] {
        let answer = app.post(&path, &app.admin(), &body).await;
        let problem = answer.refused(404, "not_found");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("the id in the body"), "{detail}");
    }
    let unknown = app.path(&format!("/gdpr/deletions/{}", app.id()));
    app.get(&unknown, &app.admin())
        .await
        .refused(404, "not_found");
    assert_eq!(app.stored("purchase").await, 0);
    app.session("ada").await;
}

async fn queueing_stops_everything_at_once(app: &mut TestApp) {
    app.survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    let ada = app.session("ada").await;
    assert_eq!(app.fires(&ada, "purchase", &json!({})).await, 1);
    let cursor = text(&app.poll(&ada, "").await.ok(), "nextCursor");
    let path = format!("/v1/sdk/instructions?wait=25&cursor={cursor}");
    let request = app.request(reqwest::Method::GET, &path, &ada.credential());
    let mut waiting = JoinSet::new();
    waiting.spawn(tests::client::send(request));

    let job_id = delete(app, &json!({"anonymousId": "ada"})).await;

    app.poll(&ada, "")
        .await
        .refused(401, "subject_token_expired");
    let event = app.event(&ada, "purchase", &json!({}));
    app.ingest(&ada, &[event])
        .await
        .refused(401, "subject_token_expired");
    let answer = waiting.join_next().await.unwrap().unwrap();
    answer.refused(401, "subject_token_expired");
    deleted(app, &job_id).await;
    assert_eq!(app.stored("purchase").await, 0);
}

async fn whoever_comes_back_under_a_deleted_name_is_nobody(app: &mut TestApp) {
    app.survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    app.define(
        "checked",
        &json!({"properties": [{"name": "a", "type": "string", "required": true}]}),
    )
    .await;
    let ada = app.session("ada").await;
    let server =
        json!({"userId": "e-ada", "events": [{"name": "shipped", "timestamp": app.time(0)}]});
    let data = app
        .post("/v1/sdk/ingest", &app.backend(), &server)
        .await
        .ok();
    assert_eq!(data["accepted"], 1);
    for reference in [
        json!({"anonymousId": "ada"}),
        json!({"externalId": "e-ada"}),
    ] {
        let job_id = delete(app, &reference).await;
        deleted(app, &job_id).await;
    }
    app.restart().await;

    let client_id = app.id();
    let body = json!({"anonymousId": "ada", "clientId": client_id});
    let data = app.post("/v1/sdk/session", &app.sdk(), &body).await.ok();
    let again = app.session("ada").await;
    assert_ne!(again.subject_id, ada.subject_id);
    assert_eq!(text(&data["subject"], "subjectId"), again.subject_id);
    let events = [
        app.event(&again, "purchase", &json!({})),
        app.event(&again, "checked", &json!({})),
    ];
    let mut batch = again.batch(&events);
    batch["delivery"] = json!({"eventIds": [events[0]["eventId"]], "clientId": client_id});
    let data = app.post_batch(&again, &batch).await.ok();
    assert_eq!(
        (&data["accepted"], &data["rejected"], &data["instructions"]),
        (&json!(0), &json!(2), &json!([]))
    );
    for error in data["errors"].as_array().unwrap() {
        assert_eq!(
            (&error["code"], error.get("deadLetterId")),
            (&json!("suppressed_subject"), None)
        );
    }
    let data = app
        .post("/v1/sdk/ingest", &app.backend(), &server)
        .await
        .ok();
    assert_eq!(data["errors"][0]["code"], "suppressed_subject");
    assert_eq!(app.offered(&again).await, json!([]));
    let consent = json!({"anonymousId": "ada", "analytics": true, "messaging": true});
    let data = app
        .post("/v1/sdk/consent", &again.credential(), &consent)
        .await
        .ok();
    assert_eq!(
        (&data["analytics"], &data["messaging"]),
        (&json!(false), &json!(false))
    );
    let acks = json!({"anonymousId": "ada", "acks": [{"instructionId": client_id, "status": "displayed"}]});
    let data = app
        .post("/v1/sdk/instructions/ack", &again.credential(), &acks)
        .await
        .ok();
    assert_eq!(data["unknown"], json!([client_id]));
    let other = json!({"anonymousId": "bob", "analytics": true});
    app.post("/v1/sdk/consent", &again.credential(), &other)
        .await
        .refused(403, "subject_mismatch");
    app.end(&again, &json!({"clientId": client_id}))
        .await
        .data(204);

    let stored = tables_with(app, &again.subject_id).await;
    assert_eq!(stored, Vec::<String>::new());
    let aliases: Vec<(String,)> = app.rows("SELECT value FROM aliases").await;
    assert_eq!(aliases, []);
    let path = app.path("/gdpr/delete");
    app.post(&path, &app.admin(), &json!({"anonymousId": "ada"}))
        .await
        .refused(404, "not_found");
    // Another app knows another person by that name.
    let (_, key) = app
        .another_app(app.access.workspace_id, nudge_apps::key::Kind::Write, &[])
        .await;
    let data = app
        .post(
            "/v1/sdk/session",
            &Credential::bearer(&key),
            &json!({"anonymousId": "ada"}),
        )
        .await
        .ok();
    assert_ne!(text(&data["subject"], "subjectId"), again.subject_id);
    let aliases: Vec<(String,)> = app.rows("SELECT value FROM aliases").await;
    assert_eq!(aliases.len(), 1);
}

async fn the_same_request_answers_the_same_job(app: &mut TestApp) {
    app.analytics = Some(Arc::new(Slow::confirming_after(u32::MAX)));
    app.restart().await;
    app.session("ada").await;
    let body = json!({"anonymousId": "ada"});
    let path = app.path("/gdpr/delete");
    let admin = app.admin();
    let (first, second, third) = tokio::join!(
        app.post(&path, &admin, &body),
        app.post(&path, &admin, &body),
        app.post(&path, &admin, &body),
    );
    let job_id = text(&first.data(202), "jobId");
    assert_eq!(text(&second.data(202), "jobId"), job_id);
    assert_eq!(text(&third.data(202), "jobId"), job_id);

    reaches(app, &job_id, "analytics_pending").await;
    let again = app.post(&path, &app.admin(), &body).await.data(202);
    assert_eq!(
        again,
        json!({"jobId": job_id, "status": "analytics_pending"})
    );
    assert_eq!(app.audited("person.deletion_queued").await.len(), 1);
}

/// An analytics store that does not confirm at once.
#[derive(Debug)]
pub(crate) struct Slow {
    asked: AtomicU32,
    confirms_after: u32,
}

impl Slow {
    pub(crate) fn confirming_after(confirms_after: u32) -> Self {
        Self {
            asked: AtomicU32::new(0),
            confirms_after,
        }
    }
}

impl AnalyticsStore for Slow {
    fn erase<'a>(&'a self, erasure: &'a Erasure) -> BoxFuture<'a, Result<i64, Unconfirmed>> {
        assert!(!erasure.subject_id.is_nil() && !erasure.aliases.is_empty());
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::ready(if asked < self.confirms_after {
            Err(Unconfirmed)
        } else {
            Ok(7)
        }))
    }
}

async fn it_waits_for_the_analytics_store(app: &mut TestApp) {
    let store = Arc::new(Slow::confirming_after(2));
    app.analytics = Some(Arc::clone(&store) as Arc<dyn AnalyticsStore>);
    app.restart().await;
    app.session("ada").await;
    let job_id = delete(app, &json!({"anonymousId": "ada"})).await;

    let pending = reaches(app, &job_id, "analytics_pending").await;
    assert!(pending.get("receipt").is_none() && pending.get("completedAt").is_none());
    let analytics = |view: &Value| view["steps"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(analytics(&pending)["state"], "running");
    app.until("it was asked", async || {
        store.asked.load(Ordering::Relaxed) == 1
    })
    .await;
    app.restart().await;
    app.advance(11);
    app.until("it was asked again", async || {
        store.asked.load(Ordering::Relaxed) == 2
    })
    .await;
    assert_eq!(deletion(app, &job_id).await["status"], "analytics_pending");
    app.advance(21);
    let done = deleted(app, &job_id).await;
    assert_eq!(
        analytics(&done),
        json!({"store": "analytics", "state": "completed", "deletedCount": 7, "completedAt": analytics(&done)["completedAt"]})
    );
}

/// An event that was on its way to the database when the deletion began goes with the rest.
async fn it_waits_before_it_looks_once_more(app: &mut TestApp) {
    app.config.privacy.grace_seconds = 60;
    app.restart().await;
    let ada = app.session("ada").await;
    app.ingest(&ada, &[app.event(&ada, "purchase", &json!({}))])
        .await
        .ok();
    app.settle().await;
    let job_id = delete(app, &json!({"anonymousId": "ada"})).await;
    app.until("it waits", async || {
        let jobs: Vec<(String,)> = app.rows("SELECT progress FROM jobs").await;
        jobs[0].0.contains("Settle")
    })
    .await;
    assert_eq!(app.stored("purchase").await, 0);
    // One writer is waited for less long.
    let grace = match app.services().db.dialect() {
        nudge_db::Dialect::Sqlite => 10,
        nudge_db::Dialect::Postgres => 60,
    };
    app.advance(grace - 1);
    assert_eq!(deletion(app, &job_id).await["status"], "running");

    execute(app, "INSERT INTO events (seq, app_id, alias_number, event_id, name, timestamp, received_at, properties, source)
                  SELECT 9999999, app_id, number, app_id, 'purchase', 0, 0, '{}', 'sdk' FROM aliases WHERE value = $1", &["ada"]).await;
    app.advance(2);
    let done = deleted(app, &job_id).await;
    assert_eq!(app.stored("purchase").await, 0);
    let events = done["steps"]
        .as_array()
        .unwrap()
        .iter()
        .find(|step| step["store"] == "events")
        .unwrap();
    assert_eq!(events["deletedCount"], 2);
}

async fn a_restart_goes_on_where_it_was(app: &mut TestApp) {
    let store = Arc::new(Slow::confirming_after(1));
    app.analytics = Some(Arc::clone(&store) as Arc<dyn AnalyticsStore>);
    app.restart().await;
    let ada = app.session("ada").await;
    for _ in 0..8 {
        let events: Vec<Value> = (0..500)
            .map(|_| app.event(&ada, "purchase", &json!({})))
            .collect();
        assert_eq!(app.ingest(&ada, &events).await.ok()["accepted"], 500);
    }
    app.settle().await;
    let job_id = delete(app, &json!({"anonymousId": "ada"})).await;
    while deletion(app, &job_id).await["status"] != "completed" {
        app.restart().await;
        app.advance(11);
    }
    assert_eq!(
        store.asked.load(Ordering::Relaxed),
        2,
        "there was a restart"
    );
    let done = deleted(app, &job_id).await;
    let events = done["steps"]
        .as_array()
        .unwrap()
        .iter()
        .find(|step| step["store"] == "events")
        .unwrap();
    assert_eq!(events["deletedCount"], 4_000, "each is counted once");
    assert_eq!(app.stored("purchase").await, 0);
}

async fn the_list_has_pages(app: &mut TestApp) {
    let mut jobs = Vec::new();
    for name in ["ada", "bob", "eve"] {
        app.session(name).await;
        jobs.insert(0, delete(app, &json!({"anonymousId": name})).await);
    }
    let mut listed = Vec::new();
    let mut query = "?limit=2".to_owned();
    loop {
        let data = app
            .get(&app.path(&format!("/gdpr/jobs{query}")), &app.admin())
            .await
            .ok();
        listed.extend(
            data["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|item| text(item, "jobId")),
        );
        match data["nextCursor"].as_str() {
            Some(cursor) => query = format!("?limit=2&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(listed, jobs);
    app.get(&app.path("/gdpr/jobs?limit=0"), &app.admin())
        .await
        .refused(422, "validation_failed");
    app.get(&app.path("/gdpr/jobs?cursor=x"), &app.admin())
        .await
        .refused(400, "invalid_cursor");
    for job_id in &jobs {
        deleted(app, job_id).await;
    }
}

/// Pages that were split and merged while others wrote between have no trace either.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlites_file_has_no_trace_of_many_events() {
    let app = TestApp::start(tests::site!(), tests::Backend::Sqlite).await;
    let (ada, bob) = (app.session(SECRETS[0]).await, app.session("bob").await);
    for round in 0..12 {
        for session in [&ada, &bob] {
            let (name, note) = if session.anonymous_id == "bob" {
                ("of_bob", "of bob")
            } else {
                ("name-needle-5c", SECRETS[5])
            };
            let events: Vec<Value> = (0..150)
                .map(|number| {
                    let note = note.repeat(1 + (number * 7 + round) % 40);
                    app.event(session, name, &json!({"note": note}))
                })
                .collect();
            assert_eq!(app.ingest(session, &events).await.ok()["accepted"], 150);
        }
    }
    app.settle().await;
    let job_id = delete(&app, &json!({"anonymousId": SECRETS[0]})).await;
    deleted(&app, &job_id).await;

    for secret in [SECRETS[0], SECRETS[5], "name-needle-5c", &ada.subject_id] {
        let found = files_with(&app.config.server.data_dir, secret);
        assert_eq!(found, Vec::<std::path::PathBuf>::new(), "{secret}");
    }
    assert_eq!(app.stored("of_bob").await, 12 * 150);
    app.finish().await;
}
