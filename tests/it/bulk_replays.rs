//! Replaying and acknowledging many dead letters: jobs, races, kills (contract 11).

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use tests::client::{self, Answer};
use tests::session::{instruction_ids, text};
use tests::{Backend, Child, Session, TestApp, on_both_backends, postgres, site};

on_both_backends!(
    letters_are_counted_by_what_is_wrong,
    many_are_replayed_in_the_order_of_their_events,
    a_filter_says_which,
    many_are_acknowledged,
    letters_of_the_trigger_stage_are_run_again_once,
    a_letter_of_a_delivery_that_is_not_there_is_refused,
    one_letter_replayed_at_the_same_time_fires_once,
    jobs_about_the_same_letters_fire_each_once,
    an_event_that_arrives_again_while_it_is_replayed_is_there_once,
    what_the_plugin_fails_on_is_not_let_in,
    bad_requests_are_refused,
    letters_of_other_apps_are_not_touched,
    a_job_forgets_its_patch,
);

/// Waits for a job to end; what it says then.
pub(crate) async fn ended(app: &TestApp, job_id: &str) -> Value {
    let path = app.path(&format!("/jobs/{job_id}"));
    let state = async || app.get(&path, &app.viewer()).await.ok();
    app.until("the job ends", async || {
        ["completed", "failed"].contains(&state().await["status"].as_str().unwrap())
    })
    .await;
    let job = state().await;
    assert_eq!(job["status"], "completed", "{job}");
    job
}

async fn define(app: &TestApp) {
    app.define(
        "purchase",
        &json!({"properties": [{"name": "total", "type": "number", "required": true}]}),
    )
    .await;
}

/// Sends events that break their definition, the newest first, ten minutes apart.
async fn breaks(app: &TestApp, session: &Session, count: i64) -> Vec<Value> {
    let mut events: Vec<Value> = (0..count)
        .map(|number| {
            let mut event = app.event(session, "purchase", &json!({"number": number}));
            event["timestamp"] = json!(app.time((number - count) * 600));
            event
        })
        .collect();
    events.reverse();
    for batch in events.chunks(100) {
        let data = app.ingest(session, batch).await.ok();
        assert_eq!(data["rejected"], batch.len());
    }
    events.reverse();
    events
}

pub(crate) async fn queue(app: &TestApp, what: &str, body: &Value) -> Answer {
    let path = app.path(&format!("/dead-letters/{what}"));
    app.post(&path, &app.editor(), body).await
}

async fn run(app: &TestApp, what: &str, body: &Value) -> Value {
    let queued = queue(app, what, body).await.data(202);
    ended(app, &text(&queued, "jobId")).await
}

pub(crate) async fn letters(app: &TestApp) -> Vec<Value> {
    let path = app.path("/dead-letters?limit=200");
    let list = app.get(&path, &app.viewer()).await.ok();
    list["items"].as_array().unwrap().clone()
}

async fn letters_are_counted_by_what_is_wrong(app: &mut TestApp) {
    define(app).await;
    let ada = app.session("ada").await;
    let first = app.time(0);
    breaks(app, &ada, 3).await;
    app.advance(60);
    let wrong = app.event(&ada, "purchase", &json!({"total": "x"}));
    let data = app.ingest(&ada, &[wrong]).await.ok();
    let wrong = text(&data["errors"][0], "deadLetterId");

    let summary = async |query: &str| {
        let path = app.path(&format!("/dead-letters/summary{query}"));
        app.get(&path, &app.viewer()).await.ok()["items"].clone()
    };
    let groups = summary("").await;
    let counts: Vec<(String, i64)> = groups
        .as_array()
        .unwrap()
        .iter()
        .map(|group| (text(group, "reason"), group["count"].as_i64().unwrap()))
        .collect();
    assert_eq!(
        counts,
        [
            ("missing_required_property".to_owned(), 3),
            ("type_mismatch".to_owned(), 1)
        ]
    );
    assert_eq!(text(&groups[1], "sampleId"), wrong);
    assert_eq!(groups[1]["firstSeenAt"], groups[1]["lastSeenAt"]);
    assert!(text(&groups[0], "firstSeenAt") >= first);
    assert!(text(&groups[0], "lastSeenAt") < text(&groups[1], "firstSeenAt"));
    let later = app.time(-30);
    let late = summary(&format!("?from={later}")).await;
    assert_eq!((late.as_array().unwrap().len(), &late[0]), (1, &groups[1]));
    assert_eq!(summary("?stage=trigger").await, json!([]));
    assert_eq!(summary("?eventName=other").await, json!([]));
}

