//! Suppression: names of people who were deleted.
//!
//! What is of before the deletion, or says nothing of when it is of, is stored under such a name never again. Whoever
//! proves to have come later begins anew under it, with nothing of the deleted person, once that person is erased.

use nudge_db::{Result, Timestamp, Tx};
use uuid::Uuid;

use crate::pseudonyms::Pseudonyms;
use crate::subjects::AliasKind;

/// A name's entry on the suppression list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, nudge_db::FromRow)]
pub struct Suppression {
    /// The job that erases, or has erased, whoever had the name.
    pub job_id: Uuid,
    /// When the deletion was asked for.
    #[sqlx(rename = "created_at")]
    pub since: Timestamp,
    /// Whether the job is done.
    pub erased: bool,
}

/// What somebody may do under a name, who brings something of a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// It is of before the deletion.
    Never,
    /// The deleted person is not erased yet.
    Later,
    /// A new person begins.
    Now,
}

impl Suppression {
    /// What somebody may do under the name, who brings something of a moment.
    pub fn leave(&self, moment: Timestamp) -> Leave {
        match (moment > self.since, self.erased) {
            (false, _) => Leave::Never,
            (true, false) => Leave::Later,
            (true, true) => Leave::Now,
        }
    }
}

/// A name's entry on the suppression list, if somebody was deleted who had it.
pub async fn of_name(
    tx: &mut Tx,
    pseudonyms: &Pseudonyms,
    app_id: Uuid,
    kind: AliasKind,
    value: &str,
) -> Result<Option<Suppression>> {
    of_hash(tx, app_id, &pseudonyms.alias(app_id, kind, value)).await
}

/// The entry of the name with a hash.
pub async fn of_hash(tx: &mut Tx, app_id: Uuid, hash: &str) -> Result<Option<Suppression>> {
    tx.sql(
        "SELECT s.job_id, s.created_at, j.id IS NULL OR j.state = 'completed' AS erased
         FROM suppressions s LEFT JOIN jobs j ON j.id = s.job_id AND j.app_id = s.app_id
         WHERE s.app_id = $1 AND s.hash = $2",
    )
    .bind(app_id)
    .bind(hash.to_owned())
    .fetch_optional()
    .await
}
