//! How far a client is behind with something that the server waits for: the rest of a body, or the reading of an answer.
//!
//! A limit on silence alone would be met by a byte now and then. So a client earns time by bytes, at two rates: one below
//! which it is cut off, and one below which it gives way to others where there is no room.

use std::time::{Duration, Instant};

/// Bytes a second that a client has to take or send, or it is cut off.
const SLOWEST: u64 = 1024;
/// Bytes a second with which a client counts as one that does not keep the server waiting.
const BRISK: u64 = 64 * 1024;
/// The account of one transfer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// The time that the client can earn in advance: systems and libraries take answers in lumps, of which the client
    /// reads for a while.
    credit: Duration,
    /// Until when the bytes so far are enough.
    enough_until: Instant,
    /// Since when the server waits, less what the client did meanwhile.
    waits_since: Instant,
    /// Since when it is the server's turn.
    paused: Option<Instant>,
}

impl Pace {
    /// A transfer that has not begun: the server's turn.
    pub(super) fn new(credit: Duration, now: Instant) -> Self {
        Self {
            credit,
            enough_until: now,
            waits_since: now,
            paused: Some(now),
        }
    }

    /// It is the client's turn.
    pub(super) fn resume(&mut self, now: Instant) {
        if let Some(paused) = self.paused.take() {
            let pause = now.saturating_duration_since(paused);
            self.enough_until += pause;
            self.waits_since += pause;
        }
    }

    /// It is the server's turn.
    pub(super) fn pause(&mut self, now: Instant) {
        self.paused.get_or_insert(now);
    }

    /// The client took or sent so many bytes.
    pub(super) fn advance(&mut self, bytes: usize, now: Instant) {
        let earned = |rate: u64| {
            let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
            Duration::from_micros(bytes.saturating_mul(1_000_000) / rate)
        };
        let most = now + self.credit;
        let until = self.enough_until.checked_add(earned(SLOWEST));
        self.enough_until = until.map_or(most, |until| until.min(most));
        let since = self.waits_since.checked_add(earned(BRISK));
        self.waits_since = since.map_or(now, |since| since.min(now));
    }

    /// Since when the server waits for the client; none if it does not.
    pub(super) fn waits_since(&self) -> Option<Instant> {
        self.paused.is_none().then_some(self.waits_since)
    }

    /// How long the client has done less than the least.
    pub(super) fn behind(&self, now: Instant) -> Duration {
        match self.paused {
            None => now.saturating_duration_since(self.enough_until),
            Some(_) => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREDIT: Duration = seconds(60);

    const fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[test]
    fn a_byte_now_and_then_is_not_enough() {
        let start = Instant::now();
        let mut pace = Pace::new(CREDIT, start);
        pace.resume(start);
        for second in 1..=40 {
            pace.advance(1, start + seconds(second));
        }
        let now = start + seconds(40);
        assert!(pace.behind(now) > seconds(39));
        assert!(pace.waits_since().unwrap() < start + seconds(1));
    }

    #[test]
    fn who_goes_on_slowly_is_never_behind_for_long() {
        let start = Instant::now();
        let mut pace = Pace::new(CREDIT, start);
        pace.resume(start);
        // A lump, of which the client reads for more than a minute.
        for lump in 0..20 {
            let now = start + seconds(lump * 80);
            assert!(pace.behind(now) < seconds(30), "{lump}");
            pace.advance(128 * 1024, now);
        }
        let last = start + seconds(19 * 80);
        assert!(pace.behind(last + CREDIT + seconds(30)) >= seconds(30));
        // It still gives way to those who keep nobody waiting.
        assert!(pace.waits_since().unwrap() < last);
    }

    #[test]
    fn the_servers_own_time_is_no_delay_of_the_client() {
        let start = Instant::now();
        let mut pace = Pace::new(CREDIT, start);
        assert_eq!(pace.waits_since(), None);
        assert_eq!(pace.behind(start + seconds(60)), Duration::ZERO);
        pace.resume(start + seconds(60));
        assert_eq!(pace.behind(start + seconds(70)), seconds(10));
        pace.pause(start + seconds(70));
        pace.pause(start + seconds(80));
        pace.resume(start + seconds(100));
        assert_eq!(pace.behind(start + seconds(105)), seconds(15));
        assert_eq!(pace.waits_since(), Some(start + seconds(90)));
    }
}
