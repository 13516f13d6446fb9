//! Campaigns of all kinds in the database: one table, and one of their earlier versions.

use std::collections::BTreeMap;

use nudge_db::{Dialect, Error, Result, Timestamp, Tx};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, Value};
use uuid::Uuid;

use crate::campaign::{Kind, Status};
use crate::lifecycle::{Campaign, Compiled, Content};

/// A campaign as it is stored, which takes a fraction of what it takes once it is read.
#[derive(Debug, nudge_db::FromRow)]
pub struct Stored {
    /// Its id.
    pub id: Uuid,
    /// The app that it belongs to.
    pub app_id: Uuid,
    kind: String,
    status: String,
    /// Grows with each change.
    pub version: i64,
    /// What people wrote of it, as JSON.
    pub(crate) body: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// When it last became active.
    pub activated_at: Option<Timestamp>,
}

impl Stored {
    /// What a row is read from, up to the condition.
    const SELECT: &str = "SELECT id, app_id, kind, status, version, body, created_at, updated_at, activated_at FROM campaigns";

    /// Its kind.
    pub fn kind(&self) -> Result<Kind> {
        Kind::parse(&self.kind).ok_or_else(|| Error::corrupt("campaigns", "kind", &self.kind))
    }

    /// Whether it runs.
    pub fn is_active(&self) -> bool {
        self.status == Status::Active.name()
    }

    /// The next version, completed.
    pub(crate) fn completed(mut self, now: Timestamp) -> Result<Self> {
        let mut members: BTreeMap<String, Box<RawValue>> = parse(&self.body)?;
        members.insert("status".to_owned(), raw(&Status::Completed)?);
        raw(&members)?.get().clone_into(&mut self.body);
        Status::Completed.name().clone_into(&mut self.status);
        self.version += 1;
        self.updated_at = now;
        Ok(self)
    }

