//! Dead letters in the database.

use nudge_db::{Error, Result, Rows, Timestamp, Tx};
use uuid::Uuid;

use super::{Letter, PluginVersion, Stage};

/// Which letters a list shows.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Events of this name.
    pub event_name: Option<String>,
    /// This reason.
    pub reason: Option<String>,
    /// This stage.
    pub stage: Option<Stage>,
    /// Received at or after.
    pub from: Option<Timestamp>,
    /// Received before.
    pub to: Option<Timestamp>,
}

/// A letter and whose it is.
#[derive(Debug)]
pub struct Found {
    /// The letter.
    pub letter: Letter,
    /// The subject.
    pub subject_id: Uuid,
    /// The alias, if it is an anonymous id.
    pub anonymous_id: Option<String>,
}

#[derive(sqlx::FromRow)]
struct Row {
    id: Uuid,
    app_id: Uuid,
    alias_number: i64,
    event_id: Uuid,
    event_name: String,
    stage: String,
    reason: String,
    violations: String,
    plugin_name: Option<String>,
    plugin_version: Option<String>,
    campaign_id: Option<Uuid>,
    event: String,
    timestamp: Timestamp,
    received_at: Timestamp,
    attempts: i64,
    subject_id: Uuid,
    kind: String,
    value: String,
}

impl Row {
    fn read(self) -> Result<Found> {
        let stage = Stage::parse(&self.stage)
            .ok_or_else(|| Error::corrupt("dead_letters", "stage", &self.stage))?;
        let violations = serde_json::from_str(&self.violations)
            .map_err(|cause| Error::corrupt("dead_letters", "violations", cause))?;
        let plugin = self
            .plugin_name
            .zip(self.plugin_version)
            .map(|(name, version)| PluginVersion { name, version });
        Ok(Found {
            letter: Letter {
                id: self.id,
                app_id: self.app_id,
                alias: self.alias_number,
                event_id: self.event_id,
                event_name: self.event_name,
                stage,
                reason: self.reason,
                violations,
                plugin,
                campaign_id: self.campaign_id,
                event: self.event,
                timestamp: self.timestamp,
                received_at: self.received_at,
                attempts: self.attempts,
            },
            subject_id: self.subject_id,
            anonymous_id: (self.kind == "anonymous").then_some(self.value),
        })
    }
}

/// Adds letters.
pub async fn insert(tx: &mut Tx, letters: &[Letter]) -> Result<()> {
    for chunk in letters.chunks(Rows::MOST) {
        let violations =
            |letter: &Letter| serde_json::to_string(&letter.violations).unwrap_or_default();
        let plugin = |letter: &Letter| letter.plugin.clone();
        let rows = Rows::new()
            .uuids(chunk.iter().map(|letter| letter.id))
            .uuids(chunk.iter().map(|letter| letter.app_id))
            .integers(chunk.iter().map(|letter| letter.alias))
            .uuids(chunk.iter().map(|letter| letter.event_id))
            .texts(chunk.iter().map(|letter| letter.event_name.clone()))
            .texts(chunk.iter().map(|letter| letter.stage.name().to_owned()))
            .texts(chunk.iter().map(|letter| letter.reason.clone()))
            .texts(chunk.iter().map(violations))
            .texts(
                chunk
                    .iter()
                    .map(|letter| plugin(letter).map(|plugin| plugin.name)),
            )
            .texts(
                chunk
                    .iter()
                    .map(|letter| plugin(letter).map(|plugin| plugin.version)),
            )
            .uuids(chunk.iter().map(|letter| letter.campaign_id))
            .texts(chunk.iter().map(|letter| letter.event.clone()))
            .timestamps(chunk.iter().map(|letter| letter.timestamp))
            .timestamps(chunk.iter().map(|letter| letter.received_at));
        tx.with_rows(
            "v(id, app_id, alias_number, event_id, event_name, stage, reason, violations, plugin_name,
               plugin_version, campaign_id, event, timestamp, received_at)",
            rows,
        )
        .push(
            " INSERT INTO dead_letters (id, app_id, alias_number, event_id, event_name, stage, reason, violations,
                                        plugin_name, plugin_version, campaign_id, event, timestamp, received_at,
                                        attempts, state)
              SELECT v.id, v.app_id, v.alias_number, v.event_id, v.event_name, v.stage, v.reason, v.violations,
                     v.plugin_name, v.plugin_version, v.campaign_id, v.event, v.timestamp, v.received_at, 0, 'open'
              FROM v WHERE true
              ON CONFLICT (id) DO UPDATE SET reason = excluded.reason, violations = excluded.violations,
                plugin_name = excluded.plugin_name, plugin_version = excluded.plugin_version,
                event = excluded.event, received_at = excluded.received_at",
        )
        .execute()
        .await?;
    }
    Ok(())
}

