//! Threads that run plugins, divided fairly among apps.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use nudge_platform::jobs::Error;
use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::fair_queue::{Next, Share, Turns};

type Job = Box<dyn FnOnce() + Send>;

/// A fixed number of threads for blocking calls. Cheap to clone; the threads end with the last clone.
#[derive(Clone, Debug)]
pub struct Workers {
    handle: Arc<Handle>,
}

/// The call panicked in the host. The thread goes on.
#[derive(Debug, thiserror::Error)]
#[error("the host panicked while it ran a plugin")]
pub struct Lost;

/// What the clones share; the threads end when it goes.
struct Handle(Arc<Shared>);

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    began: Instant,
    waiting: metrics::Gauge,
    held_back: metrics::Counter,
}

struct Queue {
    turns: Turns<Job>,
    closed: bool,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Handle")
    }
}

impl Workers {
    /// Starts the threads; an app has no more of them than its share.
    pub fn start(name: &'static str, threads: usize, share: Share) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            queue: Mutex::new(Queue {
                turns: Turns::new(share),
                closed: false,
            }),
            changed: Condvar::new(),
            began: Instant::now(),
            waiting: metrics::gauge!("nudge_plugin_jobs_waiting", "threads" => name),
            held_back: metrics::counter!("nudge_plugin_budget_waits_total", "threads" => name),
        });
        let handle = Handle(Arc::clone(&shared));
        for number in 0..threads {
            let shared = Arc::clone(&shared);
            thread::Builder::new()
                .name(format!("{name}-{number}"))
                .spawn(move || shared.work())?;
        }
        Ok(Self {
            handle: Arc::new(handle),
        })
    }

    /// Runs something of an app on one of the threads, when it is the app's turn.
    pub async fn run<T: Send + 'static>(
        &self,
        app_id: Uuid,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Lost> {
        let (answer, answered) = oneshot::channel();
        let job = Box::new(move || drop(answer.send(work())));
        self.handle.0.push(app_id, (usize::MAX, usize::MAX), job);
        answered.await.map_err(|_| Lost)
    }

    /// How many jobs wait for a thread.
    pub fn waiting(&self) -> usize {
        self.handle.0.queue.lock().turns.waiting()
    }

    /// Has something run whose outcome nobody waits for; false when too many jobs wait already: `most` are those
    /// of the app, and of all.
    pub fn offer(
        &self,
        app_id: Uuid,
        most: (usize, usize),
        work: impl FnOnce() + Send + 'static,
    ) -> bool {
        self.handle.0.push(app_id, most, Box::new(work))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // Nobody is left who waits for what is queued.
        self.0.queue.lock().closed = true;
        self.0.changed.notify_all();
    }
}

impl Shared {
    fn push(&self, app_id: Uuid, most: (usize, usize), job: Job) -> bool {
        let mut queue = self.queue.lock();
        if queue.turns.waiting_of(app_id) >= most.0 || queue.turns.waiting() >= most.1 {
            return false;
        }
        queue.turns.push(app_id, job, self.began.elapsed());
        drop(queue);
        self.waiting.increment(1.0);
        self.changed.notify_one();
        true
    }

    /// Runs jobs until the queue is closed.
    fn work(&self) {
        let mut queue = self.queue.lock();
        // Whether a job has run since the thread last had nothing to do.
        let mut has_run = true;
        while !queue.closed {
            let now = self.began.elapsed();
            match queue.turns.next(now, || self.held_back.increment(1)) {
                Next::Job(app_id, job) => {
                    // What was put there while this thread ran may be for one that sleeps.
                    if queue.turns.waiting() > 0 {
                        self.changed.notify_one();
                    }
                    drop(queue);
                    self.waiting.decrement(1.0);
                    let started = Instant::now();
                    // A panic is the job's own: its caller learns of it by the dropped answer.
                    let _ = catch_unwind(AssertUnwindSafe(job));
                    let took = started.elapsed();
                    queue = self.queue.lock();
                    queue.turns.done(app_id, took, self.began.elapsed());
                    has_run = true;
                }
                Next::Wait(_) if has_run => {
                    drop(queue);
                    nudge_wasm::between_calls();
                    has_run = false;
                    queue = self.queue.lock();
                }
                Next::Wait(None) => {
                    self.changed.wait(&mut queue);
                }
                Next::Wait(Some(wait)) => {
                    self.changed.wait_for(&mut queue, wait);
                }
            }
        }
    }
}

impl From<Lost> for Error {
    fn from(lost: Lost) -> Self {
        Self::Failed(lost.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    const APPS: [Uuid; 2] = [Uuid::from_u128(1), Uuid::from_u128(2)];
    const ALL: (usize, usize) = (usize::MAX, usize::MAX);

    fn workers(threads: usize, app_threads: usize) -> Workers {
        let share = Share {
            threads: app_threads,
            budget: Duration::from_mins(1),
        };
        Workers::start("test", threads, share).unwrap()
    }

    #[test]
    fn one_app_never_has_all_threads() {
        let workers = workers(2, 1);
        let (block, blocked) = mpsc::channel::<()>();
        let blocked = Arc::new(Mutex::new(blocked));
        let (ran, order) = mpsc::channel();
        for job in 0..3 {
            let (blocked, ran) = (Arc::clone(&blocked), ran.clone());
            workers.offer(APPS[0], ALL, move || {
                blocked.lock().recv().unwrap();
                ran.send(job).unwrap();
            });
        }
        // Its jobs run, and end, while one of the other app's blocks a thread and two wait.
        for job in 10..13 {
            let ran = ran.clone();
            workers.offer(APPS[1], ALL, move || ran.send(job).unwrap());
        }
        let first: Vec<i32> = (0..3).map(|_| order.recv().unwrap()).collect();
        assert_eq!(first, [10, 11, 12]);
        for _ in 0..3 {
            block.send(()).unwrap();
        }
        let last: Vec<i32> = (0..3).map(|_| order.recv().unwrap()).collect();
        assert_eq!(last, [0, 1, 2]);
    }

    #[test]
    fn a_full_queue_takes_no_offer_and_a_panic_is_the_jobs_own() {
        let workers = workers(1, 1);
        let (block, blocked) = mpsc::channel::<()>();
        let (started, start) = mpsc::channel();
        assert!(workers.offer(APPS[0], (1, 9), move || {
            started.send(()).unwrap();
            blocked.recv().unwrap();
        }));
        start.recv().unwrap();
        assert!(workers.offer(APPS[0], (1, 9), || panic!("on purpose")));
        assert!(!workers.offer(APPS[0], (1, 9), || {}), "one waits already");
        assert!(!workers.offer(APPS[1], (1, 1), || {}), "of all");
        let (ran, over) = mpsc::channel();
        assert!(workers.offer(APPS[1], (1, 2), move || ran.send(()).unwrap()));
        block.send(()).unwrap();
        over.recv().unwrap();
    }
}
