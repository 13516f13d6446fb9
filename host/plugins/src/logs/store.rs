//! Lines of plugins in the database.

use nudge_db::{Result, Rows, Timestamp, Tx};
use nudge_platform::hidden;
use uuid::Uuid;

use super::{About, Line, Taken, rank};
use crate::catalogue::SERVER;

/// A line as it is stored.
#[derive(Clone, Debug, sqlx::FromRow)]
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

/// Adds lines.
pub(crate) async fn add(tx: &mut Tx, taken: &Taken) -> Result<()> {
    let lines: Vec<&Line> = taken.lines.iter().collect();
    for lines in lines.chunks(Rows::MOST) {
        let lines = || lines.iter();
        let table = Rows::new()
            .uuids(lines().map(|line| line.id))
            .uuids(lines().map(|line| line.term.owner))
            .texts(lines().map(|line| line.term.name.clone()))
            .uuids(lines().map(|line| line.app_id))
            .texts(lines().map(|line| line.term.version.clone()))
            .timestamps(lines().map(|line| line.at))
            .integers(lines().map(|line| rank(line.level)))
            .texts(lines().map(|line| line.kind.name().to_owned()))
            .texts(lines().map(|line| line.message.clone()))
            .uuids(lines().map(|line| line.call_id));
        tx.with_rows(
            "v(id, owner_id, name, app_id, version, at, level, kind, message, call_id)",
            table,
        )
        .push(
            " INSERT INTO plugin_log (id, owner_id, name, app_id, version, at, level, kind, message, call_id)
              SELECT id, owner_id, name, app_id, version, at, level, kind, message, call_id FROM v",
        )
        .execute()
        .await?;
    }
    for about in taken.about.chunks(Rows::MOST) {
        add_subjects(tx, about).await?;
    }
    Ok(())
}

async fn add_subjects(tx: &mut Tx, about: &[About]) -> Result<()> {
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
            "SELECT id, app_id, version, at, level, kind, message FROM plugin_log
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
    if let Some(after) = filter.after {
        statement = statement.push(" AND id < ").push_bind(after);
    }
    statement
        .push(" ORDER BY id DESC LIMIT ")
        .push_bind(i64::from(limit))
        .fetch_all()
        .await
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
