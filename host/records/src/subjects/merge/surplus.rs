//! What two people were offered of one campaign, and one would not have been: what is beyond `once` and beyond the campaign's own cap
//! is on offer no longer (contract 2: caps are united).

use std::time::Duration;

use nudge_campaigns::targeting::FrequencyCap;
use nudge_db::{Error, Result, Timestamp, Tx};
use serde_json::Value;
use uuid::Uuid;

/// How many one person gets of a campaign, and in what time; without a time, ever.
type Limit = (u32, Option<Duration>);

#[derive(nudge_db::FromRow)]
struct Offer {
    id: Uuid,
    displayed_at: Option<Timestamp>,
}

/// Instructions that count for caps; a button is none until it opens something.
const COUNTS: &str =
    "kind IN ('survey', 'in_app') AND suppressed_by IS NULL AND NOT test AND status <> 'discarded'";

/// The campaigns of which both have instructions.
pub(super) async fn campaigns(
    tx: &mut Tx,
    app_id: Uuid,
    winner: Uuid,
    loser: Uuid,
) -> Result<Vec<Uuid>> {
    let of = "SELECT campaign_id FROM instructions WHERE app_id = $1 AND subject_id = ";
    tx.sql(of)
        .bind(app_id)
        .push_bind(winner)
        .push(" AND ")
        .push(COUNTS)
        .push(" INTERSECT ")
        .push(of)
        .push_bind(loser)
        .push(" AND ")
        .push(COUNTS)
        .fetch_values()
        .await
}

/// Takes off offer what is beyond the limits of campaigns, the newest first. All instructions are the winner's by now.
pub(super) async fn withdraw(
    tx: &mut Tx,
    app_id: Uuid,
    winner: Uuid,
    campaigns: &[Uuid],
    now: Timestamp,
) -> Result<()> {
    for campaign_id in campaigns {
        let newest = newest(tx, app_id, *campaign_id).await?;
        let Some(limit) = newest.as_ref().and_then(limit) else {
            continue;
        };
        let surplus = surplus(tx, app_id, winner, *campaign_id, limit, now).await?;
        tx.sql(
            "UPDATE instructions SET status = 'suppressed', suppressed_by = 'frequency_cap', status_at = $2, counted_at = NULL
             WHERE app_id = $1 AND id IN ",
        )
        .bind(app_id)
        .bind(now)
        .push_list(surplus)
        .execute()
        .await?;
    }
    Ok(())
}

/// What is on offer of a campaign beyond its limit. What was displayed counts first, then what came first.
async fn surplus(
    tx: &mut Tx,
    app_id: Uuid,
    winner: Uuid,
    campaign_id: Uuid,
    (most, window): Limit,
    now: Timestamp,
) -> Result<Vec<Uuid>> {
    let since = window.map_or(Timestamp(i64::MIN), |window| now.minus(window));
    let offers: Vec<Offer> = tx
        .sql(
            "SELECT id, displayed_at FROM instructions
             WHERE app_id = $1 AND subject_id = $2 AND campaign_id = $3
               AND (displayed_at > $4 OR displayed_at IS NULL AND status IN ('issued', 'received') AND expires_at > $5) AND ",
        )
        .bind(app_id)
        .bind(winner)
        .bind(campaign_id)
        .bind(since)
        .bind(now)
        .push(COUNTS)
        .push(" ORDER BY position")
        .fetch_all()
        .await?;
    let (displayed, open): (Vec<Offer>, Vec<Offer>) = offers
        .into_iter()
        .partition(|offer| offer.displayed_at.is_some());
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let left = most.saturating_sub(displayed.len());
    Ok(open.into_iter().skip(left).map(|offer| offer.id).collect())
}

/// The newest version of a campaign.
pub(super) async fn newest(tx: &mut Tx, app_id: Uuid, campaign_id: Uuid) -> Result<Option<Value>> {
    let body: Option<String> = tx
        .sql(
            "SELECT body FROM campaign_versions WHERE app_id = $1 AND campaign_id = $2
             ORDER BY version DESC LIMIT 1",
        )
        .bind(app_id)
        .bind(campaign_id)
        .fetch_value()
        .await?;
    body.map(|body| serde_json::from_str(&body))
        .transpose()
        .map_err(|cause| Error::corrupt("campaign_versions", "body", cause))
}

/// Whether a campaign fires once for a person.
pub(super) fn is_once(body: &Value) -> bool {
    let mode = body.pointer("/trigger/occurrence/mode");
    mode.and_then(Value::as_str) == Some("once")
}

/// What a campaign says of how many one person gets.
fn limit(body: &Value) -> Option<Limit> {
    if is_once(body) {
        return Some((1, None));
    }
    // What was saved could be read.
    let cap = FrequencyCap::read(body.get("frequencyCap"), "");
    cap.ok().and_then(|cap| cap.per_subject)
}
