//! What the sender reads and writes.

use std::collections::{BTreeSet, HashMap, HashSet};

use nudge_campaigns::campaign::Status as CampaignStatus;
use nudge_db::{Error, IS, Result, Rows, Statement, Timestamp, Tx};
use nudge_platform::claims::Claims;
use nudge_records::deliveries::Urgency;
use nudge_records::deliveries::in_hand::ClaimedDelivery;
use uuid::Uuid;

/// What is written of a delivery before it is handed over.
#[derive(Clone, Debug)]
pub(super) struct HandOver {
    pub id: Uuid,
    /// How often it had been handed over when it was claimed.
    pub attempts: i64,
    pub content: String,
    pub devices: String,
    pub platform: Option<String>,
}

/// What is written of a delivery that this process is done with for now.
#[derive(Clone, Debug)]
pub(super) struct Settled {
    pub id: Uuid,
    /// How often it had been handed over when this became of it.
    pub attempts: i64,
    /// The status that it comes into, unless it is further already; none: it stays.
    pub status: Option<&'static str>,
    pub reason: Option<String>,
    /// None: as they are.
    pub devices: Option<String>,
    pub platform: Option<String>,
    pub due_at: Option<Timestamp>,
    pub delivered_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
    /// Whether the data of the request is still needed.
    pub keeps_data: bool,
}

/// A delivery after it was handed over or settled. Whose it is may have changed: people become one.
#[derive(Debug, nudge_db::FromRow)]
pub(super) struct After {
    pub id: Uuid,
    pub subject_id: Uuid,
    pub status: String,
}

/// The next app after one that has deliveries for the sender, now or later.
pub(super) async fn next_app(tx: &mut Tx, after: Uuid) -> Result<Option<Uuid>> {
    tx.sql(
        "SELECT app_id FROM deliveries WHERE due_at IS NOT NULL AND node IS NULL AND app_id > $1
             ORDER BY app_id LIMIT 1",
    )
    .bind(after)
    .fetch_value()
    .await
}

/// Lets deliveries of an app be sent now that are due after `latest`. Answers of how many it did so; there may be more.
pub(super) async fn advance(
    tx: &mut Tx,
    app_id: Uuid,
    now: Timestamp,
    latest: Timestamp,
) -> Result<u64> {
    let skip_locked = tx.dialect().skip_locked();
    tx.sql(
        "UPDATE deliveries SET due_at = $2 WHERE id IN (
            SELECT id FROM deliveries
            WHERE app_id = $1 AND due_at IS NOT NULL AND due_at > $3 AND node IS NULL LIMIT 500",
    )
    .bind(app_id)
    .bind(now)
    .bind(latest)
    .push(skip_locked)
    .push(")")
    .execute()
    .await
}

/// The columns of [`After`].
const RETURNING: &str = " RETURNING deliveries.id AS id, deliveries.subject_id AS subject_id, deliveries.status AS status";

/// How campaigns of an app stand, and the version of the app that has them so.
#[derive(Debug, Default)]
pub(super) struct CampaignStatuses {
    pub app_version: i64,
    pub campaigns: HashMap<Uuid, CampaignStatus>,
}

/// How campaigns of an app stand now, whichever process has changed them last.
pub(super) async fn campaign_statuses(
    tx: &mut Tx,
    app_id: Uuid,
    campaigns: &BTreeSet<Uuid>,
) -> Result<CampaignStatuses> {
    let rows: Vec<(Uuid, String, i64)> = tx
        .with_rows("v(id)", Rows::new().uuids(campaigns.iter().copied()))
        .push(
            " SELECT c.id, c.status, a.version FROM v
              JOIN campaigns c ON c.id = v.id JOIN apps a ON a.id = c.app_id WHERE c.app_id = ",
        )
        .push_bind(app_id)
        .fetch_all()
        .await?;
    let mut statuses = CampaignStatuses::default();
    for (id, name, version) in rows {
        let status = CampaignStatus::parse(&name);
        let status = status.ok_or_else(|| Error::corrupt("campaigns", "status", name))?;
        statuses.campaigns.insert(id, status);
        statuses.app_version = version;
    }
    Ok(statuses)
}

