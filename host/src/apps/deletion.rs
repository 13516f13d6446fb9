//! Removing what a deleted app stored: a job of bounded steps, each of which can be the last before a crash.
//!
//! The app's own row is gone before the job begins, so that nothing new is let in. What was let in just
//! before is removed by passes that go on until one, well after that, finds nothing.

use std::time::Duration;

use nudge_db::{Result, Timestamp, Tx};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::jobs::{self, Error, NewJob, Running};
use crate::plugins;
use crate::services::Services;

/// The kind of the job. It belongs to no app, since the app's own jobs are among what it removes.
pub const KIND: &str = "app.delete";
/// Rows that one statement removes at the most.
const STEP: i64 = 500;
/// Longer than a request or a batch of the pipeline goes on that began before the app was deleted, and than
/// other processes take to hear of it.
const GRACE: Duration = Duration::from_secs(2);

/// One statement of a pass. Each takes the app and [`STEP`], and changes nothing once there is nothing left.
///
/// Rows that no index leads to from the app come first, by way of the aliases and subjects that own them.
const STATEMENTS: &[&str] = &[
    "DELETE FROM events WHERE seq IN (
        SELECT e.seq FROM (SELECT number FROM aliases WHERE app_id = $1 ORDER BY kind, value LIMIT $2) a
        JOIN events e ON e.alias_number = a.number LIMIT $2)",
    "DELETE FROM pending WHERE id IN (
        SELECT p.id FROM (SELECT number FROM aliases WHERE app_id = $1 ORDER BY kind, value LIMIT $2) a
        JOIN pending p ON p.alias_number = a.number LIMIT $2)",
    "DELETE FROM instructions WHERE id IN (
        SELECT i.id FROM (SELECT id FROM subjects WHERE app_id = $1 ORDER BY external_id, id LIMIT $2) s
        JOIN instructions i ON i.subject_id = s.id LIMIT $2)",
    "DELETE FROM survey_answers WHERE (attempt_id, question_id) IN (
        SELECT n.attempt_id, n.question_id
        FROM (SELECT id FROM subjects WHERE app_id = $1 ORDER BY external_id, id LIMIT $2) s
        JOIN survey_attempts a ON a.subject_id = s.id JOIN survey_answers n ON n.attempt_id = a.id LIMIT $2)",
    "DELETE FROM survey_attempts WHERE id IN (
        SELECT a.id FROM (SELECT id FROM subjects WHERE app_id = $1 ORDER BY external_id, id LIMIT $2) s
        JOIN survey_attempts a ON a.subject_id = s.id
        WHERE NOT EXISTS (SELECT 1 FROM survey_answers n WHERE n.attempt_id = a.id) LIMIT $2)",
    "DELETE FROM plugin_states WHERE (campaign_id, subject_id) IN (
        SELECT p.campaign_id, p.subject_id
        FROM (SELECT id FROM subjects WHERE app_id = $1 ORDER BY external_id, id LIMIT $2) s
        JOIN plugin_states p ON p.subject_id = s.id LIMIT $2)",
    "DELETE FROM timers WHERE id IN (
        SELECT t.id FROM (SELECT id FROM subjects WHERE app_id = $1 ORDER BY external_id, id LIMIT $2) s
        JOIN timers t ON t.subject_id = s.id LIMIT $2)",
    "DELETE FROM occasions WHERE id IN (
        SELECT o.id FROM (SELECT id FROM subjects WHERE app_id = $1 ORDER BY external_id, id LIMIT $2) s
        JOIN occasions o ON o.subject_id = s.id LIMIT $2)",
    "DELETE FROM run_firings WHERE (campaign_id, key, subject_id) IN (
        SELECT f.campaign_id, f.key, f.subject_id
        FROM (SELECT id FROM subjects WHERE app_id = $1 ORDER BY external_id, id LIMIT $2) s
        JOIN run_firings f ON f.subject_id = s.id LIMIT $2)",
    "DELETE FROM subject_properties WHERE (subject_id, key) IN (
        SELECT p.subject_id, p.key
        FROM (SELECT id FROM subjects WHERE app_id = $1 ORDER BY external_id, id LIMIT $2) s
        JOIN subject_properties p ON p.subject_id = s.id LIMIT $2)",
    "DELETE FROM devices WHERE (subject_id, device_id) IN (
        SELECT d.subject_id, d.device_id
        FROM (SELECT id FROM subjects WHERE app_id = $1 ORDER BY external_id, id LIMIT $2) s
        JOIN devices d ON d.subject_id = s.id LIMIT $2)",
    "DELETE FROM push_tokens WHERE (app_id, device_id) IN (
        SELECT app_id, device_id FROM push_tokens WHERE app_id = $1 LIMIT $2)",
    "DELETE FROM merged_subjects WHERE id IN (
        SELECT m.id FROM (SELECT id FROM subjects WHERE app_id = $1 ORDER BY external_id, id LIMIT $2) s
        JOIN merged_subjects m ON m.subject_id = s.id LIMIT $2)",
    "DELETE FROM deliveries WHERE id IN (
        SELECT id FROM deliveries WHERE app_id = $1 ORDER BY created_at, id LIMIT $2)",
    "DELETE FROM push_campaign_versions WHERE (campaign_id, version) IN (
        SELECT v.campaign_id, v.version FROM push_campaigns c
        JOIN push_campaign_versions v ON v.campaign_id = c.id WHERE c.app_id = $1 LIMIT $2)",
    "DELETE FROM property_texts WHERE (app_id, subject_id, key) IN (
        SELECT app_id, subject_id, key FROM property_texts WHERE app_id = $1 LIMIT $2)",
    "DELETE FROM property_mutations WHERE (app_id, mutation_id) IN (
        SELECT app_id, mutation_id FROM property_mutations WHERE app_id = $1 LIMIT $2)",
    "DELETE FROM client_sessions WHERE (app_id, client_id) IN (
        SELECT app_id, client_id FROM client_sessions WHERE app_id = $1 LIMIT $2)",
    "DELETE FROM dead_letters WHERE id IN (SELECT id FROM dead_letters WHERE app_id = $1 LIMIT $2)",
    "DELETE FROM survey_versions WHERE (survey_id, version) IN (
        SELECT v.survey_id, v.version FROM surveys s JOIN survey_versions v ON v.survey_id = s.id
        WHERE s.app_id = $1 LIMIT $2)",
    "DELETE FROM survey_counts WHERE (survey_id, day, question_id, measure, value) IN (
        SELECT c.survey_id, c.day, c.question_id, c.measure, c.value
        FROM surveys s JOIN survey_counts c ON c.survey_id = s.id WHERE s.app_id = $1 LIMIT $2)",
];

