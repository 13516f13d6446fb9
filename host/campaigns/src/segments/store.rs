//! Segments and what uses them, in the database. Who is in them is in `nudge-pipeline`.

use std::collections::BTreeSet;
use std::fmt;
use strum::IntoStaticStr;

use nudge_db::{Error, Result, Rows, Timestamp, Tx};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{Content, Segment, naming};
use crate::store::Hold;

/// What names a segment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = SegmentUse)]
pub struct Use {
    /// What it is.
    pub kind: UseKind,
    /// Its id.
    pub id: Uuid,
    /// What people call it.
    pub name: String,
}

/// What sort of thing names a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[schema(as = SegmentUseKind)]
#[strum(serialize_all = "snake_case")]
pub enum UseKind {
    /// A survey.
    Survey,
    /// A campaign of messages.
    Campaign,
    /// Another segment.
    Segment,
}

impl UseKind {
    fn name(self) -> &'static str {
        self.into()
    }

    fn parse(name: &str) -> Result<Self> {
        let mut all = [Self::Survey, Self::Campaign, Self::Segment].into_iter();
        let found = all.find(|kind| kind.name() == name);
        found.ok_or_else(|| Error::corrupt("segment_uses", "kind", name))
    }
}

impl fmt::Display for Use {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "the {} `{}` ({})",
            self.kind.name(),
            self.name,
            self.id
        )
    }
}

#[derive(nudge_db::FromRow)]
struct Row {
    id: Uuid,
    app_id: Uuid,
    name: String,
    description: Option<String>,
    audience: String,
    version: i64,
    size: Option<i64>,
    size_at: Option<Timestamp>,
    created_at: Timestamp,
    updated_at: Timestamp,
}

const SELECT: &str = "SELECT id, app_id, name, description, audience, version, size, size_at, created_at, updated_at FROM segments";

impl Row {
    fn read(self) -> Result<Segment> {
        let audience = parse(&self.audience)?;
        Ok(Segment {
            id: self.id,
            app_id: self.app_id,
            version: self.version,
            content: Content {
                name: self.name,
                description: self.description,
                audience,
            },
            size: self.size,
            size_at: self.size_at,
            created_at: self.created_at,
            updated_at: self.updated_at,
        })
    }
}

fn parse(audience: &str) -> Result<Value> {
    serde_json::from_str(audience).map_err(|cause| Error::corrupt("segments", "audience", cause))
}

/// How many segments an app has.
pub async fn count(tx: &mut Tx, app_id: Uuid) -> Result<usize> {
    let count: i64 = tx
        .sql("SELECT count(*) AS count FROM segments WHERE app_id = $1")
        .bind(app_id)
        .fetch_scalar()
        .await?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

/// Whether another segment has a name.
pub async fn is_taken(tx: &mut Tx, app_id: Uuid, name: &str, but_for: Uuid) -> Result<bool> {
    let found: Option<Uuid> = tx
        .sql("SELECT id FROM segments WHERE app_id = $1 AND name = $2 AND id <> $3")
        .bind(app_id)
        .bind(name.to_owned())
        .bind(but_for)
        .fetch_value()
        .await?;
    Ok(found.is_some())
}

/// Adds a segment whose members are not known yet.
pub async fn insert(tx: &mut Tx, segment: &Segment) -> Result<()> {
    tx.sql(
        "INSERT INTO segments (id, app_id, name, description, audience, version, based_version, audience_version,
                               newest_subject, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6, 0, 1, $1, $7, $7)",
    )
    .bind(segment.id)
    .bind(segment.app_id)
    .bind(segment.content.name.clone())
    .bind(segment.content.description.clone())
    .bind(segment.content.audience.to_string())
    .bind(segment.version)
    .bind(segment.created_at)
    .execute()
    .await?;
    // Sizes are at most an hour old, from the first segment on.
    tx.sql("INSERT INTO segment_sweeps (app_id, next_at) VALUES ($1, $2) ON CONFLICT (app_id) DO NOTHING")
        .bind(segment.app_id)
        .bind(segment.created_at.plus(super::SWEEP_EVERY))
        .execute()
        .await?;
    Ok(())
}

