//! How calls of plugins went: counted in memory, added to the database by minute, shown by version.

pub mod histogram;
pub mod store;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use nudge_db::Timestamp;
use nudge_wasm::{Call, Failed};
use parking_lot::Mutex;
use uuid::Uuid;

use crate::rollout::PROBATION;
use crate::rollout_period::RolloutPeriod;

/// Rows that wait for the database at the most; what is counted past that is not.
const MOST_ROWS: usize = 8192;
/// How long counts are kept.
pub const KEPT: Duration = Duration::from_hours(7 * 24);
const MINUTE: i64 = 60 * 1_000_000;

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallOutcome {
    /// It decided.
    Decided,
    /// It failed, with this code; what it was about is settled as failed.
    Failed(&'static str),
    /// It failed by its deadline although the thread hardly ran, twice. Settled too, but not held against the
    /// plugin.
    Starved,
    /// It failed, and parts of its batch are tried on their own.
    TakenApart,
    /// It is made again: it hardly ran before its deadline, or what followed from it could not be written.
    Retried,
    /// The host could not do its part.
    Unavailable,
}

impl CallOutcome {
    /// What a failed call is that nothing is tried after.
    pub fn settled(failed: &Failed) -> Self {
        if failed.is_the_hosts() {
            Self::Unavailable
        } else if failed.was_starved() {
            Self::Starved
        } else {
            Self::Failed(failed.failure.code())
        }
    }

    /// What a call is whose batch had no effect and is decided again.
    #[must_use]
    pub fn unsettled(self) -> Self {
        match self {
            Self::Decided | Self::Failed(_) | Self::Starved => Self::Retried,
            Self::TakenApart | Self::Retried | Self::Unavailable => self,
        }
    }

    /// The name in the database and in `/metrics`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Decided => "ok",
            Self::Failed(code) => code,
            Self::Starved => "starved",
            Self::TakenApart => "taken_apart",
            Self::Retried => "retried",
            Self::Unavailable => "unavailable",
        }
    }
}

/// A call that was made.
#[derive(Clone, Copy, Debug)]
pub struct Made<'a> {
    /// In which app.
    pub app_id: Uuid,
    /// Of which version.
    pub period: &'a Arc<RolloutPeriod>,
    /// How many events, timers or recipients it was about.
    pub items: usize,
    /// What became of it.
    pub outcome: CallOutcome,
    /// What it cost.
    pub call: &'a Call,
}

/// What is counted together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Key {
    period: Arc<RolloutPeriod>,
    app_id: Uuid,
    outcome: CallOutcome,
    bucket: u8,
}

impl Key {
    fn failed(&self) -> bool {
        matches!(self.outcome, CallOutcome::Failed(_))
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    calls: u64,
    items: u64,
    max_micros: u64,
    memory_bytes: u64,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.items += other.items;
        self.max_micros = self.max_micros.max(other.max_micros);
        self.memory_bytes = self.memory_bytes.max(other.memory_bytes);
    }
}

/// Counts that wait for the database.
#[derive(Debug, Default)]
pub(super) struct Statistics {
    counts: Mutex<HashMap<Key, Counts>>,
}

/// Counts on their way to the database.
#[derive(Debug, Default)]
pub(super) struct Taken(Vec<(Key, Counts)>);

impl Statistics {
    /// Counts a call. Costs one look-up.
    pub(super) fn count(&self, made: &Made<'_>) {
        let micros = u64::try_from(made.call.elapsed.as_micros()).unwrap_or(u64::MAX);
        let key = Key {
            period: Arc::clone(made.period),
            app_id: made.app_id,
            outcome: made.outcome,
            bucket: histogram::bucket(micros),
        };
        let counts = Counts {
            calls: 1,
            items: made.items as u64,
            max_micros: micros,
            memory_bytes: made.call.memory_bytes as u64,
        };
        self.add(key, counts);
    }

    fn add(&self, key: Key, counts: Counts) {
        let mut all = self.counts.lock();
        if let Some(known) = all.get_mut(&key) {
            known.add(counts);
        } else if all.len() < MOST_ROWS {
            all.insert(key, counts);
        } else {
            metrics::counter!("nudge_plugin_statistics_lost_total").increment(counts.calls);
        }
    }

