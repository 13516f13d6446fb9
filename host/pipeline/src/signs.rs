//! Signs of life of other processes.
//!
//! Clocks of several machines differ, so that a sign of life says little by when it was given: a process lives as long as its
//! signs change. Only of one whose signs have never changed here, such as one that ended before this process began, a clock has a
//! say.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use nudge_db::Timestamp;
use uuid::Uuid;

/// The last sign of life of a process.
#[derive(Debug)]
struct Sign {
    /// As the process has noted it, by its own clock.
    beat_at: Timestamp,
    /// When it was first seen here.
    since: Instant,
    /// Whether another one was seen before it.
    has_changed: bool,
}

/// The last signs of life of the other processes.
#[derive(Debug)]
pub(super) struct Signs {
    last: HashMap<Uuid, Sign>,
    /// For so long a process may give no sign of life.
    timeout: Duration,
    /// For so long one may give none that no clock takes for alive.
    patience: Duration,
}

impl Signs {
    /// No process is known yet.
    pub(super) fn new(timeout: Duration, patience: Duration) -> Self {
        Self {
            last: HashMap::new(),
            timeout,
            patience: patience.min(timeout),
        }
    }

    /// Takes note of the last sign of each process that there is, as it is seen `at` an instant.
    pub(super) fn note(&mut self, signs: &[(Uuid, Timestamp)], at: Instant) {
        let before = std::mem::take(&mut self.last);
        for (node, beat_at) in signs {
            let known = before.get(node);
            let same = known.filter(|known| known.beat_at == *beat_at);
            let sign = Sign {
                beat_at: *beat_at,
                since: same.map_or(at, |same| same.since),
                has_changed: same.map_or(known.is_some(), |same| same.has_changed),
            };
            self.last.insert(*node, sign);
        }
    }

    /// The processes that have ended, as far as can be known at an instant, with their last signs. `now` is the same instant by
    /// the clock.
    pub(super) fn silent(&self, at: Instant, now: Timestamp) -> Vec<(Uuid, Timestamp)> {
        let alive = now.minus(self.timeout)..=now.plus(self.timeout);
        let is_silent = |sign: &Sign| {
            let silence = at.saturating_duration_since(sign.since);
            let is_stale = !sign.has_changed && !alive.contains(&sign.beat_at);
            silence >= self.timeout || is_stale && silence >= self.patience
        };
        let silent = self.last.iter().filter(|(_, sign)| is_silent(sign));
        silent.map(|(node, sign)| (*node, sign.beat_at)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(15);
    const PATIENCE: Duration = Duration::from_secs(6);
    const HOUR: Duration = Duration::from_hours(1);

    fn node(number: u128) -> Uuid {
        Uuid::from_u128(number)
    }

    #[test]
    fn a_process_lives_while_its_signs_change_whatever_the_clocks_say() {
        let (began, now) = (Instant::now(), Timestamp::default().plus(HOUR * 2));
        for apart in [now.minus(HOUR), now, now.plus(HOUR)] {
            let mut signs = Signs::new(TIMEOUT, PATIENCE);
            for beat in 0..20 {
                let passed = Duration::from_secs(2) * beat;
                signs.note(&[(node(1), apart.plus(passed))], began + passed);
                assert_eq!(signs.silent(began + passed, now.plus(passed)), []);
            }
            let last = (node(1), apart.plus(Duration::from_secs(38)));
            let silent = |seconds: u64| {
                let passed = Duration::from_secs(seconds);
                signs.silent(began + passed, now.plus(passed))
            };
            assert_eq!(silent(38 + 14), []);
            assert_eq!(silent(38 + 15), [last]);
        }
    }

    #[test]
    fn a_process_that_ended_long_ago_is_waited_for_only_a_moment() {
        let (began, now) = (Instant::now(), Timestamp::default().plus(HOUR * 2));
        let signs = [
            (node(1), now.minus(HOUR)),
            (node(2), now.minus(Duration::from_secs(1))),
            (node(3), now.plus(HOUR)),
        ];
        let mut seen = Signs::new(TIMEOUT, PATIENCE);
        let mut silent = |seconds: u64| {
            let at = began + Duration::from_secs(seconds);
            seen.note(&signs, at);
            let mut silent = seen.silent(at, now.plus(Duration::from_secs(seconds)));
            silent.sort_unstable();
            silent
        };
        assert_eq!(silent(0), []);
        assert_eq!(silent(5), []);
        assert_eq!(silent(6), [signs[0], signs[2]]);
        assert_eq!(silent(13), [signs[0], signs[2]]);
        assert_eq!(silent(15), signs);
    }
}
