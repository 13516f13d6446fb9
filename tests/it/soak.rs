//! The mixed load of the long trial, for a moment: no error, nothing lost, nothing twice.

use std::time::Duration;

use serde_json::json;
use tests::providers::Providers;
use tests::soak::{Mix, Soak, Swapped};
use tests::{TestApp, on_both_backends};

use crate::guests::{name, version, versioned};

on_both_backends!(a_mixed_load_has_no_errors);

async fn a_mixed_load_has_no_errors(app: &mut TestApp) {
    let providers = Providers::start(&app.clock).await;
    providers.configure(&mut app.config);
    app.restart().await;
    let swapped = Swapped {
        name: name(7),
        versions: (1..=2)
            .map(|number| (version(number), versioned(7, number)))
            .collect(),
    };
    let access = json!({
        "baseUrl": app.access.base_url, "appId": app.access.app_id, "writeKey": app.access.write_key,
        "serverKey": app.access.server_key, "adminToken": app.access.admin_token,
        "editorToken": app.access.editor_token,
    });
    let mut soak = Soak::prepare(access, providers, swapped).await;
    soak.start(Mix {
        clients: 3,
        rounds_a_person: 9,
        pause: Duration::ZERO,
        swap_every: Duration::from_millis(200),
    });
    app.until("there is something of everything", async || {
        let done = soak.done();
        done.failed > 0 || (done.events >= 300 && done.sends >= 6 && done.swaps >= 4)
    })
    .await;
    let done = soak.finish().await;
    assert_eq!((done.failed, &done.errors), (0, &Vec::new()));

    app.settle().await;
    let counted = async |sql: &'static str| {
        let rows: Vec<(i64,)> = app.rows(sql).await;
        rows[0].0.unsigned_abs()
    };
    assert_eq!(
        counted("SELECT count(*) FROM events WHERE name NOT LIKE '$%'").await,
        done.events
    );
    let fired = counted("SELECT count(*) FROM instructions").await;
    assert_eq!(
        (fired, done.fired, done.acknowledged),
        (done.events / 6, fired, fired)
    );
    let delivered = "SELECT count(*) FROM deliveries WHERE sent_at IS NOT NULL";
    assert_eq!(counted(delivered).await, done.sends);
}
