//! Threads that run plugins.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use crossbeam_channel::{Sender, unbounded};
use tokio::sync::oneshot;

type Job = Box<dyn FnOnce() + Send>;

/// A fixed number of threads for blocking calls. Cheap to clone; the threads end with the last clone.
#[derive(Clone, Debug)]
pub struct Workers {
    jobs: Sender<Job>,
}

/// The call panicked in the host. The thread goes on.
#[derive(Debug, thiserror::Error)]
#[error("the host panicked while it ran a plugin")]
pub struct Lost;

impl Workers {
    /// Starts the threads.
    pub fn start(name: &str, threads: usize) -> std::io::Result<Self> {
        let (jobs, queue) = unbounded::<Job>();
        for number in 0..threads {
            let queue = queue.clone();
            thread::Builder::new()
                .name(format!("{name}-{number}"))
                .spawn(move || {
                    for job in queue {
                        // A panic is the job's own: its caller learns of it by the dropped answer.
                        let _ = catch_unwind(AssertUnwindSafe(job));
                    }
                })?;
        }
        Ok(Self { jobs })
    }

    /// Runs something on one of the threads.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Lost> {
        let (answer, answered) = oneshot::channel();
        let job = Box::new(move || drop(answer.send(work())));
        self.jobs.send(job).map_err(|_| Lost)?;
        answered.await.map_err(|_| Lost)
    }
}
