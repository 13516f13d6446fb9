//! Long work that survives restarts: queued in the transaction that asks for it, run by one process at a
//! time, resumed from its own note of progress after a crash.

mod fairness;
mod kinds;
mod runner;
pub mod store;

use nudge_db::{Timestamp, Tx};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub use kinds::{Kinds, Run};
pub use runner::{Parts, Runner, Wake};

/// A job to be queued.
#[derive(Clone, Debug)]
pub struct NewJob<'a> {
    /// The app.
    pub app_id: Uuid,
    /// What it does: a name in [`Kinds`].
    pub kind: &'static str,
    /// What it is asked to do.
    pub input: Value,
    /// Who asked.
    pub requested_by: &'a str,
}

/// Queues a job; it runs once the transaction is committed. Wake the [`Runner`] then.
pub async fn queue(tx: &mut Tx, job: &NewJob<'_>, now: Timestamp) -> nudge_db::Result<Uuid> {
    let id = crate::id::new(now);
    store::insert(tx, id, job, now).await?;
    Ok(id)
}

/// Queues a job, unless as many of its kind as its app may have at a time have not ended; none: they have not.
pub async fn queue_limited(
    tx: &mut Tx,
    job: &NewJob<'_>,
    most: usize,
    now: Timestamp,
) -> nudge_db::Result<Option<Uuid>> {
    if store::count_unfinished(tx, job.app_id, job.kind).await? >= most {
        return Ok(None);
    }
    queue(tx, job, now).await.map(Some)
}

/// A job that this process has in hand.
#[derive(Debug)]
pub struct RunningJob {
    /// Its id.
    pub id: Uuid,
    /// The app.
    pub app_id: Uuid,
    kind: String,
    input: Value,
    progress: Value,
    failures: i64,
    node: Uuid,
    halt: CancellationToken,
}

/// Why a job did not end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database; the job is tried again.
    #[error("the database refused a step of a job")]
    Storage(#[from] nudge_db::Error),
    /// The server stops; the job goes on after the next start.
    #[error("the server is shutting down")]
    Stopping,
    /// Another process has the job now, or it is gone.
    #[error("the job is not this process's any longer")]
    Lost,
    /// It has to wait for something else than the database, and goes on then; meanwhile others may run.
    #[error("the job waits")]
    Wait(std::time::Duration),
    /// It can't be done. The text is for the person who asked, and names no secret.
    #[error("{0}")]
    Failed(String),
}

impl RunningJob {
    /// What the job was asked to do.
    pub fn input<T: DeserializeOwned>(&self) -> Result<T, Error> {
        serde_json::from_value(self.input.clone())
            .map_err(|cause| Error::Storage(nudge_db::Error::corrupt("jobs", "input", cause)))
    }

    /// What [`advance`](Self::advance) noted last; the default at the start.
    pub fn progress<T: DeserializeOwned + Default>(&self) -> Result<T, Error> {
        if self.progress.is_null() {
            return Ok(T::default());
        }
        serde_json::from_value(self.progress.clone())
            .map_err(|cause| Error::Storage(nudge_db::Error::corrupt("jobs", "progress", cause)))
    }

    /// Notes how far the job is, in the transaction of what it did: both are there or neither. `done` of
    /// `total` is what people see. The error [`Error::Lost`] must lead to a roll-back.
    pub async fn advance(
        &mut self,
        tx: &mut Tx,
        progress: &(impl Serialize + Sync),
        done: i64,
        total: Option<i64>,
        now: Timestamp,
    ) -> Result<(), Error> {
        let progress = serde_json::to_value(progress)
            .map_err(|cause| Error::Storage(nudge_db::Error::corrupt("jobs", "progress", cause)))?;
        if !store::advance(tx, self, &progress, done, total, now).await? {
            return Err(Error::Lost);
        }
        self.progress = progress;
        Ok(())
    }

    /// Makes sure that the job is still this process's, in the transaction of what it did, and stays so until that ends. The
    /// error [`Error::Lost`] must lead to a roll-back.
    pub async fn hold(&self, tx: &mut Tx) -> Result<(), Error> {
        if !store::hold(tx, self).await? {
            return Err(Error::Lost);
        }
        Ok(())
    }

    /// Replaces what the job was asked to do by something that names nobody, in the transaction of its last
    /// step.
    pub async fn forget_input(&self, tx: &mut Tx, left: &Value) -> Result<(), Error> {
        Ok(store::replace_input(tx, self, left).await?)
    }

    /// Is cancelled once the server stops.
    pub fn halt(&self) -> CancellationToken {
        self.halt.clone()
    }

    /// An error once the server stops; long steps ask now and then.
    pub fn check(&self) -> Result<(), Error> {
        if self.halt.is_cancelled() {
            return Err(Error::Stopping);
        }
        Ok(())
    }
}
