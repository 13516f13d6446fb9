//! Who is in a segment, and who enters and leaves (contract 19).
//!
//! The default trigger plugin decides, by the segment's conditions and as of now ([`decide`]): for the members of a segment, for
//! previews, and for those whose segments may have changed. Two ways lead there. What an event, a property or a merge may
//! have changed of a *watched* segment is noted in the transaction of that change, and looked at at once ([`checks`]). All
//! people of an app are gone through by a job ([`job`]), once a segment is saved, and then so often that sizes are at most an
//! hour old; that also notices what time alone changes.
//!
//! # Invariants
//!
//! - **A change is told once.** Who was in and who is are compared, and the difference is written, in one transaction that holds the
//!   person's row and has seen no newer version of it ([`members`]). What follows for campaigns is written there too: an
//!   occasion for each campaign that waits for the change. So neither two processes, nor a sweep beside events, nor a crash tells it
//!   twice or never.
//! - **Changes that follow each other are told each.** Before the next request's events, an update of properties or a merge changes
//!   somebody, what they have sent before is processed, and they are looked at if they are noted. Changes of one request are one.
//! - **Whose membership was not known before has not changed.** Until a job has gone through everybody once for the
//!   conditions as they are, only people who came later, and those it has passed, enter and leave.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use nudge_apps::App;
use nudge_apps::auth::Scope;
use nudge_apps::services::Services;
use nudge_db::Result;
use uuid::Uuid;

pub mod checks;
pub mod decide;
pub mod job;
mod members;
pub mod preview;
pub mod store;

/// How long an answer waits until everybody was looked at. Of few people it can be told at once who is in a segment.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often that is asked.
const LOOK: Duration = Duration::from_millis(20);

/// Waits a moment until everybody was looked at for a segment.
pub async fn known(services: &Services, app_id: Uuid, segment_id: Uuid) -> Result<()> {
    let waits = async {
        loop {
            let mut tx = services.db.read().await?;
            if store::is_based(&mut tx, app_id, segment_id).await? {
                return Ok(());
            }
            drop(tx);
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::time::timeout(PATIENCE, waits)
        .await
        .unwrap_or(Ok(()))
}

/// The app as it knows some segments: another process may have made one a moment ago. An id of nothing is left to the checks.
pub async fn knowing(
    services: &Services,
    scope: &Scope,
    named: &BTreeSet<Uuid>,
) -> Result<Arc<App>> {
    let audiences = &scope.app.segments.audiences;
    if named.iter().all(|id| audiences.has(*id)) {
        return Ok(Arc::clone(&scope.app));
    }
    let app = services.apps.refresh(scope.app.id).await?;
    Ok(app.unwrap_or_else(|| Arc::clone(&scope.app)))
}

/// The app as a campaign is checked by it: another process may have made a segment or activated a plugin a moment ago.
pub async fn renewed(services: &Services, scope: &Scope) -> Result<Arc<App>> {
    services.apps.renewed(Arc::clone(&scope.app)).await
}

/// Waits a moment until it is known who is in the segment whose changes a campaign waits for, so that whoever changes after the
/// answer is told of.
pub async fn watched(services: &Services, app: Option<&App>, campaign_id: Uuid) -> Result<()> {
    let Some(app) = app else {
        return Ok(());
    };
    let index = app.campaign(campaign_id);
    let watch = index.and_then(|index| app.campaigns.get(index)?.watch);
    match watch {
        Some(watch) => {
            services.jobs.wake();
            known(services, app.id, watch.segment_id).await
        }
        None => Ok(()),
    }
}
