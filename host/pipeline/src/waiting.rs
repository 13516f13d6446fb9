//! Requests whose turn has not come: an earlier one of their person is still to be processed, mostly by another
//! process.
//!
//! A lane puts them aside, an alias at a time, and looks now and then, and when another lane has processed something, by one
//! query for all, whose turn has come.
//! What waits for longer than [`PATIENCE`] is given back to the database. Otherwise processes that take over what
//! others left could fill their memory with what waits for requests that nobody has room for. It is claimed again
//! by the process that has those before it, see [`claims::claim_requests`].

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use nudge_records::events::store::RequestKey;
use tokio::time::Instant;

use super::work::Work;
use super::{Inner, claims};

/// The pause before the first look; it doubles with each.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// The pause once another lane has processed something.
const SHORT_PAUSE: Duration = Duration::from_millis(2);
/// The longest pause, as while the database is away.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How long requests wait in memory, about: as long as the other process takes for what it has in hand, if it lives.
const PATIENCE: Duration = Duration::from_millis(500);

/// What waits in a lane, by alias.
#[derive(Debug, Default)]
pub(super) struct WaitingRequests(HashMap<i64, Turn>);

#[derive(Debug)]
struct Turn {
    works: Vec<Work>,
    since: Instant,
    pause: Duration,
    look_at: Instant,
}

impl WaitingRequests {
    /// Puts work aside.
    pub(super) fn add(&mut self, work: Work) {
        let now = Instant::now();
        let turn = self.0.entry(work.alias).or_insert_with(|| Turn {
            works: Vec::new(),
            since: now,
            pause: FIRST_PAUSE,
            look_at: now + FIRST_PAUSE,
        });
        turn.works.push(work);
    }

    /// Puts aside what stands behind something that waits; answers the rest.
    pub(super) fn keep_behind(&mut self, works: impl IntoIterator<Item = Work>) -> Vec<Work> {
        let mut free = Vec::new();
        for work in works {
            if work.request_id().is_some() && self.0.contains_key(&work.alias) {
                self.add(work);
            } else {
                free.push(work);
            }
        }
        free
    }

    /// When to look again; none: nothing waits.
    pub(super) fn next_look(&self) -> Option<Instant> {
        self.0.values().map(|turn| turn.look_at).min()
    }

    /// Looks soon: another lane has processed something.
    pub(super) fn hurry(&mut self) {
        let soon = Instant::now() + SHORT_PAUSE;
        for turn in self.0.values_mut() {
            turn.look_at = turn.look_at.min(soon);
        }
    }

    /// Takes out the work whose turn has come, and gives up what has waited for too long.
    pub(super) async fn look(&mut self, inner: &Inner) -> Vec<Work> {
        let now = Instant::now();
        let mut due = HashSet::new();
        for (alias, turn) in &mut self.0 {
            if turn.look_at <= now {
                turn.pause = (turn.pause * 2).min(LONGEST_PAUSE);
                turn.look_at = now + turn.pause;
                due.insert(*alias);
            }
        }
        if due.is_empty() {
            return Vec::new();
        }
        let mut come = Vec::new();
        // One worker's that can't be reached holds up no other's.
        let parts = match inner.db.shards() {
            Some(shards) => shards.by_worker(due, |alias| *alias),
            None => vec![due],
        };
        for due in parts {
            match self.sort_out(inner, &due, now).await {
                Ok(works) => come.extend(works),
                Err(error) => {
                    tracing::warn!(error = %error, "what waits for other requests waits for the database");
                }
            }
        }
        come
    }

    async fn sort_out(
        &mut self,
        inner: &Inner,
        due: &HashSet<i64>,
        now: Instant,
    ) -> nudge_db::Result<Vec<Work>> {
        let turns = self.0.iter().filter(|(alias, _)| due.contains(alias));
        let requests = turns.flat_map(|(_, turn)| turn.works.iter().filter_map(Work::request_key));
        let requests: Vec<RequestKey> = requests.collect();
        let mut tx = inner.db.read().await?;
        let own_requests = claims::own_requests(&mut tx, &requests, inner.node()).await?;
        drop(tx);
        let waits = |work: &Work| {
            let id = work.request_id();
            id.and_then(|id| own_requests.get(&id))
                .copied()
                .unwrap_or_default()
        };
        let late = |turn: &Turn| now.duration_since(turn.since) >= PATIENCE;
        let given_up = self.0.values().filter(|turn| late(turn));
        let given_up = given_up.flat_map(|turn| turn.works.iter().filter(|work| waits(work)));
        let given_up: Vec<RequestKey> = given_up.filter_map(Work::request_key).collect();
        if !given_up.is_empty() {
            let mut tx = inner.db.write().await?;
            claims::release_requests(&mut tx, &given_up, inner.node()).await?;
            tx.commit().await?;
            metrics::counter!("nudge_pipeline_given_back_total").increment(given_up.len() as u64);
        }
        let mut come = Vec::new();
        self.0.retain(|alias, turn| {
            if !due.contains(alias) {
                return true;
            }
            come.extend(turn.works.extract_if(.., |work| !waits(work)));
            if late(turn) {
                turn.works.clear();
            }
            !turn.works.is_empty()
        });
        Ok(come)
    }
}
