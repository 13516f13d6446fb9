//! One app's slow plugin is no other app's trouble.

use nudge_apps::key::Kind;
use serde_json::{Value, json};
use tests::session::{event_id, text};
use tests::{Credential, Session, TestApp, on_both_backends};
use uuid::Uuid;

use crate::guests::{deploy, trigger};

on_both_backends!(
    a_slow_plugin_keeps_no_other_app_waiting,
    an_app_that_used_up_its_time_waits_and_loses_nothing,
);

/// Another app with a survey on `b`, and a person in it.
struct Neighbour {
    key: String,
    token: String,
}

impl Neighbour {
    async fn new(app: &TestApp) -> Self {
        let workspace_id = app.access.workspace_id;
        let (app_id, key): (Uuid, String) = app.another_app(workspace_id, Kind::Write, &[]).await;
        let mut survey = tests::session::survey_body();
        survey["trigger"] = json!({"kind": "event", "eventName": "b"});
        let path = format!("/v1/apps/{app_id}/surveys");
        app.post(&path, &app.editor(), &survey).await.data(201);
        let body = json!({"anonymousId": "neighbour"});
        let session = app
            .post("/v1/sdk/session", &Credential::bearer(&key), &body)
            .await
            .ok();
        Self {
            key,
            token: text(&session, "subjectToken"),
        }
    }

    /// How many instructions an event fires.
    async fn fires(&self, app: &TestApp) -> usize {
        let event = json!({"eventId": app.id(), "name": "b", "timestamp": app.time(0),
            "anonymousId": "neighbour"});
        let body = json!({"context": {"anonymousId": "neighbour"}, "events": [event],
            "delivery": {"eventIds": [event_id(&event)]}});
        let credential = Credential::bearer(&self.key).and("x-service-subject-token", &self.token);
        let data = app.post("/v1/sdk/ingest", &credential, &body).await.ok();
        data["instructions"].as_array().unwrap().len()
    }
}

/// Two people, each in a lane of their own.
async fn pair(app: &TestApp) -> [Session; 2] {
    [app.session("ada").await, app.session("bob").await]
}

async fn send_bad(app: &TestApp, session: &Session) -> Value {
    let event = app.event(session, "a", &json!({"bad": 1}));
    app.ingest(session, std::slice::from_ref(&event)).await.ok();
    event
}

async fn waiting(app: &TestApp) -> usize {
    let rows: Vec<(i64,)> = app.rows("SELECT id FROM pending").await;
    rows.len()
}

async fn a_slow_plugin_keeps_no_other_app_waiting(app: &mut TestApp) {
    // Two threads, and a plugin that takes each that it gets for so long.
    app.config.plugins.deadline_ms = 6_000;
    app.restart().await;
    deploy(app, 1, 1).await;
    app.survey(&trigger(1, json!({"events": ["a"], "loops": 1})))
        .await;
    let neighbour = Neighbour::new(app).await;
    assert_eq!(neighbour.fires(app).await, 1);
    app.settle().await;

    for session in &pair(app).await {
        send_bad(app, session).await;
    }
    assert_eq!(waiting(app).await, 2);
    for _ in 0..3 {
        assert_eq!(neighbour.fires(app).await, 1);
    }
    assert_eq!(
        waiting(app).await,
        2,
        "the slow app's events are not through"
    );

    app.settle().await;
    let letters: Vec<(String,)> = app.rows("SELECT reason FROM dead_letters").await;
    assert_eq!(
        letters,
        vec![("deadline".to_owned(),); 2],
        "and none is lost"
    );
}

/// The sum of a counter over the servers of this process.
async fn counter(app: &TestApp, name: &str) -> f64 {
    let text = app.get("/metrics", &Credential::none()).await.text;
    let of_name = text.lines().filter(|line| line.starts_with(name));
    of_name
        .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
        .sum()
}

async fn an_app_that_used_up_its_time_waits_and_loses_nothing(app: &mut TestApp) {
    app.config.plugins.deadline_ms = 1_000;
    app.config.plugins.app_millis_per_second = 500;
    app.restart().await;
    deploy(app, 1, 1).await;
    let config = json!({"events": ["a"], "loops": 1});
    app.survey(&trigger(1, config)).await;
    let neighbour = Neighbour::new(app).await;
    let before = counter(app, "nudge_plugin_budget_waits_total").await;
    let people = pair(app).await;
    let mut sent = Vec::new();
    for session in &people {
        sent.push(send_bad(app, session).await);
    }
    assert_eq!(neighbour.fires(app).await, 1);
    app.settle().await;
    let after = counter(app, "nudge_plugin_budget_waits_total").await;
    assert!(after > before, "{before} {after}");
    let mut letters: Vec<(Uuid,)> = app.rows("SELECT event_id FROM dead_letters").await;
    letters.sort_unstable();
    let mut expected: Vec<(Uuid,)> = sent
        .iter()
        .map(|event| (Uuid::parse_str(&event_id(event)).unwrap(),))
        .collect();
    expected.sort_unstable();
    assert_eq!(letters, expected);
    let text = app.get("/metrics", &Credential::none()).await.text;
    assert!(
        text.contains("nudge_plugin_jobs_waiting{threads=\"plugin\"}"),
        "{text}"
    );
}
