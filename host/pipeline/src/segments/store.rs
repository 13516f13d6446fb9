//! Members, sizes and sweeps in the database.

use std::collections::{HashMap, HashSet};

use nudge_db::{Result, Rows, Timestamp, Tx};
use uuid::Uuid;

use crate::projection::Subject;

/// Somebody's membership of a segment.
pub(super) type Membership = (Uuid, Uuid);

/// Rows that one statement removes at the most.
const STEP: i64 = 500;

/// Of whom it is known whether they are in a segment.
#[derive(Clone, Copy, Debug, nudge_db::FromRow)]
pub(super) struct SegmentCoverage {
    pub id: Uuid,
    /// The version of the conditions.
    pub audience_version: i64,
    /// The version for which everybody was looked at.
    pub based_version: i64,
    /// The newest person when the conditions became what they are.
    pub newest_subject: Uuid,
    /// How far the first look at everybody has come, and for which version.
    pub looked_to: Option<Uuid>,
    pub looked_version: Option<i64>,
}

/// An app whose people are to be gone through.
#[derive(Clone, Copy, Debug, nudge_db::FromRow)]
pub(super) struct Sweep {
    pub app_id: Uuid,
    pub next_at: Timestamp,
    pub job_id: Option<Uuid>,
}

/// People of an app behind one, in order, without those who are being deleted.
pub(super) async fn people(
    tx: &mut Tx,
    app_id: Uuid,
    after: Uuid,
    limit: i64,
) -> Result<Vec<Subject>> {
    let ids: Vec<Uuid> = tx
        .sql("SELECT id FROM subjects WHERE app_id = $1 AND id > $2 AND NOT suppressed ORDER BY id LIMIT $3")
        .bind(app_id)
        .bind(after)
        .bind(limit)
        .fetch_values()
        .await?;
    let mut people = crate::store::subjects_of(tx, app_id, &ids).await?;
    people.sort_unstable_by_key(|person| person.id);
    Ok(people)
}