/// Removes a letter; answers whether it was there.
pub async fn delete(tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<bool> {
    let removed = tx
        .sql("DELETE FROM dead_letters WHERE app_id = $1 AND id = $2")
        .bind(app_id)
        .bind(id)
        .execute()
        .await?;
    Ok(removed == 1)
}

/// Notes that a replay was in vain, and why.
pub async fn update_failed(tx: &mut Tx, letter: &Letter) -> Result<()> {
    tx.sql("UPDATE dead_letters SET attempts = attempts + 1, reason = $3, violations = $4 WHERE app_id = $1 AND id = $2")
        .bind(letter.app_id)
        .bind(letter.id)
        .bind(letter.reason.clone())
        .bind(serde_json::to_string(&letter.violations).unwrap_or_default())
        .execute()
        .await?;
    Ok(())
}

/// Finds a letter.
pub async fn find(tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<Option<Found>> {
    let row: Option<Row> = tx
        .sql(
            "SELECT d.id, d.app_id, d.alias_number, d.event_id, d.event_name, d.stage, d.reason, d.violations,
                    d.plugin_name, d.plugin_version, d.campaign_id, d.event, d.timestamp, d.received_at,
                    d.attempts, a.subject_id, a.kind, a.value
             FROM dead_letters d JOIN aliases a ON a.number = d.alias_number
             WHERE d.app_id = $1 AND d.id = $2",
        )
        .bind(app_id)
        .bind(id)
        .fetch_optional()
        .await?;
    row.map(Row::read).transpose()
}

/// Lists letters, newest first, from below an id on.
pub async fn list(
    tx: &mut Tx,
    app_id: Uuid,
    filter: &Filter,
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<Found>> {
    let mut statement = tx
        .sql(
            "SELECT d.id, d.app_id, d.alias_number, d.event_id, d.event_name, d.stage, d.reason, d.violations,
                    d.plugin_name, d.plugin_version, d.campaign_id, d.event, d.timestamp, d.received_at,
                    d.attempts, a.subject_id, a.kind, a.value
             FROM dead_letters d JOIN aliases a ON a.number = d.alias_number
             WHERE d.app_id = $1",
        )
        .bind(app_id);
    if let Some(name) = &filter.event_name {
        statement = statement
            .push(" AND d.event_name = ")
            .push_bind(name.clone());
    }
    if let Some(reason) = &filter.reason {
        statement = statement.push(" AND d.reason = ").push_bind(reason.clone());
    }
    if let Some(stage) = filter.stage {
        statement = statement.push(" AND d.stage = ").push_bind(stage.name());
    }
    if let Some(from) = filter.from {
        statement = statement.push(" AND d.received_at >= ").push_bind(from);
    }
    if let Some(to) = filter.to {
        statement = statement.push(" AND d.received_at < ").push_bind(to);
    }
    if let Some(before) = before {
        statement = statement.push(" AND d.id < ").push_bind(before);
    }
    let rows: Vec<Row> = statement
        .push(" ORDER BY d.id DESC LIMIT ")
        .push_bind(limit)
        .fetch_all()
        .await?;
    rows.into_iter().map(Row::read).collect()
}
