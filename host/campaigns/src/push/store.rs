//! Push campaigns in the database.

use nudge_db::{Error, Result, Timestamp, Tx};
use uuid::Uuid;

use super::{Campaign, Content};
use crate::listing::Source;

/// What a [`Row`] is read from.
const COLUMNS: &str =
    "SELECT id, app_id, version, body, created_at, updated_at, activated_at FROM push_campaigns";

/// What lists show.
pub const LISTED: Source = Source {
    table: "push_campaigns",
    select: COLUMNS,
    defaults: &[
        ("type", r#""push""#),
        ("mode", r#""triggered""#),
        ("status", r#""draft""#),
        ("priority", "0"),
        ("variants", "[]"),
    ],
};

#[derive(Debug, sqlx::FromRow)]
struct Row {
    id: Uuid,
    app_id: Uuid,
    version: i64,
    body: String,
    created_at: Timestamp,
    updated_at: Timestamp,
    activated_at: Option<Timestamp>,
}

#[derive(sqlx::FromRow)]
struct CountRow {
    count: i64,
}

#[derive(sqlx::FromRow)]
struct BodyRow {
    body: String,
}

impl Row {
    fn read(self) -> Result<Campaign> {
        Ok(Campaign {
            id: self.id,
            app_id: self.app_id,
            version: self.version,
            content: parse(&self.body)?,
            created_at: self.created_at,
            updated_at: self.updated_at,
            activated_at: self.activated_at,
        })
    }
}

fn parse(body: &str) -> Result<Content> {
    serde_json::from_str(body).map_err(|cause| Error::corrupt("push_campaigns", "body", cause))
}

fn body(campaign: &Campaign) -> Result<String> {
    serde_json::to_string(&campaign.content)
        .map_err(|cause| Error::corrupt("push_campaigns", "body", cause))
}

/// When a campaign that runs is over.
fn ends_at(campaign: &Campaign) -> Option<Timestamp> {
    let rules = campaign.content.rules().ok()?;
    let ends_at = rules.schedule.end_at?;
    (campaign.content.status == crate::campaign::Status::Active).then_some(ends_at)
}

/// How many campaigns an app has.
pub async fn count(tx: &mut Tx, app_id: Uuid) -> Result<usize> {
    let row: CountRow = tx
        .sql("SELECT count(*) AS count FROM push_campaigns WHERE app_id = $1")
        .bind(app_id)
        .fetch_one()
        .await?;
    Ok(usize::try_from(row.count).unwrap_or(usize::MAX))
}

/// Adds a campaign.
pub async fn insert(tx: &mut Tx, campaign: &Campaign) -> Result<()> {
    tx.sql(
        "INSERT INTO push_campaigns (id, app_id, version, status, body, created_at, updated_at, activated_at,
                                     ends_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(campaign.id)
    .bind(campaign.app_id)
    .bind(campaign.version)
    .bind(campaign.content.status.name())
    .bind(body(campaign)?)
    .bind(campaign.created_at)
    .bind(campaign.updated_at)
    .bind(campaign.activated_at)
    .bind(ends_at(campaign))
    .execute()
    .await?;
    insert_version(tx, campaign).await
}

/// Replaces the version before; answers whether that was the current one.
pub async fn update(tx: &mut Tx, campaign: &Campaign) -> Result<bool> {
    let changed = tx
        .sql(
            "UPDATE push_campaigns SET version = $3, status = $4, body = $5, updated_at = $6, activated_at = $7,
                                       ends_at = $8
             WHERE app_id = $1 AND id = $2 AND version = $3 - 1",
        )
        .bind(campaign.app_id)
        .bind(campaign.id)
        .bind(campaign.version)
        .bind(campaign.content.status.name())
        .bind(body(campaign)?)
        .bind(campaign.updated_at)
        .bind(campaign.activated_at)
        .bind(ends_at(campaign))
        .execute()
        .await?;
    if changed == 1 {
        insert_version(tx, campaign).await?;
    }
    Ok(changed == 1)
}

async fn insert_version(tx: &mut Tx, campaign: &Campaign) -> Result<()> {
    tx.sql("INSERT INTO push_campaign_versions (campaign_id, version, app_id, body) VALUES ($1, $2, $3, $4)")
        .bind(campaign.id)
        .bind(campaign.version)
        .bind(campaign.app_id)
        .bind(body(campaign)?)
        .execute()
        .await?;
    Ok(())
}

/// Removes a campaign, its versions, plugin states and timers; answers whether it was there.
pub async fn delete(tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<bool> {
    let removed = tx
        .sql("DELETE FROM push_campaigns WHERE app_id = $1 AND id = $2")
        .bind(app_id)
        .bind(id)
        .execute()
        .await?;
    if removed == 0 {
        return Ok(false);
    }
    for text in [
        "DELETE FROM push_campaign_versions WHERE app_id = $1 AND campaign_id = $2",
        "DELETE FROM plugin_states WHERE app_id = $1 AND campaign_id = $2",
        "DELETE FROM timers WHERE app_id = $1 AND campaign_id = $2",
        // A run that goes on holds its row: the occasions that it keeps meanwhile are there after this.
        "DELETE FROM campaign_runs WHERE app_id = $1 AND campaign_id = $2",
        "DELETE FROM occasions WHERE app_id = $1 AND campaign_id = $2",
        "DELETE FROM run_firings WHERE app_id = $1 AND campaign_id = $2",
    ] {
        tx.sql(text).bind(app_id).bind(id).execute().await?;
    }
    Ok(true)
}

/// Finds a campaign.
pub async fn find(tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<Option<Campaign>> {
    let row: Option<Row> = tx
        .sql(COLUMNS)
        .push(" WHERE app_id = $1 AND id = $2")
        .bind(app_id)
        .bind(id)
        .fetch_optional()
        .await?;
    row.map(Row::read).transpose()
}

/// A campaign as it is stored, which takes a fraction of what it takes once it is read.
#[derive(Debug)]
pub struct Unread(Row);

impl Unread {
    /// Reads it.
    pub fn read(self) -> Result<Campaign> {
        self.0.read()
    }
}

/// The campaigns that run.
pub async fn active(tx: &mut Tx, app_id: Uuid) -> Result<Vec<Campaign>> {
    let unread = active_unread(tx, app_id).await?;
    unread.into_iter().map(Unread::read).collect()
}

/// The campaigns that run, to be read one by one.
pub async fn active_unread(tx: &mut Tx, app_id: Uuid) -> Result<Vec<Unread>> {
    let rows: Vec<Row> = tx
        .sql(COLUMNS)
        .push(" WHERE app_id = $1 AND status = 'active' ORDER BY id")
        .bind(app_id)
        .fetch_all()
        .await?;
    Ok(rows.into_iter().map(Unread).collect())
}

/// Campaigns that run and whose schedule is over, of all apps.
pub async fn ended(tx: &mut Tx, now: Timestamp, limit: i64) -> Result<Vec<Campaign>> {
    let rows: Vec<Row> = tx
        .sql(COLUMNS)
        .push(" WHERE ends_at <= $1 AND status = 'active' ORDER BY ends_at LIMIT $2")
        .bind(now)
        .bind(limit)
        .fetch_all()
        .await?;
    rows.into_iter().map(Row::read).collect()
}

/// When the next schedule is over of those that run, of all apps.
pub async fn next_end(tx: &mut Tx) -> Result<Option<Timestamp>> {
    tx.sql(
        "SELECT ends_at FROM push_campaigns
         WHERE ends_at IS NOT NULL AND status = 'active' ORDER BY ends_at LIMIT 1",
    )
    .fetch_value()
    .await
}

/// What a campaign said at a version.
pub async fn version(
    tx: &mut Tx,
    app_id: Uuid,
    campaign_id: Uuid,
    version: i64,
) -> Result<Option<Content>> {
    let row: Option<BodyRow> = tx
        .sql(
            "SELECT body FROM push_campaign_versions
             WHERE app_id = $1 AND campaign_id = $2 AND version = $3",
        )
        .bind(app_id)
        .bind(campaign_id)
        .bind(version)
        .fetch_optional()
        .await?;
    row.map(|row| parse(&row.body)).transpose()
}

/// Whether a campaign is in a status; it stays so until the transaction ends.
pub async fn is_in(
    tx: &mut Tx,
    app_id: Uuid,
    id: Uuid,
    status: crate::campaign::Status,
) -> Result<bool> {
    let for_update = tx.dialect().for_update();
    let row: Option<BodyRow> = tx
        .sql("SELECT status AS body FROM push_campaigns WHERE app_id = $1 AND id = $2")
        .bind(app_id)
        .bind(id)
        .push(for_update)
        .fetch_optional()
        .await?;
    Ok(row.is_some_and(|row| row.body == status.name()))
}

/// Every campaign that is not archived and whose body has this text in it, of an app or of all apps.
pub async fn with_text(tx: &mut Tx, app_id: Option<Uuid>, text: &str) -> Result<Vec<Campaign>> {
    let mut statement = tx
        .sql(COLUMNS)
        .push(" WHERE status <> 'archived' AND body LIKE $1")
        .bind(format!("%{text}%"));
    if let Some(app_id) = app_id {
        statement = statement.push(" AND app_id = ").push_bind(app_id);
    }
    let rows: Vec<Row> = statement.fetch_all().await?;
    rows.into_iter().map(Row::read).collect()
}