/// The conditions of segments are others from now on: who is in them is not known any longer. Answers the versions of their
/// conditions.
pub async fn renew(tx: &mut Tx, app_id: Uuid, ids: &[Uuid]) -> Result<Vec<(Uuid, i64)>> {
    #[derive(nudge_db::FromRow)]
    struct RenewedRow {
        id: Uuid,
        audience_version: i64,
    }
    let newest: Option<Uuid> = tx
        .sql(
            "SELECT id FROM subjects WHERE app_id = $1 AND NOT suppressed ORDER BY id DESC LIMIT 1",
        )
        .bind(app_id)
        .fetch_value()
        .await?;
    let rows: Vec<RenewedRow> = tx
        .sql("UPDATE segments SET audience_version = audience_version + 1, newest_subject = $2 WHERE app_id = $1 AND id IN ")
        .bind(app_id)
        .bind(newest.unwrap_or_default())
        .push_list(ids.iter().copied())
        .push(" RETURNING id, audience_version")
        .fetch_all()
        .await?;
    Ok(rows
        .into_iter()
        .map(|row| (row.id, row.audience_version))
        .collect())
}

/// Replaces the version before; answers whether that was the current one.
pub async fn update(tx: &mut Tx, segment: &Segment) -> Result<bool> {
    let changed = tx
        .sql(
            "UPDATE segments SET version = $3, name = $4, description = $5, audience = $6, updated_at = $7
             WHERE app_id = $1 AND id = $2 AND version = $3 - 1",
        )
        .bind(segment.app_id)
        .bind(segment.id)
        .bind(segment.version)
        .bind(segment.content.name.clone())
        .bind(segment.content.description.clone())
        .bind(segment.content.audience.to_string())
        .bind(segment.updated_at)
        .execute()
        .await?;
    Ok(changed == 1)
}

