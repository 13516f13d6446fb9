//! The job that has messages sent again which never arrived at an endpoint.

use nudge_db::{Timestamp, Tx};
use nudge_platform::jobs::{self, Error, NewJob, RunningJob};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::Webhook;
use crate::services::Services;

/// The kind of the job.
pub const KIND: &str = "webhook.recover";

/// How many an app may have at a time.
pub(super) const MOST_AT_ONCE: usize = 10;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WebhookRecoveryInput {
    webhook_id: Uuid,
    since: Timestamp,
    until: Timestamp,
}

/// Queues the job; none: the app has as many as it may have.
pub(super) async fn queue(
    tx: &mut Tx,
    webhook: &Webhook,
    since: Timestamp,
    actor: &str,
    now: Timestamp,
) -> nudge_db::Result<Option<Uuid>> {
    let job = NewJob {
        app_id: webhook.app_id,
        kind: KIND,
        input: json!(WebhookRecoveryInput {
            webhook_id: webhook.id,
            since,
            until: now,
        }),
        requested_by: actor,
    };
    jobs::queue_limited(tx, &job, MOST_AT_ONCE, now).await
}

/// How far the job is.
#[derive(Default, Serialize, Deserialize)]
struct Progress {
    messages: i64,
    /// The last message that was looked at.
    after: Option<(Timestamp, Uuid)>,
}

/// Runs the job to its end. It goes once through what was there when it was asked for, so that what fails again
/// at once is left to the next one.
pub async fn run(services: &Services, job: &mut RunningJob) -> Result<Value, Error> {
    let WebhookRecoveryInput {
        webhook_id,
        since,
        until,
    } = job.input()?;
    let mut progress: Progress = job.progress()?;
    loop {
        job.check()?;
        let now = services.clock.now();
        let mut tx = services.db.write().await?;
        let before_all = (Timestamp(since.0 - 1), Uuid::max());
        let window = (progress.after.unwrap_or(before_all), until);
        let revived =
            nudge_records::webhooks::messages::revive(&mut tx, job.app_id, webhook_id, window, now)
                .await?;
        let Some(last) = revived.iter().max() else {
            break;
        };
        progress.after = Some(*last);
        progress.messages += i64::try_from(revived.len()).unwrap_or(i64::MAX);
        let done = progress.messages;
        job.advance(&mut tx, &progress, done, None, now).await?;
        tx.commit().await?;
        services.webhooks.ring();
    }
    Ok(json!({"messages": progress.messages}))
}
