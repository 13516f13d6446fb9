//! Where all instants come from.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use chrono::{DateTime, SecondsFormat};
use nudge_db::Timestamp;
use tokio::sync::watch;

/// The longest sleep until an instant: the system's clock may be set while it lasts.
const LONGEST_SLEEP: Duration = Duration::from_mins(1);
/// Two threads that ask at once may be told in either order, within microseconds. By less than this no clock counts as set back.
const NO_SETBACK: i64 = 1_000_000;

/// The system's clock, and how far tests have moved it.
#[derive(Clone, Debug)]
pub struct Clock {
    hand: Arc<Hand>,
    moved: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Hand {
    ahead: AtomicI64,
    /// What was told last.
    told: AtomicI64,
    setbacks: AtomicU64,
}

impl Default for Clock {
    fn default() -> Self {
        Self {
            hand: Arc::default(),
            moved: watch::Sender::new(()),
        }
    }
}

impl Clock {
    /// Now, in whole microseconds.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the clock that everybody else asks"
    )]
    pub fn now(&self) -> Timestamp {
        let system = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| {
                i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
            });
        let hand = &self.hand;
        let now = system.saturating_add(hand.ahead.load(Ordering::Relaxed));
        let before = hand.told.swap(now, Ordering::Relaxed);
        if before > now.saturating_add(NO_SETBACK) {
            hand.setbacks.fetch_add(1, Ordering::Relaxed);
        }
        Timestamp(now)
    }

    /// How often the clock was set back since the process began, as far as anybody was told a later time before.
    pub fn setbacks(&self) -> u64 {
        self.now();
        self.hand.setbacks.load(Ordering::Relaxed)
    }

    /// Sets the clock back, as an operator does with one that was wrong, for tests.
    pub fn set_back(&self, by: Duration) {
        self.hand.ahead.fetch_sub(
            i64::try_from(by.as_micros()).unwrap_or(i64::MAX),
            Ordering::Relaxed,
        );
        self.moved.send_replace(());
    }

    /// Moves the clock ahead, for tests of what happens later.
    pub fn advance(&self, by: Duration) {
        self.hand.ahead.fetch_add(
            i64::try_from(by.as_micros()).unwrap_or(i64::MAX),
            Ordering::Relaxed,
        );
        self.moved.send_replace(());
    }

    /// Waits until an instant, or a minute if that is earlier, or until somebody moves the clock.
    pub async fn sleep_until(&self, instant: Option<Timestamp>) {
        let mut moved = self.moved.subscribe();
        let left = instant.map_or(LONGEST_SLEEP, |instant| instant.since(self.now()));
        tokio::select! {
            () = tokio::time::sleep(left.min(LONGEST_SLEEP)) => {}
            _ = moved.changed() => {}
        }
    }
}

/// An instant as the API writes it: `2026-01-31T09:30:00.000Z`.
pub fn to_text(instant: Timestamp) -> String {
    DateTime::from_timestamp_micros(instant.0)
        .unwrap_or(DateTime::UNIX_EPOCH)
        .to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Reads an ISO 8601 instant with an offset: RFC 3339's form, and those that ISO 8601 has besides, without seconds,
/// with `+0100` or `+01` for an offset. A year has four digits: with instants of all of those one can calculate.
pub fn from_text(text: &str) -> Option<Timestamp> {
    if !has_plain_year(text) {
        return None;
    }
    let besides = |form| DateTime::parse_from_str(text, form).ok();
    DateTime::parse_from_rfc3339(text)
        .ok()
        .or_else(|| besides("%Y-%m-%dT%H:%M:%S%.f%#z"))
        .or_else(|| besides("%Y-%m-%dT%H:%M%#z"))
        .map(|instant| Timestamp(instant.timestamp_micros()))
}

/// Whether a date begins with a year of four digits and no sign.
pub fn has_plain_year(text: &str) -> bool {
    let year = text.split('-').next().unwrap_or_default();
    year.len() == 4 && year.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_written_in_utc_with_milliseconds() {
        let instant = from_text("2026-01-31T10:30:00.1239+01:00").unwrap();
        assert_eq!(to_text(instant), "2026-01-31T09:30:00.123Z");
    }

    #[test]
    fn a_clock_that_was_set_back_says_so_if_somebody_was_told_the_time() {
        let clock = Clock::default();
        clock.now();
        for (by, is_told, setbacks) in [(3_600, true, 1), (3_600, true, 2), (60, false, 2)] {
            let by = Duration::from_secs(by);
            clock.advance(by);
            if is_told {
                clock.now();
            }
            clock.set_back(by);
            assert_eq!(clock.setbacks(), setbacks);
        }
    }

    #[test]
    fn every_form_with_an_offset_is_read() {
        let instant = from_text("2026-01-31T09:30:00Z");
        for same in [
            "2026-01-31T10:30:00+01:00",
            "2026-01-31T10:30:00+0100",
            "2026-01-31T10:30:00.000+01",
            "2026-01-31T09:30Z",
            "2026-01-31T05:00-04:30",
        ] {
            assert!(instant.is_some() && from_text(same) == instant, "{same}");
        }
        for none in [
            "2026-01-31",
            "2026-01-31T09:30:00",
            "2026-01-31T09:30",
            "2026-01-31T25:00:00Z",
            "2026-02-30T09:30:00Z",
            "1769851800",
            "",
            "+200000-01-31T09:30:00Z",
            "-0001-01-31T09:30Z",
            "+2026-01-31T09:30Z",
        ] {
            assert_eq!(from_text(none), None, "{none}");
        }
    }
}
