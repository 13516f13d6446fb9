//! Lines of plugins in the database.

use std::collections::{HashMap, HashSet};

use nudge_db::{Result, Rows, Timestamp, Tx};
use nudge_platform::hidden;
use uuid::Uuid;

use super::{About, Line, MOST_IDS, Taken, rank};
use crate::catalogue::SERVER;

/// A line as it is stored.
#[derive(Clone, Debug, nudge_db::FromRow)]
pub struct Row {
    /// The line; ids ascend with time.
    pub id: Uuid,
    /// The app whose call logged it; [`SERVER`] where it was none.
    pub app_id: Uuid,
    /// The version of the plugin.
    pub version: String,
    /// When it was logged.
    pub at: Timestamp,
    /// Its rank among the levels.
    pub level: i64,
    /// The kind of call.
    pub kind: String,
    /// Its text.
    pub message: String,
    /// The call that it was logged in.
    pub call_id: Uuid,
    /// Some of the campaigns that the call decided, as a list in JSON.
    pub campaign_ids: Option<String>,
    /// Some of the events that the call was about, as a list in JSON.
    pub event_ids: Option<String>,
}

/// Which lines are asked for.
#[derive(Clone, Debug)]
pub struct Filter {
    /// Of this version only.
    pub version: Option<String>,
    /// This level and those above it.
    pub level: Option<i64>,
    /// Of this instant and later.
    pub since: Option<Timestamp>,
    /// The line before the first.
    pub after: Option<Uuid>,
}

/// Adds lines, but for those about somebody who is being deleted or is erased by now: they may have waited for the database.
pub(crate) async fn add(tx: &mut Tx, taken: &Taken) -> Result<()> {
    let gone = about_the_erased(tx, &taken.about).await?;
    let lines = taken.lines.iter();
    let lines: Vec<&Line> = lines.filter(|line| !gone.contains(&line.call_id)).collect();
    for lines in lines.chunks(Rows::MOST) {
        let lines = || lines.iter();
        let table = Rows::new()
            .uuids(lines().map(|line| line.id))
            .uuids(lines().map(|line| line.period.owner))
            .texts(lines().map(|line| line.period.name.clone()))
            .uuids(lines().map(|line| line.app_id))
            .texts(lines().map(|line| line.period.version.clone()))
            .timestamps(lines().map(|line| line.at))
            .integers(lines().map(|line| rank(line.level)))
            .texts(lines().map(|line| line.kind.name().to_owned()))
            .texts(lines().map(|line| line.message.clone()))
            .uuids(lines().map(|line| line.call_id))
            .shared_texts(lines().map(|line| line.campaign_ids.clone()))
            .shared_texts(lines().map(|line| line.event_ids.clone()));
        tx.with_rows(
            "v(id, owner_id, name, app_id, version, at, level, kind, message, call_id, campaign_ids, event_ids)",
            table,
        )
        .push(
            " INSERT INTO plugin_log (id, owner_id, name, app_id, version, at, level, kind, message, call_id,
                                      campaign_ids, event_ids)
              SELECT id, owner_id, name, app_id, version, at, level, kind, message, call_id,
                     campaign_ids, event_ids FROM v",
        )
        .execute()
        .await?;
    }
    let about = taken.about.iter();
    let about: Vec<&About> = about
        .filter(|about| !gone.contains(&about.call_id))
        .collect();
    for about in about.chunks(Rows::MOST) {
        add_subjects(tx, about).await?;
    }
    Ok(())
}

/// The calls about somebody who is being deleted or is erased.
async fn about_the_erased(tx: &mut Tx, about: &[About]) -> Result<HashSet<Uuid>> {
    let person = |about: &About| (about.app_id, about.subject_id);
    let present = hidden::present(tx, &about.iter().map(person).collect()).await?;
    let gone = about
        .iter()
        .filter(|about| !present.contains(&person(about)));
    Ok(gone.map(|about| about.call_id).collect())
}

async fn add_subjects(tx: &mut Tx, about: &[&About]) -> Result<()> {
    let about = || about.iter();
    let table = Rows::new()
        .uuids(about().map(|about| about.app_id))
        .uuids(about().map(|about| about.subject_id))
        .uuids(about().map(|about| about.call_id))
        .timestamps(about().map(|about| about.at));
    tx.with_rows("v(app_id, subject_id, call_id, at)", table)
        .push(
            " INSERT INTO plugin_log_subjects (app_id, subject_id, call_id, at)
              SELECT app_id, subject_id, call_id, at FROM v WHERE true
              ON CONFLICT (app_id, subject_id, call_id) DO NOTHING",
        )
        .execute()
        .await?;
    Ok(())
}

/// Lines of a plugin in an app, newest first; for [`SERVER`], in all apps. None about anybody who is being deleted.
pub async fn list(
    tx: &mut Tx,
    app_id: Uuid,
    owner_id: Uuid,
    name: &str,
    filter: Filter,
    limit: u32,
) -> Result<Vec<Row>> {
    let mut statement = tx
        .sql(
            "SELECT id, app_id, version, at, level, kind, message, call_id, campaign_ids, event_ids FROM plugin_log
             WHERE owner_id = $1 AND name = $2 AND call_id NOT IN ",
        )
        .push(hidden::CALLS)
        .bind(owner_id)
        .bind(name.to_owned());
    if app_id != SERVER {
        statement = statement.push(" AND app_id = ").push_bind(app_id);
    }
    if let Some(version) = filter.version {
        statement = statement.push(" AND version = ").push_bind(version);
    }
    if let Some(level) = filter.level {
        statement = statement.push(" AND level >= ").push_bind(level);
    }
    if let Some(since) = filter.since {
        statement = statement.push(" AND at >= ").push_bind(since);
    }
    statement
        .newest_below(filter.after, i64::from(limit))
        .fetch_all()
        .await
}

/// The subjects that calls were about, a few of each call.
pub async fn subjects(tx: &mut Tx, calls: &[Uuid]) -> Result<HashMap<Uuid, Vec<Uuid>>> {
    #[derive(nudge_db::FromRow)]
    struct Row {
        call_id: Uuid,
        subject_id: Uuid,
    }
    let mut subjects: HashMap<Uuid, Vec<Uuid>> = HashMap::new();
    let most = i64::try_from(MOST_IDS).unwrap_or(i64::MAX);
    for calls in calls.chunks(Rows::MOST) {
        let rows: Vec<Row> = tx
            .sql(
                "SELECT call_id, subject_id FROM (
                    SELECT call_id, subject_id,
                        row_number() OVER (PARTITION BY call_id ORDER BY subject_id) AS place
                    FROM plugin_log_subjects WHERE call_id IN ",
            )
            .push_list(calls.iter().copied())
            .push(") numbered WHERE place <= ")
            .push_bind(most)
            .push(" ORDER BY call_id, subject_id")
            .fetch_all()
            .await?;
        for row in rows {
            let of_call = subjects.entry(row.call_id).or_default();
            of_call.push(row.subject_id);
        }
    }
    Ok(subjects)
}

/// Forgets the lines of all apps from before an instant.
pub async fn prune(tx: &mut Tx, before: Timestamp) -> Result<()> {
    for text in [
        "DELETE FROM plugin_log WHERE at < $1",
        "DELETE FROM plugin_log_subjects WHERE at < $1",
    ] {
        tx.sql(text).bind(before).execute().await?;
    }
    Ok(())
}
