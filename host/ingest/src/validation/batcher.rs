//! Validation of many requests in one call: while an app's events are being checked, or it is others' turn, what
//! its further requests ask gathers, and is asked together.
//!
//! A call costs as much besides its events as some ten of them, and to wake a thread for it as much again. So a second
//! thread is woken for an app only where enough waits for it. An app's requests wait only for others of the same app.
//! A call that fails is made again for each request alone, so that what one request holds is no other's trouble.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nudge_plugin_runtime::{Lost, Workers, halving, logs};
use nudge_records::events::MOST_EVENTS;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::validation::{self, Context, Declared, PlacedVerdicts, VersionChecks};

/// So many events that wait are worth one more thread.
const WORTH_A_THREAD: usize = 128;
/// A thread that has checked an app's events for so long lets other apps have their turn.
const TURN: Duration = Duration::from_millis(1);

/// What requests ask that no thread has taken yet, by app. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Batcher(Arc<Mutex<HashMap<Uuid, AppQueue>>>);

/// What waits of an app.
#[derive(Debug, Default)]
struct AppQueue {
    requests: VecDeque<Request>,
    /// How many events these have.
    events: usize,
    /// Jobs that will take some of it, or are about to.
    jobs: usize,
}

/// What one request asks.
#[derive(Debug)]
struct Request {
    context: Context,
    declared: Arc<[Declared]>,
    reply: oneshot::Sender<PlacedVerdicts>,
}

/// Takes what waits of an app until nothing does. What is left when it ends, for whatever reason, is another's.
struct Job {
    together: Batcher,
    workers: Workers,
    app_id: Uuid,
}

impl Batcher {
    /// Checks the events of a request, together with those of others of its app that wait at the same time.
    pub(super) async fn check(
        &self,
        workers: &Workers,
        context: &Context,
        declared: &Arc<[Declared]>,
    ) -> Result<PlacedVerdicts, Lost> {
        let (reply, replied) = oneshot::channel();
        let request = Request {
            context: context.clone(),
            declared: Arc::clone(declared),
            reply,
        };
        if self
            .0
            .lock()
            .entry(context.app_id)
            .or_default()
            .add(request)
        {
            self.offer(workers, context.app_id);
        }
        replied.await.map_err(|_| Lost)
    }

    /// Has a thread take what waits of an app.
    fn offer(&self, workers: &Workers, app_id: Uuid) {
        let job = Job {
            together: self.clone(),
            workers: workers.clone(),
            app_id,
        };
        // There is no limit, so that none is refused.
        workers.offer(app_id, (usize::MAX, usize::MAX), move || job.run());
    }

    /// The requests of an app that wait longest, as many as a call takes; at least one, if there is one.
    fn take(&self, app_id: Uuid) -> Vec<Request> {
        let mut apps = self.0.lock();
        apps.get_mut(&app_id).map_or_else(Vec::new, AppQueue::take)
    }
}

impl AppQueue {
    /// Adds a request; answers whether it is worth one more job, which is counted then.
    fn add(&mut self, request: Request) -> bool {
        self.events += request.declared.len();
        self.requests.push_back(request);
        let more = self.jobs <= self.events / WORTH_A_THREAD;
        if more {
            self.jobs += 1;
        }
        more
    }

    fn take(&mut self) -> Vec<Request> {
        let mut events = 0;
        let fitting = self.requests.iter().take_while(|request| {
            events += request.declared.len();
            events <= MOST_EVENTS
        });
        let count = fitting.count().max(1).min(self.requests.len());
        let taken: Vec<Request> = self.requests.drain(..count).collect();
        self.events -= taken.iter().map(|it| it.declared.len()).sum::<usize>();
        taken
    }

    /// Counts a job as ended; answers whether another must take what is left, which is counted then.
    fn end(&mut self) -> bool {
        self.jobs -= 1;
        let left = self.jobs == 0 && !self.requests.is_empty();
        if left {
            self.jobs = 1;
        }
        left
    }
}

impl Job {
    fn run(self) {
        let started = Instant::now();
        while started.elapsed() < TURN {
            let requests = self.together.take(self.app_id);
            if requests.is_empty() {
                return;
            }
            run(requests);
        }
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let mut apps = self.together.0.lock();
        let Some(waiting) = apps.get_mut(&self.app_id) else {
            return;
        };
        let left = waiting.end();
        if !left && waiting.jobs == 0 {
            apps.remove(&self.app_id);
        }
        drop(apps);
        if left {
            self.together.offer(&self.workers, self.app_id);
        }
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
fn check(context: &Context, requests: &[&[Declared]]) -> Vec<PlacedVerdicts> {
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
    let mut found = vec![PlacedVerdicts::new(); requests.len()];
    for (version, declared) in validation::by_version(&all) {
        let checks = VersionChecks::new(context, version, logs::Kind::Decision);
        let verdicts = halving::ask_together(&checks, &declared).unwrap_or_else(|| {
            let of = |event: &&Declared| owner(event.place).map(|(number, _)| number);
            let alone = declared.chunk_by(|one, other| of(one) == of(other));
            alone
                .flat_map(|declared| halving::ask(&checks, declared))
                .collect()
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
