//! The kinds of campaigns that run by the calendar: the one place that knows them apart.

use nudge_campaigns::campaign::{Kind, Status};
use nudge_campaigns::{lifecycle, surveys};
use nudge_db::{Result, Timestamp, Tx};
use nudge_platform::audit::{self, Entry};
use serde_json::json;
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
pub(super) async fn standing(kind: Kind, tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<RunState> {
    let status = match kind {
        Kind::Survey => lifecycle::status::<surveys::Content>(tx, app_id, id).await?,
        Kind::Push => lifecycle::status::<nudge_campaigns::push::Content>(tx, app_id, id).await?,
    };
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
    match kind {
        Kind::Survey => super::store::any_on_offer(tx, app_id, id, now).await,
        Kind::Push => Ok(false),
    }
}

/// Sets an active campaign `completed`, as the server; answers whether it was still active.
pub(super) async fn complete(
    kind: Kind,
    tx: &mut Tx,
    app_id: Uuid,
    id: Uuid,
    now: Timestamp,
) -> Result<bool> {
    let completed = match kind {
        Kind::Survey => lifecycle::complete::<surveys::Content>(tx, app_id, id, now).await?,
        Kind::Push => {
            lifecycle::complete::<nudge_campaigns::push::Content>(tx, app_id, id, now).await?
        }
    };
    if completed {
        nudge_campaigns::apps::bump_version(tx, app_id, now).await?;
        let (action, resource) = match kind {
            Kind::Survey => ("survey.completed", "survey"),
            Kind::Push => ("campaign.completed", "campaign"),
        };
        let entry = Entry {
            app_id,
            actor: audit::SERVER,
            action,
            resource: format!("{resource}/{id}"),
            detail: json!({"status": Status::Completed, "because": "its run is over"}),
        };
        audit::record(tx, &entry, now).await?;
    }
    Ok(completed)
}
