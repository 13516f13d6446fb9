//! `kill -9` while a message is with a push service: nobody knows whether it arrived, so it is not sent again, and
//! what else is to be sent goes on.

use std::time::{Duration, Instant};

use nudge_platform::config::Config;
use serde_json::{Value, json};
use tempfile::TempDir;
use tests::client;
use tests::providers::{Hold, Providers, Reply, fcm};
use tests::session::text;
use tests::{Backend, Child, TestApp, postgres, site};

/// Longer than anything takes.
const PATIENCE: Duration = Duration::from_mins(1);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// How many messages the service was sent for a device.
fn sent_to(providers: &Providers, device: u32) -> usize {
    let token = json!(fcm::registration_token(device));
    let received = providers.fcm.received().into_iter();
    received
        .filter(|request| request.json()["message"]["token"] == token)
        .count()
}

/// Asks a process for a message and answers the delivery's id.
async fn order(child: &Child, campaign: &str, whom: &str) -> String {
    let path = format!("/v1/apps/{}/push/transactional", child.text("appId"));
    let request = client::build()
        .post(format!("{}{path}", child.text("baseUrl")))
        .bearer_auth(child.text("serverKey"))
        .json(&json!({"campaignId": campaign, "anonymousId": whom}));
    text(&client::send(request).await.data(202), "deliveryId")
}

async fn delivery(child: &Child, id: &str) -> Value {
    let path = format!("/v1/apps/{}/push/deliveries/{id}", child.text("appId"));
    let request = client::build()
        .get(format!("{}{path}", child.text("baseUrl")))
        .bearer_auth(child.text("viewerToken"));
    client::send(request).await.ok()
}

/// Waits until a member of a delivery has a value.
async fn reaches(child: &Child, id: &str, member: &str, value: &str) {
    let started = Instant::now();
    loop {
        let found = delivery(child, id).await;
        if found[member] == value {
            return;
        }
        assert!(started.elapsed() < PATIENCE, "{found}");
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

async fn survives_a_kill(backend: Backend) {
    let folder = TempDir::with_prefix("nudge-test-").unwrap();
    let mut config: Config = TestApp::config(site!(), folder.path());
    let mut variables = vec![("NUDGE_PIPELINE__NODE_TIMEOUT_SECONDS", "5".to_owned())];
    if backend == Backend::Postgres {
        config.database.url = postgres::database().await;
        config.database.connections = 5;
        let url = config.database.url.clone();
        variables.push(("NUDGE_DATABASE__URL", url));
    }
    let mut app = TestApp::open(site!(), config).await.unwrap();
    let providers = app.with_providers().await;
    app.credential(&providers.fcm.credential()).await;
    for (name, number) in [("ada", 1), ("bob", 2), ("eve", 3)] {
        let session = app.session(name).await;
        app.push_token(&session, name, &providers.fcm.token(number))
            .await;
    }
    let campaign = app.transactional_campaign().await;
    let config = app.config.clone();
    app.finish().await;

    variables.extend(providers.variables());
    let variables: Vec<(&str, &str)> = variables
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let child = Child::start_with(site!(), folder.path(), &variables);
    let hold = Hold::default();
    let name = json!({"name": "projects/shop-1234/messages/0"});
    providers
        .fcm
        .reply_next(Reply::json(200, &name).held(&hold));
    let in_doubt = order(&child, &campaign, "ada").await;
    let started = Instant::now();
    while sent_to(&providers, 1) == 0 {
        assert!(started.elapsed() < PATIENCE, "it is not handed over");
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    // What is not held goes on beside it.
    let beside = order(&child, &campaign, "bob").await;
    reaches(&child, &beside, "status", "delivered").await;
    assert_eq!(delivery(&child, &in_doubt).await["status"], "sent");
    child.kill();
    hold.release();

    let child = Child::start_with(site!(), folder.path(), &variables);
    let after = order(&child, &campaign, "eve").await;
    reaches(&child, &after, "status", "delivered").await;
    reaches(&child, &in_doubt, "reason", "outcome_unknown").await;
    assert_eq!(child.terminate(), Some(0));

    // Much later, nothing of it is left to be done.
    let app = TestApp::open(site!(), config).await.unwrap();
    app.advance(86_400);
    app.until("a delivery waits", async || {
        app.count("deliveries WHERE due_at IS NOT NULL OR node IS NOT NULL")
            .await
            == 0
    })
    .await;
    let path = app.path(&format!("/push/deliveries/{in_doubt}"));
    let left = app.get(&path, &app.viewer()).await.ok();
    assert_eq!(
        (&left["status"], &left["reason"], &left["attempts"]),
        (&json!("sent"), &json!("outcome_unknown"), &json!(1))
    );
    assert_eq!([1, 2, 3].map(|device| sent_to(&providers, device)), [1; 3]);
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_in_doubt_is_not_sent_again_on_sqlite() {
    Box::pin(survives_a_kill(Backend::Sqlite)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_in_doubt_is_not_sent_again_on_postgres() {
    Box::pin(survives_a_kill(Backend::Postgres)).await;
}
