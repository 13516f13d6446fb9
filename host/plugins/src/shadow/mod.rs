//! Shadow candidates: what they would have decided otherwise than the active version, counted, with a few samples.
//!
//! Whoever has called an active version offers the same call for the candidate to [`Plugins::shadows`], whose one
//! thread no event waits for, and notes what came of it with [`Recorder::compared`]. When it has too much to do,
//! the call is skipped and counted as skipped.
//!
//! [`Plugins::shadows`]: super::Plugins::shadows
//! [`Recorder::compared`]: super::Recorder::compared

pub mod store;

use std::collections::HashMap;
use std::sync::Arc;
use strum::IntoStaticStr;

use parking_lot::Mutex;
use serde_json::Value;
use uuid::Uuid;

use crate::rollout_period::RolloutPeriod;

/// Calls of candidates that wait: of one app, and of all. Each holds its events in memory.
pub const MOST_WAITING: (usize, usize) = (8, 64);
/// Differences that are kept of a candidate in an app.
pub(super) const MOST_SAMPLES: usize = 100;
/// Candidates whose numbers wait for the database at the most.
const MOST_PERIODS: usize = 1024;

/// What a candidate would have decided, against what the active version did. Each decision that both made counts once: as
/// `same`, `added`, `removed`, `changed` or `failed`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Batches that both were shown.
    pub calls: u64,
    /// Decisions, of an event under a campaign or definition, that are the same.
    pub same: u64,
    /// Only the candidate fires, sets a timer, finds a violation, or makes a message.
    pub added: u64,
    /// Only the active version does.
    pub removed: u64,
    /// Both do, with other violations or values; or a state or timer that they leave is another; or the active version
    /// failed, and the candidate does not.
    pub changed: u64,
    /// The candidate failed on it.
    pub failed: u64,
    /// Batches that the candidate was not shown, for want of time.
    pub skipped: u64,
}

/// What differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Difference {
    /// Only the candidate fires, finds a violation, or makes a message.
    Added,
    /// Only the active version does.
    Removed,
    /// They find other violations.
    Violations,
    /// They leave another state.
    State,
    /// They set or cancel other timers.
    Timer,
    /// Only the candidate sets a timer, which would come due.
    TimerAdded,
    /// Only the active version sets a timer.
    TimerRemoved,
    /// They make another message, or none for another reason.
    Content,
    /// The candidate fails.
    Failed,
    /// The active version fails, and the candidate does not.
    Recovered,
}

impl Difference {
    /// The name in the API and the database.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// One difference.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Whose event it is.
    pub subject_id: Uuid,
    /// The event.
    pub event_id: Uuid,
    /// The campaign that was decided; none: a definition.
    pub campaign_id: Option<Uuid>,
    /// What differs.
    pub difference: Difference,
    /// What the active version left or said, where that is kept.
    pub old: Option<Value>,
    /// What the candidate would have left or said, where that is kept.
    pub new: Option<Value>,
}

/// What came of calls.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// How often what.
    pub counts: Counts,
    /// A few of the differences.
    pub samples: Vec<Sample>,
}

impl Comparison {
    /// A call that the candidate was not shown.
    pub fn skipped() -> Self {
        let counts = Counts {
            skipped: 1,
            ..Counts::default()
        };
        Self {
            counts,
            samples: Vec::new(),
        }
    }

    /// Counts a decision that is the same.
    pub fn same(&mut self) {
        self.counts.same += 1;
    }

    /// Counts a difference.
    pub fn counts(&mut self, difference: Difference) {
        match difference {
            Difference::Added | Difference::TimerAdded => self.counts.added += 1,
            Difference::Removed | Difference::TimerRemoved => self.counts.removed += 1,
            Difference::Failed => self.counts.failed += 1,
            Difference::Violations
            | Difference::State
            | Difference::Timer
            | Difference::Recovered
            | Difference::Content => {
                self.counts.changed += 1;
            }
        }
    }

    /// Counts a difference and keeps it as a sample, if there is room.
    pub fn differs(&mut self, sample: Sample) {
        self.counts(sample.difference);
        self.keep(sample);
    }

    /// Keeps a difference of a decision that was counted already, if there is room.
    pub fn keep(&mut self, sample: Sample) {
        if self.samples.len() < MOST_SAMPLES {
            self.samples.push(sample);
        }
    }

