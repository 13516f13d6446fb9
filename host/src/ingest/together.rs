//! Validation of many requests in one call: while all threads are busy, or it is others' turn, what an app's
//! requests ask gathers, and is asked together.
//!
//! An app's requests wait only for others of the same app. A call that fails is made again for each request alone,
//! so that what one request holds is no other's trouble.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use uuid::Uuid;

use super::MOST_EVENTS;
use super::validation::{self, Context, Declared, Found, Work};
use crate::plugins::{Lost, Workers, logs};

/// What requests ask that no thread has taken yet, by app. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Together(Arc<Mutex<HashMap<Uuid, VecDeque<Request>>>>);

/// What one request asks.
#[derive(Debug)]
struct Request {
    context: Context,
    declared: Arc<[Declared]>,
    reply: oneshot::Sender<Found>,
}

impl Together {
    /// Checks the events of a request, together with those of others of its app that wait at the same time.
    pub(super) async fn check(
        &self,
        workers: &Workers,
        context: &Context,
        declared: &Arc<[Declared]>,
    ) -> Result<Found, Lost> {
        let (reply, replied) = oneshot::channel();
        let app_id = context.app_id;
        let request = Request {
            context: context.clone(),
            declared: Arc::clone(declared),
            reply,
        };
        self.lock().entry(app_id).or_default().push_back(request);
        let waiting = self.clone();
        // A job for each request: one whose request was taken along by an earlier one finds nothing to do.
        let queued = workers.offer(app_id, (usize::MAX, usize::MAX), move || {
            run(waiting.take(app_id));
        });
        if !queued {
            return Err(Lost);
        }
        replied.await.map_err(|_| Lost)
    }

    /// The requests of an app that wait longest, as many as a call takes; at least one, if there is one.
    fn take(&self, app_id: Uuid) -> Vec<Request> {
        let mut waiting = self.lock();
        let Some(queue) = waiting.get_mut(&app_id) else {
            return Vec::new();
        };
        let mut events = 0;
        let fitting = queue.iter().take_while(|request| {
            events += request.declared.len();
            events <= MOST_EVENTS
        });
        let count = fitting.count().max(1).min(queue.len());
        let taken = queue.drain(..count).collect();
        if queue.is_empty() {
            waiting.remove(&app_id);
        }
        taken
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, VecDeque<Request>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers requests of one app. Who has gone is not told.
fn run(requests: Vec<Request>) {
    let found = match requests.as_slice() {
        [] => return,
        [one] => vec![validation::check(&one.context, &one.declared)],
        [first, ..] => {
            let latest = requests.iter().map(|request| request.context.now).max();
            let context = Context {
                now: latest.unwrap_or(first.context.now),
                ..first.context.clone()
            };
            let declared: Vec<&[Declared]> =
                requests.iter().map(|request| &*request.declared).collect();
            check(&context, &declared)
        }
    };
    for (request, found) in requests.into_iter().zip(found) {
        drop(request.reply.send(found));
    }
}

/// What is found of each of some requests.
fn check(context: &Context, requests: &[&[Declared]]) -> Vec<Found> {
    // All events, numbered anew, with the request and the place that each has there.
    let mut owners = Vec::new();
    let mut all = Vec::new();
    for (number, declared) in requests.iter().enumerate() {
        for event in *declared {
            all.push(Declared {
                place: owners.len(),
                ..event.clone()
            });
            owners.push((number, event.place));
        }
    }
    let owner = |place: usize| owners.get(place).copied();
    let mut found = vec![Found::new(); requests.len()];
    for (version, declared) in validation::by_version(&all) {
        let mut work = Work::new(context, version, logs::Kind::Decision);
        let verdicts = work.together(&declared).unwrap_or_else(|| {
            let of = |event: &&Declared| owner(event.place).map(|(number, _)| number);
            let alone = declared.chunk_by(|one, other| of(one) == of(other));
            alone.flat_map(|declared| work.run(declared)).collect()
        });
        for (place, verdict) in verdicts {
            if let Some((number, place)) = owner(place)
                && let Some(found) = found.get_mut(number)
            {
                found.push((place, verdict));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests;