/// What owns rows, removed once a pass has found nothing of the above among what these statements take.
const OWNERS: &[&str] = &[
    "DELETE FROM aliases WHERE number IN (
        SELECT number FROM aliases WHERE app_id = $1 ORDER BY kind, value LIMIT $2)",
    "DELETE FROM subjects WHERE id IN (
        SELECT id FROM subjects WHERE app_id = $1 ORDER BY external_id, id LIMIT $2)",
];

/// What an index of its own leads to.
const REST: &[&str] = &[
    "DELETE FROM surveys WHERE id IN (SELECT id FROM surveys WHERE app_id = $1 LIMIT $2)",
    "DELETE FROM campaign_runs WHERE campaign_id IN (
        SELECT campaign_id FROM campaign_runs WHERE app_id = $1 LIMIT $2)",
    "DELETE FROM push_campaigns WHERE id IN (SELECT id FROM push_campaigns WHERE app_id = $1 LIMIT $2)",
    "DELETE FROM delivery_counts WHERE (app_id, campaign_id, hour, state) IN (
        SELECT app_id, campaign_id, hour, state FROM delivery_counts WHERE app_id = $1 LIMIT $2)",
    "DELETE FROM definitions WHERE id IN (SELECT id FROM definitions WHERE app_id = $1 LIMIT $2)",
    "DELETE FROM webhook_attempts WHERE id IN (
        SELECT a.id FROM webhook_messages m JOIN webhook_attempts a ON a.message_id = m.id
        WHERE m.app_id = $1 LIMIT $2)",
    "DELETE FROM webhook_messages WHERE id IN (SELECT id FROM webhook_messages WHERE app_id = $1 LIMIT $2)",
    "DELETE FROM webhook_secrets WHERE name IN (SELECT name FROM webhook_secrets WHERE app_id = $1 LIMIT $2)",
    "DELETE FROM webhooks WHERE id IN (SELECT id FROM webhooks WHERE app_id = $1 LIMIT $2)",
    "DELETE FROM app_counts WHERE (app_id, begins_at, kind) IN (
        SELECT app_id, begins_at, kind FROM app_counts WHERE app_id = $1 LIMIT $2)",
    "DELETE FROM definition_counts WHERE (app_id, definition_id, begins_at) IN (
        SELECT app_id, definition_id, begins_at FROM definition_counts WHERE app_id = $1 LIMIT $2)",
    "DELETE FROM keys WHERE id IN (SELECT id FROM keys WHERE app_id = $1 LIMIT $2)",
    "DELETE FROM push_credentials WHERE id IN (SELECT id FROM push_credentials WHERE app_id = $1 LIMIT $2)",
    "DELETE FROM identity_keys WHERE (app_id, kid) IN (
        SELECT app_id, kid FROM identity_keys WHERE app_id = $1 LIMIT $2)",
    "DELETE FROM plugin_log WHERE id IN (
        SELECT l.id FROM plugin_log_subjects s JOIN plugin_log l ON l.call_id = s.call_id
        WHERE s.app_id = $1 LIMIT $2)",
    "DELETE FROM decisions WHERE (app_id, id) IN (SELECT app_id, id FROM decisions WHERE app_id = $1 LIMIT $2)",
    "DELETE FROM decision_subjects WHERE (app_id, decision_id, subject_id) IN (
        SELECT app_id, decision_id, subject_id FROM decision_subjects WHERE app_id = $1 LIMIT $2)",
    "DELETE FROM decision_configs WHERE (app_id, digest) IN (
        SELECT app_id, digest FROM decision_configs WHERE app_id = $1 LIMIT $2)",
    "DELETE FROM plugin_differences WHERE id IN (SELECT id FROM plugin_differences WHERE app_id = $1 LIMIT $2)",
    "DELETE FROM plugin_slots WHERE (app_id, kind) IN (
        SELECT app_id, kind FROM plugin_slots WHERE app_id = $1 LIMIT $2)",
    "DELETE FROM suppressions WHERE (app_id, hash) IN (
        SELECT app_id, hash FROM suppressions WHERE app_id = $1 LIMIT $2)",
    "DELETE FROM privacy_export_chunks WHERE (export_id, number) IN (
        SELECT c.export_id, c.number FROM privacy_exports e JOIN privacy_export_chunks c ON c.export_id = e.id
        WHERE e.app_id = $1 LIMIT $2)",
    "DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE app_id = $1 LIMIT $2)",
    "DELETE FROM audit_log WHERE id IN (SELECT id FROM audit_log WHERE app_id = $1 LIMIT $2)",
];