    fn add(&mut self, other: Self) {
        let Counts {
            calls,
            same,
            added,
            removed,
            changed,
            failed,
            skipped,
        } = other.counts;
        self.counts.calls += calls;
        self.counts.same += same;
        self.counts.added += added;
        self.counts.removed += removed;
        self.counts.changed += changed;
        self.counts.failed += failed;
        self.counts.skipped += skipped;
        self.samples.extend(other.samples);
        self.samples.truncate(MOST_SAMPLES);
    }
}

/// A candidate in an app.
type ComparisonKey = (Arc<RolloutPeriod>, Uuid);

/// Comparisons that wait for the database.
#[derive(Debug, Default)]
pub(super) struct Comparisons {
    waiting: Mutex<HashMap<ComparisonKey, Comparison>>,
}

/// Comparisons on their way to the database.
#[derive(Debug, Default)]
pub(super) struct Taken(Vec<(ComparisonKey, Comparison)>);

impl Comparisons {
    /// Adds a comparison.
    pub(super) fn add(&self, app_id: Uuid, period: &Arc<RolloutPeriod>, comparison: Comparison) {
        let mut waiting = self.waiting.lock();
        let key = (Arc::clone(period), app_id);
        if waiting.len() < MOST_PERIODS || waiting.contains_key(&key) {
            waiting.entry(key).or_default().add(comparison);
        } else {
            metrics::counter!("nudge_plugin_statistics_lost_total").increment(1);
        }
    }

    /// Whether comparisons wait.
    pub(super) fn any(&self) -> bool {
        let waiting = self.waiting.lock();
        !waiting.is_empty()
    }

    /// Takes what was compared, in the order in which all processes write it.
    pub(super) fn take(&self) -> Taken {
        let mut waiting = self.waiting.lock();
        let mut taken: Vec<(ComparisonKey, Comparison)> = waiting.drain().collect();
        drop(waiting);
        taken.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Taken(taken)
    }

    /// Takes back what could not be written.
    pub(super) fn give_back(&self, taken: Taken) {
        for ((period, app_id), comparison) in taken.0 {
            self.add(app_id, &period, comparison);
        }
    }
}

impl Taken {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use nudge_db::Timestamp;

    use super::*;

    fn sample(number: u128, difference: Difference) -> Sample {
        Sample {
            subject_id: Uuid::nil(),
            event_id: Uuid::from_u128(number),
            campaign_id: None,
            difference,
            old: None,
            new: None,
        }
    }

    fn period() -> Arc<RolloutPeriod> {
        Arc::new(RolloutPeriod {
            owner: Uuid::nil(),
            name: "cart".to_owned(),
            version: "2.0.0".to_owned(),
            since: Timestamp(1),
        })
    }

    #[test]
    fn everything_is_counted_and_the_first_differences_are_kept() {
        let mut comparison = Comparison::default();
        comparison.same();
        let kinds = [
            Difference::Added,
            Difference::Removed,
            Difference::State,
            Difference::Timer,
            Difference::Violations,
            Difference::Failed,
        ];
        for number in 0..120 {
            let difference = kinds[number % kinds.len()];
            comparison.differs(sample(number as u128, difference));
        }
        let expected = Counts {
            same: 1,
            added: 20,
            removed: 20,
            changed: 60,
            failed: 20,
            ..Counts::default()
        };
        assert_eq!(comparison.counts, expected);
        let events = comparison.samples.iter().map(|sample| sample.event_id);
        assert!(events.eq((0..100).map(Uuid::from_u128)));
    }

    #[test]
    fn comparisons_of_a_candidate_are_added_up_by_app() {
        let comparisons = Comparisons::default();
        let mut one = Comparison::default();
        one.differs(sample(1, Difference::Added));
        for app in [2, 1, 2] {
            comparisons.add(Uuid::from_u128(app), &period(), one.clone());
        }
        comparisons.add(Uuid::from_u128(1), &period(), Comparison::skipped());
        let taken = comparisons.take();
        assert!(comparisons.take().is_empty());
        comparisons.give_back(taken);
        let Taken(rows) = comparisons.take();
        let counts: Vec<(u64, u64, usize)> = rows
            .iter()
            .map(|(_, row)| (row.counts.added, row.counts.skipped, row.samples.len()))
            .collect();
        assert_eq!(counts, [(1, 1, 1), (2, 0, 2)]);
    }
}
