//! A lane: takes what waits for an app, batch by batch, until the server halts.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use nudge_platform::traces::{self, KeyValue, NewSpan, Traces};
use nudge_plugin_runtime::Lost;
use nudge_records::dead_letters;
use nudge_records::scheduled_work::{DueOccasion, DueTimer};
use tokio::sync::mpsc;
use tokio::time::Instant;
use uuid::Uuid;

use super::failing::FailingWorks;
use super::waiting::WaitingRequests;
use super::work::{Fired, Source, Work};
use super::{Inner, claims};
use crate::batch::{self, Trouble};

/// How long to wait for the database, at first and at the most.
const RETRY_WAIT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// How long after a batch work that nobody waits for may gather. A transaction for many requests costs little more than
/// one for a single request, and SQLite has one at a time, commits of further requests among them. What comes after a
/// pause is processed at once.
const GATHERING: Duration = Duration::from_millis(10);
/// How long work that no campaign reads may gather: all that comes of it are the profiles' newest counts.
const QUIET_GATHERING: Duration = Duration::from_millis(100);
/// A batch of which no campaign reads an event may have so many times the events of another batch.
const QUIET_EVENTS: usize = 4;

/// What a lane has in hand.
#[derive(Default)]
struct Lane {
    queue: VecDeque<Work>,
    waiting: WaitingRequests,
    failing: FailingWorks,
}

/// Runs a lane.
pub(super) async fn run(inner: Arc<Inner>, mut receiver: mpsc::UnboundedReceiver<Work>) {
    let mut lane = Lane::default();
    let mut turns = inner.turns.subscribe();
    let mut wait = RETRY_WAIT.0;
    let mut gather_until = Instant::now();
    let mut tried_again = false;
    loop {
        let in_hand = lane.queue.len();
        if lane.queue.is_empty() {
            let look_at = lane.waiting.next_look();
            let again_at = lane.failing.next_look();
            let next = tokio::select! {
                next = receiver.recv() => next.map(Some),
                () = sleep_until(look_at.into_iter().chain(again_at).min()) => Some(None),
                Ok(()) = turns.changed(), if look_at.is_some() => {
                    lane.waiting.hurry();
                    Some(None)
                }
                () = inner.halt.cancelled() => None,
            };
            let Some(next) = next else { return };
            if let Some(next) = next {
                lane.queue.push_back(next);
                gather(&inner, &mut receiver, &mut lane.queue, gather_until).await;
            }
        }
        while let Ok(next) = receiver.try_recv() {
            lane.queue.push_back(next);
        }
        if inner.halt.is_cancelled() {
            // Claims end with the process; the work is in the database.
            return;
        }
        lane.sort_in(&inner, in_hand).await;
        // By turns: however much fails, other work goes on.
        tried_again = (lane.queue.is_empty() || !tried_again) && lane.try_again(&inner).await;
        if tried_again || lane.queue.is_empty() {
            continue;
        }
        let is_done = lane.process(&inner).await;
        gather_until = Instant::now() + GATHERING;
        if is_done {
            wait = RETRY_WAIT.0;
        } else {
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = inner.halt.cancelled() => return,
            }
            wait = (wait * 2).min(RETRY_WAIT.1);
        }
    }
}

impl Lane {
    /// Puts aside what of the queue, from a place on, stands behind other work, and takes in what has waited long enough.
    async fn sort_in(&mut self, inner: &Inner, from: usize) {
        let arrived = self.queue.split_off(from);
        let arrived = self.failing.keep_behind(arrived);
        self.queue.extend(self.waiting.keep_behind(arrived));
        let come = self.waiting.look(inner).await;
        self.queue.extend(self.failing.keep_behind(come));
    }

