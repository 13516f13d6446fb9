//! Removes decisions that were kept long enough.

use std::time::Duration;

use nudge_db::Timestamp;
use nudge_platform::due::{self, Trouble};
use nudge_platform::id;
use tokio_util::sync::CancellationToken;

use super::{NOTE_USE, REMOVED_AT_ONCE, store};
use crate::services::{Services, Shared};

/// How often decisions are looked at.
const INTERVAL: Duration = Duration::from_mins(10);
const DAY: Duration = Duration::from_hours(24);
/// What is waited between two steps, so that others can write meanwhile.
const BREATH: Duration = Duration::from_millis(50);

/// Runs until the server halts.
pub async fn run(services: Shared, halt: CancellationToken) {
    let pause = Duration::from_millis(services.config.pipeline.poll_ms.max(1));
    let mut looked_at: Option<Timestamp> = None;
    let mut trouble = Trouble::new("removing old decisions");
    loop {
        let now = services.clock.now();
        if looked_at.is_none_or(|at| due::is_over(INTERVAL, at, now)) {
            let expired = tokio::select! {
                expired = expire(&services) => expired,
                () = halt.cancelled() => return,
            };
            if trouble.note(expired).is_some() {
                looked_at = Some(now);
            }
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = halt.cancelled() => return,
        }
    }
}

/// Removes decisions that are older than `plugins.decisionDays`, a few at a time.
pub async fn expire(services: &Services) -> nudge_db::Result<()> {
    let days = u32::try_from(services.config.plugins.decision_days).unwrap_or(u32::MAX);
    let until = services.clock.now().minus(DAY.saturating_mul(days));
    let before = id::first_of(until);
    let mut tx = services.db.read().await?;
    let apps = nudge_campaigns::apps::versions(&mut tx).await?;
    drop(tx);
    let step = i64::try_from(REMOVED_AT_ONCE).unwrap_or(i64::MAX);
    for (app_id, _) in apps {
        loop {
            let mut tx = services.db.write().await?;
            let more = store::delete_before(&mut tx, app_id, before, step).await?;
            if !more {
                // What is in use is noted once a day, by each process.
                let unused = until.minus(NOTE_USE * 2);
                store::delete_unused_configs(&mut tx, app_id, unused).await?;
            }
            tx.commit().await?;
            if !more {
                break;
            }
            tokio::time::sleep(BREATH).await;
        }
    }
    Ok(())
}