async fn many_are_replayed_in_the_order_of_their_events(app: &mut TestApp) {
    app.survey(&json!({"kind": "event", "eventName": "purchase", "occurrence": {"mode": "every_nth", "n": 50}}))
        .await;
    define(app).await;
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    // More than a step takes.
    let of_ada = breaks(app, &ada, 250).await;
    let of_bob = breaks(app, &bob, 60).await;
    let job = run(app, "replay", &json!({"filter": {}, "patch": {"total": 1}})).await;
    assert_eq!(
        job["result"],
        json!({"replayed": 310, "stillFailing": 0, "skipped": 0})
    );
    assert_eq!(job["progress"], json!({"done": 310, "total": 310}));
    app.settle().await;
    assert_eq!(app.stored("purchase").await, 310);
    let fired = async |session: &Session| -> Vec<Value> {
        let offered = app.offered(session).await;
        let offered = offered.as_array().unwrap().iter();
        offered
            .map(|instruction| instruction["trigger"]["eventId"].clone())
            .collect()
    };
    let every_50th = |events: &[Value]| -> Vec<Value> {
        events
            .chunks_exact(50)
            .map(|fifty| fifty[49]["eventId"].clone())
            .collect()
    };
    assert_eq!(fired(&ada).await, every_50th(&of_ada));
    assert_eq!(fired(&bob).await, every_50th(&of_bob));
    let stats = app.get(&app.path("/stats"), &app.viewer()).await.ok();
    assert_eq!(stats["totals"]["accepted"], 310);
}

async fn a_filter_says_which(app: &mut TestApp) {
    define(app).await;
    let ada = app.session("ada").await;
    breaks(app, &ada, 2).await;
    app.advance(3600);
    let later = app.time(-60);
    let wrong = app.event(&ada, "purchase", &json!({"total": "x"}));
    app.ingest(&ada, &[wrong]).await.ok();
    for filter in [
        json!({"eventName": "other"}),
        json!({"stage": "trigger"}),
        json!({"reason": "enum_mismatch"}),
        json!({"from": app.time(60)}),
        json!({"to": app.time(-2 * 3600)}),
    ] {
        let job = run(app, "replay", &json!({"filter": filter})).await;
        assert_eq!(job["result"]["stillFailing"], 0, "{filter}");
    }
    assert!(
        letters(app)
            .await
            .iter()
            .all(|letter| letter["attempts"] == 0)
    );
    let body = json!({"filter": {"from": later}, "patch": {"total": 1}});
    assert_eq!(run(app, "replay", &body).await["result"]["replayed"], 1);
    let body = json!({"filter": {"reason": "missing_required_property", "to": later}});
    let job = run(app, "replay", &body).await;
    assert_eq!(job["result"]["stillFailing"], 2);
    let left = letters(app).await;
    assert_eq!(left.len(), 2);
    assert!(left.iter().all(|letter| letter["attempts"] == 1));
}

async fn many_are_acknowledged(app: &mut TestApp) {
    define(app).await;
    let ada = app.session("ada").await;
    breaks(app, &ada, 5).await;
    app.ingest(&ada, &[app.event(&ada, "purchase", &json!({"total": "x"}))])
        .await
        .ok();
    let body = json!({"filter": {"reason": "missing_required_property"}});
    let job = run(app, "acknowledge", &body).await;
    assert_eq!(job["result"], json!({"acknowledged": 5}));
    assert_eq!(job["progress"], json!({"done": 5, "total": 5}));
    let left = letters(app).await;
    assert_eq!(left.len(), 1);
    assert_eq!(left[0]["reason"], "type_mismatch");
    assert_eq!(app.stored("purchase").await, 0);
}

