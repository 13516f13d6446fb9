//! A clock that is set back: what was put off by a clock that was ahead does not wait until that time comes again.
//!
//! A timer says when it was set. One that was set in the future has the rest of its delay from now on. A delivery or a
//! message to a webhook is put off by an hour or so at the most, and comes up sooner by as much as the clock was set back.

use std::time::{Duration, Instant};

use nudge_db::{Result, Timestamp, Tx};
use nudge_platform::clock::Clock;
use uuid::Uuid;

/// Clocks are put right by less all the time, and those of several machines differ by less.
const LEEWAY: Duration = Duration::from_secs(2);
/// Instants that are read one after the other lie closer together, unless the process was stopped between.
const AT_ONCE: Duration = Duration::from_millis(100);

/// Compares the system's clock with the time that passes.
#[derive(Debug)]
pub(super) struct ClockWatch {
    at: Timestamp,
    since: Instant,
}

impl ClockWatch {
    pub(super) fn new(clock: &Clock) -> Self {
        Self {
            at: clock.now(),
            since: Instant::now(),
        }
    }

    /// By how much the clock was set back since the last look; zero: it was not.
    pub(super) fn look(&mut self, clock: &Clock) -> Duration {
        let since = Instant::now();
        let at = clock.now();
        if since.elapsed() >= AT_ONCE {
            return Duration::ZERO;
        }
        let expected = self.at.plus(since.duration_since(self.since));
        *self = Self { at, since };
        significant(expected, at)
    }
}

/// By how much an instant lies after another one, if it is more than clocks differ.
fn significant(later: Timestamp, now: Timestamp) -> Duration {
    if later > now.plus(LEEWAY) {
        later.since(now)
    } else {
        Duration::ZERO
    }
}

/// By how much the clock was set back since the last sign of life of another process; zero: it was not.
pub(super) async fn since_the_last_beat(
    tx: &mut Tx,
    node: Uuid,
    now: Timestamp,
) -> Result<Duration> {
    let last: Option<Timestamp> = tx
        .sql("SELECT heartbeat_at FROM nodes WHERE id <> $1 ORDER BY heartbeat_at DESC LIMIT 1")
        .bind(node)
        .fetch_value()
        .await?;
    Ok(last.map_or(Duration::ZERO, |last| significant(last, now)))
}

/// Gives timers of the future the rest of their delays from now on; answers how many. Doing it again changes nothing.
pub(super) async fn put_timers_right(tx: &mut Tx, now: Timestamp) -> Result<u64> {
    tx.sql(
        "UPDATE timers SET due_at = due_at - (set_at - $1), set_at = $1 WHERE set_at > $2 AND node IS NULL",
    )
    .bind(now)
    .bind(now.plus(LEEWAY))
    .execute()
    .await
}

/// Lets what was put off come up sooner.
pub(super) async fn bring_forward(tx: &mut Tx, by: Duration, now: Timestamp) -> Result<()> {
    let by = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
    for text in [
        "UPDATE deliveries SET due_at = CASE WHEN due_at - $2 < $1 THEN $1 ELSE due_at - $2 END
         WHERE due_at > $1 AND node IS NULL",
        "UPDATE webhook_messages SET due_at = CASE WHEN due_at - $2 < $1 THEN $1 ELSE due_at - $2 END
         WHERE due_at > $1 AND node IS NULL",
    ] {
        tx.sql(text).bind(now).bind(by).execute().await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clock_that_is_set_back_by_more_than_the_leeway_is_noticed() {
        let clock = Clock::default();
        let mut watch = ClockWatch::new(&clock);
        assert_eq!(watch.look(&clock), Duration::ZERO);
        clock.advance(Duration::from_hours(1));
        assert_eq!(watch.look(&clock), Duration::ZERO);
        clock.set_back(Duration::from_secs(1));
        assert_eq!(watch.look(&clock), Duration::ZERO);
        clock.set_back(Duration::from_mins(10));
        let by = watch.look(&clock);
        assert!((599..=600).contains(&by.as_secs()), "{by:?}");
        assert_eq!(watch.look(&clock), Duration::ZERO);
    }
}
