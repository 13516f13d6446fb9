//! Runs in the database: which is due, and who has begun it.

use nudge_campaigns::runs::PARKED;
use nudge_campaigns::runs::calendar::Run;
use nudge_campaigns::runs::store::{Planned, Row, STEP, lock};
use nudge_campaigns::surveys::IDLE;
use nudge_db::{Result, Timestamp, Tx};
use nudge_records::instructions::LIFETIME;
use nudge_records::scheduled_work::seq_of;
use uuid::Uuid;

/// Campaigns, of all apps, whose next run is to begin.
pub async fn due(tx: &mut Tx, now: Timestamp, limit: i64) -> Result<Vec<(Uuid, Uuid)>> {
    #[derive(nudge_db::FromRow)]
    struct DueRow {
        app_id: Uuid,
        campaign_id: Uuid,
    }
    let rows: Vec<DueRow> = tx
        .sql(
            "SELECT app_id, campaign_id FROM campaign_runs
             WHERE next_at <= $1 ORDER BY next_at LIMIT $2",
        )
        .bind(now)
        .bind(limit)
        .fetch_all()
        .await?;
    Ok(rows
        .into_iter()
        .map(|row| (row.app_id, row.campaign_id))
        .collect())
}

/// When the next run begins or is looked at.
pub async fn next(tx: &mut Tx) -> Result<Option<Timestamp>> {
    let begins = tx
        .sql("SELECT next_at FROM campaign_runs WHERE next_at IS NOT NULL ORDER BY next_at LIMIT 1")
        .fetch_value()
        .await?;
    let looked = tx
        .sql("SELECT look_at FROM campaign_runs WHERE look_at IS NOT NULL ORDER BY look_at LIMIT 1")
        .fetch_value()
        .await?;
    Ok([begins, looked].into_iter().flatten().min())
}

/// Notes that a run has begun, and the one after it. False: it was begun by somebody else, or is not to begin any
/// longer.
pub async fn begin(
    tx: &mut Tx,
    planned: &Planned,
    run: Run,
    after: Option<Run>,
    job_id: Uuid,
    now: Timestamp,
) -> Result<bool> {
    let begun = tx
        .sql(
            "UPDATE campaign_runs SET last_at = $3, next_at = $4, next_occasion = $5, job_id = $6, look_at = $7
             WHERE app_id = $1 AND campaign_id = $2 AND next_at = $8",
        )
        .bind(planned.app_id)
        .bind(planned.campaign_id)
        .bind(run.occasion)
        .bind(after.map(|run| run.begins_at))
        .bind(after.map(|run| run.occasion))
        .bind(job_id)
        .bind(now)
        .bind(planned.next.map(|run| run.begins_at))
        .execute()
        .await?;
    Ok(begun == 1)
}

/// Campaigns, of all apps, whose run goes on and is to be looked at, with the time of the look: it has come, or is later than
/// `latest`, up to which looks are put off.
pub async fn to_look_at(
    tx: &mut Tx,
    now: Timestamp,
    latest: Timestamp,
    limit: i64,
) -> Result<Vec<(Planned, Timestamp)>> {
    #[derive(nudge_db::FromRow)]
    struct LookRow {
        look_at: Timestamp,
        #[sqlx(flatten)]
        row: Row,
    }
    let rows: Vec<LookRow> = tx
        .sql(
            "SELECT look_at, campaign_id, app_id, kind, plan, next_at, next_occasion, last_at, job_id
             FROM campaign_runs WHERE look_at <= $1 OR look_at > $2 ORDER BY look_at LIMIT $3",
        )
        .bind(now)
        .bind(latest)
        .bind(limit)
        .fetch_all()
        .await?;
    rows.into_iter()
        .map(|row| Ok((row.row.read()?, row.look_at)))
        .collect()
}

/// Whether a look at a run still holds, which then does until the transaction ends: the campaign was neither saved since nor
/// looked at by another process.
pub async fn holds(tx: &mut Tx, planned: &Planned, seen: Timestamp) -> Result<bool> {
    let for_update = tx.dialect().for_update();
    let row: Option<Uuid> = tx
        .sql("SELECT campaign_id FROM campaign_runs WHERE app_id = $1 AND campaign_id = $2 AND look_at = $3")
        .bind(planned.app_id)
        .bind(planned.campaign_id)
        .bind(seen)
        .push(for_update)
        .fetch_value()
        .await?;
    Ok(row.is_some())
}