/// Makes letters of three events of Ada's, which the trigger plugin takes too long for. Answers whose they are, and the deadline
/// that was set before.
pub(crate) async fn three_slow_letters(app: &mut TestApp) -> (Session, u64) {
    let leaf =
        json!({"property": "text", "type": "string", "operator": "matches", "value": "x{0,300}y"});
    let trigger = json!({"kind": "event", "eventName": "purchase", "filters": {"all": [leaf]}});
    app.survey(&trigger).await;
    let ada = app.session("ada").await;
    let patience = std::mem::replace(&mut app.config.plugins.deadline_ms, 1);
    app.restart().await;
    let slow = json!({"text": format!("{}y", "x".repeat(4_000))});
    let events: Vec<Value> = (0..3).map(|_| app.event(&ada, "purchase", &slow)).collect();
    app.ingest(&ada, &events).await.ok();
    app.settle().await;
    assert_eq!(letters(app).await.len(), 3);
    (ada, patience)
}

async fn letters_of_the_trigger_stage_are_run_again_once(app: &mut TestApp) {
    let (ada, patience) = three_slow_letters(app).await;
    let all = json!({"filter": {}});
    let job = run(app, "replay", &all).await;
    assert_eq!(job["result"]["stillFailing"], 3);
    assert!(
        letters(app)
            .await
            .iter()
            .all(|letter| letter["attempts"] == 1)
    );

    app.config.plugins.deadline_ms = patience;
    app.restart().await;
    let (one, two) = tokio::join!(run(app, "replay", &all), run(app, "replay", &all));
    let replayed = |job: &Value| job["result"]["replayed"].as_i64().unwrap();
    assert!(replayed(&one) + replayed(&two) >= 3);
    assert_eq!(letters(app).await, Vec::<Value>::new());
    let offered = instruction_ids(&app.offered(&ada).await);
    assert_eq!(offered.len(), 3);
    assert_eq!(app.stored("purchase").await, 3);
}

async fn a_letter_of_a_delivery_that_is_not_there_is_refused(app: &mut TestApp) {
    define(app).await;
    let ada = app.session("ada").await;
    breaks(app, &ada, 1).await;
    let mut tx = app.services().db.write().await.unwrap();
    tx.sql("UPDATE dead_letters SET stage = 'personalization'")
        .execute()
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let id = text(&letters(app).await[0], "id");
    queue(app, &format!("{id}/replay"), &json!({}))
        .await
        .refused(409, "delivery_gone");
    let job = run(app, "replay", &json!({"filter": {}})).await;
    assert_eq!(
        job["result"],
        json!({"replayed": 0, "stillFailing": 0, "skipped": 1})
    );
    assert_eq!(letters(app).await.len(), 1);
}

async fn one_letter_replayed_at_the_same_time_fires_once(app: &mut TestApp) {
    app.survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    define(app).await;
    let ada = app.session("ada").await;
    breaks(app, &ada, 1).await;
    let id = text(&letters(app).await[0], "id");
    let path = format!("{id}/replay");
    let body = json!({"patch": {"total": 1}});
    let bulk = json!({"filter": {}, "patch": {"total": 2}});
    let (one, two, three, job) = tokio::join!(
        queue(app, &path, &body),
        queue(app, &path, &body),
        queue(app, &path, &body),
        run(app, "replay", &bulk),
    );
    // Whoever comes later is told so, too.
    for answer in [one, two, three] {
        assert_eq!(answer.ok(), json!({"status": "replayed"}));
    }
    assert!(job["result"]["replayed"].as_i64().unwrap() <= 1, "{job}");
    app.settle().await;
    assert_eq!(app.stored("purchase").await, 1);
    assert_eq!(instruction_ids(&app.offered(&ada).await).len(), 1);
    assert_eq!(letters(app).await, Vec::<Value>::new());
}

