//! Comparisons of shadow candidates in the database.

use nudge_db::{Result, Rows, Timestamp, Tx};
use nudge_platform::{hidden, id};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Comparison, ComparisonKey, MOST_SAMPLES, Sample, Taken};
use crate::catalogue::SERVER;

/// What is kept of a sample's value.
const MOST_VALUE_BYTES: usize = 8 << 10;

/// The numbers of a candidate, in one app or in all.
#[derive(Clone, Debug, nudge_db::FromRow)]
pub struct Row {
    /// The candidate.
    pub version: String,
    /// When it became the candidate.
    pub since: Timestamp,
    /// Calls compared.
    pub calls: i64,
    /// Calls with the same outcome.
    pub same: i64,
    /// Items that only the candidate decided for.
    pub added: i64,
    /// Items that only the version in force decided for.
    pub removed: i64,
    /// Items that both decided for, differently.
    pub changed: i64,
    /// Calls that the candidate failed.
    pub failed: i64,
    /// Calls that were not compared, for want of time.
    pub skipped: i64,
}

/// A difference as it is stored.
#[derive(Clone, Debug, nudge_db::FromRow)]
pub struct DifferenceRow {
    /// Whose event it is.
    pub subject_id: Uuid,
    /// The event.
    pub event_id: Uuid,
    /// The campaign, where the call was about one.
    pub campaign_id: Option<Uuid>,
    /// The difference's name.
    pub difference: String,
    /// When it was seen.
    pub at: Timestamp,
    /// What the active version left, as JSON.
    pub old_value: Option<String>,
    /// What the candidate would have left, as JSON.
    pub new_value: Option<String>,
}

/// Adds comparisons to those of their periods.
pub(crate) async fn add(tx: &mut Tx, taken: &Taken, now: Timestamp) -> Result<()> {
    for rows in taken.0.chunks(Rows::MOST) {
        add_counts(tx, rows, now).await?;
    }
    for (key, comparison) in &taken.0 {
        if !comparison.samples.is_empty() {
            add_samples(tx, key, &comparison.samples, now).await?;
        }
    }
    Ok(())
}

async fn add_counts(
    tx: &mut Tx,
    rows: &[(ComparisonKey, Comparison)],
    now: Timestamp,
) -> Result<()> {
    let periods = || rows.iter().map(|((period, _), _)| period);
    let counts = |of: fn(&super::Counts) -> u64| {
        let counts = rows
            .iter()
            .map(move |(_, comparison)| of(&comparison.counts));
        counts.map(|count| i64::try_from(count).unwrap_or(i64::MAX))
    };
    let table = Rows::new()
        .uuids(periods().map(|period| period.owner))
        .texts(periods().map(|period| period.name.clone()))
        .uuids(rows.iter().map(|((_, app_id), _)| *app_id))
        .texts(periods().map(|period| period.version.clone()))
        .timestamps(periods().map(|period| period.since))
        .integers(counts(|counts| counts.calls))
        .integers(counts(|counts| counts.same))
        .integers(counts(|counts| counts.added))
        .integers(counts(|counts| counts.removed))
        .integers(counts(|counts| counts.changed))
        .integers(counts(|counts| counts.failed))
        .integers(counts(|counts| counts.skipped))
        .timestamps(periods().map(|_| now));
    tx.with_rows(
        "v(owner_id, name, app_id, version, since, calls, same, added, removed, changed, failed, skipped,
           updated_at)",
        table,
    )
    .push(
        " INSERT INTO plugin_comparisons (owner_id, name, app_id, version, since,
            calls, same, added, removed, changed, failed, skipped, updated_at)
          SELECT owner_id, name, app_id, version, since,
            calls, same, added, removed, changed, failed, skipped, updated_at FROM v WHERE true
          ON CONFLICT (owner_id, name, app_id, version, since) DO UPDATE SET
            calls = plugin_comparisons.calls + excluded.calls,
            same = plugin_comparisons.same + excluded.same,
            added = plugin_comparisons.added + excluded.added,
            removed = plugin_comparisons.removed + excluded.removed,
            changed = plugin_comparisons.changed + excluded.changed,
            failed = plugin_comparisons.failed + excluded.failed,
            skipped = plugin_comparisons.skipped + excluded.skipped,
            updated_at = excluded.updated_at",
    )
    .execute()
    .await?;
    Ok(())
}

/// A sample's value as JSON; of one that is too long, how long it is.
fn text(value: Option<&Value>) -> Option<String> {
    let text = value?.to_string();
    if text.len() > MOST_VALUE_BYTES {
        return Some(json!({"bytes": text.len(), "omitted": true}).to_string());
    }
    // PostgreSQL takes no NUL in a text; JSON writes it as an escape.
    Some(text)
}

