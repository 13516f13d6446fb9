//! PostgreSQL with hardly any connections: what takes one gives it back before it waits for anything else.

use nudge_platform::config::Config;
use serde_json::json;
use tests::{Backend, TestApp, site};

/// More messages than are handed over at a time.
const MESSAGES: i64 = 50;

/// What becomes of messages is written while others are handed over, which asks the database too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_are_handed_over_by_two_connections() {
    let mut app = TestApp::start_with(site!(), Backend::Postgres, |config: &mut Config| {
        config.database.connections = 2;
    })
    .await;
    let providers = app.with_providers().await;
    app.credential(&providers.fcm.credential()).await;
    let ada = app.session("ada").await;
    app.push_token(&ada, "phone", &providers.fcm.token(1)).await;
    app.campaign(&json!({})).await;
    let purchase = |_| app.event(&ada, "purchase", &json!({}));
    let events: Vec<_> = (0..MESSAGES).map(purchase).collect();
    app.ingest(&ada, &events).await.ok();

    app.until("not every message is delivered", async || {
        let delivered: Vec<(i64,)> = app
            .rows("SELECT count(*) FROM deliveries WHERE status = 'delivered'")
            .await;
        delivered[0].0 == MESSAGES
    })
    .await;
    assert_eq!(
        i64::try_from(providers.fcm.received().len()).unwrap(),
        MESSAGES
    );
    app.finish().await;
}