/// Tables that no index leads to from the app, in case something of theirs has lost its owner: how to look,
/// outside of a transaction that writes, and how to remove.
const LEFT_OVER: &[(&str, &str)] = &[
    (
        "SELECT count(*) AS count FROM (SELECT 1 FROM survey_versions WHERE app_id = $1 LIMIT $2) t",
        "DELETE FROM survey_versions WHERE (survey_id, version) IN (
            SELECT survey_id, version FROM survey_versions WHERE app_id = $1 LIMIT $2)",
    ),
    (
        "SELECT count(*) AS count FROM (SELECT 1 FROM push_campaign_versions WHERE app_id = $1 LIMIT $2) t",
        "DELETE FROM push_campaign_versions WHERE (campaign_id, version) IN (
            SELECT campaign_id, version FROM push_campaign_versions WHERE app_id = $1 LIMIT $2)",
    ),
    (
        "SELECT count(*) AS count FROM (SELECT 1 FROM survey_answers WHERE app_id = $1 LIMIT $2) t",
        "DELETE FROM survey_answers WHERE (attempt_id, question_id) IN (
            SELECT attempt_id, question_id FROM survey_answers WHERE app_id = $1 LIMIT $2)",
    ),
    (
        "SELECT count(*) AS count FROM (SELECT 1 FROM survey_attempts WHERE app_id = $1 LIMIT $2) t",
        "DELETE FROM survey_attempts WHERE id IN (SELECT id FROM survey_attempts WHERE app_id = $1 LIMIT $2)",
    ),
    (
        "SELECT count(*) AS count FROM (SELECT 1 FROM survey_counts WHERE app_id = $1 LIMIT $2) t",
        "DELETE FROM survey_counts WHERE (survey_id, day, question_id, measure, value) IN (
            SELECT survey_id, day, question_id, measure, value FROM survey_counts WHERE app_id = $1 LIMIT $2)",
    ),
    (
        "SELECT count(*) AS count FROM (SELECT 1 FROM privacy_export_chunks WHERE app_id = $1 LIMIT $2) t",
        "DELETE FROM privacy_export_chunks WHERE (export_id, number) IN (
            SELECT export_id, number FROM privacy_export_chunks WHERE app_id = $1 LIMIT $2)",
    ),
    (
        "SELECT count(*) AS count FROM (SELECT 1 FROM privacy_exports WHERE app_id = $1 LIMIT $2) t",
        "DELETE FROM privacy_exports WHERE id IN (SELECT id FROM privacy_exports WHERE app_id = $1 LIMIT $2)",
    ),
    (
        "SELECT count(*) AS count FROM (SELECT 1 FROM instructions WHERE app_id = $1 LIMIT $2) t",
        "DELETE FROM instructions WHERE id IN (SELECT id FROM instructions WHERE app_id = $1 LIMIT $2)",
    ),
    (
        "SELECT count(*) AS count FROM (SELECT 1 FROM plugin_states WHERE app_id = $1 LIMIT $2) t",
        "DELETE FROM plugin_states WHERE (campaign_id, subject_id) IN (
            SELECT campaign_id, subject_id FROM plugin_states WHERE app_id = $1 LIMIT $2)",
    ),
    (
        "SELECT count(*) AS count FROM (SELECT 1 FROM timers WHERE app_id = $1 LIMIT $2) t",
        "DELETE FROM timers WHERE id IN (SELECT id FROM timers WHERE app_id = $1 LIMIT $2)",
    ),
    (
        "SELECT count(*) AS count FROM (SELECT 1 FROM occasions WHERE app_id = $1 LIMIT $2) t",
        "DELETE FROM occasions WHERE id IN (SELECT id FROM occasions WHERE app_id = $1 LIMIT $2)",
    ),
    (
        "SELECT count(*) AS count FROM (SELECT 1 FROM subject_properties WHERE app_id = $1 LIMIT $2) t",
        "DELETE FROM subject_properties WHERE (subject_id, key) IN (
            SELECT subject_id, key FROM subject_properties WHERE app_id = $1 LIMIT $2)",
    ),
    (
        "SELECT count(*) AS count FROM (SELECT 1 FROM devices WHERE app_id = $1 LIMIT $2) t",
        "DELETE FROM devices WHERE (subject_id, device_id) IN (
            SELECT subject_id, device_id FROM devices WHERE app_id = $1 LIMIT $2)",
    ),
    (
        "SELECT count(*) AS count FROM (SELECT 1 FROM merged_subjects WHERE app_id = $1 LIMIT $2) t",
        "DELETE FROM merged_subjects WHERE id IN (SELECT id FROM merged_subjects WHERE app_id = $1 LIMIT $2)",
    ),
    (
        "SELECT count(*) AS count FROM (SELECT 1 FROM pending WHERE app_id = $1 LIMIT $2) t",
        "DELETE FROM pending WHERE id IN (SELECT id FROM pending WHERE app_id = $1 LIMIT $2)",
    ),
    (
        "SELECT count(*) AS count FROM (SELECT 1 FROM events WHERE app_id = $1 LIMIT $2) t",
        "DELETE FROM events WHERE seq IN (SELECT seq FROM events WHERE app_id = $1 LIMIT $2)",
    ),
    (
        "SELECT count(*) AS count FROM (SELECT 1 FROM plugin_log WHERE app_id = $1 LIMIT $2) t",
        "DELETE FROM plugin_log WHERE id IN (SELECT id FROM plugin_log WHERE app_id = $1 LIMIT $2)",
    ),
    (
        "SELECT count(*) AS count FROM (SELECT 1 FROM plugin_log_subjects WHERE app_id = $1 LIMIT $2) t",
        "DELETE FROM plugin_log_subjects WHERE (app_id, subject_id, call_id) IN (
            SELECT app_id, subject_id, call_id FROM plugin_log_subjects WHERE app_id = $1 LIMIT $2)",
    ),
    (
        "SELECT count(*) AS count FROM (SELECT 1 FROM plugin_calls WHERE app_id = $1 LIMIT $2) t",
        "DELETE FROM plugin_calls WHERE (owner_id, name, app_id, minute, version, since, outcome, bucket) IN (
            SELECT owner_id, name, app_id, minute, version, since, outcome, bucket FROM plugin_calls
            WHERE app_id = $1 LIMIT $2)",
    ),
    (
        "SELECT count(*) AS count FROM (SELECT 1 FROM plugin_comparisons WHERE app_id = $1 LIMIT $2) t",
        "DELETE FROM plugin_comparisons WHERE (owner_id, name, app_id, version, since) IN (
            SELECT owner_id, name, app_id, version, since FROM plugin_comparisons WHERE app_id = $1 LIMIT $2)",
    ),
];