    /// Whether a call failed.
    pub(super) fn has_failures(&self) -> bool {
        let all = self.counts.lock();
        all.keys().any(Key::failed)
    }

    /// Takes what was counted, in the order in which all processes write it.
    pub(super) fn take(&self) -> Taken {
        let mut all = self.counts.lock();
        let mut taken: Vec<(Key, Counts)> = all.drain().collect();
        drop(all);
        taken.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Taken(taken)
    }

    /// Takes back what could not be written.
    pub(super) fn give_back(&self, taken: Taken) {
        for (key, counts) in taken.0 {
            self.add(key, counts);
        }
    }
}

impl Taken {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The versions that were called, one for each row.
    pub(super) fn periods(&self) -> impl Iterator<Item = &Arc<RolloutPeriod>> {
        self.0.iter().map(|(key, _)| &key.period)
    }

    /// The versions that failed, and those that are new, which may have failed before: any call can be the one with which they
    /// have been called often enough.
    pub(super) fn to_look_at(&self, now: Timestamp) -> impl Iterator<Item = &Arc<RolloutPeriod>> {
        let found = (self.0.iter())
            .filter(move |(key, _)| key.failed() || now.since(key.period.since) < PROBATION);
        found.map(|(key, _)| &key.period)
    }
}

/// The share of calls that failed, 0 to 1.
pub fn rate(calls: i64, failures: i64) -> f64 {
    if calls <= 0 {
        return 0.0;
    }
    #[expect(clippy::cast_precision_loss, reason = "nobody has 2^53 calls")]
    let rate = failures as f64 / calls as f64;
    rate
}

/// The beginning of an instant's minute.
pub(super) fn minute(at: Timestamp) -> Timestamp {
    Timestamp(at.0 - at.0.rem_euclid(MINUTE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn period(version: &str) -> Arc<RolloutPeriod> {
        Arc::new(RolloutPeriod {
            owner: Uuid::nil(),
            name: "cart".to_owned(),
            version: version.to_owned(),
            since: Timestamp(1),
        })
    }

    #[test]
    fn equal_calls_are_added_up_and_come_back_after_a_failed_write() {
        let statistics = Statistics::default();
        let call = Call {
            elapsed: Duration::from_micros(100),
            memory_bytes: 7,
            ..Call::default()
        };
        let (one, two) = (period("1.0.0"), period("2.0.0"));
        for (period, outcome) in [
            (&two, CallOutcome::Decided),
            (&one, CallOutcome::Failed("trap")),
            (&two, CallOutcome::Decided),
            (&two, CallOutcome::TakenApart),
        ] {
            statistics.count(&Made {
                app_id: Uuid::from_u128(1),
                period,
                items: 3,
                outcome,
                call: &call,
            });
        }
        let taken = statistics.take();
        let late = period("1.0.0").since.plus(PROBATION);
        assert_eq!(taken.to_look_at(late).collect::<Vec<_>>(), [&one]);
        assert_eq!(taken.to_look_at(one.since).count(), 3);
        assert!(statistics.take().is_empty());
        statistics.give_back(taken);
        let Taken(rows) = statistics.take();
        let calls: Vec<u64> = rows.iter().map(|(_, counts)| counts.calls).collect();
        assert_eq!(calls, [1, 2, 1]);
        assert_eq!((rows[1].1.items, rows[1].1.memory_bytes), (6, 7));
    }

    #[test]
    fn memory_is_bounded() {
        let statistics = Statistics::default();
        let period = period("1.0.0");
        for app in 0..=MOST_ROWS as u128 {
            statistics.count(&Made {
                app_id: Uuid::from_u128(app),
                period: &period,
                items: 1,
                outcome: CallOutcome::Decided,
                call: &Call::default(),
            });
        }
        assert_eq!(statistics.take().0.len(), MOST_ROWS);
    }

    #[test]
    fn a_minute_begins_at_or_before_its_instants() {
        assert_eq!(minute(Timestamp(MINUTE)), Timestamp(MINUTE));
        assert_eq!(minute(Timestamp(2 * MINUTE - 1)), Timestamp(MINUTE));
    }
}
