//! Counts of calls in the database.

use nudge_db::{Result, Rows, Timestamp, Tx};
use uuid::Uuid;

use super::{Counts, Key, Taken, minute};
use crate::catalogue::SERVER;
use crate::rollout_period::RolloutPeriod;

/// Counts of a version's calls with one outcome and of about the same time.
#[derive(Debug, nudge_db::FromRow)]
pub struct Row {
    /// The version.
    pub version: String,
    /// The name of the outcome.
    pub outcome: String,
    /// The place among the ranges of durations.
    pub bucket: i64,
    /// Calls.
    pub calls: i64,
    /// Items of these calls.
    pub items: i64,
    /// The longest call, in microseconds.
    pub max_micros: i64,
    /// The most memory of a call, in bytes.
    pub memory_bytes: i64,
}

/// How many calls of a version were settled, and how many of them it failed.
#[derive(Clone, Copy, Debug, nudge_db::FromRow)]
pub struct Tally {
    /// Settled calls but those that the machine starved.
    pub calls: i64,
    /// Those that failed.
    pub failures: i64,
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Adds counts to those of the minute.
pub(crate) async fn add(tx: &mut Tx, taken: &Taken, now: Timestamp) -> Result<()> {
    for rows in taken.0.chunks(Rows::MOST) {
        add_rows(tx, rows, minute(now)).await?;
    }
    Ok(())
}

async fn add_rows(tx: &mut Tx, rows: &[(Key, Counts)], minute: Timestamp) -> Result<()> {
    let (keys, counts) = (
        || rows.iter().map(|row| &row.0),
        || rows.iter().map(|row| row.1),
    );
    let table = Rows::new()
        .uuids(keys().map(|key| key.period.owner))
        .texts(keys().map(|key| key.period.name.clone()))
        .uuids(keys().map(|key| key.app_id))
        .timestamps(keys().map(|_| minute))
        .texts(keys().map(|key| key.period.version.clone()))
        .timestamps(keys().map(|key| key.period.since))
        .texts(keys().map(|key| key.outcome.name().to_owned()))
        .integers(keys().map(|key| i64::from(key.bucket)))
        .integers(counts().map(|counts| signed(counts.calls)))
        .integers(counts().map(|counts| signed(counts.items)))
        .integers(counts().map(|counts| signed(counts.max_micros)))
        .integers(counts().map(|counts| signed(counts.memory_bytes)));
    tx.with_rows(
        "v(owner_id, name, app_id, minute, version, since, outcome, bucket,
           calls, items, max_micros, memory_bytes)",
        table,
    )
    .push(
        " INSERT INTO plugin_calls (owner_id, name, app_id, minute, version, since, outcome, bucket,
            calls, items, max_micros, memory_bytes)
          SELECT owner_id, name, app_id, minute, version, since, outcome, bucket,
            calls, items, max_micros, memory_bytes FROM v WHERE true
          ON CONFLICT (owner_id, name, app_id, minute, version, since, outcome, bucket) DO UPDATE SET
            calls = plugin_calls.calls + excluded.calls,
            items = plugin_calls.items + excluded.items,
            max_micros = CASE WHEN excluded.max_micros > plugin_calls.max_micros
                THEN excluded.max_micros ELSE plugin_calls.max_micros END,
            memory_bytes = CASE WHEN excluded.memory_bytes > plugin_calls.memory_bytes
                THEN excluded.memory_bytes ELSE plugin_calls.memory_bytes END",
    )
    .execute()
    .await?;
    Ok(())
}

/// The counts of a plugin's versions in an app, from the minute of `from` until before `to`; for
/// [`SERVER`], in all apps.
pub async fn rows(
    tx: &mut Tx,
    app_id: Uuid,
    owner_id: Uuid,
    name: &str,
    from: Timestamp,
    to: Timestamp,
) -> Result<Vec<Row>> {
    let mut statement = tx
        .sql(
            "SELECT version, outcome, bucket, CAST(sum(calls) AS BIGINT) AS calls,
                CAST(sum(items) AS BIGINT) AS items, max(max_micros) AS max_micros,
                max(memory_bytes) AS memory_bytes
             FROM plugin_calls
             WHERE owner_id = $1 AND name = $2 AND minute >= $3 AND minute < $4",
        )
        .bind(owner_id)
        .bind(name.to_owned())
        .bind(minute(from))
        .bind(to);
    if app_id != SERVER {
        statement = statement.push(" AND app_id = ").push_bind(app_id);
    }
    statement
        .push(" GROUP BY version, outcome, bucket ORDER BY version, bucket")
        .fetch_all()
        .await
}

/// How a version fared in its period, in all apps and processes.
pub async fn of_period(tx: &mut Tx, period: &RolloutPeriod) -> Result<Tally> {
    tx.sql(
        "SELECT CAST(coalesce(sum(calls), 0) AS BIGINT) AS calls,
            CAST(coalesce(sum(CASE WHEN outcome = 'ok' THEN 0 ELSE calls END), 0) AS BIGINT) AS failures
         FROM plugin_calls
         WHERE owner_id = $1 AND name = $2 AND version = $3 AND since = $4
           AND outcome NOT IN ('starved', 'taken_apart', 'retried', 'unavailable')",
    )
    .bind(period.owner)
    .bind(period.name.clone())
    .bind(period.version.clone())
    .bind(period.since)
    .fetch_one()
    .await
}

/// A version that failed calls.
#[derive(Debug, nudge_db::FromRow)]
pub struct FailingVersion {
    /// The app that the plugin belongs to, or [`SERVER`].
    pub owner_id: Uuid,
    /// The plugin.
    pub name: String,
    /// The version.
    pub version: String,
    /// Settled calls but those that the machine starved.
    pub calls: i64,
    /// Those that failed.
    pub failures: i64,
}

/// The versions that failed calls since an instant, in all apps and processes, the worst first.
pub async fn failing(tx: &mut Tx, since: Timestamp) -> Result<Vec<FailingVersion>> {
    tx.sql(
        "SELECT owner_id, name, version, CAST(sum(calls) AS BIGINT) AS calls,
            CAST(sum(CASE WHEN outcome = 'ok' THEN 0 ELSE calls END) AS BIGINT) AS failures
         FROM plugin_calls
         WHERE minute >= $1 AND outcome NOT IN ('starved', 'taken_apart', 'retried', 'unavailable')
         GROUP BY owner_id, name, version
         HAVING sum(CASE WHEN outcome = 'ok' THEN 0 ELSE calls END) > 0
         ORDER BY failures DESC, name, version LIMIT 50",
    )
    .bind(minute(since))
    .fetch_all()
    .await
}

/// Forgets the counts of all apps from before an instant.
pub async fn prune(tx: &mut Tx, before: Timestamp) -> Result<()> {
    tx.sql("DELETE FROM plugin_calls WHERE minute < $1")
        .bind(before)
        .execute()
        .await?;
    Ok(())
}