#[derive(sqlx::FromRow)]
struct CountRow {
    count: i64,
}

/// What to remove. Absent once nothing is left: not even the job knows the app then.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Input {
    app_id: Option<Uuid>,
}

/// Queues the job, in the transaction that deletes the app.
pub async fn queue(tx: &mut Tx, app_id: Uuid, actor: &str, now: Timestamp) -> Result<()> {
    let job = NewJob {
        app_id: Uuid::nil(),
        kind: KIND,
        input: json!({"appId": app_id}),
        requested_by: actor,
    };
    jobs::queue(tx, &job, now).await?;
    Ok(())
}

/// Runs the job to its end.
pub async fn run(services: &Services, job: &mut Running) -> std::result::Result<Value, Error> {
    let Input {
        app_id: Some(app_id),
    } = job.input()?
    else {
        return Ok(json!({}));
    };
    let mut done: i64 = job.progress()?;
    remove(services, job, app_id, &mut done).await?;
    let grace = GRACE.max(Duration::from_millis(services.config.pipeline.poll_ms) * 4);
    tokio::time::sleep(grace).await;
    job.check()?;
    remove(services, job, app_id, &mut done).await?;
    remove_left_over(services, job, app_id, &mut done).await?;
    let mut tx = services.db.write().await?;
    let now = services.clock.now();
    job.advance(&mut tx, &done, done, Some(done), now).await?;
    job.forget_input(&mut tx, &json!({"appId": null})).await?;
    tx.commit().await?;
    Ok(json!({}))
}