/// The deliveries of people into whom another was merged after the delivery was made.
pub(super) async fn merged_since(
    tx: &mut Tx,
    app_id: Uuid,
    deliveries: &[&ClaimedDelivery],
) -> Result<HashSet<Uuid>> {
    let mut merged = HashSet::new();
    for chunk in deliveries.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|delivery| delivery.id))
            .uuids(chunk.iter().map(|delivery| delivery.subject_id))
            .timestamps(chunk.iter().map(|delivery| delivery.created_at));
        let ids: Vec<Uuid> = tx
            .with_rows("v(id, subject_id, created_at)", rows)
            .push(
                " SELECT v.id FROM v WHERE EXISTS (SELECT 1 FROM merged_subjects m
                    WHERE m.subject_id = v.subject_id AND m.merged_at >= v.created_at AND m.app_id = ",
            )
            .push_bind(app_id)
            .push(")")
            .fetch_values()
            .await?;
        merged.extend(ids);
    }
    Ok(merged)
}

/// Whether an app has a delivery of an urgency that is due and that no process has.
pub(super) async fn is_due(
    tx: &mut Tx,
    app_id: Uuid,
    urgency: Urgency,
    now: Timestamp,
) -> Result<bool> {
    let row: Option<Uuid> = tx
        .sql(
            "SELECT app_id FROM deliveries
             WHERE app_id = $1 AND lane = $2 AND due_at IS NOT NULL AND due_at <= $3 AND node IS NULL LIMIT 1",
        )
        .bind(app_id)
        .bind(urgency.number())
        .bind(now)
        .fetch_value()
        .await?;
    Ok(row.is_some())
}

/// Claims deliveries of an urgency that are due and that no process has, the oldest first.
pub(super) async fn claim(
    tx: &mut Tx,
    node: Uuid,
    app_id: Uuid,
    urgency: Urgency,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<ClaimedDelivery>> {
    let skip_locked = tx.dialect().skip_locked();
    tx.sql("UPDATE deliveries SET node = ")
        .push_bind(node)
        .push(" WHERE id IN (SELECT id FROM deliveries WHERE app_id = ")
        .push_bind(app_id)
        .push(" AND lane = ")
        .push_bind(urgency.number())
        .push(" AND due_at IS NOT NULL AND due_at <= ")
        .push_bind(now)
        .push(" AND node IS NULL ORDER BY due_at LIMIT ")
        .push_bind(limit)
        .push(skip_locked)
        .push(
            ") RETURNING id, campaign_id, campaign_version, variant_id, subject_id, alias_number, event_seq, data,
                         test, status, content, devices, platform, attempts, lane AS urgency, created_at, delivered_at",
        )
        .fetch_all()
        .await
}

/// Notes that deliveries are handed over, before they are; answers those that may be: not one that was called off,
/// erased or lost to another process meanwhile. A process that was taken for dead may have claimed a delivery anew while it
/// still has it in hand from before: once it has handed one of the two over, the other one is out of date.
pub(super) async fn hand_over(
    tx: &mut Tx,
    app_id: Uuid,
    node: Uuid,
    deliveries: &[HandOver],
    now: Timestamp,
) -> Result<Vec<After>> {
    let mut handed = Vec::with_capacity(deliveries.len());
    for chunk in deliveries.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|delivery| delivery.id))
            .integers(chunk.iter().map(|delivery| delivery.attempts))
            .texts(chunk.iter().map(|delivery| delivery.content.clone()))
            .texts(chunk.iter().map(|delivery| delivery.devices.clone()))
            .texts(chunk.iter().map(|delivery| delivery.platform.clone()));
        let statement = tx
            .with_rows("v(id, attempts, content, devices, platform)", rows)
            .push(
                " UPDATE deliveries SET content = v.content, devices = v.devices, data = NULL,
                         platform = COALESCE(deliveries.platform, v.platform), attempts = deliveries.attempts + 1,
                         status = CASE WHEN deliveries.status = 'queued' THEN 'sent' ELSE deliveries.status END,
                         sent_at = COALESCE(deliveries.sent_at, ",
            )
            .push_bind(now)
            .push(")");
        let rows: Vec<After> = still_claimed(statement, app_id, node)
            .push(" AND deliveries.status NOT IN ('cancelled', 'skipped')")
            .push(RETURNING)
            .fetch_all()
            .await?;
        handed.extend(rows);
    }
    Ok(handed)
}