async fn jobs_about_the_same_letters_fire_each_once(app: &mut TestApp) {
    app.survey(&json!({"kind": "event", "eventName": "purchase", "occurrence": {"mode": "every_nth", "n": 10}}))
        .await;
    define(app).await;
    let ada = app.session("ada").await;
    breaks(app, &ada, 100).await;
    let body = json!({"filter": {}, "patch": {"total": 1}});
    let (one, two, three) = tokio::join!(
        run(app, "replay", &body),
        run(app, "replay", &body),
        run(app, "replay", &body)
    );
    let replayed = |job: Value| job["result"]["replayed"].as_i64().unwrap();
    assert_eq!([one, two, three].map(replayed).iter().sum::<i64>(), 100);
    app.settle().await;
    assert_eq!(app.stored("purchase").await, 100);
    assert_eq!(instruction_ids(&app.offered(&ada).await).len(), 10);
    assert_eq!(letters(app).await, Vec::<Value>::new());
}

async fn an_event_that_arrives_again_while_it_is_replayed_is_there_once(app: &mut TestApp) {
    app.survey(&json!({"kind": "event", "eventName": "purchase"}))
        .await;
    define(app).await;
    let ada = app.session("ada").await;
    let bad = breaks(app, &ada, 5).await;
    let good: Vec<Value> = bad
        .iter()
        .map(|event| {
            let mut event = event.clone();
            event["properties"] = json!({"total": 1});
            event
        })
        .collect();
    let body = json!({"filter": {}, "patch": {"total": 1}});
    let (_, once, twice) = tokio::join!(
        run(app, "replay", &body),
        app.ingest(&ada, &good),
        app.ingest(&ada, &bad),
    );
    assert_eq!(once.ok()["accepted"], 5);
    twice.ok();
    // Whatever was left by the one that came before the others.
    run(app, "replay", &body).await;
    app.settle().await;
    assert_eq!(app.stored("purchase").await, 5);
    assert_eq!(instruction_ids(&app.offered(&ada).await).len(), 5);
    // Broken, but under ids of events that are there: accepted, and no letters.
    let data = app.ingest(&ada, &bad).await.ok();
    assert_eq!(
        (&data["accepted"], &data["errors"]),
        (&json!(5), &json!([]))
    );
    assert_eq!(letters(app).await, Vec::<Value>::new());
}

async fn what_the_plugin_fails_on_is_not_let_in(app: &mut TestApp) {
    app.define("purchase", &json!({"properties": [{"name": "text", "type": "string", "required": true, "pattern": "x{0,300}y"}]}))
        .await;
    let ada = app.session("ada").await;
    breaks(app, &ada, 1).await;
    let id = text(&letters(app).await[0], "id");
    app.config.plugins.validation_deadline_ms = 1;
    app.restart().await;
    let slow = json!({"patch": {"text": format!("{}y", "x".repeat(40_000))}});
    let replayed = queue(app, &format!("{id}/replay"), &slow).await.ok();
    assert_eq!(
        (&replayed["status"], &replayed["reason"]),
        (&json!("still_failing"), &json!("plugin_unavailable"))
    );
    let body = json!({"filter": {}, "patch": slow["patch"]});
    let job = run(app, "replay", &body).await;
    assert_eq!(job["result"]["stillFailing"], 1);
    let letter = &letters(app).await[0];
    assert_eq!(
        (&letter["reason"], &letter["attempts"]),
        (&json!("missing_required_property"), &json!(2))
    );
    assert_eq!(app.stored("purchase").await, 0);
}

