//! Surveys in the database.

use nudge_db::{Error, Result, Timestamp, Tx};
use uuid::Uuid;

use super::{Content, Survey};
use crate::listing::Source;

/// What a [`Row`] is read from.
const COLUMNS: &str =
    "SELECT id, app_id, version, body, created_at, updated_at, activated_at FROM surveys";

/// What lists show.
pub const LISTED: Source = Source {
    table: "surveys",
    select: COLUMNS,
    defaults: &[
        ("mode", r#""triggered""#),
        ("status", r#""draft""#),
        ("priority", "0"),
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
    fn read(self) -> Result<Survey> {
        Ok(Survey {
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
    serde_json::from_str(body).map_err(|cause| Error::corrupt("surveys", "body", cause))
}

fn body(survey: &Survey) -> Result<String> {
    serde_json::to_string(&survey.content).map_err(|cause| Error::corrupt("surveys", "body", cause))
}

fn status(survey: &Survey) -> &'static str {
    survey.content.status.name()
}

/// When a survey that runs is over. What can't be read was refused when it was saved.
fn ends_at(survey: &Survey) -> Option<Timestamp> {
    let rules = survey.content.rules().ok()?;
    let ends_at = rules.schedule.end_at?;
    (survey.content.status == crate::campaign::Status::Active).then_some(ends_at)
}

/// How many surveys an app has.
pub async fn count(tx: &mut Tx, app_id: Uuid) -> Result<usize> {
    let row: CountRow = tx
        .sql("SELECT count(*) AS count FROM surveys WHERE app_id = $1")
        .bind(app_id)
        .fetch_one()
        .await?;
    Ok(usize::try_from(row.count).unwrap_or(usize::MAX))
}

/// Adds a survey.
pub async fn insert(tx: &mut Tx, survey: &Survey) -> Result<()> {
    tx.sql(
        "INSERT INTO surveys (id, app_id, version, status, body, created_at, updated_at, activated_at, ends_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(survey.id)
    .bind(survey.app_id)
    .bind(survey.version)
    .bind(status(survey))
    .bind(body(survey)?)
    .bind(survey.created_at)
    .bind(survey.updated_at)
    .bind(survey.activated_at)
    .bind(ends_at(survey))
    .execute()
    .await?;
    insert_version(tx, survey).await
}

/// Replaces the version before; answers whether that was the current one.
pub async fn update(tx: &mut Tx, survey: &Survey) -> Result<bool> {
    let changed = tx
        .sql(
            "UPDATE surveys SET version = $3, status = $4, body = $5, updated_at = $6, activated_at = $7, ends_at = $8
             WHERE app_id = $1 AND id = $2 AND version = $3 - 1",
        )
        .bind(survey.app_id)
        .bind(survey.id)
        .bind(survey.version)
        .bind(status(survey))
        .bind(body(survey)?)
        .bind(survey.updated_at)
        .bind(survey.activated_at)
        .bind(ends_at(survey))
        .execute()
        .await?;
    if changed == 1 {
        insert_version(tx, survey).await?;
    }
    Ok(changed == 1)
}

async fn insert_version(tx: &mut Tx, survey: &Survey) -> Result<()> {
    tx.sql(
        "INSERT INTO survey_versions (survey_id, version, app_id, body) VALUES ($1, $2, $3, $4)",
    )
    .bind(survey.id)
    .bind(survey.version)
    .bind(survey.app_id)
    .bind(body(survey)?)
    .execute()
    .await?;
    Ok(())
}

/// Removes a survey, its versions, counts, plugin states, timers and occasions; answers whether it was there.
pub async fn delete(tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<bool> {
    let removed = tx
        .sql("DELETE FROM surveys WHERE app_id = $1 AND id = $2")
        .bind(app_id)
        .bind(id)
        .execute()
        .await?;
    if removed == 0 {
        return Ok(false);
    }
    for text in [
        "DELETE FROM survey_versions WHERE app_id = $1 AND survey_id = $2",
        "DELETE FROM survey_counts WHERE app_id = $1 AND survey_id = $2",
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

/// Finds a survey.
pub async fn find(tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<Option<Survey>> {
    one(tx, app_id, id, "").await
}

/// Finds a survey and keeps it from being changed or deleted until the transaction ends. `alone`: nobody else may
/// hold it meanwhile either.
pub async fn hold(tx: &mut Tx, app_id: Uuid, id: Uuid, alone: bool) -> Result<Option<Survey>> {
    let dialect = tx.dialect();
    let lock = if alone {
        dialect.for_update()
    } else {
        dialect.for_share()
    };
    one(tx, app_id, id, lock).await
}

async fn one(tx: &mut Tx, app_id: Uuid, id: Uuid, lock: &'static str) -> Result<Option<Survey>> {
    let row: Option<Row> = tx
        .sql(COLUMNS)
        .push(" WHERE app_id = $1 AND id = $2")
        .bind(app_id)
        .bind(id)
        .push(lock)
        .fetch_optional()
        .await?;
    row.map(Row::read).transpose()
}

/// How many complete attempts end a survey, if there is such a number.
pub async fn max_responses(tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<Option<i64>> {
    let row: Option<BodyRow> = tx
        .sql("SELECT body FROM surveys WHERE app_id = $1 AND id = $2")
        .bind(app_id)
        .bind(id)
        .fetch_optional()
        .await?;
    let Some(row) = row else { return Ok(None) };
    let body = serde_json::from_str(&row.body)
        .map_err(|cause| Error::corrupt("surveys", "body", cause))?;
    Ok(super::max_responses(&body))
}

/// A survey as it is stored, which takes a fraction of what it takes once it is read.
#[derive(Debug)]
pub struct Unread(Row);

impl Unread {
    /// When it last became active.
    pub fn activated_at(&self) -> Option<Timestamp> {
        self.0.activated_at
    }

    /// Reads it.
    pub fn read(self) -> Result<Survey> {
        self.0.read()
    }
}

/// The surveys that run.
pub async fn active(tx: &mut Tx, app_id: Uuid) -> Result<Vec<Survey>> {
    let unread = active_unread(tx, app_id).await?;
    unread.into_iter().map(Unread::read).collect()
}

/// The surveys that run, to be read one by one.
pub async fn active_unread(tx: &mut Tx, app_id: Uuid) -> Result<Vec<Unread>> {
    let rows: Vec<Row> = tx
        .sql(COLUMNS)
        .push(" WHERE app_id = $1 AND status = 'active' ORDER BY id")
        .bind(app_id)
        .fetch_all()
        .await?;
    Ok(rows.into_iter().map(Unread).collect())
}

/// Surveys that run and whose schedule is over, of all apps.
pub async fn ended(tx: &mut Tx, now: Timestamp, limit: i64) -> Result<Vec<Survey>> {
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
        "SELECT ends_at FROM surveys
         WHERE ends_at IS NOT NULL AND status = 'active' ORDER BY ends_at LIMIT 1",
    )
    .fetch_value()
    .await
}

/// What a survey said at a version.
pub async fn version(
    tx: &mut Tx,
    app_id: Uuid,
    survey_id: Uuid,
    version: i64,
) -> Result<Option<Content>> {
    let row: Option<BodyRow> = tx
        .sql("SELECT body FROM survey_versions WHERE app_id = $1 AND survey_id = $2 AND version = $3")
        .bind(app_id)
        .bind(survey_id)
        .bind(version)
        .fetch_optional()
        .await?;
    row.map(|row| parse(&row.body)).transpose()
}

/// Every survey that is not archived and whose body has this text in it, of an app or of all apps.
pub async fn with_text(tx: &mut Tx, app_id: Option<Uuid>, text: &str) -> Result<Vec<Survey>> {
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
