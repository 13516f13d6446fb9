//! What waits for a time that a clock had which was ahead and was set back.

use std::time::{Duration, Instant};

use nudge_db::{Result, Timestamp, Tx};
use nudge_records::{instructions, scheduled_work};

use super::{Inner, claims};

/// A clock is put right by less all the time.
const LEEWAY: Duration = Duration::from_secs(2);
/// Clocks of several machines may differ by as much.
pub(super) const LEEWAY_AMONG_OTHERS: Duration = Duration::from_mins(2);

/// Gives timers the rest of their delays from now on, looks at deferred firings again, tells of changes of segments, and offers
/// instructions now. Doing it again changes nothing. False: it has taken so long as `patience`, and there is more.
pub(super) async fn put_right(inner: &Inner, now: Timestamp, patience: Duration) -> Result<bool> {
    let started = Instant::now();
    let mut tx = inner.db.write().await?;
    let leeway = if claims::is_alone(&mut tx, inner.node()).await? {
        LEEWAY
    } else {
        LEEWAY_AMONG_OTHERS
    };
    let latest = now.plus(leeway);
    let timers = timers(&mut tx, now, latest).await?;
    let firings = scheduled_work::put_right(&mut tx, now, latest).await?;
    tx.commit().await?;
    if timers + firings > 0 {
        tracing::warn!(timers, firings, "the clock was set back");
    }
    let mut put_right = 0;
    let is_done = loop {
        let mut tx = inner.db.write().await?;
        let some = instructions::setback::put_right(&mut tx, now, latest).await?;
        tx.commit().await?;
        put_right += some;
        if some == 0 {
            break true;
        }
        if started.elapsed() >= patience {
            break false;
        }
    };
    if put_right > 0 {
        tracing::warn!(instructions = put_right, "the clock was set back");
        // Those that found one which was not available yet wait for the time that it had.
        inner.polls.wake_all();
    }
    Ok(is_done)
}

/// Gives timers that were set later than `latest` the rest of their delays from now on; answers how many. One that a process has
/// claimed is among them: it waits for its time again if that process gives it up.
async fn timers(tx: &mut Tx, now: Timestamp, latest: Timestamp) -> Result<u64> {
    tx.sql("UPDATE timers SET due_at = due_at - (set_at - $1), set_at = $1 WHERE set_at > $2")
        .bind(now)
        .bind(latest)
        .execute()
        .await
}