async fn bad_requests_are_refused(app: &mut TestApp) {
    for (what, body, pointer) in [
        ("replay", json!({}), ""),
        ("replay", json!({"filter": {"name": "x"}}), "/filter"),
        (
            "replay",
            json!({"filter": {"stage": "nowhere"}}),
            "/filter/stage",
        ),
        (
            "replay",
            json!({"filter": {"from": "today"}}),
            "/filter/from",
        ),
        ("replay", json!({"filter": {}, "patch": 1}), "/patch"),
        ("replay", json!({"filter": {}, "patsch": {}}), ""),
        (
            "replay",
            json!({"filter": {"stage": "trigger"}, "patch": {"total": 1}}),
            "/patch",
        ),
        (
            "replay",
            json!({"filter": {}, "patch": {"a": "x".repeat(70_000)}}),
            "/patch",
        ),
        (
            "replay",
            json!({"filter": {"reason": "a\0b"}}),
            "/filter/reason",
        ),
        (
            "acknowledge",
            json!({"filter": {"eventName": "a\0b"}}),
            "/filter/eventName",
        ),
        ("acknowledge", json!({}), ""),
        ("acknowledge", json!({"filter": {}, "patch": {}}), ""),
    ] {
        let answer = queue(app, what, &body).await;
        answer.refused(422, "validation_failed");
        assert!(answer.pointers()[0].starts_with(pointer), "{body}");
    }
    let path = app.path("/dead-letters/replay");
    app.post(&path, &app.viewer(), &json!({"filter": {}}))
        .await
        .refused(403, "insufficient_role");
}

async fn letters_of_other_apps_are_not_touched(app: &mut TestApp) {
    define(app).await;
    let ada = app.session("ada").await;
    breaks(app, &ada, 2).await;
    let workspace_id = app.access.workspace_id;
    let (other, _) = app
        .another_app(workspace_id, nudge_apps::key::Kind::Write, &[])
        .await;
    for (what, result) in [
        (
            "replay",
            json!({"replayed": 0, "stillFailing": 0, "skipped": 0}),
        ),
        ("acknowledge", json!({"acknowledged": 0})),
    ] {
        let path = format!("/v1/apps/{other}/dead-letters/{what}");
        let queued = app.post(&path, &app.editor(), &json!({"filter": {}})).await;
        let job = text(&queued.data(202), "jobId");
        let path = format!("/v1/apps/{other}/jobs/{job}");
        app.until("the job ends", async || {
            app.get(&path, &app.viewer()).await.ok()["status"] == "completed"
        })
        .await;
        assert_eq!(app.get(&path, &app.viewer()).await.ok()["result"], result);
        let own = app.path(&format!("/jobs/{job}"));
        app.get(&own, &app.viewer()).await.refused(404, "not_found");
    }
    let left = letters(app).await;
    assert_eq!(left.len(), 2);
    assert!(left.iter().all(|letter| letter["attempts"] == 0));
}

async fn a_job_forgets_its_patch(app: &mut TestApp) {
    define(app).await;
    let ada = app.session("ada").await;
    breaks(app, &ada, 1).await;
    let body = json!({"filter": {}, "patch": {"total": 1, "name": "secret-5d1c"}});
    run(app, "replay", &body).await;
    let jobs: Vec<(String,)> = app.rows("SELECT input FROM jobs").await;
    assert!(
        jobs.iter().all(|(input,)| !input.contains("secret-5d1c")),
        "{jobs:?}"
    );
    let log = app.get(&app.path("/audit-log"), &app.admin()).await;
    assert!(!log.text.contains("secret-5d1c"));
}

/// Longer than anything takes to come back.
const COMES_BACK: Duration = Duration::from_mins(2);
const LETTERS: usize = 600;

async fn post(child: &Child, path: &str, key: &str, token: &str, body: &Value) -> Answer {
    let url = format!("{}{path}", child.text("baseUrl"));
    let request = client::build().post(url).bearer_auth(child.text(key));
    client::send(request.header("x-service-subject-token", token).json(body)).await
}

async fn get(child: &Child, path: &str, key: &str, token: &str) -> Value {
    let url = format!("{}{path}", child.text("baseUrl"));
    let request = client::build().get(url).bearer_auth(child.text(key));
    client::send(request.header("x-service-subject-token", token))
        .await
        .ok()
}