/// Removes a segment with what is known of its members; answers whether it was there.
pub async fn delete(tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<bool> {
    let removed = tx
        .sql("DELETE FROM segments WHERE app_id = $1 AND id = $2")
        .bind(app_id)
        .bind(id)
        .execute()
        .await?;
    for text in [
        "DELETE FROM segment_sizes WHERE app_id = $1 AND segment_id = $2",
        "DELETE FROM segment_uses WHERE app_id = $1 AND user_id = $2",
    ] {
        tx.sql(text).bind(app_id).bind(id).execute().await?;
    }
    Ok(removed == 1)
}

/// Finds a segment.
pub async fn find(tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<Option<Segment>> {
    hold_one(tx, app_id, id, Hold::No).await
}

/// Finds a segment and holds it.
pub async fn hold_one(tx: &mut Tx, app_id: Uuid, id: Uuid, hold: Hold) -> Result<Option<Segment>> {
    let lock = hold.lock(tx.dialect());
    let row: Option<Row> = tx
        .sql(SELECT)
        .push(" WHERE app_id = $1 AND id = $2")
        .push(lock)
        .bind(app_id)
        .bind(id)
        .fetch_optional()
        .await?;
    row.map(Row::read).transpose()
}

/// Segments before one, newest first.
pub async fn page(tx: &mut Tx, app_id: Uuid, before: Uuid, limit: i64) -> Result<Vec<Segment>> {
    let rows: Vec<Row> = tx
        .sql(SELECT)
        .push(" WHERE app_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3")
        .bind(app_id)
        .bind(before)
        .bind(limit)
        .fetch_all()
        .await?;
    rows.into_iter().map(Row::read).collect()
}

/// Ids, versions and audiences of an app's segments.
pub async fn audiences(tx: &mut Tx, app_id: Uuid) -> Result<Vec<(Uuid, i64, Value)>> {
    #[derive(nudge_db::FromRow)]
    struct AudienceRow {
        id: Uuid,
        audience_version: i64,
        audience: String,
    }
    let rows: Vec<AudienceRow> = tx
        .sql("SELECT id, audience_version, audience FROM segments WHERE app_id = $1 ORDER BY id")
        .bind(app_id)
        .fetch_all()
        .await?;
    let read = |row: AudienceRow| Ok((row.id, row.audience_version, parse(&row.audience)?));
    rows.into_iter().map(read).collect()
}

/// Keeps segments from being removed until the transaction ends; answers how many are there.
pub async fn hold(tx: &mut Tx, app_id: Uuid, ids: &BTreeSet<Uuid>) -> Result<usize> {
    let lock = tx.dialect().for_key_share();
    let found: Vec<Uuid> = tx
        .sql("SELECT id FROM segments WHERE app_id = $1 AND id IN ")
        .bind(app_id)
        .push_list(ids.iter().copied())
        .push(" ORDER BY id")
        .push(lock)
        .fetch_values()
        .await?;
    Ok(found.len())
}

/// Notes which segments something names.
pub async fn replace_uses(
    tx: &mut Tx,
    app_id: Uuid,
    (kind, user_id): (UseKind, Uuid),
    named: &BTreeSet<Uuid>,
) -> Result<()> {
    remove_uses(tx, app_id, user_id).await?;
    if named.is_empty() {
        return Ok(());
    }
    tx.with_rows("v(segment_id)", Rows::new().uuids(named.iter().copied()))
        .push(" INSERT INTO segment_uses (segment_id, user_id, app_id, kind) SELECT v.segment_id, ")
        .push_bind(user_id)
        .push(", ")
        .push_bind(app_id)
        .push(", ")
        .push_bind(kind.name())
        .push(" FROM v WHERE true")
        .execute()
        .await?;
    Ok(())
}

/// Something is gone, and names no segment any longer.
pub async fn remove_uses(tx: &mut Tx, app_id: Uuid, user_id: Uuid) -> Result<()> {
    tx.sql("DELETE FROM segment_uses WHERE app_id = $1 AND user_id = $2")
        .bind(app_id)
        .bind(user_id)
        .execute()
        .await?;
    Ok(())
}

/// What names segments, by the segment.
pub async fn uses(tx: &mut Tx, app_id: Uuid, ids: &[Uuid]) -> Result<Vec<(Uuid, Use)>> {
    #[derive(nudge_db::FromRow)]
    struct UseRow {
        segment_id: Uuid,
        user_id: Uuid,
        kind: String,
        segment: Option<String>,
    }
    let mut found = Vec::new();
    for chunk in ids.chunks(Rows::MOST) {
        let rows: Vec<UseRow> = tx
            .with_rows("v(id)", Rows::new().uuids(chunk.iter().copied()))
            .push(
                " SELECT u.segment_id, u.user_id, u.kind, s.name AS segment
                  FROM v JOIN segment_uses u ON u.segment_id = v.id
                  LEFT JOIN segments s ON s.id = u.user_id
                  WHERE u.app_id = ",
            )
            .push_bind(app_id)
            .push(" ORDER BY u.kind, u.user_id")
            .fetch_all()
            .await?;
        found.extend(rows);
    }
    // Once each, however many segments one names: a name is within all that a campaign says.
    let campaigns = found.iter().filter(|row| row.segment.is_none());
    let campaigns = campaigns.map(|row| row.user_id).collect();
    let names = naming::names(tx, app_id, &campaigns).await?;
    let read = |row: UseRow| {
        let name = row.segment.or_else(|| names.get(&row.user_id).cloned());
        let used = Use {
            kind: UseKind::parse(&row.kind)?,
            id: row.user_id,
            name: name.unwrap_or_default(),
        };
        Ok((row.segment_id, used))
    };
    found.into_iter().map(read).collect()
}

/// Sizes of a segment that were found from an instant on and before another, the oldest first.
pub async fn history(
    tx: &mut Tx,
    app_id: Uuid,
    id: Uuid,
    (from, to): (Timestamp, Timestamp),
) -> Result<Vec<(Timestamp, i64)>> {
    #[derive(nudge_db::FromRow)]
    struct SizeRow {
        at: Timestamp,
        size: i64,
    }
    let rows: Vec<SizeRow> = tx
        .sql(
            "SELECT at, size FROM segment_sizes WHERE app_id = $1 AND segment_id = $2 AND at >= $3 AND at < $4
             ORDER BY day",
        )
        .bind(app_id)
        .bind(id)
        .bind(from)
        .bind(to)
        .fetch_all()
        .await?;
    Ok(rows.into_iter().map(|row| (row.at, row.size)).collect())
}
