//! A lane: takes what waits for an app, batch by batch, until the server halts.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::unit::{self, Trouble};
use super::work::{Fired, Work};
use super::{Inner, Source, claims, occasions};
use crate::plugins::Lost;

/// How long to wait for a request that must be processed first, or for one that changed meanwhile.
const ORDER_WAIT: Duration = Duration::from_millis(10);
/// How long to wait for the database, at first and at the most.
const RETRY_WAIT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// How long work that nobody waits for may gather. A transaction for many requests costs little more than
/// one for a single request, and SQLite has one at a time, commits of further requests among them.
const GATHERING: Duration = Duration::from_millis(10);
/// How long work that no campaign reads may gather: all that comes of it are the profiles' newest counts.
const QUIET_GATHERING: Duration = Duration::from_millis(100);
/// So many times the events that may be evaluated together are processed together.
const QUIET_EVENTS: usize = 4;

/// Runs a lane.
pub(super) async fn run(inner: Arc<Inner>, mut receiver: mpsc::UnboundedReceiver<Work>) {
    let mut queue = VecDeque::new();
    let mut wait = RETRY_WAIT.0;
    loop {
        if queue.is_empty() {
            let next = tokio::select! {
                next = receiver.recv() => next,
                () = inner.halt.cancelled() => None,
            };
            let Some(next) = next else { return };
            queue.push_back(next);
            gather(&inner, &mut receiver, &mut queue).await;
        }
        while let Ok(next) = receiver.try_recv() {
            queue.push_back(next);
        }
        if inner.halt.is_cancelled() {
            // Claims end with the process; the work is in the database.
            return;
        }
        queue.make_contiguous().sort_by_key(Work::order);
        let batch = take(&mut queue, inner.config.batch_events);
        let held_up = process(&inner, batch).await;
        let pause = match &held_up {
            HeldUp::Nothing => Duration::ZERO,
            HeldUp::Order(_) => ORDER_WAIT,
            HeldUp::Database(_) => wait,
        };
        wait = if matches!(held_up, HeldUp::Database(_)) {
            (wait * 2).min(RETRY_WAIT.1)
        } else {
            RETRY_WAIT.0
        };
        if let HeldUp::Order(works) | HeldUp::Database(works) = held_up {
            queue.extend(works);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = inner.halt.cancelled() => return,
            }
        }
    }
}

/// Lets more work come to the first piece, until somebody waits for a piece or there is enough for a batch.
async fn gather(
    inner: &Inner,
    receiver: &mut mpsc::UnboundedReceiver<Work>,
    queue: &mut VecDeque<Work>,
) {
    let mut until = Instant::now() + QUIET_GATHERING;
    let mut size = Size::default();
    while let Some(last) = queue.back() {
        size.add(last);
        if last.is_awaited() || size.is_full(inner.config.batch_events) {
            return;
        }
        if last.routed {
            until = until.min(Instant::now() + GATHERING);
        }
        let next = tokio::select! {
            next = receiver.recv() => next,
            () = tokio::time::sleep_until(until) => None,
            () = inner.halt.cancelled() => None,
        };
        let Some(next) = next else { return };
        queue.push_back(next);
    }
}

/// Work that is not done yet.
enum HeldUp {
    Nothing,
    /// Something must be processed before it.
    Order(Vec<Work>),
    /// The database says no.
    Database(Vec<Work>),
}

/// How many events some work has.
#[derive(Clone, Copy, Default)]
struct Size {
    all: usize,
    routed: usize,
}

impl Size {
    fn add(&mut self, work: &Work) {
        self.all += work.events.len();
        if work.routed {
            self.routed += work.events.len();
        }
    }

    /// Whether there is enough for a batch that evaluates so many events at the most.
    fn is_full(self, most_evaluated: usize) -> bool {
        self.routed >= most_evaluated || self.all >= most_evaluated * QUIET_EVENTS
    }

    fn exceeds(self, most_evaluated: usize) -> bool {
        self.routed > most_evaluated || self.all > most_evaluated * QUIET_EVENTS
    }
}

/// Takes work for a batch that evaluates so many events at the most; at least one piece.
fn take(queue: &mut VecDeque<Work>, most_evaluated: usize) -> Vec<Work> {
    let mut size = Size::default();
    let mut batch = Vec::new();
    while let Some(next) = queue.front() {
        size.add(next);
        if !batch.is_empty() && size.exceeds(most_evaluated) {
            break;
        }
        batch.extend(queue.pop_front());
    }
    batch
}

/// Processes a batch together; if its effects can't be written together, piece by piece.
async fn process(inner: &Inner, mut batch: Vec<Work>) -> HeldUp {
    match attempt(inner, &mut batch).await {
        Ok(()) => return HeldUp::Nothing,
        Err(Trouble::Database(error)) => {
            if error.is_temporary() {
                tracing::warn!(error = %error, "the pipeline waits for the database");
                return HeldUp::Database(batch);
            }
            tracing::error!(error = ?error, works = batch.len(), "a batch failed, its parts are tried alone");
        }
        Err(Trouble::Lost(error)) => {
            tracing::error!(error = %error, "a batch failed, its parts are tried alone");
        }
        Err(Trouble::Conflict) => {}
    }
    let mut order = Vec::new();
    let mut database = Vec::new();
    for work in batch {
        // What stands behind a piece that waits belongs behind it, if it is the same subject's.
        let behind = order
            .iter()
            .chain(&database)
            .any(|ahead: &Work| ahead.alias == work.alias);
        if behind {
            order.push(work);
            continue;
        }
        let mut alone = vec![work];
        match attempt(inner, &mut alone).await {
            Ok(()) => {}
            Err(Trouble::Conflict) => match still_mine(inner, &alone).await {
                Ok(true) => order.append(&mut alone),
                // Another process took it over and has done it, or will.
                Ok(false) => alone
                    .iter_mut()
                    .for_each(|work| work.finish(Fired::default())),
                Err(_) => database.append(&mut alone),
            },
            Err(Trouble::Database(error)) => {
                if !error.is_temporary() {
                    tracing::error!(error = ?error, "work can't be done and stays in the database");
                }
                database.append(&mut alone);
            }
            Err(Trouble::Lost(error)) => {
                tracing::error!(error = %error, "work can't be done and stays in the database");
                database.append(&mut alone);
            }
        }
    }
    if database.is_empty() && order.is_empty() {
        HeldUp::Nothing
    } else if database.is_empty() {
        HeldUp::Order(order)
    } else {
        database.append(&mut order);
        HeldUp::Database(database)
    }
}

/// Processes work; a panic is a defect that must not take the lane with it.
async fn attempt(inner: &Inner, works: &mut Vec<Work>) -> Result<(), Trouble> {
    let attempt = std::panic::AssertUnwindSafe(unit::process(inner, works)).catch_unwind();
    attempt.await.unwrap_or(Err(Trouble::Lost(Lost)))
}

/// Whether the work is still to be done, by this process.
async fn still_mine(inner: &Inner, works: &[Work]) -> nudge_db::Result<bool> {
    let Some(work) = works.first() else {
        return Ok(false);
    };
    let mut tx = inner.db.read().await?;
    match &work.source {
        Source::Request(id) => claims::owns_request(&mut tx, *id, inner.node()).await,
        Source::Timer(timer) => claims::owns_timer(&mut tx, timer.id, inner.node()).await,
        Source::Occasion(due) => occasions::is_owned(&mut tx, due.id, inner.node()).await,
        Source::Letter { id, .. } => {
            Ok(crate::dead_letters::store::find(&mut tx, work.app_id, *id)
                .await?
                .is_some())
        }
    }
}