/// Makes somebody with letters, and queues their replay; the subject token and the job.
async fn fill(child: &Child) -> (String, String) {
    let app = format!("/v1/apps/{}", child.text("appId"));
    let mut survey = tests::session::survey_body();
    survey["trigger"]["occurrence"] = json!({"mode": "every_nth", "n": 50});
    let path = format!("{app}/surveys");
    post(child, &path, "editorToken", "", &survey)
        .await
        .data(201);
    let definition = json!({"name": "purchase", "properties": [{"name": "total", "type": "number", "required": true}]});
    let path = format!("{app}/event-definitions");
    post(child, &path, "editorToken", "", &definition)
        .await
        .data(201);
    let session = json!({"anonymousId": "ada"});
    let session = post(child, "/v1/sdk/session", "writeKey", "", &session)
        .await
        .ok();
    let token = text(&session, "subjectToken");
    let clock = nudge_platform::clock::Clock::default();
    for _ in 0..LETTERS / 100 {
        let events: Vec<Value> = (0..100)
            .map(|_| {
                let now = clock.now();
                json!({"eventId": nudge_platform::id::new(now), "name": "purchase", "timestamp": nudge_platform::clock::to_text(now), "anonymousId": "ada"})
            })
            .collect();
        let body = json!({"context": {"anonymousId": "ada"}, "events": events});
        let data = post(child, "/v1/sdk/ingest", "writeKey", &token, &body).await;
        assert_eq!(data.ok()["rejected"], 100);
    }
    let body = json!({"filter": {}, "patch": {"total": 1}});
    let path = format!("{app}/dead-letters/replay");
    let queued = post(child, &path, "editorToken", "", &body).await.data(202);
    (token, text(&queued, "jobId"))
}

async fn survives_kills(backend: Backend) {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let database = match backend {
        Backend::Sqlite => String::new(),
        Backend::Postgres => postgres::database().await,
    };
    let mut variables = vec![
        ("NUDGE_PIPELINE__NODE_TIMEOUT_SECONDS", "5"),
        ("NUDGE_PLUGINS__VALIDATION_DEADLINE_MS", "20000"),
        ("NUDGE_PLUGINS__DEADLINE_MS", "20000"),
    ];
    if backend == Backend::Postgres {
        variables.push(("NUDGE_DATABASE__URL", &database));
    }
    let start = || Child::start_with(site!(), folder.path(), &variables);
    let mut child = start();
    let (token, job) = fill(&child).await;
    for lifetime in [1, 20, 60, 150] {
        tokio::time::sleep(Duration::from_millis(lifetime)).await;
        child.kill();
        child = start();
    }
    let app = format!("/v1/apps/{}", child.text("appId"));
    let path = format!("{app}/jobs/{job}");
    let started = Instant::now();
    let done = loop {
        let job = get(&child, &path, "viewerToken", "").await;
        if job["status"] == "completed" {
            break job;
        }
        assert!(started.elapsed() < COMES_BACK, "{job}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(
        done["result"],
        json!({"replayed": LETTERS, "stillFailing": 0, "skipped": 0})
    );
    // Every 50th fires: the last of them says that all before it were decided about, each once.
    let offered = loop {
        let page = get(&child, "/v1/sdk/instructions?limit=20", "writeKey", &token).await;
        let offered = instruction_ids(&page["items"]);
        if offered.len() >= LETTERS / 50 {
            break offered;
        }
        assert!(started.elapsed() < COMES_BACK, "{page}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(offered.len(), LETTERS / 50);
    let person = get(&child, &format!("{app}/users/ada"), "viewerToken", "").await;
    assert_eq!(person["profile"]["eventCount"], LETTERS);
    let letters = get(&child, &format!("{app}/dead-letters"), "viewerToken", "").await;
    assert_eq!(letters["items"], json!([]));
    assert_eq!(child.terminate(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_survives_kills_on_sqlite() {
    survives_kills(Backend::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_survives_kills_on_postgres() {
    survives_kills(Backend::Postgres).await;
}