/// Puts the next look at a run off, or ends the run. False: somebody else has looked.
pub async fn looked(
    tx: &mut Tx,
    planned: &Planned,
    seen: Timestamp,
    next: Option<Timestamp>,
) -> Result<bool> {
    let updated = tx
        .sql(
            "UPDATE campaign_runs SET look_at = $4 WHERE app_id = $1 AND campaign_id = $2 AND look_at = $3",
        )
        .bind(planned.app_id)
        .bind(planned.campaign_id)
        .bind(seen)
        .bind(next)
        .execute()
        .await?;
    Ok(updated == 1)
}

/// Keeps a run from ending until the transaction does. False: it is not that of the job any longer, or the
/// campaign is gone.
pub async fn hold(tx: &mut Tx, app_id: Uuid, campaign_id: Uuid, job_id: Uuid) -> Result<bool> {
    let planned = lock(tx, app_id, campaign_id).await?;
    Ok(planned.is_some_and(|planned| planned.job_id == Some(job_id)))
}

/// Whether a job has ended, whatever came of it.
pub async fn has_ended(tx: &mut Tx, app_id: Uuid, job_id: Uuid) -> Result<bool> {
    let row: Option<Uuid> = tx
        .sql("SELECT id FROM jobs WHERE app_id = $1 AND id = $2 AND completed_at IS NULL")
        .bind(app_id)
        .bind(job_id)
        .fetch_value()
        .await?;
    Ok(row.is_none())
}

/// What a job was asked to do, as its column stores it; none: it is gone.
pub async fn input_of(tx: &mut Tx, app_id: Uuid, job_id: Uuid) -> Result<Option<String>> {
    tx.sql("SELECT input FROM jobs WHERE app_id = $1 AND id = $2")
        .bind(app_id)
        .bind(job_id)
        .fetch_value()
        .await
}

/// Who waits for something of a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitingWork {
    /// When the first of them is to get it.
    pub first_due: Option<Timestamp>,
    /// Whether some wait for the campaign to be resumed.
    pub parked: bool,
    /// Whether a timer waits.
    pub timers: bool,
}

impl WaitingWork {
    /// Whether nobody does.
    pub fn nobody(self) -> bool {
        self.first_due.is_none()
    }
}

/// Who waits for something of a campaign: occasions, and timers that its plugin set.
pub async fn waiting(tx: &mut Tx, app_id: Uuid, campaign_id: Uuid) -> Result<WaitingWork> {
    let mut due = Vec::new();
    let mut timers = false;
    for (text, of_timers) in [
        (
            "SELECT due_at FROM occasions WHERE app_id = $1 AND campaign_id = $2 ORDER BY due_at LIMIT 1",
            false,
        ),
        (
            "SELECT due_at FROM occasions WHERE app_id = $1 AND campaign_id = $2 ORDER BY due_at DESC LIMIT 1",
            false,
        ),
        (
            "SELECT due_at FROM timers WHERE app_id = $1 AND campaign_id = $2 ORDER BY subject_id, key LIMIT 1",
            true,
        ),
    ] {
        let row: Option<Timestamp> = tx
            .sql(text)
            .bind(app_id)
            .bind(campaign_id)
            .fetch_value()
            .await?;
        timers |= of_timers && row.is_some();
        due.extend(row);
    }
    if timers && !due.contains(&PARKED) {
        due.extend(parked_timer(tx, app_id, campaign_id).await?);
    }
    Ok(WaitingWork {
        timers,
        first_due: due.iter().min().copied(),
        parked: due.contains(&PARKED),
    })
}

/// [`PARKED`], if a timer of a campaign is put off.
async fn parked_timer(tx: &mut Tx, app_id: Uuid, campaign_id: Uuid) -> Result<Option<Timestamp>> {
    tx.sql(
        "SELECT due_at FROM timers WHERE app_id = $1 AND campaign_id = $2 AND due_at = $3 LIMIT 1",
    )
    .bind(app_id)
    .bind(campaign_id)
    .bind(PARKED)
    .fetch_value()
    .await
}

