//! Deliveries in the database.

mod broken;
mod counts;

use std::collections::{HashMap, HashSet};

use nudge_db::{Error, IS, Result, Rows, Timestamp, Tx};
use uuid::Uuid;

pub use broken::{BrokenRow, broken, end_otherwise, queue_again};
pub(super) use counts::count;
pub use counts::{HourCount, counts_between, stats};

use super::{NewDelivery, Status};
use nudge_campaigns::push::rendered::Rendered;
use nudge_platform::hidden;

/// Which deliveries a list shows.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Of this campaign.
    pub campaign_id: Option<Uuid>,
    /// To this person.
    pub subject_id: Option<Uuid>,
    /// In this status.
    pub status: Option<Status>,
    /// Made at or after.
    pub from: Option<Timestamp>,
    /// Made before.
    pub to: Option<Timestamp>,
}

/// A delivery as it is shown.
#[derive(Clone, Debug, nudge_db::FromRow)]
pub struct DeliveryRow {
    /// Its id.
    pub id: Uuid,
    /// Its campaign.
    pub campaign_id: Uuid,
    /// Its variant.
    pub variant_id: Uuid,
    /// Whom it is for.
    pub subject_id: Uuid,
    /// Whether somebody tries the campaign out.
    pub test: bool,
    /// How many devices it was for when it was asked for.
    pub recipients: i64,
    /// Where it stands.
    pub status: String,
    /// Why.
    pub reason: Option<String>,
    /// What it says, as JSON, once that is known.
    pub content: Option<String>,
    /// How often providers were asked to take it.
    pub attempts: i64,
    /// When it was made.
    pub created_at: Timestamp,
    sent_at: Option<Timestamp>,
    delivered_at: Option<Timestamp>,
    displayed_at: Option<Timestamp>,
    opened_at: Option<Timestamp>,
    clicked_at: Option<Timestamp>,
    dismissed_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
    /// What was clicked of it.
    pub action_id: Option<String>,
}

impl DeliveryRow {
    /// The states that it came into, in that order.
    pub fn transitions(&self) -> Vec<(&str, Timestamp)> {
        let mut transitions = vec![("queued", Some(self.created_at))];
        transitions.extend([
            ("sent", self.sent_at),
            ("delivered", self.delivered_at),
            ("displayed", self.displayed_at),
            ("dismissed", self.dismissed_at),
            ("opened", self.opened_at),
            ("clicked", self.clicked_at),
        ]);
        // Where a device reported it nevertheless, its end is no longer what it is called by.
        let ends = ["failed", "bounced", "skipped", "cancelled"];
        if ends.contains(&self.status.as_str()) {
            transitions.push((&self.status, self.ended_at));
        }
        let mut transitions: Vec<(&str, Timestamp)> = transitions
            .into_iter()
            .filter_map(|(status, at)| Some((status, at?)))
            .collect();
        // Stable: of one moment, in the order above.
        transitions.sort_by_key(|(_, at)| *at);
        transitions
    }
}

/// What a person is called in webhooks.
#[derive(Clone, Debug, nudge_db::FromRow)]
pub struct Name {
    id: Uuid,
    /// The customer's own id.
    pub external_id: Option<String>,
    /// The oldest anonymous id.
    pub anonymous_id: Option<String>,
}

pub(super) fn written(content: &Rendered) -> Result<String> {
    serde_json::to_string(content).map_err(|cause| Error::corrupt("deliveries", "content", cause))
}

