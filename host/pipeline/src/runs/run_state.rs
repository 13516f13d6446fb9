//! What runs ask of their campaigns.

use nudge_campaigns::campaign::{Kind, Status};
use nudge_campaigns::store::{self, Hold};
use nudge_db::{Result, Timestamp, Tx};
use uuid::Uuid;

/// Where a campaign stands, as far as a run is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunState {
    /// The run goes on.
    Runs,
    /// It waits.
    Rests,
    /// It is over, whatever is left of it.
    Over,
}

/// Where a campaign stands.
pub(super) async fn read(tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<RunState> {
    let status = store::status(tx, app_id, id, Hold::No).await?;
    Ok(match status {
        Some(Status::Active) => RunState::Runs,
        Some(Status::Draft | Status::Paused) => RunState::Rests,
        Some(Status::Completed | Status::Archived) | None => RunState::Over,
    })
}

/// Whether completing a campaign would take something back that people are still to get. Messages of one that is
/// completed are sent all the same.
pub(super) async fn is_on_offer(
    kind: Kind,
    tx: &mut Tx,
    app_id: Uuid,
    id: Uuid,
    now: Timestamp,
) -> Result<bool> {
    if kind.is_presented() {
        super::store::any_on_offer(tx, app_id, id, now).await
    } else {
        Ok(false)
    }
}