/// Removes rows until there are none.
async fn remove(
    services: &Services,
    job: &mut Running,
    app_id: Uuid,
    done: &mut i64,
) -> std::result::Result<(), Error> {
    loop {
        while pass(services, job, app_id, STATEMENTS, done).await? > 0 {}
        if pass(services, job, app_id, OWNERS, done).await? == 0 {
            break;
        }
    }
    while remove_plugin(services, job, app_id, done).await? {}
    while pass(services, job, app_id, REST, done).await? > 0 {}
    Ok(())
}

/// Removes a plugin with its versions, and their components unless others have them too; answers whether
/// there was one.
async fn remove_plugin(
    services: &Services,
    job: &mut Running,
    app_id: Uuid,
    done: &mut i64,
) -> std::result::Result<bool, Error> {
    job.check()?;
    let mut tx = services.db.read().await?;
    let Some(name) = plugins::store::first_name(&mut tx, app_id).await? else {
        return Ok(false);
    };
    drop(tx);
    let mut tx = services.db.write().await?;
    plugins::store::lock(&mut tx, app_id, &name).await?;
    plugins::store::delete(&mut tx, app_id, &name).await?;
    *done += 1;
    job.advance(&mut tx, done, *done, None, services.clock.now())
        .await?;
    tx.commit().await?;
    Ok(true)
}

/// Removes what has lost its owner, which is hardly ever anything.
async fn remove_left_over(
    services: &Services,
    job: &mut Running,
    app_id: Uuid,
    done: &mut i64,
) -> std::result::Result<(), Error> {
    for (look, statement) in LEFT_OVER {
        let mut tx = services.db.read().await?;
        let left: CountRow = tx.sql(look).bind(app_id).bind(STEP).fetch_one().await?;
        drop(tx);
        if left.count > 0 {
            while pass(services, job, app_id, &[statement], done).await? > 0 {}
        }
    }
    Ok(())
}

/// Runs each statement once, each in a transaction of its own; answers how many rows went.
async fn pass(
    services: &Services,
    job: &mut Running,
    app_id: Uuid,
    statements: &[&'static str],
    done: &mut i64,
) -> std::result::Result<i64, Error> {
    let mut removed = 0;
    for statement in statements {
        job.check()?;
        let mut tx = services.db.write().await?;
        let rows = tx.sql(statement).bind(app_id).bind(STEP).execute().await?;
        let rows = i64::try_from(rows).unwrap_or(i64::MAX);
        if rows > 0 {
            removed += rows;
            *done += rows;
            let now = services.clock.now();
            job.advance(&mut tx, done, *done, None, now).await?;
            tx.commit().await?;
        }
    }
    Ok(removed)
}