    /// Reads it as a campaign of its kind.
    pub fn read<C: Content>(self) -> Result<Campaign<C>> {
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

fn corrupt(cause: serde_json::Error) -> Error {
    Error::corrupt("campaigns", "body", cause)
}

/// Reads what people wrote of a campaign.
pub(crate) fn parse<T: DeserializeOwned>(body: &str) -> Result<T> {
    serde_json::from_str(body).map_err(corrupt)
}

fn raw<T: Serialize>(value: &T) -> Result<Box<RawValue>> {
    serde_json::value::to_raw_value(value).map_err(corrupt)
}

/// When a campaign that runs is over.
fn ends_at<C: Content>(campaign: &Campaign<C>, compiled: &Compiled) -> Option<Timestamp> {
    let ends_at = compiled.rules.schedule.end_at?;
    (campaign.content.status() == Status::Active).then_some(ends_at)
}

/// How many campaigns of a kind an app has.
pub async fn count(tx: &mut Tx, app_id: Uuid, kind: Kind) -> Result<usize> {
    let count: i64 = tx
        .sql("SELECT count(*) FROM campaigns WHERE app_id = $1 AND kind = $2")
        .bind(app_id)
        .bind(kind.name())
        .fetch_value()
        .await?
        .unwrap_or_default();
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

/// A campaign as it is stored.
fn row<C: Content>(campaign: &Campaign<C>) -> Result<Stored> {
    Ok(Stored {
        id: campaign.id,
        app_id: campaign.app_id,
        kind: C::KIND.name().to_owned(),
        status: campaign.content.status().name().to_owned(),
        version: campaign.version,
        body: raw(&campaign.content)?.get().to_owned(),
        created_at: campaign.created_at,
        updated_at: campaign.updated_at,
        activated_at: campaign.activated_at,
    })
}

/// Adds a campaign.
pub async fn insert<C: Content>(
    tx: &mut Tx,
    campaign: &Campaign<C>,
    compiled: &Compiled,
) -> Result<()> {
    let row = row(campaign)?;
    tx.sql(
        "INSERT INTO campaigns (id, app_id, kind, version, status, body, created_at, updated_at, activated_at, ends_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
    )
    .bind(row.id)
    .bind(row.app_id)
    .bind(&*row.kind)
    .bind(row.version)
    .bind(&*row.status)
    .bind(&*row.body)
    .bind(row.created_at)
    .bind(row.updated_at)
    .bind(row.activated_at)
    .bind(ends_at(campaign, compiled))
    .execute()
    .await?;
    insert_version(tx, &row).await
}

/// Replaces the version before; answers whether that was the current one.
pub async fn update<C: Content>(
    tx: &mut Tx,
    campaign: &Campaign<C>,
    compiled: &Compiled,
) -> Result<bool> {
    write(tx, &row(campaign)?, ends_at(campaign, compiled)).await
}

/// Replaces the version before by one that does not run; answers whether that was the current one.
pub(crate) async fn replace(tx: &mut Tx, row: &Stored) -> Result<bool> {
    write(tx, row, None).await
}

async fn write(tx: &mut Tx, row: &Stored, ends_at: Option<Timestamp>) -> Result<bool> {
    let changed = tx
        .sql(
            "UPDATE campaigns SET version = $4, status = $5, body = $6, updated_at = $7, activated_at = $8, ends_at = $9
             WHERE app_id = $1 AND kind = $2 AND id = $3 AND version = $4 - 1",
        )
        .bind(row.app_id)
        .bind(&*row.kind)
        .bind(row.id)
        .bind(row.version)
        .bind(&*row.status)
        .bind(&*row.body)
        .bind(row.updated_at)
        .bind(row.activated_at)
        .bind(ends_at)
        .execute()
        .await?;
    if changed == 1 {
        insert_version(tx, row).await?;
    }
    Ok(changed == 1)
}

async fn insert_version(tx: &mut Tx, row: &Stored) -> Result<()> {
    tx.sql("INSERT INTO campaign_versions (campaign_id, version, app_id, body) VALUES ($1, $2, $3, $4)")
        .bind(row.id)
        .bind(row.version)
        .bind(row.app_id)
        .bind(&*row.body)
        .execute()
        .await?;
    Ok(())
}

/// Removes a campaign, its versions, plugin states, timers and scheduled work; answers whether it was there.
pub async fn delete(tx: &mut Tx, app_id: Uuid, kind: Kind, id: Uuid) -> Result<bool> {
    let removed = tx
        .sql("DELETE FROM campaigns WHERE app_id = $1 AND kind = $2 AND id = $3")
        .bind(app_id)
        .bind(kind.name())
        .bind(id)
        .execute()
        .await?;
    if removed == 0 {
        return Ok(false);
    }
    for text in [
        "DELETE FROM campaign_versions WHERE app_id = $1 AND campaign_id = $2",
        "DELETE FROM plugin_states WHERE app_id = $1 AND campaign_id = $2",
        "DELETE FROM timers WHERE app_id = $1 AND campaign_id = $2",
        // A run that goes on holds its row: the occasions that it keeps meanwhile are there after this.
        "DELETE FROM campaign_runs WHERE app_id = $1 AND campaign_id = $2",
        "DELETE FROM occasions WHERE app_id = $1 AND campaign_id = $2",
        "DELETE FROM run_firings WHERE app_id = $1 AND campaign_id = $2",
        "DELETE FROM segment_uses WHERE app_id = $1 AND user_id = $2",
    ] {
        tx.sql(text).bind(app_id).bind(id).execute().await?;
    }
    Ok(true)
}

/// Whether a transaction keeps a campaign from being changed or deleted until it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// It does not.
    No,
    /// It does; others may do so too.
    Shared,
    /// It does, alone.
    Alone,
}

impl Hold {
    /// The end of a statement that reads a row.
    pub(crate) fn lock(self, dialect: Dialect) -> &'static str {
        match self {
            Self::No => "",
            Self::Shared => dialect.for_share(),
            Self::Alone => dialect.for_update(),
        }
    }
}

/// Finds a campaign.
pub async fn find<C: Content>(tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<Option<Campaign<C>>> {
    hold(tx, app_id, id, Hold::No).await
}

/// Finds a campaign and holds it.
pub async fn hold<C: Content>(
    tx: &mut Tx,
    app_id: Uuid,
    id: Uuid,
    hold: Hold,
) -> Result<Option<Campaign<C>>> {
    let lock = hold.lock(tx.dialect());
    let found: Option<Stored> = tx
        .sql(Stored::SELECT)
        .push(" WHERE app_id = $1 AND kind = $2 AND id = $3")
        .bind(app_id)
        .bind(C::KIND.name())
        .bind(id)
        .push(lock)
        .fetch_optional()
        .await?;
    found.map(Stored::read).transpose()
}

/// Where a campaign stands; none: there is none. `hold`: so it stays until the transaction ends.
pub async fn status(tx: &mut Tx, app_id: Uuid, id: Uuid, hold: Hold) -> Result<Option<Status>> {
    let lock = hold.lock(tx.dialect());
    let name: Option<String> = tx
        .sql("SELECT status FROM campaigns WHERE app_id = $1 AND id = $2")
        .bind(app_id)
        .bind(id)
        .push(lock)
        .fetch_value()
        .await?;
    let status = |name: String| {
        Status::parse(&name).ok_or_else(|| Error::corrupt("campaigns", "status", name))
    };
    name.map(status).transpose()
}

/// Finds a campaign of any kind as it is stored.
pub async fn stored(tx: &mut Tx, app_id: Uuid, id: Uuid, hold: Hold) -> Result<Option<Stored>> {
    let lock = hold.lock(tx.dialect());
    tx.sql(Stored::SELECT)
        .push(" WHERE app_id = $1 AND id = $2")
        .bind(app_id)
        .bind(id)
        .push(lock)
        .fetch_optional()
        .await
}

/// The campaigns of a kind that run.
pub async fn active<C: Content>(tx: &mut Tx, app_id: Uuid) -> Result<Vec<Campaign<C>>> {
    let stored = active_stored(tx, app_id, C::KIND).await?;
    stored.into_iter().map(Stored::read).collect()
}

/// The campaigns of a kind that run, to be read one by one.
pub async fn active_stored(tx: &mut Tx, app_id: Uuid, kind: Kind) -> Result<Vec<Stored>> {
    tx.sql(Stored::SELECT)
        .push(" WHERE app_id = $1 AND kind = $2 AND status = 'active' ORDER BY id")
        .bind(app_id)
        .bind(kind.name())
        .fetch_all()
        .await
}

/// Campaigns of some kinds before one, newest first.
pub(crate) async fn page(
    tx: &mut Tx,
    app_id: Uuid,
    kinds: impl IntoIterator<Item = Kind>,
    before: Uuid,
    limit: usize,
) -> Result<Vec<Stored>> {
    tx.sql(Stored::SELECT)
        .push(" WHERE app_id = $1 AND id < $2 AND kind IN ")
        .bind(app_id)
        .bind(before)
        .push_list(kinds.into_iter().map(Kind::name))
        .push(" ORDER BY id DESC LIMIT ")
        .push_bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .fetch_all()
        .await
}

/// Campaigns that run and whose schedule is over, of all kinds and apps.
pub async fn ended(tx: &mut Tx, now: Timestamp, limit: i64) -> Result<Vec<Stored>> {
    tx.sql(Stored::SELECT)
        .push(" WHERE ends_at <= $1 AND status = 'active' ORDER BY ends_at LIMIT $2")
        .bind(now)
        .bind(limit)
        .fetch_all()
        .await
}

/// When the next schedule is over of those that run, of all kinds and apps.
pub async fn next_end(tx: &mut Tx) -> Result<Option<Timestamp>> {
    tx.sql(
        "SELECT ends_at FROM campaigns
         WHERE ends_at IS NOT NULL AND status = 'active' ORDER BY ends_at LIMIT 1",
    )
    .fetch_value()
    .await
}

/// What a campaign said at a version.
pub async fn version<C: Content>(
    tx: &mut Tx,
    app_id: Uuid,
    id: Uuid,
    version: i64,
) -> Result<Option<C>> {
    let body: Option<String> = tx
        .sql("SELECT body FROM campaign_versions WHERE app_id = $1 AND campaign_id = $2 AND version = $3")
        .bind(app_id)
        .bind(id)
        .bind(version)
        .fetch_value()
        .await?;
    body.map(|body| parse(&body)).transpose()
}

/// The JSON of what a campaign says.
pub(crate) async fn body_of(tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<Option<Value>> {
    let body: Option<String> = tx
        .sql("SELECT body FROM campaigns WHERE app_id = $1 AND id = $2")
        .bind(app_id)
        .bind(id)
        .fetch_value()
        .await?;
    body.map(|body| parse(&body)).transpose()
}

/// Every campaign of a kind that is not archived and whose body has this text in it, of an app or of all apps.
pub async fn with_text<C: Content>(
    tx: &mut Tx,
    app_id: Option<Uuid>,
    text: &str,
) -> Result<Vec<Campaign<C>>> {
    let mut statement = tx
        .sql(Stored::SELECT)
        .push(" WHERE kind = $1 AND status <> 'archived' AND body LIKE $2")
        .bind(C::KIND.name())
        .bind(format!("%{text}%"));
    if let Some(app_id) = app_id {
        statement = statement.push(" AND app_id = ").push_bind(app_id);
    }
    let stored: Vec<Stored> = statement.fetch_all().await?;
    stored.into_iter().map(Stored::read).collect()
}