/// Deliveries as rows of [`insert`].
fn rows(chunk: &[NewDelivery], now: Timestamp) -> Result<Rows> {
    let mut contents = Vec::with_capacity(chunk.len());
    for delivery in chunk {
        contents.push(delivery.content.as_ref().map(written).transpose()?);
    }
    let ended = |delivery: &NewDelivery| delivery.status != Status::Queued;
    Ok(Rows::new()
        .uuids(chunk.iter().map(|delivery| delivery.id))
        .uuids(chunk.iter().map(|delivery| delivery.campaign_id))
        .integers(chunk.iter().map(|delivery| delivery.campaign_version))
        .uuids(chunk.iter().map(|delivery| delivery.variant_id))
        .uuids(chunk.iter().map(|delivery| delivery.subject_id))
        .integers(
            chunk
                .iter()
                .map(|delivery| delivery.event.map(|event| event.alias)),
        )
        .integers(
            chunk
                .iter()
                .map(|delivery| delivery.event.map(|event| event.seq)),
        )
        .uuids(
            chunk
                .iter()
                .map(|delivery| delivery.event.map(|event| event.id)),
        )
        .texts(chunk.iter().map(|delivery| delivery.data.clone()))
        .texts(
            chunk
                .iter()
                .map(|delivery| delivery.idempotency_key.clone()),
        )
        .booleans(chunk.iter().map(|delivery| delivery.test))
        .integers(chunk.iter().map(|delivery| delivery.recipients))
        .texts(
            chunk
                .iter()
                .map(|delivery| delivery.status.name().to_owned()),
        )
        .texts(chunk.iter().map(|delivery| delivery.reason.clone()))
        .texts(contents)
        .integers(chunk.iter().map(|delivery| delivery.urgency.number()))
        .uuids(chunk.iter().map(|delivery| delivery.node))
        .timestamps(
            chunk
                .iter()
                .map(|delivery| (!ended(delivery)).then_some(now)),
        )
        .timestamps(chunk.iter().map(|delivery| ended(delivery).then_some(now))))
}

/// Adds deliveries, but for those whose id or idempotency key is there already; answers the ids of those that are
/// new.
pub async fn insert(
    tx: &mut Tx,
    app_id: Uuid,
    deliveries: &[NewDelivery],
    now: Timestamp,
) -> Result<HashSet<Uuid>> {
    let mut inserted = HashSet::with_capacity(deliveries.len());
    for chunk in deliveries.chunks(Rows::MOST) {
        let rows = rows(chunk, now)?;
        let rows: Vec<Uuid> = tx
            .with_rows(
                "v(id, campaign_id, campaign_version, variant_id, subject_id, alias_number, event_seq, event_id, data,
                   idempotency_key, test, recipients, status, reason, content, lane, node, due_at, ended_at)",
                rows,
            )
            .push(
                " INSERT INTO deliveries (id, campaign_id, campaign_version, variant_id, subject_id, alias_number,
                                          event_seq, event_id, data, idempotency_key, test, recipients, status,
                                          reason, content, lane, node, due_at, ended_at, attempts, app_id, created_at)
                  SELECT v.id, v.campaign_id, v.campaign_version, v.variant_id, v.subject_id, v.alias_number,
                         v.event_seq, v.event_id, v.data, v.idempotency_key, v.test, v.recipients, v.status,
                         v.reason, v.content, v.lane, v.node, v.due_at, v.ended_at, 0, ",
            )
            .push_bind(app_id)
            .push(", ")
            .push_bind(now)
            .push(" FROM v WHERE true ON CONFLICT DO NOTHING RETURNING id")
            .fetch_values()
            .await?;
        inserted.extend(rows);
    }
    Ok(inserted)
}

/// What people are called in webhooks.
pub async fn names(tx: &mut Tx, app_id: Uuid, subjects: &[Uuid]) -> Result<HashMap<Uuid, Name>> {
    let mut subjects = subjects.to_vec();
    subjects.sort_unstable();
    subjects.dedup();
    let mut names = HashMap::new();
    for chunk in subjects.chunks(Rows::MOST) {
        let rows: Vec<Name> = tx
            .with_rows("v(id)", Rows::new().uuids(chunk.iter().copied()))
            .push(
                " SELECT s.id, s.external_id,
                         (SELECT a.value FROM aliases a WHERE a.subject_id = s.id AND a.kind = 'anonymous'
                          ORDER BY a.number LIMIT 1) AS anonymous_id
                  FROM v JOIN subjects s ON s.id = v.id WHERE s.app_id",
            )
            .push(IS)
            .push_bind(app_id)
            .fetch_all()
            .await?;
        names.extend(rows.into_iter().map(|row| (row.id, row)));
    }
    Ok(names)
}

