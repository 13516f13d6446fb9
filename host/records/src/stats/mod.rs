//! Counts of what happens in apps and to the events of definitions (contract 11, 13).
//!
//! They are counted in memory, and added to the database twice a second: nothing of it is on a request's path, and
//! a crash of the process or of the database loses as much. Processes that share a database add to the same rows. Who asks for counts has those of
//! this process written first.

pub mod store;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use nudge_db::{Db, Timestamp, to_its_end};
use nudge_platform::due;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::services::Shared;

/// How long counts stay in memory only: what a crash loses.
const TURN: Duration = Duration::from_millis(500);
/// The span of a count of an app, in microseconds.
pub const HOUR: i64 = 3_600 * 1_000_000;
/// The span of a count of a definition, in microseconds.
const TEN_MINUTES: i64 = 600 * 1_000_000;
/// How far back a definition's counts go.
pub const DEFINITION_SPAN: Duration = Duration::from_hours(24);
/// How long an app's counts are kept.
pub const KEPT: Duration = Duration::from_hours(24 * 1_100);

/// What is counted of an app.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Events that were stored.
    Accepted,
    /// Events that were rejected.
    Rejected,
    /// Lifecycle events that were taken while the app's toggle was off.
    Ignored,
    /// Instructions that were issued.
    Instructions,
    /// In-app messages that were seen.
    InAppViews,
}

impl Kind {
    fn text(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
            Self::Ignored => "ignored",
            Self::Instructions => "instructions",
            Self::InAppViews => "in_app_views",
        }
    }
}

/// How the events of a definition fared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Events that arrived under its name while it was active.
    pub seen: i64,
    /// Those of them that break it.
    pub violations: i64,
}

/// The app, the begin of the span, and what was counted in it.
type AppKey = (Uuid, i64, Kind);
/// The app, the definition and the begin of the span.
type DefinitionKey = (Uuid, Uuid, i64);

#[derive(Debug, Default)]
struct Pending {
    apps: HashMap<AppKey, i64>,
    definitions: HashMap<DefinitionKey, Tally>,
}

/// Counts on their way to the database.
#[derive(Debug, Default)]
pub struct Stats {
    pending: Mutex<Pending>,
    /// Held while something is written, so that who asks for counts finds them in the database.
    writing: tokio::sync::Mutex<()>,
}

impl Stats {
    /// Counts something of an app. `at` is when it happened.
    pub fn count(&self, app_id: Uuid, at: Timestamp, kind: Kind, count: usize) {
        if count > 0 {
            let key = (app_id, begin(at, HOUR), kind);
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            let mut pending = self.pending.lock();
            let counted = pending.apps.entry(key).or_default();
            *counted = counted.saturating_add(count);
        }
    }

    /// Counts events of a definition. `at` is when they arrived.
    pub fn count_definition(
        &self,
        app_id: Uuid,
        at: Timestamp,
        tallies: impl IntoIterator<Item = (Uuid, Tally)>,
    ) {
        let begin = begin(at, TEN_MINUTES);
        let mut pending = self.pending.lock();
        for (definition_id, tally) in tallies {
            let counted = pending.definitions.entry((app_id, definition_id, begin));
            counted.or_default().add(tally);
        }
    }

    /// Writes down what was counted. What can't be written is counted still. In a task of its own: a client
    /// that goes away while it waits takes nothing along.
    pub async fn flush(self: &Arc<Self>, db: &Db) -> nudge_db::Result<()> {
        let (there, db) = (Arc::clone(self), db.clone());
        to_its_end(async move { there.write_pending(&db).await }).await
    }

    async fn write_pending(&self, db: &Db) -> nudge_db::Result<()> {
        let _writing = self.writing.lock().await;
        let taken = std::mem::take(&mut *self.pending.lock());
        if taken.apps.is_empty() && taken.definitions.is_empty() {
            return Ok(());
        }
        let written = write(db, &taken).await;
        if written.is_err() {
            let mut pending = self.pending.lock();
            for (key, count) in taken.apps {
                *pending.apps.entry(key).or_default() += count;
            }
            for (key, tally) in taken.definitions {
                pending.definitions.entry(key).or_default().add(tally);
            }
        }
        written
    }
}

impl Tally {
    /// Adds another.
    pub fn add(&mut self, other: Self) {
        self.seen = self.seen.saturating_add(other.seen);
        self.violations = self.violations.saturating_add(other.violations);
    }
}

/// The begin of the span that an instant is in, in microseconds.
pub fn begin(at: Timestamp, span: i64) -> i64 {
    at.0.div_euclid(span) * span
}

async fn write(db: &Db, pending: &Pending) -> nudge_db::Result<()> {
    // One order for all processes, so that they do not deadlock.
    let mut apps: Vec<(Uuid, i64, String, i64)> = pending
        .apps
        .iter()
        .map(|((app_id, begin, kind), count)| (*app_id, *begin, kind.text().to_owned(), *count))
        .collect();
    apps.sort_unstable();
    let mut definitions: Vec<(DefinitionKey, Tally)> = pending
        .definitions
        .iter()
        .map(|(key, tally)| (*key, *tally))
        .collect();
    definitions.sort_unstable_by_key(|(key, _)| *key);
    let mut tx = db.write().await?;
    store::add(&mut tx, &apps).await?;
    store::add_definitions(&mut tx, &definitions).await?;
    tx.commit().await
}

/// Writes counts down until the server stops.
pub async fn run(services: Shared, halt: CancellationToken) {
    let flush = || services.stats.flush(&services.db);
    due::every(TURN, halt, "writing counts down", flush).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_within_a_span_is_one_count() {
        let stats = Stats::default();
        let app = Uuid::from_u128(1);
        for (minute, count) in [(0, 1), (59, 2), (60, 4)] {
            let at = Timestamp::from_seconds(minute * 60);
            stats.count(app, at, Kind::Accepted, count);
        }
        stats.count(app, Timestamp(0), Kind::Rejected, 0);
        let pending = stats.pending.lock();
        assert_eq!(pending.apps.len(), 2);
        assert_eq!(pending.apps[&(app, 0, Kind::Accepted)], 3);
        assert_eq!(pending.apps[&(app, HOUR, Kind::Accepted)], 4);
    }

    #[test]
    fn instants_before_1970_have_spans_too() {
        assert_eq!(begin(Timestamp(-1), HOUR), -HOUR);
        assert_eq!(begin(Timestamp(HOUR - 1), HOUR), 0);
    }
}
