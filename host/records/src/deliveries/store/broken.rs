//! Deliveries that a plugin failed on, and what becomes of them when they are made again.

use nudge_campaigns::push::rendered::Rendered;
use nudge_db::{Result, Timestamp, Tx};
use uuid::Uuid;

use super::written;

/// A delivery that a plugin failed on.
#[derive(Clone, Debug, nudge_db::FromRow)]
pub struct BrokenRow {
    /// Its id.
    pub id: Uuid,
    /// Its campaign.
    pub campaign_id: Uuid,
    /// The campaign's version that fired.
    pub campaign_version: i64,
    /// Its variant.
    pub variant_id: Uuid,
    /// Whom it is for.
    pub subject_id: Uuid,
    /// The data of the request that asked for it, as JSON.
    pub data: Option<String>,
    /// Whether somebody tries the campaign out.
    pub test: bool,
}

/// The deliveries of a campaign and event, by alias and id, that a plugin failed on. What a backend asked for has no event: there
/// the id is the delivery's.
pub async fn broken(
    tx: &mut Tx,
    app_id: Uuid,
    campaign_id: Uuid,
    event: (i64, Uuid),
    limit: i64,
) -> Result<Vec<BrokenRow>> {
    tx.sql(
        "SELECT d.id, d.campaign_id, d.campaign_version, d.variant_id, d.subject_id, d.data, d.test
         FROM aliases a JOIN deliveries d ON d.subject_id = a.subject_id
         WHERE a.number = $3 AND d.app_id = $1 AND d.campaign_id = $2
           AND (d.alias_number = $3 AND d.event_id = $4 OR d.event_id IS NULL AND d.id = $4)
           AND d.status = 'failed' AND d.reason = 'plugin_error' ORDER BY d.created_at, d.id LIMIT $5",
    )
    .bind(app_id)
    .bind(campaign_id)
    .bind(event.0)
    .bind(event.1)
    .bind(limit)
    .fetch_all()
    .await
}

/// Queues a delivery that a plugin had failed on, with what it says; answers whether it still was that.
pub async fn queue_again(
    tx: &mut Tx,
    app_id: Uuid,
    id: Uuid,
    content: &Rendered,
    now: Timestamp,
) -> Result<bool> {
    let queued = tx
        .sql(
            "UPDATE deliveries SET status = 'queued', reason = NULL, content = $3, data = NULL, due_at = $4,
                                   node = NULL, ended_at = NULL
             WHERE app_id = $1 AND id = $2 AND status = 'failed' AND reason = 'plugin_error'",
        )
        .bind(app_id)
        .bind(id)
        .bind(written(content)?)
        .bind(now)
        .execute()
        .await?;
    Ok(queued == 1)
}

/// Notes that a delivery which a plugin had failed on ended otherwise: status and reason.
pub async fn end_otherwise(
    tx: &mut Tx,
    app_id: Uuid,
    id: Uuid,
    ended: (&'static str, &'static str),
    now: Timestamp,
) -> Result<bool> {
    let changed = tx
        .sql(
            "UPDATE deliveries SET status = $3, reason = $4, data = NULL, ended_at = $5
             WHERE app_id = $1 AND id = $2 AND status = 'failed' AND reason = 'plugin_error'",
        )
        .bind(app_id)
        .bind(id)
        .bind(ended.0)
        .bind(ended.1)
        .bind(now)
        .execute()
        .await?;
    Ok(changed == 1)
}
