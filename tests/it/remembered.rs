//! Subjects that the process remembers from one batch to the next.

use serde_json::{Value, json};
use tests::{TestApp, on_both_backends};

on_both_backends!(
    a_subject_is_read_again_only_where_it_has_changed,
    what_plugins_keep_is_known_from_batch_to_batch,
);

async fn change(app: &TestApp, text: &'static str) {
    let mut tx = app.services().db.write().await.unwrap();
    assert_eq!(tx.sql(text).execute().await.unwrap(), 1);
    tx.commit().await.unwrap();
}

async fn a_subject_is_read_again_only_where_it_has_changed(app: &mut TestApp) {
    let ada = app.session("ada").await;
    let counted = async || {
        let event = app.event(&ada, "opened", &json!({}));
        app.ingest(&ada, &[event]).await.ok();
        app.settle().await;
        let counts: Vec<(i64,)> = app.rows("SELECT event_count FROM subjects").await;
        counts[0].0
    };
    assert_eq!(counted().await, 1);
    // Nothing of the product changes a subject and leaves its version.
    change(app, "UPDATE subjects SET event_count = 100").await;
    assert_eq!(counted().await, 2);
    let properly = "UPDATE subjects SET event_count = 200, version = version + 1";
    change(app, properly).await;
    assert_eq!(counted().await, 201);
    assert_eq!(counted().await, 202);
}

async fn what_plugins_keep_is_known_from_batch_to_batch(app: &mut TestApp) {
    let every_nth = |n: u32| -> Value {
        let occurrence = json!({"mode": "every_nth", "n": n});
        json!({"kind": "event", "eventName": "purchase", "occurrence": occurrence})
    };
    app.survey(&every_nth(3)).await;
    let ada = app.session("ada").await;
    let fired = async |purchases: usize| {
        let mut fired = Vec::new();
        for _ in 0..purchases {
            fired.push(app.fires(&ada, "purchase", &json!({})).await);
        }
        fired
    };
    assert_eq!(fired(2).await, [0, 0]);
    // Of a campaign that comes later nothing is known yet.
    app.survey(&every_nth(2)).await;
    assert_eq!(fired(4).await, [1, 1, 0, 2]);
    // Whoever is read again is read with what plugins keep.
    change(app, "UPDATE subjects SET version = version + 1").await;
    assert_eq!(fired(4).await, [0, 1, 1, 1]);
    // What is there now counts, not what was remembered of the version before.
    let mut tx = app.services().db.write().await.unwrap();
    let forgotten = "DELETE FROM plugin_states";
    assert_eq!(tx.sql(forgotten).execute().await.unwrap(), 2);
    let changed = "UPDATE subjects SET version = version + 1";
    assert_eq!(tx.sql(changed).execute().await.unwrap(), 1);
    tx.commit().await.unwrap();
    assert_eq!(fired(3).await, [0, 1, 1]);
}
