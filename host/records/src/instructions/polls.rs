//! Open polls: who waits for instructions of which subject.
//!
//! An issue in this process wakes the subject's polls at once, and so does what ends a token. Where other processes
//! share the database, [`run`] asks it now and then about all subjects that are waited for together; a poll that
//! waits asks nothing by itself.

use std::time::Duration;

use nudge_db::Dialect;
use nudge_platform::due;
use tokio_util::sync::CancellationToken;

use super::store;
use crate::services::Shared;

/// How often what other processes did is looked for.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Looks for what other processes did, until the server stops. One process that has the database for itself has
/// nothing to look for.
pub async fn run(services: Shared, halt: CancellationToken) {
    if services.db.dialect() == Dialect::Sqlite {
        return;
    }
    let what = "looking after open polls";
    due::every(LOOK_AGAIN, halt, what, || look(&services)).await;
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
