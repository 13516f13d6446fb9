//! Buttons that open surveys, in the database: one a person and survey, for as long as it is on offer.

use nudge_db::{Result, Timestamp, Tx};
use uuid::Uuid;

/// A person's button.
#[derive(Clone, Debug, nudge_db::FromRow)]
pub struct Button {
    /// The instruction.
    pub id: Uuid,
    /// The survey.
    pub campaign_id: Uuid,
    /// The version that it opens.
    pub campaign_version: i64,
    /// How far it has come.
    pub status: String,
    /// From when on it is on offer.
    pub available_at: Timestamp,
    /// Until when it is on offer.
    pub expires_at: Timestamp,
}

/// A person's buttons, also those that are on offer no longer; the newest first.
pub async fn of_subject(tx: &mut Tx, app_id: Uuid, subject_id: Uuid) -> Result<Vec<Button>> {
    tx.sql(
        "SELECT id, campaign_id, campaign_version, status, available_at, expires_at FROM instructions
         WHERE app_id = $1 AND subject_id = $2 AND kind = 'feedback' AND suppressed_by IS NULL ORDER BY position DESC",
    )
    .bind(app_id)
    .bind(subject_id)
    .fetch_all()
    .await
}

/// Those of some surveys that a person has completed.
pub async fn completed(
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Uuid,
    surveys: &[Uuid],
) -> Result<Vec<Uuid>> {
    if surveys.is_empty() {
        return Ok(Vec::new());
    }
    tx.sql("SELECT DISTINCT survey_id FROM survey_attempts WHERE app_id = $1 AND subject_id = $2 AND completed_at IS NOT NULL AND survey_id IN ")
        .bind(app_id)
        .bind(subject_id)
        .push_list(surveys.iter().copied())
        .fetch_values()
        .await
}

/// Gives a person's next instruction its position. The subject is locked.
pub async fn next_position(tx: &mut Tx, app_id: Uuid, subject_id: Uuid) -> Result<i64> {
    tx.sql(
        "UPDATE subjects SET instruction_count = instruction_count + 1, version = version + 1
         WHERE app_id = $1 AND id = $2",
    )
    .bind(app_id)
    .bind(subject_id)
    .execute()
    .await?;
    tx.sql("SELECT instruction_count FROM subjects WHERE app_id = $1 AND id = $2")
        .bind(app_id)
        .bind(subject_id)
        .fetch_scalar()
        .await
}

/// Until when buttons are on offer.
pub async fn set_expiry(tx: &mut Tx, app_id: Uuid, ids: &[Uuid], at: Timestamp) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    tx.sql("UPDATE instructions SET expires_at = $2 WHERE app_id = $1 AND kind = 'feedback' AND id IN ")
        .bind(app_id)
        .bind(at)
        .push_list(ids.iter().copied())
        .execute()
        .await?;
    Ok(())
}

/// A button that is offered again.
#[derive(Clone, Copy, Debug)]
pub struct Again {
    /// The instruction.
    pub id: Uuid,
    /// Its new place among the person's.
    pub position: i64,
    /// The version that it opens.
    pub campaign_version: i64,
    /// Which comes first; higher first.
    pub priority: i32,
    /// From when on it is on offer.
    pub available_at: Timestamp,
    /// Until when.
    pub expires_at: Timestamp,
}

/// Offers a button again, after everything that the person has.
pub async fn offer_again(tx: &mut Tx, app_id: Uuid, again: Again) -> Result<()> {
    tx.sql(
        "UPDATE instructions SET position = $3, campaign_version = $4, priority = $5, available_at = $6, expires_at = $7
         WHERE app_id = $1 AND id = $2 AND kind = 'feedback'",
    )
    .bind(app_id)
    .bind(again.id)
    .bind(again.position)
    .bind(again.campaign_version)
    .bind(i64::from(again.priority))
    .bind(again.available_at)
    .bind(again.expires_at)
    .execute()
    .await?;
    Ok(())
}