/// Notes what became of deliveries, and gives them up; answers where they are now. One that was handed over once more meanwhile
/// stays as it is.
pub(super) async fn settle(
    tx: &mut Tx,
    app_id: Uuid,
    node: Uuid,
    deliveries: &[Settled],
) -> Result<Vec<After>> {
    let mut settled = Vec::with_capacity(deliveries.len());
    for chunk in deliveries.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|delivery| delivery.id))
            .integers(chunk.iter().map(|delivery| delivery.attempts))
            .texts(
                chunk
                    .iter()
                    .map(|delivery| delivery.status.map(str::to_owned)),
            )
            .texts(chunk.iter().map(|delivery| delivery.reason.clone()))
            .texts(chunk.iter().map(|delivery| delivery.devices.clone()))
            .texts(chunk.iter().map(|delivery| delivery.platform.clone()))
            .timestamps(chunk.iter().map(|delivery| delivery.due_at))
            .timestamps(chunk.iter().map(|delivery| delivery.delivered_at))
            .timestamps(chunk.iter().map(|delivery| delivery.ended_at))
            .booleans(chunk.iter().map(|delivery| delivery.keeps_data));
        // A beacon may have come before this: then it is further than the provider's answer says.
        let statement = tx
            .with_rows(
                "v(id, attempts, status, reason, devices, platform, due_at, delivered_at, ended_at, keeps_data)",
                rows,
            )
            .push(
                " UPDATE deliveries SET node = NULL, due_at = v.due_at,
                         devices = COALESCE(v.devices, deliveries.devices),
                         platform = COALESCE(v.platform, deliveries.platform),
                         data = CASE WHEN v.keeps_data THEN deliveries.data END,
                         reason = CASE WHEN deliveries.status IN ('queued', 'sent') THEN v.reason
                                       ELSE deliveries.reason END,
                         status = CASE WHEN deliveries.status IN ('queued', 'sent')
                                       THEN COALESCE(v.status, deliveries.status) ELSE deliveries.status END,
                         delivered_at = COALESCE(deliveries.delivered_at, v.delivered_at),
                         ended_at = CASE WHEN deliveries.status IN ('queued', 'sent') THEN v.ended_at
                                         ELSE deliveries.ended_at END",
            );
        let rows: Vec<After> = still_claimed(statement, app_id, node)
            .push(RETURNING)
            .fetch_all()
            .await?;
        settled.extend(rows);
    }
    Ok(settled)
}

/// Gives deliveries up until an instant; without one, until their campaign runs again. `deliveries`: their ids, and how often each had
/// been handed over when it was claimed. One that was handed over once more meanwhile stays as it is.
pub(super) async fn give_up(
    tx: &mut Tx,
    app_id: Uuid,
    node: Uuid,
    deliveries: &[(Uuid, i64)],
    until: Option<Timestamp>,
) -> Result<()> {
    for chunk in deliveries.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|(id, _)| *id))
            .integers(chunk.iter().map(|(_, attempts)| *attempts));
        let statement = tx
            .with_rows("v(id, attempts)", rows)
            .push(" UPDATE deliveries SET node = NULL, due_at = ")
            .push_bind(until);
        still_claimed(statement, app_id, node).execute().await?;
    }
    Ok(())
}

/// Appends which deliveries are changed: those of `v(id, attempts, …)` that are still as this process claimed them.
fn still_claimed(statement: Statement<'_>, app_id: Uuid, node: Uuid) -> Statement<'_> {
    statement
        .push(" FROM v WHERE deliveries.id = v.id AND deliveries.app_id")
        .push(IS)
        .push_bind(app_id)
        .push(" AND deliveries.node")
        .push(IS)
        .push_bind(node)
        .push(" AND deliveries.attempts")
        .push(IS)
        .push("v.attempts")
}

/// The claims of deliveries.
pub(super) const CLAIMS: Claims = Claims {
    rows: "deliveries",
    claimed: "SELECT id FROM deliveries WHERE node = $1 LIMIT 10000",
    table: "deliveries",
};
