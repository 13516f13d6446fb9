//! The job that removes the messages of an endpoint that is gone.

use nudge_db::{Timestamp, Tx};
use nudge_platform::jobs::{self, Error, NewJob, RunningJob};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::services::Services;

/// The kind of the job.
pub const KIND: &str = "webhook.clear";

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WebhookClearInput {
    webhook_id: Uuid,
}

/// Queues the job.
pub(super) async fn queue(
    tx: &mut Tx,
    app_id: Uuid,
    webhook_id: Uuid,
    actor: &str,
    now: Timestamp,
) -> nudge_db::Result<()> {
    let job = NewJob {
        app_id,
        kind: KIND,
        input: json!(WebhookClearInput { webhook_id }),
        requested_by: actor,
    };
    jobs::queue(tx, &job, now).await?;
    Ok(())
}

/// Runs the job to its end. A message that another process adds later, not having heard that the endpoint is
/// gone, is never sent and goes with its age.
pub async fn run(services: &Services, job: &mut RunningJob) -> Result<Value, Error> {
    let WebhookClearInput { webhook_id } = job.input()?;
    let mut done: i64 = job.progress()?;
    loop {
        job.check()?;
        let mut tx = services.db.write().await?;
        let step =
            nudge_records::webhooks::messages::delete_of(&mut tx, job.app_id, webhook_id).await?;
        if step == 0 {
            break;
        }
        done += i64::try_from(step).unwrap_or(i64::MAX);
        let now = services.clock.now();
        job.advance(&mut tx, &done, done, None, now).await?;
        tx.commit().await?;
    }
    Ok(json!({"messages": done}))
}
