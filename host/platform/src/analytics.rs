//! The analytics store: where history is read from (contract 16). It is the operational database; a column store
//! can take its place behind the same seam.

use futures_util::future::BoxFuture;
use uuid::Uuid;

/// Whose data to erase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Erasure {
    /// The app.
    pub app_id: Uuid,
    /// The person.
    pub subject_id: Uuid,
    /// The numbers that own the person's events.
    pub aliases: Vec<i64>,
}

/// The store has not erased it yet, or does not answer; to be asked again.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the analytics store has not confirmed yet")]
pub struct Unconfirmed;

/// A store of history.
pub trait AnalyticsStore: std::fmt::Debug + Send + Sync {
    /// Erases what there is of a person; answers how many records that were, once nothing is left. Asked again
    /// after a crash, it must answer again.
    fn erase<'a>(&'a self, erasure: &'a Erasure) -> BoxFuture<'a, Result<i64, Unconfirmed>>;
}

/// The operational database: what the steps of a deletion have erased there is erased here too.
#[derive(Clone, Copy, Debug)]
pub struct Operational;

impl AnalyticsStore for Operational {
    fn erase<'a>(&'a self, _: &'a Erasure) -> BoxFuture<'a, Result<i64, Unconfirmed>> {
        Box::pin(std::future::ready(Ok(0)))
    }
}
