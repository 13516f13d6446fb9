//! Places among an app's people, which are somebody's id: how far a job has come, also as its segment keeps it, and who was the
//! newest when a run began or a segment's conditions became what they are.

use nudge_campaigns::segments::looking;
use nudge_db::{Result, Tx};
use uuid::Uuid;

use crate::runs;

/// Moves every place at somebody who is being deleted to the next older person. Ids are only compared with it, so that
/// nothing else changes.
pub async fn move_back(tx: &mut Tx, app_id: Uuid, subject_id: Uuid) -> Result<()> {
    let older: Option<Uuid> = tx
        .sql(
            "SELECT id FROM subjects WHERE app_id = $1 AND id < $2 AND NOT suppressed
             ORDER BY id DESC LIMIT 1",
        )
        .bind(app_id)
        .bind(subject_id)
        .fetch_value()
        .await?;
    let older = older.unwrap_or_default();
    for text in [
        "UPDATE segments SET newest_subject = $3 WHERE app_id = $1 AND newest_subject = $2",
        "UPDATE segments SET looked_to = $3 WHERE app_id = $1 AND looked_to = $2",
    ] {
        tx.sql(text)
            .bind(app_id)
            .bind(subject_id)
            .bind(older)
            .execute()
            .await?;
    }
    tx.sql(
        "UPDATE jobs SET input = replace(input, $2, $3), progress = replace(progress, $2, $3)
         WHERE app_id = $1 AND (input LIKE $4 OR progress LIKE $4) AND kind IN ",
    )
    .bind(app_id)
    .bind(subject_id.to_string())
    .bind(older.to_string())
    .bind(format!("%{subject_id}%"))
    .push_list([looking::KIND, runs::job::KIND])
    .execute()
    .await?;
    Ok(())
}
