//! Jobs in the database.

use nudge_db::{Error, Result, Statement, Timestamp, Tx};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{NewJob, RunningJob};
use crate::claims::Claims;

/// A job as its app sees it.
#[derive(Debug, nudge_db::FromRow)]
pub struct JobRow {
    /// Its id.
    pub id: Uuid,
    /// What it does.
    pub kind: String,
    /// `queued`, `running`, `completed` or `failed`.
    pub state: String,
    /// Its own note of how far it is, as JSON.
    pub progress: String,
    /// How much is done.
    pub done: i64,
    /// Of how much, once that is known.
    pub total: Option<i64>,
    /// What came of it, as JSON.
    pub result: Option<String>,
    /// Why it failed.
    pub error: Option<String>,
    /// Who asked.
    pub requested_by: String,
    /// When.
    pub created_at: Timestamp,
    /// When it last moved.
    pub updated_at: Timestamp,
    /// When it ended.
    pub completed_at: Option<Timestamp>,
}

/// A job that was just claimed.
#[derive(Debug, nudge_db::FromRow)]
pub(super) struct ClaimedRow {
    id: Uuid,
    app_id: Uuid,
    kind: String,
    input: String,
    progress: String,
    failures: i64,
}

impl ClaimedRow {
    pub(super) fn running(self, node: Uuid, halt: CancellationToken) -> Result<RunningJob> {
        let input = serde_json::from_str(&self.input)
            .map_err(|cause| Error::corrupt("jobs", "input", cause))?;
        let progress = serde_json::from_str(&self.progress)
            .map_err(|cause| Error::corrupt("jobs", "progress", cause))?;
        Ok(RunningJob {
            id: self.id,
            app_id: self.app_id,
            kind: self.kind,
            input,
            progress,
            failures: self.failures,
            node,
            halt,
        })
    }
}

/// How a run of a job ended.
#[derive(Debug)]
pub(super) enum End<'a> {
    /// Done, with a result.
    Completed(&'a Value),
    /// It can't be done.
    Failed(&'a str),
    /// To be tried again then, after a failure.
    Later(Timestamp),
    /// To go on then.
    Waits(Timestamp),
}

/// Adds a job.
pub(super) async fn insert(tx: &mut Tx, id: Uuid, job: &NewJob<'_>, now: Timestamp) -> Result<()> {
    tx.sql(
        "INSERT INTO jobs (id, app_id, kind, state, input, progress, done, requested_by, failures, run_at,
                           created_at, updated_at)
         VALUES ($1, $2, $3, 'queued', $4, 'null', 0, $5, 0, $6, $6, $6)",
    )
    .bind(id)
    .bind(job.app_id)
    .bind(job.kind)
    .bind(job.input.to_string())
    .bind(job.requested_by.to_owned())
    .bind(now)
    .execute()
    .await?;
    Ok(())
}

