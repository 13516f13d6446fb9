//! Beacons in the database: columns of their deliveries.

use nudge_db::{Result, Tx};
use uuid::Uuid;

use super::{Beacon, Type};
use crate::push::deliveries::Status;

/// A delivery that a beacon was the first of its type for.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct Found {
    pub campaign_id: Uuid,
    pub variant_id: Uuid,
    pub platform: Option<String>,
    pub test: bool,
}

#[derive(sqlx::FromRow)]
struct IdRow {
    id: Uuid,
}

/// Notes a beacon; none where it is not the first of its type, or there is no such delivery that was sent to the
/// subject. The status goes forward only.
pub(super) async fn note(
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Uuid,
    beacon: &Beacon,
) -> Result<Option<Found>> {
    let (column, unless_there) = match beacon.kind {
        Type::Displayed => (
            "UPDATE deliveries SET displayed_at = ",
            " AND displayed_at IS NULL RETURNING campaign_id, variant_id, platform, test",
        ),
        Type::Opened => (
            "UPDATE deliveries SET opened_at = ",
            " AND opened_at IS NULL RETURNING campaign_id, variant_id, platform, test",
        ),
        Type::Clicked => (
            "UPDATE deliveries SET clicked_at = ",
            " AND clicked_at IS NULL RETURNING campaign_id, variant_id, platform, test",
        ),
        Type::Dismissed => (
            "UPDATE deliveries SET dismissed_at = ",
            " AND dismissed_at IS NULL RETURNING campaign_id, variant_id, platform, test",
        ),
    };
    let status = beacon.kind.status();
    tx.sql(column)
        .push_bind(beacon.at)
        .push(", status = CASE WHEN status IN ")
        .push_list(status.earlier().map(Status::name))
        .push(" THEN ")
        .push_bind(status.name())
        .push(" ELSE status END WHERE app_id = ")
        .push_bind(app_id)
        .push(" AND id = ")
        .push_bind(beacon.delivery_id)
        .push(" AND subject_id = ")
        .push_bind(subject_id)
        .push(" AND sent_at IS NOT NULL")
        .push(unless_there)
        .fetch_optional()
        .await
}

/// Whether a delivery was sent to a subject.
pub(super) async fn exists(
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Uuid,
    delivery_id: Uuid,
) -> Result<bool> {
    let row: Option<IdRow> = tx
        .sql(
            "SELECT id FROM deliveries
             WHERE app_id = $1 AND id = $2 AND subject_id = $3 AND sent_at IS NOT NULL",
        )
        .bind(app_id)
        .bind(delivery_id)
        .bind(subject_id)
        .fetch_optional()
        .await?;
    Ok(row.is_some_and(|row| row.id == delivery_id))
}