    /// Processes the next batch of the queue. False: some of it waits for the database, in the queue.
    async fn process(&mut self, inner: &Inner) -> bool {
        let works = self.queue.make_contiguous();
        works.sort_by_key(Work::order);
        let batch = take(&mut self.queue, inner.config.batch_events);
        let held_up = process(inner, batch).await;
        inner.turns.send_replace(());
        if !held_up.order.is_empty() {
            for work in held_up.order {
                self.waiting.add(work);
            }
            let queue = std::mem::take(&mut self.queue);
            self.queue = self.waiting.keep_behind(queue).into();
        }
        let is_done = held_up.database.is_empty();
        self.queue.extend(held_up.database);
        if !held_up.failed.is_empty() {
            let now = Instant::now();
            for work in held_up.failed {
                self.failing.add(work, now);
            }
            let queue = std::mem::take(&mut self.queue);
            self.queue = self.failing.keep_behind(queue);
        }
        is_done
    }

    /// Tries one alias's work that has failed again, if it is time, by itself; answers whether it was. What stood behind it goes
    /// on once it has succeeded.
    async fn try_again(&mut self, inner: &Inner) -> bool {
        let Some(mut failing) = self.failing.take_due(Instant::now()) else {
            return false;
        };
        if let Some(first) = failing.take_first() {
            let held_up = process(inner, vec![first]).await;
            inner.turns.send_replace(());
            for work in held_up.order {
                self.waiting.add(work);
            }
            if !held_up.database.is_empty() {
                failing.begin_anew();
            }
            let mut again = held_up.failed.into_iter().chain(held_up.database);
            if let Some(failed) = again.next() {
                self.failing.put_back(failed, failing, Instant::now());
                return true;
            }
        }
        let behind = failing.into_works();
        self.queue.extend(self.waiting.keep_behind(behind));
        true
    }
}

