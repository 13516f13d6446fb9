//! Runs in the database.

use nudge_db::{Error, Result, Timestamp, Tx};
use uuid::Uuid;

use super::Campaign;
use super::calendar::{Plan, Run};
use crate::campaign::Kind;

/// Occasions that one statement moves or removes.
pub const STEP: i64 = 500;

/// A row of `campaign_runs`.
#[derive(nudge_db::FromRow)]
pub struct Row {
    campaign_id: Uuid,
    app_id: Uuid,
    kind: String,
    plan: Option<String>,
    next_at: Option<Timestamp>,
    next_occasion: Option<Timestamp>,
    last_at: Option<Timestamp>,
    job_id: Option<Uuid>,
}

/// When a campaign runs.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The campaign.
    pub campaign_id: Uuid,
    /// Its app.
    pub app_id: Uuid,
    /// What it is.
    pub kind: Kind,
    /// When it runs; none: no longer by the calendar.
    pub plan: Option<Plan>,
    /// Its next run.
    pub next: Option<Run>,
    /// The occasion of its newest run.
    pub last_at: Option<Timestamp>,
    /// The job of that.
    pub job_id: Option<Uuid>,
}

impl Row {
    /// The run that the row stores.
    pub fn read(self) -> Result<Planned> {
        let corrupt =
            |column, cause: serde_json::Error| Error::corrupt("campaign_runs", column, cause);
        let kind = Kind::parse(&self.kind)
            .ok_or_else(|| corrupt("kind", serde::de::Error::custom("an unknown kind")))?;
        let plan = self
            .plan
            .map(|plan| serde_json::from_str(&plan).map_err(|cause| corrupt("plan", cause)));
        let next = self.next_at.zip(self.next_occasion);
        Ok(Planned {
            campaign_id: self.campaign_id,
            app_id: self.app_id,
            kind,
            plan: plan.transpose()?,
            next: next.map(|(begins_at, occasion)| Run {
                occasion,
                begins_at,
            }),
            last_at: self.last_at,
            job_id: self.job_id,
        })
    }
}

/// A plan as its column stores it.
pub fn text(plan: &Plan) -> Result<String> {
    serde_json::to_string(plan).map_err(|cause| Error::corrupt("campaign_runs", "plan", cause))
}

/// A campaign's row, which nobody else changes until the transaction ends.
pub async fn lock(tx: &mut Tx, app_id: Uuid, campaign_id: Uuid) -> Result<Option<Planned>> {
    let for_update = tx.dialect().for_update();
    let row: Option<Row> = tx
        .sql(
            "SELECT campaign_id, app_id, kind, plan, next_at, next_occasion, last_at, job_id
             FROM campaign_runs WHERE app_id = $1 AND campaign_id = $2",
        )
        .bind(app_id)
        .bind(campaign_id)
        .push(for_update)
        .fetch_optional()
        .await?;
    row.map(Row::read).transpose()
}

/// Campaigns of all apps whose newest run or next one is later than an instant, in order of their ids, from after one on. A row
/// that can't be read is no other campaign's trouble.
pub async fn later_than(
    tx: &mut Tx,
    latest: Timestamp,
    after: Uuid,
    limit: i64,
) -> Result<Vec<(Uuid, Result<Planned>)>> {
    let rows: Vec<Row> = tx
        .sql(
            "SELECT campaign_id, app_id, kind, plan, next_at, next_occasion, last_at, job_id
             FROM campaign_runs WHERE campaign_id > $2 AND (next_at > $1 OR last_at > $1)
             ORDER BY campaign_id LIMIT $3",
        )
        .bind(latest)
        .bind(after)
        .bind(limit)
        .fetch_all()
        .await?;
    let planned = rows.into_iter().map(|row| (row.campaign_id, row.read()));
    Ok(planned.collect())
}

/// Notes the newest run of a campaign and the next one anew.
pub async fn replan(
    tx: &mut Tx,
    planned: &Planned,
    last: Option<Timestamp>,
    next: Option<Run>,
) -> Result<()> {
    tx.sql(
        "UPDATE campaign_runs SET last_at = $3, next_at = $4, next_occasion = $5
         WHERE app_id = $1 AND campaign_id = $2",
    )
    .bind(planned.app_id)
    .bind(planned.campaign_id)
    .bind(last)
    .bind(next.map(|run| run.begins_at))
    .bind(next.map(|run| run.occasion))
    .execute()
    .await?;
    Ok(())
}

/// Adds a campaign.
pub async fn insert(
    tx: &mut Tx,
    campaign: &Campaign,
    plan: &Plan,
    next: Option<Run>,
) -> Result<()> {
    tx.sql(
        "INSERT INTO campaign_runs (campaign_id, app_id, kind, plan, next_at, next_occasion)
         VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind(campaign.id)
    .bind(campaign.app_id)
    .bind(campaign.kind.name())
    .bind(text(plan)?)
    .bind(next.map(|run| run.begins_at))
    .bind(next.map(|run| run.occasion))
    .execute()
    .await?;
    Ok(())
}

/// Replaces a campaign's plan and its next run; one that goes on is looked at soon.
pub async fn update(
    tx: &mut Tx,
    campaign: &Campaign,
    plan: Option<&Plan>,
    next: Option<Run>,
    now: Timestamp,
) -> Result<()> {
    tx.sql(
        "UPDATE campaign_runs SET plan = $3, next_at = $4, next_occasion = $5,
                look_at = CASE WHEN look_at IS NULL THEN NULL ELSE $6 END
         WHERE app_id = $1 AND campaign_id = $2",
    )
    .bind(campaign.app_id)
    .bind(campaign.id)
    .bind(plan.map(text).transpose()?)
    .bind(next.map(|run| run.begins_at))
    .bind(next.map(|run| run.occasion))
    .bind(now)
    .execute()
    .await?;
    Ok(())
}

/// Has a campaign's runs looked at, whether or not one goes on.
pub async fn look(tx: &mut Tx, campaign: &Campaign, now: Timestamp) -> Result<()> {
    tx.sql("UPDATE campaign_runs SET look_at = $3 WHERE app_id = $1 AND campaign_id = $2")
        .bind(campaign.app_id)
        .bind(campaign.id)
        .bind(now)
        .execute()
        .await?;
    Ok(())
}

/// Takes a campaign's next run away; one that goes on is looked at soon.
pub async fn stop(tx: &mut Tx, app_id: Uuid, campaign_id: Uuid, now: Timestamp) -> Result<()> {
    tx.sql(
        "UPDATE campaign_runs SET next_at = NULL, next_occasion = NULL,
                look_at = CASE WHEN look_at IS NULL THEN NULL ELSE $3 END
         WHERE app_id = $1 AND campaign_id = $2",
    )
    .bind(app_id)
    .bind(campaign_id)
    .bind(now)
    .execute()
    .await?;
    Ok(())
}