/// Whether an instruction of a campaign is on offer, or somebody may still be looking at the survey that one has shown.
pub async fn any_on_offer(
    tx: &mut Tx,
    app_id: Uuid,
    campaign_id: Uuid,
    now: Timestamp,
) -> Result<bool> {
    let offered: Option<Uuid> = tx
        .sql(
            "SELECT id FROM instructions WHERE app_id = $1 AND campaign_id = $2 AND expires_at > $3 AND NOT test
               AND status IN ('issued', 'received') LIMIT 1",
        )
        .bind(app_id)
        .bind(campaign_id)
        .bind(now)
        .fetch_value()
        .await?;
    if offered.is_some() {
        return Ok(true);
    }
    // An older one was on offer no longer when it was shown. The bound is what its index is read by.
    let shown: Option<Uuid> = tx
        .sql(
            "SELECT id FROM instructions WHERE app_id = $1 AND campaign_id = $2 AND displayed_at > $3 AND NOT test
               AND status = 'displayed' AND kind = 'survey' AND created_at > $4 LIMIT 1",
        )
        .bind(app_id)
        .bind(campaign_id)
        .bind(now.minus(IDLE))
        .bind(now.minus(LIFETIME + IDLE))
        .fetch_value()
        .await?;
    Ok(shown.is_some())
}

/// How many occasions of a campaign are due and not done, up to a number.
pub async fn count_due(
    tx: &mut Tx,
    app_id: Uuid,
    campaign_id: Uuid,
    now: Timestamp,
    at_most: i64,
) -> Result<i64> {
    tx
        .sql(
            "SELECT count(*) AS count FROM (
                SELECT 1 AS one FROM occasions WHERE app_id = $1 AND campaign_id = $2 AND due_at <= $3 LIMIT $4) counted",
        )
        .bind(app_id)
        .bind(campaign_id)
        .bind(now)
        .bind(at_most)
        .fetch_scalar()
        .await
}

/// Makes some occasions and timers due that were put off until their campaign runs again; answers how many.
pub async fn resume(tx: &mut Tx, planned: &Planned, now: Timestamp) -> Result<u64> {
    let mut resumed = 0;
    for text in [
        "UPDATE occasions SET due_at = $3 WHERE id IN (
            SELECT id FROM occasions WHERE app_id = $1 AND campaign_id = $2 AND due_at = $4 LIMIT $5)",
        "UPDATE timers SET due_at = $3 WHERE id IN (
            SELECT id FROM timers WHERE app_id = $1 AND campaign_id = $2 AND due_at = $4
            ORDER BY subject_id, key LIMIT $5)",
    ] {
        resumed += tx
            .sql(text)
            .bind(planned.app_id)
            .bind(planned.campaign_id)
            .bind(now)
            .bind(PARKED)
            .bind(STEP)
            .execute()
            .await?;
    }
    Ok(resumed)
}

/// Makes some occasions of a campaign's runs due that are due later than `latest`, but for those that are put off until it runs
/// again. Answers how many.
pub async fn hasten(
    tx: &mut Tx,
    planned: &Planned,
    now: Timestamp,
    latest: Timestamp,
) -> Result<u64> {
    tx.sql(
        "UPDATE occasions SET due_at = $3, event_seq = $4 WHERE id IN (
            SELECT id FROM occasions WHERE app_id = $1 AND campaign_id = $2 AND due_at > $5 AND due_at < $6
              AND firing_id IS NULL LIMIT $7)",
    )
    .bind(planned.app_id)
    .bind(planned.campaign_id)
    .bind(now)
    .bind(seq_of(now))
    .bind(latest)
    .bind(PARKED)
    .bind(STEP)
    .execute()
    .await
}

/// Removes some occasions and timers of a campaign that is over; answers how many.
pub async fn drop_left(tx: &mut Tx, planned: &Planned) -> Result<u64> {
    let mut dropped = 0;
    for text in [
        "DELETE FROM occasions WHERE id IN (
            SELECT id FROM occasions WHERE app_id = $1 AND campaign_id = $2 ORDER BY due_at LIMIT $3)",
        "DELETE FROM timers WHERE id IN (
            SELECT id FROM timers WHERE app_id = $1 AND campaign_id = $2 ORDER BY subject_id, key LIMIT $3)",
    ] {
        dropped += tx
            .sql(text)
            .bind(planned.app_id)
            .bind(planned.campaign_id)
            .bind(STEP)
            .execute()
            .await?;
    }
    Ok(dropped)
}