/// Finds a job of an app.
pub async fn find(tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<Option<JobRow>> {
    tx.sql(
        "SELECT id, kind, state, progress, done, total, result, error, requested_by, created_at, updated_at, completed_at
         FROM jobs WHERE app_id = $1 AND id = $2",
    )
    .bind(app_id)
    .bind(id)
    .fetch_optional()
    .await
}

/// Lists jobs of a kind of an app, newest first, from below an id on.
pub async fn list(
    tx: &mut Tx,
    app_id: Uuid,
    kind: &'static str,
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<JobRow>> {
    tx.sql(
        "SELECT id, kind, state, progress, done, total, result, error, requested_by, created_at, updated_at,
                completed_at
         FROM jobs WHERE app_id = $1 AND kind = $2",
    )
    .bind(app_id)
    .bind(kind)
    .newest_below(before, limit)
    .fetch_all()
    .await
}

/// How many jobs of a kind an app has that have not ended. Nobody else counts them until the transaction ends: two that each queue
/// one more would both find room for the last.
pub async fn count_unfinished(tx: &mut Tx, app_id: Uuid, kind: &'static str) -> Result<usize> {
    // There may be no job to be locked. The app stands for those that it has.
    let for_update = tx.dialect().for_update();
    let _: Option<Uuid> = tx
        .sql("SELECT id FROM apps WHERE id = $1")
        .bind(app_id)
        .push(for_update)
        .fetch_value()
        .await?;
    let count: i64 = tx
        .sql(
            "SELECT count(*) AS count FROM jobs WHERE app_id = $1 AND kind = $2 AND completed_at IS NULL",
        )
        .bind(app_id)
        .bind(kind)
        .fetch_scalar()
        .await?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

/// Jobs that one statement removes at the most.
const STEP: i64 = 500;

/// Whether an app has jobs of these kinds that ended before an instant.
pub async fn is_any_ended(
    tx: &mut Tx,
    app_id: Uuid,
    kinds: Vec<&'static str>,
    before: Timestamp,
) -> Result<bool> {
    let row: Option<Uuid> = tx
        .sql("SELECT id FROM jobs WHERE app_id = $1 AND completed_at < $2 AND kind IN ")
        .bind(app_id)
        .bind(before)
        .push_list(kinds)
        .push(" LIMIT 1")
        .fetch_value()
        .await?;
    Ok(row.is_some())
}

/// Removes jobs of these kinds of an app that ended before an instant, some of them; answers how many.
pub async fn delete_ended(
    tx: &mut Tx,
    app_id: Uuid,
    kinds: Vec<&'static str>,
    before: Timestamp,
) -> Result<u64> {
    tx.sql(
        "DELETE FROM jobs WHERE app_id = $1 AND id IN (
            SELECT id FROM jobs WHERE app_id = $1 AND completed_at < $2 AND kind IN ",
    )
    .bind(app_id)
    .bind(before)
    .push_list(kinds)
    .push(" LIMIT ")
    .push_bind(STEP)
    .push(")")
    .execute()
    .await
}

/// Which job a process takes next.
#[derive(Debug)]
pub(super) struct Wanted {
    /// One that is due by now.
    pub(super) now: Timestamp,
    /// Or later than any job is put off.
    pub(super) latest: Timestamp,
    /// One of these kinds: those that this server knows and has room for.
    pub(super) kinds: Vec<&'static str>,
    /// One of these apps only if no other waits.
    pub(super) after: Vec<Uuid>,
    /// None of these jobs: this process runs them still.
    pub(super) in_hand: Vec<Uuid>,
}

impl Wanted {
    fn push<'a>(&self, statement: Statement<'a>) -> Statement<'a> {
        let mut statement = statement
            .push("completed_at IS NULL AND node IS NULL AND (run_at <= ")
            .push_bind(self.now)
            .push(" OR run_at > ")
            .push_bind(self.latest)
            .push(") AND kind IN ")
            .push_list(self.kinds.iter().copied());
        if !self.in_hand.is_empty() {
            statement = statement
                .push(" AND id NOT IN ")
                .push_list(self.in_hand.iter().copied());
        }
        statement
            .push(" ORDER BY CASE WHEN app_id IN ")
            .push_list(self.after.iter().copied())
            .push(" THEN 1 ELSE 0 END, run_at LIMIT 1")
    }
}

/// Whether such a job waits.
pub(super) async fn anything_waits(tx: &mut Tx, wanted: &Wanted) -> Result<bool> {
    let statement = tx.sql("SELECT id FROM jobs WHERE ");
    let row: Option<Uuid> = wanted.push(statement).fetch_value().await?;
    Ok(row.is_some())
}

/// When the next job of these kinds is to run that no process has.
pub(super) async fn next(tx: &mut Tx, kinds: Vec<&'static str>) -> Result<Option<Timestamp>> {
    tx.sql("SELECT run_at FROM jobs WHERE completed_at IS NULL AND node IS NULL AND kind IN ")
        .push_list(kinds)
        .push(" ORDER BY run_at LIMIT 1")
        .fetch_value()
        .await
}

/// Claims the job that waits longest of those.
pub(super) async fn claim(tx: &mut Tx, node: Uuid, wanted: &Wanted) -> Result<Option<ClaimedRow>> {
    let skip_locked = tx.dialect().skip_locked();
    let statement = tx
        .sql("UPDATE jobs SET state = 'running', node = ")
        .push_bind(node)
        .push(", updated_at = ")
        .push_bind(wanted.now)
        .push(" WHERE id = (SELECT id FROM jobs WHERE ");
    wanted
        .push(statement)
        .push(skip_locked)
        .push(") RETURNING id, app_id, kind, input, progress, failures")
        .fetch_optional()
        .await
}

/// The claims of jobs.
pub(super) const CLAIMS: Claims = Claims {
    rows: "jobs",
    claimed: "SELECT id FROM jobs WHERE completed_at IS NULL AND node = $1",
    table: "jobs",
};

/// Notes a job's progress. False: it is not this process's any longer.
pub(super) async fn advance(
    tx: &mut Tx,
    job: &RunningJob,
    progress: &Value,
    done: i64,
    total: Option<i64>,
    now: Timestamp,
) -> Result<bool> {
    let updated = tx
        .sql(
            "UPDATE jobs SET progress = $4, done = $5, total = $6, failures = 0, updated_at = $7
             WHERE app_id = $1 AND id = $2 AND node = $3 AND completed_at IS NULL",
        )
        .bind(job.app_id)
        .bind(job.id)
        .bind(job.node)
        .bind(progress.to_string())
        .bind(done)
        .bind(total)
        .bind(now)
        .execute()
        .await?;
    Ok(updated == 1)
}

/// Whether a job is still this process's. No other process takes it over until the transaction ends.
pub(super) async fn hold(tx: &mut Tx, job: &RunningJob) -> Result<bool> {
    let for_update = tx.dialect().for_update();
    let row: Option<Uuid> = tx
        .sql(
            "SELECT id FROM jobs WHERE app_id = $1 AND id = $2 AND node = $3 AND completed_at IS NULL",
        )
        .bind(job.app_id)
        .bind(job.id)
        .bind(job.node)
        .push(for_update)
        .fetch_value()
        .await?;
    Ok(row.is_some())
}

/// Notes how a run ended.
pub(super) async fn end(
    tx: &mut Tx,
    job: &RunningJob,
    end: &End<'_>,
    now: Timestamp,
) -> Result<()> {
    let (state, result, error, completed_at, run_at) = match end {
        End::Completed(result) => ("completed", Some(result.to_string()), None, Some(now), now),
        End::Failed(reason) => ("failed", None, Some((*reason).to_owned()), Some(now), now),
        End::Later(at) | End::Waits(at) => ("running", None, None, None, *at),
    };
    let failed = i64::from(matches!(end, End::Later(_)));
    tx.sql(
        "UPDATE jobs SET state = $4, result = $5, error = $6, completed_at = $7, run_at = $8, updated_at = $9,
                         failures = failures + $10, node = NULL
         WHERE app_id = $1 AND id = $2 AND node = $3",
    )
    .bind(job.app_id)
    .bind(job.id)
    .bind(job.node)
    .bind(state)
    .bind(result)
    .bind(error)
    .bind(completed_at)
    .bind(run_at)
    .bind(now)
    .bind(failed)
    .execute()
    .await?;
    Ok(())
}

/// Replaces what a job was asked to do.
pub(super) async fn replace_input(tx: &mut Tx, job: &RunningJob, input: &Value) -> Result<()> {
    tx.sql("UPDATE jobs SET input = $4 WHERE app_id = $1 AND id = $2 AND node = $3")
        .bind(job.app_id)
        .bind(job.id)
        .bind(job.node)
        .bind(input.to_string())
        .execute()
        .await?;
    Ok(())
}
