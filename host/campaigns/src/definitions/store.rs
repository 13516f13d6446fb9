//! Definitions in the database.

use nudge_db::{Error, Result, Timestamp, Tx};
use uuid::Uuid;

use super::{Content, Definition, Status};

#[derive(nudge_db::FromRow)]
struct Row {
    id: Uuid,
    app_id: Uuid,
    name: String,
    version: i64,
    status: String,
    body: String,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl Row {
    fn read(self) -> Result<Definition> {
        let content: Content = serde_json::from_str(&self.body)
            .map_err(|cause| Error::corrupt("definitions", "body", cause))?;
        let status = if self.status == status_name(Status::Active) {
            Status::Active
        } else {
            Status::Archived
        };
        Ok(Definition {
            id: self.id,
            app_id: self.app_id,
            name: self.name,
            version: self.version,
            status,
            content,
            created_at: self.created_at,
            updated_at: self.updated_at,
        })
    }
}

fn status_name(status: Status) -> &'static str {
    match status {
        Status::Active => "active",
        Status::Archived => "archived",
    }
}

fn body(definition: &Definition) -> Result<String> {
    serde_json::to_string(&definition.content)
        .map_err(|cause| Error::corrupt("definitions", "body", cause))
}

/// How many definitions an app has.
pub async fn count(tx: &mut Tx, app_id: Uuid) -> Result<usize> {
    let count: i64 = tx
        .sql("SELECT count(*) AS count FROM definitions WHERE app_id = $1")
        .bind(app_id)
        .fetch_scalar()
        .await?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

/// Adds a definition. A taken name is a conflict.
pub async fn insert(tx: &mut Tx, definition: &Definition) -> Result<()> {
    tx.sql(
        "INSERT INTO definitions (id, app_id, name, version, status, body, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(definition.id)
    .bind(definition.app_id)
    .bind(definition.name.clone())
    .bind(definition.version)
    .bind(status_name(definition.status))
    .bind(body(definition)?)
    .bind(definition.created_at)
    .bind(definition.updated_at)
    .execute()
    .await?;
    Ok(())
}

/// Replaces the version before; answers whether that was the current one.
pub async fn update(tx: &mut Tx, definition: &Definition) -> Result<bool> {
    let changed = tx
        .sql(
            "UPDATE definitions SET version = $3, status = $4, body = $5, updated_at = $6
             WHERE app_id = $1 AND id = $2 AND version = $3 - 1",
        )
        .bind(definition.app_id)
        .bind(definition.id)
        .bind(definition.version)
        .bind(status_name(definition.status))
        .bind(body(definition)?)
        .bind(definition.updated_at)
        .execute()
        .await?;
    Ok(changed == 1)
}

/// Finds a definition.
pub async fn find(tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<Option<Definition>> {
    let row: Option<Row> = tx
        .sql(
            "SELECT id, app_id, name, version, status, body, created_at, updated_at
             FROM definitions WHERE app_id = $1 AND id = $2",
        )
        .bind(app_id)
        .bind(id)
        .fetch_optional()
        .await?;
    row.map(Row::read).transpose()
}

/// Lists definitions, newest first, from below an id on, each with the bytes of its text.
pub async fn list(
    tx: &mut Tx,
    app_id: Uuid,
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<(Definition, usize)>> {
    let rows: Vec<Row> = tx
        .sql(
            "SELECT id, app_id, name, version, status, body, created_at, updated_at
             FROM definitions WHERE app_id = $1",
        )
        .bind(app_id)
        .newest_below(before, limit)
        .fetch_all()
        .await?;
    let read = |row: Row| {
        let bytes = row.body.len();
        Ok((row.read()?, bytes))
    };
    rows.into_iter().map(read).collect()
}

/// The definitions in force.
pub async fn active(tx: &mut Tx, app_id: Uuid) -> Result<Vec<Definition>> {
    let rows: Vec<Row> = tx
        .sql(
            "SELECT id, app_id, name, version, status, body, created_at, updated_at
             FROM definitions WHERE app_id = $1 AND status = 'active'",
        )
        .bind(app_id)
        .fetch_all()
        .await?;
    rows.into_iter().map(Row::read).collect()
}

/// Every definition in force whose body has this text in it, of an app or of all apps.
pub async fn with_text(tx: &mut Tx, app_id: Option<Uuid>, text: &str) -> Result<Vec<Definition>> {
    let mut statement = tx
        .sql(
            "SELECT id, app_id, name, version, status, body, created_at, updated_at
             FROM definitions WHERE status = 'active' AND body LIKE $1",
        )
        .bind(format!("%{text}%"));
    if let Some(app_id) = app_id {
        statement = statement.push(" AND app_id = ").push_bind(app_id);
    }
    let rows: Vec<Row> = statement.fetch_all().await?;
    rows.into_iter().map(Row::read).collect()
}