/// Waits for an instant; without one, for ever.
async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Lets more work come to the first piece, until somebody waits for a piece or there is enough for a batch. What a
/// campaign reads waits until an instant at the most. What is due waits a moment in any case: what was claimed with it
/// comes right after it, and is judged together with it.
async fn gather(
    inner: &Inner,
    receiver: &mut mpsc::UnboundedReceiver<Work>,
    queue: &mut VecDeque<Work>,
    routed_until: Instant,
) {
    let began = Instant::now();
    let mut until = began + QUIET_GATHERING;
    let mut size = Size::default();
    while let Some(last) = queue.back() {
        size.add(last);
        if last.is_awaited() || size.is_full(inner.config.batch_events) {
            return;
        }
        if last.request_id().is_none() {
            until = until.min(began + GATHERING);
        } else if last.routed {
            until = until.min(routed_until);
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
#[derive(Default)]
struct HeldUp {
    /// Something must be processed before it, or changes again and again.
    order: Vec<Work>,
    /// The database can't be reached.
    database: Vec<Work>,
    /// It fails also by itself.
    failed: Vec<Work>,
}

impl HeldUp {
    /// Takes what stands behind work that is held up, if it is the same alias's.
    fn keep_behind(&mut self, works: &mut Vec<Work>) {
        for list in [&mut self.order, &mut self.database, &mut self.failed] {
            if list.is_empty() {
                continue;
            }
            let ahead: HashSet<i64> = list.iter().map(|ahead| ahead.alias).collect();
            list.extend(works.extract_if(.., |work| ahead.contains(&work.alias)));
        }
    }
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

/// Takes work for a batch that evaluates so many events at the most; at least one piece. What is replayed is decided about as
/// of its own time, and so apart from what else there is of its alias, which keeps its place in the queue.
fn take(queue: &mut VecDeque<Work>, most_evaluated: usize) -> Vec<Work> {
    let mut size = Size::default();
    let mut batch: Vec<Work> = Vec::new();
    let (mut apart, mut set_aside) = (HashSet::new(), Vec::new());
    while let Some(next) = queue.pop_front() {
        let goes_alone = next.replays();
        let collides = goes_alone && batch.iter().any(|work| work.alias == next.alias);
        if collides || apart.contains(&next.alias) {
            apart.insert(next.alias);
            set_aside.push(next);
            continue;
        }
        size.add(&next);
        if !batch.is_empty() && size.exceeds(most_evaluated) {
            set_aside.push(next);
            break;
        }
        if next.replays() {
            apart.insert(next.alias);
        }
        batch.push(next);
    }
    for work in set_aside.into_iter().rev() {
        queue.push_front(work);
    }
    batch
}

/// Processes a batch together. If its effects can't be written together, what has to wait is put aside and the rest
/// tried again; where nothing has to wait, the halves are tried, down to single pieces.
async fn process(inner: &Inner, batch: Vec<Work>) -> HeldUp {
    let mut held_up = HeldUp::default();
    let mut parts = vec![batch];
    while let Some(mut part) = parts.pop() {
        held_up.keep_behind(&mut part);
        if part.is_empty() {
            continue;
        }
        match attempt(inner, &mut part).await {
            Ok(()) => parts.push(part),
            Err(Trouble::Conflict) => match sort_out(inner, &mut part, &mut held_up.order).await {
                Ok(true) => parts.push(part),
                Ok(false) => halve(part, &mut parts, &mut held_up.order),
                Err(error) if error.is_temporary() => held_up.database.append(&mut part),
                Err(error) => {
                    tracing::error!(error = ?error, works = part.len(), "work failed; its halves are tried, a single piece is tried again later");
                    halve(part, &mut parts, &mut held_up.failed);
                }
            },
            Err(Trouble::Database(error))
                if error.is_temporary()
                    && let Some(shards) = inner.db.shards() =>
            {
                tracing::warn!(error = %error, "the pipeline waits for a part of the database");
                let mut of_workers: Vec<Vec<Work>> = shards.by_worker(part, |work| work.alias);
                // What one worker has is held up; others' is tried by itself.
                match &mut *of_workers {
                    [only] => held_up.order.append(only),
                    _ => parts.append(&mut of_workers),
                }
            }
            Err(Trouble::Database(error)) if error.is_temporary() => {
                tracing::warn!(error = %error, "the pipeline waits for the database");
                held_up.database.append(&mut part);
                held_up.database.extend(parts.drain(..).flatten());
            }
            Err(Trouble::Database(error)) => {
                tracing::error!(error = ?error, works = part.len(), "work failed; its halves are tried, a single piece is tried again later");
                halve(part, &mut parts, &mut held_up.failed);
            }
            Err(Trouble::Lost(error)) => {
                tracing::error!(error = %error, works = part.len(), "work failed; its halves are tried, a single piece is tried again later");
                halve(part, &mut parts, &mut held_up.failed);
            }
        }
    }
    held_up
}

/// Has both halves of some work tried, the first one first. A single piece is held up.
fn halve(mut works: Vec<Work>, parts: &mut Vec<Vec<Work>>, held_up: &mut Vec<Work>) {
    if works.len() < 2 {
        held_up.append(&mut works);
        return;
    }
    let second = works.split_off(works.len() / 2);
    parts.push(second);
    parts.push(works);
}

/// Processes work; a panic is a defect that must not take the lane with it.
async fn attempt(inner: &Inner, works: &mut Vec<Work>) -> Result<(), Trouble> {
    let attempt = std::panic::AssertUnwindSafe(traced(inner, works)).catch_unwind();
    attempt.await.unwrap_or(Err(Trouble::Lost(Lost)))
}

/// Processes a batch as a trace of its own.
async fn traced(inner: &Inner, works: &mut Vec<Work>) -> Result<(), Trouble> {
    let requests = i64::try_from(works.len()).unwrap_or(i64::MAX);
    let span = || {
        let requests = KeyValue::new("nudge.requests", requests);
        NewSpan::internal("pipeline batch", vec![requests])
    };
    let batch = Box::pin(async {
        let outcome = batch::process(inner, works).await;
        if outcome.is_err() {
            traces::fail("it is tried again");
        }
        outcome
    });
    Traces::root(inner.traces.as_ref(), span, batch).await
}

/// Takes out what is another process's by now, which has done it or will, and what has to wait; answers whether
/// there was any.
async fn sort_out(
    inner: &Inner,
    works: &mut Vec<Work>,
    waiting: &mut Vec<Work>,
) -> nudge_db::Result<bool> {
    let (mut requests, mut timers, mut occasions) = (Vec::new(), Vec::new(), Vec::new());
    for work in works.iter() {
        match &work.source {
            Source::Request(id) => requests.push((work.alias, *id)),
            Source::Timer(timer) => timers.push(timer.id),
            Source::Occasion(due) => occasions.push(due.id),
            Source::Letter { .. } => {}
        }
    }
    let node = inner.node();
    let mut tx = inner.db.read().await?;
    let own_requests = claims::own_requests(&mut tx, &requests, node).await?;
    let mut own = claims::own(&mut tx, "timers", &timers, node).await?;
    own.extend(claims::own(&mut tx, "occasions", &occasions, node).await?);
    for work in works.iter() {
        if let Source::Letter { id, .. } = &work.source {
            let found = dead_letters::store::find(&mut tx, work.app_id, *id).await?;
            own.extend(found.map(|found| found.letter.id));
        }
    }
    drop(tx);
    let own: HashSet<Uuid> = own.into_iter().collect();
    let before = works.len();
    works.retain_mut(|work| {
        let own = match &work.source {
            Source::Request(id) => own_requests.contains_key(id),
            Source::Timer(DueTimer { id, .. })
            | Source::Occasion(DueOccasion { id, .. })
            | Source::Letter { id, .. } => own.contains(id),
        };
        if !own {
            match &work.source {
                // Another process has it, or the database lost it in a crash: nothing is known of what it fired.
                Source::Request(_) => drop(work.done.take()),
                _ => work.finish(Fired {
                    gone: true,
                    ..Fired::default()
                }),
            }
        }
        own
    });
    let waits = |work: &mut Work| {
        let id = work.request_id();
        id.and_then(|id| own_requests.get(&id))
            .is_some_and(|waits| *waits)
    };
    waiting.extend(works.extract_if(.., waits));
    Ok(works.len() < before)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(of: &[(i64, i64)]) -> Vec<Work> {
        let request = |(id, alias): &(i64, i64)| {
            Work::new(Source::Request(*id), Uuid::nil(), *alias, Vec::new(), None)
        };
        of.iter().map(request).collect()
    }

    fn ids(works: &[Work]) -> Vec<i64> {
        works.iter().filter_map(Work::request_id).collect()
    }

    #[test]
    fn work_is_halved_down_to_single_pieces_in_order() {
        let mut parts = vec![requests(&[(1, 1), (2, 2), (3, 1), (4, 3), (5, 2)])];
        let mut held_up = Vec::new();
        while let Some(part) = parts.pop() {
            halve(part, &mut parts, &mut held_up);
        }
        assert_eq!(ids(&held_up), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn what_stands_behind_something_of_its_alias_is_held_up_with_it() {
        let mut held_up = HeldUp {
            order: requests(&[(1, 1)]),
            database: requests(&[(2, 2)]),
            failed: requests(&[(3, 3)]),
        };
        let mut works = requests(&[(4, 1), (5, 4), (6, 2), (7, 3)]);
        held_up.keep_behind(&mut works);
        assert_eq!(ids(&works), [5]);
        assert_eq!(ids(&held_up.order), [1, 4]);
        assert_eq!(ids(&held_up.database), [2, 6]);
        assert_eq!(ids(&held_up.failed), [3, 7]);
    }

    #[tokio::test]
    async fn an_alias_that_waits_has_its_later_requests_wait_too() {
        let mut waiting = WaitingRequests::default();
        assert_eq!(waiting.next_look(), None);
        for work in requests(&[(1, 1)]) {
            waiting.add(work);
        }
        let free = waiting.keep_behind(requests(&[(2, 1), (3, 2)]));
        assert_eq!(ids(&free), [3]);
        assert!(waiting.next_look().is_some());
    }
}