/// Adds differences, as far as there is room for more of the candidate. None about somebody who is being deleted or is erased by
/// now: they may have waited for the database.
async fn add_samples(
    tx: &mut Tx,
    (period, app_id): &ComparisonKey,
    samples: &[Sample],
    now: Timestamp,
) -> Result<()> {
    let person = |sample: &Sample| (*app_id, sample.subject_id);
    let present = hidden::present(tx, &samples.iter().map(person).collect()).await?;
    let samples = samples
        .iter()
        .filter(|sample| present.contains(&person(sample)));
    let samples: Vec<&Sample> = samples.collect();
    let count: i64 = tx
        .sql(
            "SELECT count(*) AS count FROM plugin_differences
             WHERE owner_id = $1 AND name = $2 AND app_id = $3 AND version = $4 AND since = $5",
        )
        .bind(period.owner)
        .bind(period.name.clone())
        .bind(*app_id)
        .bind(period.version.clone())
        .bind(period.since)
        .fetch_scalar()
        .await?;
    let room = MOST_SAMPLES.saturating_sub(usize::try_from(count).unwrap_or(usize::MAX));
    let samples = samples.get(..room.min(samples.len())).unwrap_or_default();
    if samples.is_empty() {
        return Ok(());
    }
    let table = Rows::new()
        .uuids(samples.iter().map(|_| id::new(now)))
        .uuids(samples.iter().map(|_| period.owner))
        .texts(samples.iter().map(|_| period.name.clone()))
        .uuids(samples.iter().map(|_| *app_id))
        .texts(samples.iter().map(|_| period.version.clone()))
        .timestamps(samples.iter().map(|_| period.since))
        .uuids(samples.iter().map(|sample| sample.subject_id))
        .uuids(samples.iter().map(|sample| sample.event_id))
        .uuids(samples.iter().map(|sample| sample.campaign_id))
        .texts(
            samples
                .iter()
                .map(|sample| sample.difference.name().to_owned()),
        )
        .timestamps(samples.iter().map(|_| now))
        .texts(samples.iter().map(|sample| text(sample.old.as_ref())))
        .texts(samples.iter().map(|sample| text(sample.new.as_ref())));
    tx.with_rows(
        "v(id, owner_id, name, app_id, version, since, subject_id, event_id, campaign_id, difference, at,
           old_value, new_value)",
        table,
    )
    .push(
        " INSERT INTO plugin_differences (id, owner_id, name, app_id, version, since,
            subject_id, event_id, campaign_id, difference, at, old_value, new_value)
          SELECT id, owner_id, name, app_id, version, since,
            subject_id, event_id, campaign_id, difference, at, old_value, new_value FROM v",
    )
    .execute()
    .await?;
    Ok(())
}

/// The comparisons of a plugin's candidates in an app, the newest trial first; for [`SERVER`], in all apps.
pub async fn of_plugin(tx: &mut Tx, app_id: Uuid, owner_id: Uuid, name: &str) -> Result<Vec<Row>> {
    let mut statement = tx
        .sql(
            "SELECT version, since, CAST(sum(calls) AS BIGINT) AS calls, CAST(sum(same) AS BIGINT) AS same,
                CAST(sum(added) AS BIGINT) AS added, CAST(sum(removed) AS BIGINT) AS removed,
                CAST(sum(changed) AS BIGINT) AS changed, CAST(sum(failed) AS BIGINT) AS failed,
                CAST(sum(skipped) AS BIGINT) AS skipped
             FROM plugin_comparisons WHERE owner_id = $1 AND name = $2",
        )
        .bind(owner_id)
        .bind(name.to_owned());
    if app_id != SERVER {
        statement = statement.push(" AND app_id = ").push_bind(app_id);
    }
    statement
        .push(" GROUP BY version, since ORDER BY since DESC")
        .fetch_all()
        .await
}

/// The differences that were kept of a candidate, but for those about people who are being deleted.
pub async fn differences(
    tx: &mut Tx,
    app_id: Uuid,
    owner_id: Uuid,
    name: &str,
    candidate: &Row,
) -> Result<Vec<DifferenceRow>> {
    let mut statement = tx
        .sql(
            "SELECT subject_id, event_id, campaign_id, difference, at, old_value, new_value FROM plugin_differences
             WHERE owner_id = $1 AND name = $2 AND version = $3 AND since = $4 AND subject_id NOT IN ",
        )
        .push(hidden::ANYWHERE)
        .bind(owner_id)
        .bind(name.to_owned())
        .bind(candidate.version.clone())
        .bind(candidate.since);
    if app_id != SERVER {
        statement = statement.push(" AND app_id = ").push_bind(app_id);
    }
    let most = i64::try_from(MOST_SAMPLES).unwrap_or(i64::MAX);
    statement
        .push(" ORDER BY id LIMIT ")
        .push_bind(most)
        .fetch_all()
        .await
}

/// Forgets the trials of all apps that saw nothing since an instant.
pub async fn prune(tx: &mut Tx, before: Timestamp) -> Result<()> {
    for text in [
        "DELETE FROM plugin_comparisons WHERE updated_at < $1",
        "DELETE FROM plugin_differences WHERE at < $1",
    ] {
        tx.sql(text).bind(before).execute().await?;
    }
    Ok(())
}
