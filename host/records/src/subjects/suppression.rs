//! Suppression.

use nudge_db::{Result, Tx};
use uuid::Uuid;

use crate::pseudonyms::Pseudonyms;
use crate::subjects::AliasKind;

/// Whether nothing may be stored under a name, since whoever had it was deleted.
pub async fn is_suppressed(
    tx: &mut Tx,
    pseudonyms: &Pseudonyms,
    app_id: Uuid,
    kind: AliasKind,
    value: &str,
) -> nudge_db::Result<bool> {
    let hash = pseudonyms.alias(app_id, kind, value);
    Ok(
        crate::subjects::suppression::suppressed_by(tx, app_id, &hash)
            .await?
            .is_some(),
    )
}

#[derive(sqlx::FromRow)]
struct JobRow {
    job_id: Uuid,
}

/// The job that erased whoever had a name, if that name is on the list.
pub async fn suppressed_by(tx: &mut Tx, app_id: Uuid, hash: &str) -> Result<Option<Uuid>> {
    let row: Option<JobRow> = tx
        .sql("SELECT job_id FROM suppressions WHERE app_id = $1 AND hash = $2")
        .bind(app_id)
        .bind(hash.to_owned())
        .fetch_optional()
        .await?;
    Ok(row.map(|row| row.job_id))
}
