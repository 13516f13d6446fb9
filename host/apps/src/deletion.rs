//! Removing what a deleted app stored: a job of bounded steps, each of which can be the last before a crash.
//!
//! The app's own row is gone before the job begins, so that nothing new is let in. What was let in just
//! before is removed by passes that go on until one, well after that, finds nothing.

use std::time::Duration;

use nudge_db::{Result, Timestamp, Tx};
use nudge_platform::jobs::{self, Error, NewJob, RunningJob};
use nudge_platform::tables::{self, OfApp, STEP, Table};
use nudge_plugin_runtime as plugins;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::services::Services;

/// The kind of the job. It belongs to no app, since the app's own jobs are among what it removes.
pub const KIND: &str = "app.delete";
/// Longer than a request or a batch of the pipeline goes on that began before the app was deleted, and than
/// other processes take to hear of it.
const GRACE: Duration = Duration::from_secs(2);

/// What to remove. Absent once nothing is left: not even the job knows the app then.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AppDeletionInput {
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
pub async fn run(services: &Services, job: &mut RunningJob) -> std::result::Result<Value, Error> {
    let AppDeletionInput {
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
    remove_lost(services, job, app_id, &mut done).await?;
    let mut tx = services.db.write().await?;
    let now = services.clock.now();
    job.advance(&mut tx, &done, done, Some(done), now).await?;
    job.forget_input(&mut tx, &json!({"appId": null})).await?;
    tx.commit().await?;
    Ok(json!({}))
}

/// Removes rows until there are none: what is found through others before those.
async fn remove(
    services: &Services,
    job: &mut RunningJob,
    app_id: Uuid,
    done: &mut i64,
) -> std::result::Result<(), Error> {
    let found = |table: &Table| {
        let of_app = table.of_app;
        matches!(of_app, OfApp::Alias | OfApp::Subject | OfApp::Selected(_))
    };
    loop {
        while pass(services, job, app_id, found, done).await? > 0 {}
        let owns = |table: &Table| matches!(table.of_app, OfApp::Owner(_));
        if pass(services, job, app_id, owns, done).await? == 0 {
            break;
        }
    }
    while remove_plugin(services, job, app_id, done).await? {}
    let indexed = |table: &Table| table.of_app == OfApp::Indexed;
    while pass(services, job, app_id, indexed, done).await? > 0 {}
    Ok(())
}

/// Removes a plugin with its versions, and their components unless others have them too; answers whether
/// there was one.
async fn remove_plugin(
    services: &Services,
    job: &mut RunningJob,
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

/// Removes what has lost its owner, which is hardly ever anything, and what no index leads to. It is looked for
/// outside of a transaction that writes.
async fn remove_lost(
    services: &Services,
    job: &mut RunningJob,
    app_id: Uuid,
    done: &mut i64,
) -> std::result::Result<(), Error> {
    let indexed = |of_app| matches!(of_app, OfApp::Owner(_) | OfApp::Indexed | OfApp::No);
    for table in tables::all().filter(|table| !indexed(table.of_app)) {
        loop {
            job.check()?;
            let mut tx = services.db.read().await?;
            let count: i64 = table
                .look_for_lost(&mut tx)
                .bind(app_id)
                .fetch_scalar()
                .await?;
            drop(tx);
            if count == 0 {
                break;
            }
            let mut tx = services.db.write().await?;
            let statement = table.remove_lost(&mut tx);
            let rows = statement.bind(app_id).bind(STEP).execute().await?;
            note(services, job, tx, rows, done).await?;
        }
    }
    Ok(())
}

/// Runs the statements of some tables once, each in a transaction of its own; answers how many rows went.
async fn pass(
    services: &Services,
    job: &mut RunningJob,
    app_id: Uuid,
    which: fn(&Table) -> bool,
    done: &mut i64,
) -> std::result::Result<i64, Error> {
    let before = *done;
    for table in tables::all().filter(|table| which(table)) {
        job.check()?;
        let mut tx = services.db.write().await?;
        let Some(statement) = table.empty(&mut tx) else {
            continue;
        };
        let rows = statement.bind(app_id).bind(STEP).execute().await?;
        note(services, job, tx, rows, done).await?;
    }
    Ok(*done - before)
}

/// Counts removed rows and commits their removal.
async fn note(
    services: &Services,
    job: &mut RunningJob,
    mut tx: Tx,
    rows: u64,
    done: &mut i64,
) -> std::result::Result<(), Error> {
    if rows > 0 {
        *done += i64::try_from(rows).unwrap_or(i64::MAX);
        let now = services.clock.now();
        job.advance(&mut tx, done, *done, None, now).await?;
        tx.commit().await?;
    }
    Ok(())
}