const COLUMNS: &str = "SELECT id, campaign_id, variant_id, subject_id, test, recipients, status, reason, content,
    attempts, created_at, sent_at, delivered_at, displayed_at, opened_at, clicked_at, dismissed_at, ended_at,
    action_id FROM deliveries WHERE app_id = $1 AND status <> 'kept'";

/// Finds a delivery.
pub async fn find(tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<Option<DeliveryRow>> {
    let statement = tx
        .sql(COLUMNS)
        .bind(app_id)
        .push(" AND id = ")
        .push_bind(id);
    statement.fetch_optional().await
}

/// Finds a delivery by its idempotency key.
pub async fn find_by_key(tx: &mut Tx, app_id: Uuid, key: &str) -> Result<Option<DeliveryRow>> {
    let statement = tx.sql(COLUMNS).bind(app_id).push(" AND idempotency_key = ");
    statement.push_bind(key.to_owned()).fetch_optional().await
}

/// Lists deliveries, the newest first, from before a place on; none to anybody who is being deleted.
pub async fn list(
    tx: &mut Tx,
    app_id: Uuid,
    filter: &Filter,
    before: Option<(Timestamp, Uuid)>,
    limit: i64,
) -> Result<Vec<DeliveryRow>> {
    let mut statement = tx.sql(COLUMNS).bind(app_id);
    statement = statement
        .push(" AND subject_id NOT IN ")
        .push(hidden::SUBJECTS);
    if let Some(campaign_id) = filter.campaign_id {
        statement = statement.push(" AND campaign_id = ").push_bind(campaign_id);
    }
    if let Some(subject_id) = filter.subject_id {
        statement = statement.push(" AND subject_id = ").push_bind(subject_id);
    }
    if let Some(status) = filter.status {
        statement = statement.push(" AND status = ").push_bind(status.name());
    }
    if let Some(from) = filter.from {
        statement = statement.push(" AND created_at >= ").push_bind(from);
    }
    if let Some(to) = filter.to {
        statement = statement.push(" AND created_at < ").push_bind(to);
    }
    if let Some((at, id)) = before {
        statement = statement.push(" AND (created_at, id) < ").push_pair(at, id);
    }
    statement
        .push(" ORDER BY created_at DESC, id DESC LIMIT ")
        .push_bind(limit)
        .fetch_all()
        .await
}

/// Some deliveries of a person, the oldest first, from after a place on.
pub async fn of_subject(
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Uuid,
    after: Option<(Timestamp, Uuid)>,
    limit: i64,
) -> Result<Vec<DeliveryRow>> {
    let (at, id) = after.unwrap_or((Timestamp(i64::MIN), Uuid::nil()));
    tx.sql(COLUMNS)
        .bind(app_id)
        .push(" AND subject_id = ")
        .push_bind(subject_id)
        .push(" AND (created_at, id) > ")
        .push_pair(at, id)
        .push(" ORDER BY created_at, id LIMIT ")
        .push_bind(limit)
        .fetch_all()
        .await
}

/// Cancels queued deliveries of a campaign, some at a time; answers those that were cancelled. One that was handed
/// over meanwhile is not queued any longer.
pub async fn cancel(
    tx: &mut Tx,
    app_id: Uuid,
    campaign_id: Uuid,
    limit: i64,
    now: Timestamp,
) -> Result<Vec<CancelledRow>> {
    tx.sql(
        "UPDATE deliveries SET status = 'cancelled', reason = 'campaign_deleted', due_at = NULL, node = NULL,
                               data = NULL, ended_at = $4
         WHERE id IN (SELECT id FROM deliveries WHERE app_id = $1 AND campaign_id = $2 AND status = 'queued' LIMIT $3)
           AND status = 'queued' RETURNING id, variant_id, subject_id, test",
    )
    .bind(app_id)
    .bind(campaign_id)
    .bind(limit)
    .bind(now)
    .fetch_all()
    .await
}

/// A delivery that was cancelled.
#[derive(Debug, nudge_db::FromRow)]
pub struct CancelledRow {
    /// Its id.
    pub id: Uuid,
    /// Its variant.
    pub variant_id: Uuid,
    /// Whom it was for.
    pub subject_id: Uuid,
    /// Whether somebody tried the campaign out.
    pub test: bool,
}

/// Has the sender look at the queued deliveries of a campaign that wait because it was paused.
pub async fn resume(tx: &mut Tx, app_id: Uuid, campaign_id: Uuid, now: Timestamp) -> Result<u64> {
    tx.sql(
        "UPDATE deliveries SET due_at = $3
         WHERE app_id = $1 AND campaign_id = $2 AND status = 'queued' AND due_at IS NULL",
    )
    .bind(app_id)
    .bind(campaign_id)
    .bind(now)
    .execute()
    .await
}

/// The status of a delivery that only counts any longer: nothing shows it.
pub const KEPT: &str = "kept";

/// A delivery that is past its retention.
#[derive(Clone, Debug, nudge_db::FromRow)]
pub struct OldRow {
    /// Its id.
    pub id: Uuid,
    /// Its campaign.
    pub campaign_id: Uuid,
    /// When it was made.
    pub created_at: Timestamp,
    status: String,
    test: bool,
}

impl OldRow {
    /// Whether caps and pauses count it. One that waits still is not going to be sent.
    pub fn counts(&self) -> bool {
        let never = ["queued", "skipped", "cancelled", "failed", "bounced"];
        !self.test && !never.contains(&self.status.as_str())
    }
}

/// Deliveries of an app in a status that were made before an instant and are done with, the oldest first, from after a
/// place on.
pub async fn old(
    tx: &mut Tx,
    (app_id, status): (Uuid, &'static str),
    (after, after_id): (Timestamp, Uuid),
    before: Timestamp,
    limit: usize,
) -> Result<Vec<OldRow>> {
    tx.sql(
        "SELECT id, campaign_id, created_at, status, test FROM deliveries
         WHERE app_id = $1 AND status = $2 AND (created_at, id) > ($3, $4) AND created_at < $5 AND due_at IS NULL
         ORDER BY created_at, id LIMIT $6",
    )
    .bind(app_id)
    .bind(status)
    .bind(after)
    .bind(after_id)
    .bind(before)
    .bind(i64::try_from(limit).unwrap_or(i64::MAX))
    .fetch_all()
    .await
}

/// Removes deliveries of an app that are done with.
pub async fn delete_done(
    tx: &mut Tx,
    app_id: Uuid,
    ids: impl Iterator<Item = Uuid>,
) -> Result<u64> {
    tx.sql("DELETE FROM deliveries WHERE (app_id = $1) IS TRUE AND due_at IS NULL AND id IN ")
        .bind(app_id)
        .push_list(ids)
        .execute()
        .await
}

/// Leaves of deliveries of an app what counts: to whom, of what, and when what became of them.
pub async fn keep(tx: &mut Tx, app_id: Uuid, ids: impl Iterator<Item = Uuid>) -> Result<u64> {
    tx.sql(
        "UPDATE deliveries SET status = 'kept', reason = NULL, content = NULL, data = NULL, devices = NULL,
                               platform = NULL, idempotency_key = NULL, action_id = NULL, event_id = NULL,
                               event_seq = NULL, alias_number = NULL
         WHERE (app_id = $1) IS TRUE AND due_at IS NULL AND id IN ",
    )
    .bind(app_id)
    .push_list(ids)
    .execute()
    .await
}
