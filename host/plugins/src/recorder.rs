//! Notes how calls of plugins went, in memory, and writes it down a little later: nothing of it is on a request's
//! path.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use nudge_db::{Db, to_its_end};
use nudge_platform::clock::Clock;
use nudge_wasm::LogLine;
use parking_lot::Mutex;
use uuid::Uuid;

use super::logs::{self, Logs};
use super::shadow::{self, Comparison, Comparisons};
use super::statistics::{self, Made, Statistics};
use crate::rollout_period::RolloutPeriod;

/// How often a version that may have to be rolled back is looked at. More than once: two processes that write at the same
/// time do not see each other's counts.
const LOOKS: u8 = 3;
/// Versions whose next call is waited for at the most. Some of them may never be called again.
const MOST_CALLED_SELDOM: usize = 8192;

/// Notes calls. Shared by everything that makes any.
#[derive(Debug)]
pub struct Recorder {
    clock: Clock,
    statistics: Statistics,
    logs: Logs,
    comparisons: Comparisons,
    /// Versions that may have to be rolled back, and how often each is to be looked at.
    looks: Mutex<HashMap<Arc<RolloutPeriod>, u8>>,
    /// Versions that failed and were called too seldom to be rolled back, as this process has found since it started. A good call
    /// can be the one with which they have been called often enough: they are looked at after their next one here.
    called_seldom: Mutex<HashSet<Arc<RolloutPeriod>>>,
    /// Held while something is written, so that who asks for what was noted finds it in the database.
    writing: tokio::sync::Mutex<()>,
}

impl Recorder {
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            clock,
            statistics: Statistics::default(),
            logs: Logs::default(),
            comparisons: Comparisons::default(),
            looks: Mutex::default(),
            called_seldom: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
        }
    }

    /// Notes a call. `topics` answers what it was about; it is asked only where the plugin logged.
    pub fn made(&self, made: &Made<'_>, kind: logs::Kind, topics: impl FnOnce() -> logs::Topics) {
        let (name, version) = (&made.period.name, &made.period.version);
        super::count(name, version, made.outcome.name(), made.call.elapsed);
        self.statistics.count(made);
        self.logged((made.app_id, made.period), kind, &made.call.logs, topics);
    }

    /// Notes what a version logged in an app, if anything. `topics` as in [`made`](Self::made).
    pub fn logged(
        &self,
        (app_id, period): (Uuid, &Arc<RolloutPeriod>),
        kind: logs::Kind,
        lines: &[LogLine],
        topics: impl FnOnce() -> logs::Topics,
    ) {
        if lines.is_empty() {
            return;
        }
        for line in lines {
            tracing::debug!(plugin.name = period.name, plugin.level = ?line.level, "{}", line.message);
        }
        let now = self.clock.now();
        self.logs.write(app_id, period, kind, lines, topics(), now);
    }

    /// Notes what a shadow candidate would have decided otherwise.
    pub fn compared(&self, app_id: Uuid, period: &Arc<RolloutPeriod>, comparison: Comparison) {
        self.comparisons.add(app_id, period, comparison);
    }

    /// Whether something was noted that should be in the database soon: failures, which may take a version back,
    /// and what is of people. Mere counts are not worth a commit, for which whoever waits for a decision waits too.
    pub fn is_urgent(&self) -> bool {
        self.statistics.has_failures() || self.logs.any() || self.comparisons.any()
    }

    /// Writes down what was noted. What can't be written is noted still. In a task of its own: a client
    /// that goes away while it waits takes nothing along.
    pub async fn flush(self: &Arc<Self>, db: &Db) -> nudge_db::Result<()> {
        let (there, db) = (Arc::clone(self), db.clone());
        to_its_end(async move { there.write_pending(&db).await }).await
    }

    async fn write_pending(&self, db: &Db) -> nudge_db::Result<()> {
        let _writing = self.writing.lock().await;
        let counts = self.statistics.take();
        let lines = self.logs.take(self.clock.now());
        let comparisons = self.comparisons.take();
        if counts.is_empty() && lines.is_empty() && comparisons.is_empty() {
            return Ok(());
        }
        let written = self.write(db, &counts, &lines, &comparisons).await;
        if written.is_ok() {
            self.note_looks(&counts);
        } else {
            self.statistics.give_back(counts);
            self.logs.give_back(lines);
            self.comparisons.give_back(comparisons);
        }
        written
    }

    async fn write(
        &self,
        db: &Db,
        counts: &statistics::Taken,
        lines: &logs::Taken,
        comparisons: &shadow::Taken,
    ) -> nudge_db::Result<()> {
        let now = self.clock.now();
        let mut tx = db.write().await?;
        statistics::store::add(&mut tx, counts, now).await?;
        logs::store::add(&mut tx, lines).await?;
        shadow::store::add(&mut tx, comparisons, now).await?;
        tx.commit().await
    }

    /// Notes which of the versions that were called are to be looked at.
    fn note_looks(&self, counts: &statistics::Taken) {
        let mut called_seldom = self.called_seldom.lock();
        let called_again = counts.periods().filter(|it| called_seldom.remove(*it));
        let periods = counts.to_look_at(self.clock.now()).chain(called_again);
        let periods = periods.filter(|period| !period.has_no_role());
        let mut looks = self.looks.lock();
        looks.extend(periods.map(|period| (Arc::clone(period), LOOKS)));
    }

    /// Has a version looked at after its next call, whatever that comes to.
    pub fn look_again(&self, period: &Arc<RolloutPeriod>) {
        let mut called_seldom = self.called_seldom.lock();
        if called_seldom.len() >= MOST_CALLED_SELDOM {
            called_seldom.clear();
        }
        called_seldom.insert(Arc::clone(period));
    }

    /// The versions that may have to be rolled back; each comes a few times.
    pub fn to_look_at(&self) -> Vec<Arc<RolloutPeriod>> {
        let mut looks = self.looks.lock();
        let found = looks.keys().cloned().collect();
        looks.retain(|_, looks| {
            *looks -= 1;
            *looks > 0
        });
        found
    }
}
