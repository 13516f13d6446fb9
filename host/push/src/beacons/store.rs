//! Beacons in the database: columns of their deliveries.

use std::collections::HashMap;

use nudge_db::{Result, Timestamp, Tx};
use nudge_records::deliveries::Status;
use uuid::Uuid;

use super::{Beacon, Type};

/// A delivery that a beacon was the first of its type for.
#[derive(Debug, nudge_db::FromRow)]
pub(super) struct FirstBeacon {
    pub campaign_id: Uuid,
    pub variant_id: Uuid,
    pub platform: Option<String>,
    pub test: bool,
}

/// What is noted of a delivery to a subject.
#[derive(Debug, nudge_db::FromRow)]
pub(super) struct Noted {
    id: Uuid,
    sent_at: Timestamp,
    displayed_at: Option<Timestamp>,
    opened_at: Option<Timestamp>,
    clicked_at: Option<Timestamp>,
    dismissed_at: Option<Timestamp>,
}

impl Noted {
    /// A beacon as it is to be noted; none where one of its type is there already. Nothing is done with a message before
    /// it is sent, whatever the device's clock says.
    pub(super) fn news(&self, beacon: &Beacon) -> Option<Beacon> {
        (!self.has(beacon.kind)).then(|| Beacon {
            at: beacon.at.max(self.sent_at),
            ..beacon.clone()
        })
    }

    fn has(&self, kind: Type) -> bool {
        let column = match kind {
            Type::Displayed => self.displayed_at,
            Type::Opened => self.opened_at,
            Type::Clicked => self.clicked_at,
            Type::Dismissed => self.dismissed_at,
        };
        column.is_some()
    }
}

/// What is noted of the deliveries that beacons are about, of those that were sent to the subject.
pub(super) async fn known(
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Uuid,
    beacons: &[Beacon],
) -> Result<HashMap<Uuid, Noted>> {
    let rows: Vec<Noted> = tx
        .sql(
            "SELECT id, sent_at, displayed_at, opened_at, clicked_at, dismissed_at FROM deliveries
             WHERE app_id = $1 AND subject_id = $2 AND sent_at IS NOT NULL AND status <> 'kept' AND id IN ",
        )
        .bind(app_id)
        .bind(subject_id)
        .push_list(beacons.iter().map(|beacon| beacon.delivery_id))
        .fetch_all()
        .await?;
    Ok(rows.into_iter().map(|row| (row.id, row)).collect())
}

/// Notes a beacon; none where it is not the first of its type, or there is no such delivery that was sent to the
/// subject. The status goes forward only.
pub(super) async fn note(
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Uuid,
    beacon: &Beacon,
) -> Result<Option<FirstBeacon>> {
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
    let action_id = beacon.action_id.clone();
    let action_id = action_id.filter(|_| beacon.kind == Type::Clicked);
    tx.sql(column)
        .push_bind(beacon.at)
        .push(", action_id = COALESCE(action_id, ")
        .push_bind(action_id)
        .push(")")
        .push(", status = CASE WHEN status IN ")
        .push_list(status.earlier().map(Status::name))
        .push(" THEN ")
        .push_bind(status.name())
        .push(" ELSE status END")
        // The reason of an end that it does not have any longer.
        .push(", reason = CASE WHEN status IN ")
        .push_list(status.earlier().map(Status::name))
        .push(" THEN NULL ELSE reason END WHERE app_id = ")
        .push_bind(app_id)
        .push(" AND id = ")
        .push_bind(beacon.delivery_id)
        .push(" AND subject_id = ")
        .push_bind(subject_id)
        .push(" AND sent_at IS NOT NULL AND status <> 'kept'")
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
    let row: Option<Uuid> = tx
        .sql(
            "SELECT id FROM deliveries
             WHERE app_id = $1 AND id = $2 AND subject_id = $3 AND sent_at IS NOT NULL AND status <> 'kept'",
        )
        .bind(app_id)
        .bind(delivery_id)
        .bind(subject_id)
        .fetch_value()
        .await?;
    Ok(row.is_some_and(|row| row == delivery_id))
}
