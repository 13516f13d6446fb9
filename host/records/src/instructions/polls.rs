//! Open polls: who waits for instructions of which subject.
//!
//! An issue in this process wakes the subject's polls at once, and so does what ends a token. Where other processes
//! share the database, [`run`] asks it now and then about all subjects that are waited for together; a poll that
//! waits asks nothing by itself. Where any change of a subject may bring something, as a feedback button, [`run_watched`]
//! asks in the same way for the versions of those subjects.

use std::time::Duration;

use nudge_db::Dialect;
use nudge_platform::due;
use tokio_util::sync::CancellationToken;

use super::store;
use crate::services::Shared;

/// How often what other processes did is looked for.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How often changes of watched subjects are looked for.
const LOOK_AT_WATCHED: Duration = Duration::from_secs(5);

/// Looks for what other processes did, until the server stops. One process that has the database for itself has
/// nothing to look for.
pub async fn run(services: Shared, halt: CancellationToken) {
    if services.db.dialect() == Dialect::Sqlite {
        return;
    }
    let what = "looking after open polls";
    due::every(LOOK_AGAIN, halt, what, || look(&services)).await;
}

/// Looks for changes of watched subjects, until the server stops.
pub async fn run_watched(services: Shared, halt: CancellationToken) {
    let what = "looking after changes of people whose polls are open";
    due::every(LOOK_AT_WATCHED, halt, what, || look_at_watched(&services)).await;
}

async fn look_at_watched(services: &Shared) -> nudge_db::Result<()> {
    let subjects = services.polls.watched();
    if subjects.is_empty() {
        return Ok(());
    }
    let mut tx = services.db.read().await?;
    let versions = store::versions(&mut tx, &subjects).await?;
    drop(tx);
    for subject_id in subjects {
        let version = versions.get(&subject_id).copied();
        services.polls.compare_version(subject_id, version);
    }
    Ok(())
}

async fn look(services: &Shared) -> nudge_db::Result<()> {
    let subjects = services.polls.subjects();
    if subjects.is_empty() {
        return Ok(());
    }
    let mut tx = services.db.read().await?;
    let states = store::states(&mut tx, &subjects).await?;
    drop(tx);
    for subject_id in subjects {
        let state = states.get(&subject_id).copied();
        services.polls.compare(subject_id, state);
    }
    Ok(())
}