/// Whether requests of some people wait to be processed.
pub(super) async fn has_waiting(tx: &mut Tx, app_id: Uuid, people: &[Uuid]) -> Result<bool> {
    let aliases: Vec<i64> = tx
        .sql("SELECT number FROM aliases WHERE (app_id = $1) IS TRUE AND subject_id IN ")
        .bind(app_id)
        .push_list(people.iter().copied())
        .fetch_values()
        .await?;
    for aliases in aliases.chunks(Rows::MOST) {
        let waiting: Vec<i64> = tx
            .sql("SELECT id FROM pending WHERE alias_number IN ")
            .push_list(aliases.iter().copied())
            .push(" LIMIT 1")
            .fetch_values()
            .await?;
        if !waiting.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The versions of people who are there and not being deleted; nobody changes them until the transaction ends.
pub(super) async fn hold(
    tx: &mut Tx,
    app_id: Uuid,
    subjects: &[Uuid],
) -> Result<HashMap<Uuid, i64>> {
    #[derive(nudge_db::FromRow)]
    struct VersionRow {
        id: Uuid,
        version: i64,
    }
    let lock = tx.dialect().for_update();
    let rows: Vec<VersionRow> = tx
        .sql("SELECT id, version FROM subjects WHERE app_id = $1 AND NOT suppressed AND id IN ")
        .bind(app_id)
        .push_list(subjects.iter().copied())
        .push(" ORDER BY id")
        .push(lock)
        .fetch_all()
        .await?;
    Ok(rows.into_iter().map(|row| (row.id, row.version)).collect())
}

/// Of whom it is known whether they are in segments; nobody changes them until the transaction ends, if `lock` says so.
pub(super) async fn coverages(
    tx: &mut Tx,
    app_id: Uuid,
    segments: &[Uuid],
    lock: &'static str,
) -> Result<HashMap<Uuid, SegmentCoverage>> {
    let rows: Vec<SegmentCoverage> = tx
        .sql(
            "SELECT id, audience_version, based_version, newest_subject, looked_to, looked_version
             FROM segments WHERE app_id = $1 AND id IN ",
        )
        .bind(app_id)
        .push_list(segments.iter().copied())
        .push(" ORDER BY id")
        .push(lock)
        .fetch_all()
        .await?;
    Ok(rows.into_iter().map(|row| (row.id, row)).collect())
}

/// Which segments people are in, as far as was known.
pub(super) async fn memberships(
    tx: &mut Tx,
    app_id: Uuid,
    subjects: &[Uuid],
) -> Result<HashSet<Membership>> {
    #[derive(nudge_db::FromRow)]
    struct MemberRow {
        segment_id: Uuid,
        subject_id: Uuid,
    }
    let rows: Vec<MemberRow> = tx
        .sql("SELECT segment_id, subject_id FROM segment_members WHERE app_id = $1 AND subject_id IN ")
        .bind(app_id)
        .push_list(subjects.iter().copied())
        .fetch_all()
        .await?;
    Ok(rows
        .into_iter()
        .map(|row| (row.segment_id, row.subject_id))
        .collect())
}

fn rows(memberships: &[Membership]) -> Rows {
    Rows::new()
        .uuids(memberships.iter().map(|(segment, _)| *segment))
        .uuids(memberships.iter().map(|(_, subject)| *subject))
}

/// People are in segments now.
pub(super) async fn add(tx: &mut Tx, app_id: Uuid, entered: &[Membership]) -> Result<()> {
    for chunk in entered.chunks(Rows::MOST) {
        tx.with_rows("v(segment_id, subject_id)", rows(chunk))
            .push(" INSERT INTO segment_members (segment_id, subject_id, app_id) SELECT v.segment_id, v.subject_id, ")
            .push_bind(app_id)
            .push(" FROM v WHERE true ON CONFLICT (segment_id, subject_id) DO NOTHING")
            .execute()
            .await?;
    }
    Ok(())
}

/// People are in segments no longer.
pub(super) async fn remove(tx: &mut Tx, app_id: Uuid, left: &[Membership]) -> Result<()> {
    for chunk in left.chunks(Rows::MOST) {
        tx.with_rows("v(segment_id, subject_id)", rows(chunk))
            .push(
                " DELETE FROM segment_members WHERE (segment_id, subject_id) IN (SELECT v.segment_id, v.subject_id FROM v)
                  AND app_id = ",
            )
            .push_bind(app_id)
            .execute()
            .await?;
    }
    Ok(())
}

/// Removes some members of a segment that is gone; answers how many.
pub(super) async fn forget(tx: &mut Tx, app_id: Uuid, segment_id: Uuid) -> Result<u64> {
    tx.sql(
        "DELETE FROM segment_members WHERE (segment_id, subject_id) IN (
            SELECT segment_id, subject_id FROM segment_members WHERE segment_id = $2 AND app_id = $1 LIMIT $3)",
    )
    .bind(app_id)
    .bind(segment_id)
    .bind(STEP)
    .execute()
    .await
}

/// How many people are in a segment, but for those who are being deleted.
pub(super) async fn size(tx: &mut Tx, app_id: Uuid, segment_id: Uuid) -> Result<i64> {
    tx.sql(
        "SELECT count(*) AS count FROM segment_members WHERE app_id = $1 AND segment_id = $2
         AND subject_id NOT IN ",
    )
    .push(nudge_platform::hidden::SUBJECTS)
    .bind(app_id)
    .bind(segment_id)
    .fetch_scalar()
    .await
}

/// Notes how many people are in a segment as of an instant. `based`: everybody was looked at. False: its conditions are
/// others by now.
pub(super) async fn note_size(
    tx: &mut Tx,
    app_id: Uuid,
    (segment_id, version): (Uuid, i64),
    size: i64,
    at: Timestamp,
) -> Result<bool> {
    let noted = tx
        .sql(
            "UPDATE segments SET size = $4, size_at = $5, based_version = audience_version, looked_to = NULL
             WHERE app_id = $1 AND id = $2 AND audience_version = $3",
        )
        .bind(app_id)
        .bind(segment_id)
        .bind(version)
        .bind(size)
        .bind(at)
        .execute()
        .await?;
    if noted == 0 {
        return Ok(false);
    }
    tx.sql(
        "INSERT INTO segment_sizes (segment_id, day, app_id, at, size) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (segment_id, day) DO UPDATE SET at = excluded.at, size = excluded.size",
    )
    .bind(segment_id)
    .bind(day_of(at))
    .bind(app_id)
    .bind(at)
    .bind(size)
    .execute()
    .await?;
    Ok(true)
}

/// Notes how far a first look at everybody has come for segments. Another look that is farther has looked at these people too.
pub(super) async fn note_place(
    tx: &mut Tx,
    app_id: Uuid,
    segments: &[Uuid],
    last: Uuid,
) -> Result<()> {
    tx.sql(
        "UPDATE segments SET looked_to = $2, looked_version = audience_version
         WHERE app_id = $1 AND based_version <> audience_version
           AND (looked_to IS NULL OR looked_to < $2 OR looked_version <> audience_version) AND id IN ",
    )
    .bind(app_id)
    .bind(last)
    .push_list(segments.iter().copied())
    .execute()
    .await?;
    Ok(())
}

/// The first instant of a day (UTC).
fn day_of(at: Timestamp) -> Timestamp {
    const DAY: i64 = 86_400_000_000;
    Timestamp(at.0 - at.0.rem_euclid(DAY))
}

/// Whether the members of a segment are known for the conditions as they are.
pub async fn is_based(tx: &mut Tx, app_id: Uuid, segment_id: Uuid) -> Result<bool> {
    let found: Option<Uuid> = tx
        .sql("SELECT id FROM segments WHERE app_id = $1 AND id = $2 AND based_version = audience_version")
        .bind(app_id)
        .bind(segment_id)
        .fetch_value()
        .await?;
    Ok(found.is_some())
}

/// Members of a segment, newest first, from behind one on.
pub async fn members(
    tx: &mut Tx,
    app_id: Uuid,
    segment_id: Uuid,
    before: Uuid,
    limit: i64,
) -> Result<Vec<Uuid>> {
    tx.sql(
        "SELECT subject_id FROM segment_members WHERE app_id = $1 AND segment_id = $2 AND subject_id < $3
         AND subject_id NOT IN ",
    )
    .push(nudge_platform::hidden::SUBJECTS)
    .push(" ORDER BY subject_id DESC LIMIT $4")
    .bind(app_id)
    .bind(segment_id)
    .bind(before)
    .bind(limit)
    .fetch_values()
    .await
}

/// Apps whose people are to be gone through: it is time, or the sweep is due later than `latest`, up to which sweeps are put off.
pub(super) async fn due(
    tx: &mut Tx,
    now: Timestamp,
    latest: Timestamp,
    limit: i64,
) -> Result<Vec<Sweep>> {
    tx.sql(
        "SELECT app_id, next_at, job_id FROM segment_sweeps
         WHERE next_at <= $1 OR next_at > $2 ORDER BY next_at LIMIT $3",
    )
    .bind(now)
    .bind(latest)
    .bind(limit)
    .fetch_all()
    .await
}

/// When the next app's people are to be gone through.
pub(super) async fn next(tx: &mut Tx) -> Result<Option<Timestamp>> {
    tx.sql("SELECT next_at FROM segment_sweeps ORDER BY next_at LIMIT 1")
        .fetch_value()
        .await
}

/// Puts the next sweep of an app off. False: somebody else has.
pub(super) async fn put_off(
    tx: &mut Tx,
    sweep: &Sweep,
    next_at: Timestamp,
    job_id: Option<Uuid>,
) -> Result<bool> {
    let updated = tx
        .sql("UPDATE segment_sweeps SET next_at = $3, job_id = $4 WHERE app_id = $1 AND next_at = $2")
        .bind(sweep.app_id)
        .bind(sweep.next_at)
        .bind(next_at)
        .bind(job_id)
        .execute()
        .await?;
    Ok(updated == 1)
}

/// An app without segments is not gone through.
pub(super) async fn stop(tx: &mut Tx, app_id: Uuid) -> Result<u64> {
    tx.sql(
        "DELETE FROM segment_sweeps WHERE app_id = $1 AND NOT EXISTS (SELECT 1 FROM segments s WHERE s.app_id = $1)",
    )
    .bind(app_id)
    .execute()
    .await
}