/// Forgets some of whom a campaign's runs have given something: of runs before one, and but for those whose firing waits
/// still. Answers how many.
pub async fn forget_firings(tx: &mut Tx, planned: &Planned, before: &str) -> Result<u64> {
    tx.sql(
        "DELETE FROM run_firings WHERE (campaign_id, key, subject_id) IN (
            SELECT campaign_id, key, subject_id FROM run_firings
            WHERE app_id = $1 AND campaign_id = $2 AND key < $3
              AND NOT EXISTS (SELECT 1 FROM occasions o WHERE o.subject_id = run_firings.subject_id
                    AND o.campaign_id = run_firings.campaign_id AND o.event_seq = run_firings.event_seq)
            LIMIT $4)",
    )
    .bind(planned.app_id)
    .bind(planned.campaign_id)
    .bind(before.to_owned())
    .bind(STEP)
    .execute()
    .await
}

/// The newest subject of an app that is not being deleted; nil: there is none.
pub async fn newest_subject(tx: &mut Tx, app_id: Uuid) -> Result<Uuid> {
    let row: Option<Uuid> = tx
        .sql(
            "SELECT id FROM subjects WHERE app_id = $1 AND NOT suppressed ORDER BY id DESC LIMIT 1",
        )
        .bind(app_id)
        .fetch_value()
        .await?;
    Ok(row.map_or(Uuid::nil(), |row| row))
}

/// Somebody whom a run is about.
#[derive(Debug)]
pub struct Person {
    /// The subject.
    pub id: Uuid,
    /// Its time zone.
    pub timezone: Option<String>,
    /// One of its aliases.
    pub alias: i64,
    /// Whether nothing which arrived is known to be still to be processed of it.
    pub is_in_turn: bool,
}

/// The condition that nothing which arrived is still to be processed of the subject `s`.
const IN_TURN: &str = "(NOT EXISTS (SELECT 1 FROM pending)
    OR (SELECT a.number FROM aliases a
        WHERE a.subject_id = s.id AND (SELECT p.id FROM pending p WHERE p.alias_number = a.number LIMIT 1) IS NOT NULL
        LIMIT 1) IS NULL)";

/// The subjects of an app after one and up to another, in order, without those that are being deleted. They are kept from
/// being merged or removed until the transaction ends. Answers how far that went too; none: there are no more.
pub async fn people(
    tx: &mut Tx,
    app_id: Uuid,
    after: Uuid,
    last: Uuid,
    limit: i64,
) -> Result<Option<(Uuid, Vec<Person>)>> {
    #[derive(nudge_db::FromRow)]
    struct PersonRow {
        id: Uuid,
        timezone: Option<String>,
        alias: Option<i64>,
        is_in_turn: bool,
    }
    let keep = tx.dialect().for_key_share();
    // A distributed database can't say it of each.
    let is_in_turn = if tx.shards().is_some() {
        "false"
    } else {
        IN_TURN
    };
    let rows: Vec<PersonRow> = tx
        .sql(
            "SELECT s.id, s.timezone, (SELECT min(a.number) FROM aliases a WHERE a.subject_id = s.id) AS alias, ",
        )
        .push(is_in_turn)
        .push(" AS is_in_turn FROM subjects s WHERE s.app_id = ")
        .push_bind(app_id)
        .push(" AND s.id > ")
        .push_bind(after)
        .push(" AND s.id <= ")
        .push_bind(last)
        .push(" AND NOT s.suppressed ORDER BY s.id LIMIT ")
        .push_bind(limit)
        .push(keep)
        .fetch_all()
        .await?;
    let Some(newest) = rows.last().map(|row| row.id) else {
        return Ok(None);
    };
    let people = rows.into_iter().filter_map(|row| {
        Some(Person {
            id: row.id,
            timezone: row.timezone,
            alias: row.alias?,
            is_in_turn: row.is_in_turn,
        })
    });
    Ok(Some((newest, people.collect())))
}
