//! How old the size of a segment is, and how deep segments stand in each other (contract 19).

use serde_json::{Value, json};
use tests::session::text;
use tests::{TestApp, on_both_backends};

use crate::segments::{member, plan, segment, set};

on_both_backends!(
    a_sweep_that_failed_is_begun_again_soon,
    segments_stand_four_deep_in_a_surveys_audience,
);

async fn read(app: &TestApp, segment: &Value) -> Value {
    let id = segment["id"].as_str().unwrap();
    let path = app.path(&format!("/segments/{id}"));
    app.get(&path, &app.viewer()).await.ok()
}

/// Somebody is to be in the segment whom only a sweep finds.
async fn joins(app: &TestApp, name: &str) {
    let session = app.session(name).await;
    set(app, &session, json!({"plan": "pro"})).await;
}

/// Lets time pass until the segment has another size; answers when that was counted, which was meanwhile.
async fn counted_anew(app: &TestApp, segment: &Value, (seconds, size): (u64, usize)) -> String {
    app.advance(seconds);
    let earliest = app.time(0);
    app.until("the size is known anew", async || {
        read(app, segment).await["size"] == size
    })
    .await;
    let counted = text(&read(app, segment).await, "sizeAt");
    assert!(earliest <= counted && counted <= app.time(0), "{counted}");
    counted
}

async fn a_sweep_that_failed_is_begun_again_soon(app: &mut TestApp) {
    let pros = segment(app, "pros", plan("pro")).await;
    joins(app, "ada").await;
    let counted = counted_anew(app, &pros, (3_601, 1)).await;

    let mut tx = app.services().db.write().await.unwrap();
    let failed = tx
        .sql("UPDATE jobs SET state = 'failed' WHERE app_id = $1 AND id IN (SELECT job_id FROM segment_sweeps)")
        .bind(app.access.app_id)
        .execute()
        .await
        .unwrap();
    assert_eq!(failed, 1);
    tx.commit().await.unwrap();
    joins(app, "bob").await;
    assert_eq!(read(app, &pros).await["sizeAt"], counted);
    counted_anew(app, &pros, (61, 2)).await;

    // One that ended well is not begun again before its time.
    joins(app, "cy").await;
    app.advance(61);
    app.until("the sweep is known to have ended", async || {
        let watched: Vec<(i64,)> = app
            .rows("SELECT count(*) FROM segment_sweeps WHERE job_id IS NOT NULL")
            .await;
        watched == [(0,)]
    })
    .await;
    assert_eq!(read(app, &pros).await["size"], 2);
    counted_anew(app, &pros, (3_601, 3)).await;
}

async fn segments_stand_four_deep_in_a_surveys_audience(app: &mut TestApp) {
    let (ada, bob) = (app.session("ada").await, app.session("bob").await);
    set(app, &ada, json!({"plan": "pro"})).await;
    set(app, &bob, json!({"plan": "free"})).await;
    let innermost = segment(app, "1", plan("pro")).await;
    let mut outermost = innermost.clone();
    for depth in 2..=4 {
        // Each is the opposite of the one in it.
        outermost = segment(app, &depth.to_string(), member(&outermost, false)).await;
    }
    app.survey_with(&json!({"audience": member(&outermost, false)}))
        .await;
    let fires = async |session| app.fires(session, "purchase", &json!({})).await;
    assert_eq!((fires(&ada).await, fires(&bob).await), (1, 0));
    let path = app.path(&format!("/segments/{}", innermost["id"].as_str().unwrap()));
    app.patch(&path, &app.editor(), &json!({"audience": plan("free")}))
        .await
        .ok();
    assert_eq!((fires(&ada).await, fires(&bob).await), (0, 1));

    // No deeper: neither by a segment more, nor by one that is put into the innermost.
    let body = json!({"name": "5", "audience": member(&outermost, true)});
    app.post(&app.path("/segments"), &app.editor(), &body)
        .await
        .refused(422, "validation_failed");
    let other = segment(app, "other", plan("pro")).await;
    app.patch(
        &path,
        &app.editor(),
        &json!({"audience": member(&other, true)}),
    )
    .await
    .refused(422, "validation_failed");
    assert_eq!((fires(&ada).await, fires(&bob).await), (0, 1));
}
