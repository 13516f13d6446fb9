//! What the host does later for a campaign and a subject, of its own accord. There are three kinds.
//!
//! A *deferred* firing: the plugin has decided, and something that the host looks after, like quiet hours, lets it
//! take effect only later. When it is due the plugin is not asked again, the host's own checks are made once more,
//! and what comes of it has the id that it would have had at once. It waits as behind a timer of the plugin's: what cancels
//! all of those cancels it too.
//!
//! An occasion of a *run* (`runs/`): the campaign's schedule has come round. Nobody sent an event, so that the
//! plugin is asked about one of the server's own, [`SCHEDULED`]: it decides whom the campaign is for.
//!
//! A *change* of a segment that the campaign waits for: somebody has entered or left. The plugin is asked as for a run.
//!
//! Occasions are claimed and consumed as timers are, each exactly once, and in their turn: not before the requests
//! of that person that arrived until then ([`in_turn`]).

use std::collections::{HashMap, HashSet};

use nudge_campaigns::runs::PARKED;
use nudge_db::{IS, Result, Rows, Statement, Timestamp, Tx};
use nudge_platform::event_names::SCHEDULED;
use nudge_platform::{id, secrets};
use uuid::Uuid;

use crate::across_shards;
use crate::events::store::Stored;
use crate::events::{self, Event, EventRef, Origin, SEQ_BLOCK, Source};

/// An occasion to be kept.
#[derive(Clone, Debug)]
pub struct NewOccasion {
    /// Its id.
    pub id: Uuid,
    /// The campaign.
    pub campaign_id: Uuid,
    /// Whom it is about.
    pub subject_id: Uuid,
    /// One of the subject's aliases: the event's, where there is one.
    pub alias: i64,
    /// What makes it one: a campaign and subject have an occasion of a key once.
    pub key: String,
    /// When it is due.
    pub due_at: Timestamp,
    /// The event behind it, or what [`seq_of`] says.
    pub event_seq: i64,
    /// The firing that waits, if it is one.
    pub firing_id: Option<Uuid>,
    /// The process that has it in hand from the beginning; none: whichever claims it.
    pub node: Option<Uuid>,
}

/// An occasion that is due.
#[derive(Clone, Debug)]
pub struct DueOccasion {
    /// Its id.
    pub id: Uuid,
    /// The campaign.
    pub campaign_id: Uuid,
    /// What makes it one: those of a run have the run's.
    pub key: String,
    /// The firing that waited, if it is one.
    pub firing_id: Option<Uuid>,
}

/// A timer that is due.
#[derive(Clone, Debug)]
pub struct DueTimer {
    /// Its id.
    pub id: Uuid,
    /// The campaign whose plugin set it.
    pub campaign_id: Uuid,
    /// The plugin's key for it.
    pub key: String,
    /// The name of that plugin, if it is known.
    pub plugin: Option<String>,
    /// What the plugin wants back.
    pub payload: Vec<u8>,
    /// When it fell due.
    pub due_at: Timestamp,
    /// The number of the person's last event before it is decided about; none: it was not yet.
    pub last_seq: Option<i64>,
}

impl NewOccasion {
    /// A firing that takes effect no sooner than an instant. `event` is the one that fired. That of the same firing is the
    /// same occasion.
    pub fn deferred(
        campaign_id: Uuid,
        subject_id: Uuid,
        event: EventRef,
        firing_id: Uuid,
        until: Timestamp,
        now: Timestamp,
    ) -> Self {
        Self {
            id: id::new(now),
            campaign_id,
            subject_id,
            alias: event.alias,
            key: firing_id.to_string(),
            due_at: until,
            event_seq: event.seq,
            firing_id: Some(firing_id),
            node: None,
        }
    }
}

/// What the keys of occasions begin with that a change of a segment has made.
const CHANGE: &str = "segment ";
// The statement of `put_right` says how much of a key it compares.
const _: () = assert!(CHANGE.len() == 8);

/// The key of an occasion that a change of a segment has made.
pub fn change_key(change_id: Uuid) -> String {
    format!("{CHANGE}{change_id}")
}

impl DueOccasion {
    /// Whether a change of a segment has made it: it concerns one person at one time, and no run.
    pub fn is_change(&self) -> bool {
        self.key.starts_with(CHANGE)
    }
}

/// The event of a campaign's own occasion at an instant: the same for whoever asks.
pub fn event(campaign_id: Uuid, at: Timestamp) -> Stored {
    let occasion = secrets::hash(&[
        SCHEDULED.as_bytes(),
        campaign_id.as_bytes(),
        &at.0.to_be_bytes(),
    ]);
    event_with_id(id::derived(at, &occasion), at)
}

/// The event of an occasion whose id is known.
pub fn event_with_id(id: Uuid, at: Timestamp) -> Stored {
    Stored {
        seq: seq_of(at),
        received_at: at,
        origin: std::sync::Arc::new(Origin {
            source: Source::Server,
            ..Origin::default()
        }),
        event: std::sync::Arc::new(Event {
            id,
            name: SCHEDULED.into(),
            timestamp: at,
            client_timestamp: None,
            properties: "{}".into(),
        }),
    }
}

/// The number of an occasion's event, which is stored nowhere: it says when the occasion is.
pub fn seq_of(at: Timestamp) -> i64 {
    at.0.saturating_neg()
}

/// The instant of the occasion whose event has this number; none: it is an event that was sent.
pub fn instant_of(seq: i64) -> Option<Timestamp> {
    (seq < 0).then(|| Timestamp(seq.saturating_neg()))
}

/// An occasion that this process has just claimed.
#[derive(Debug, nudge_db::FromRow)]
pub struct ClaimedOccasion {
    /// Its id.
    pub id: Uuid,
    /// The app.
    pub app_id: Uuid,
    /// The campaign.
    pub campaign_id: Uuid,
    /// One of the subject's aliases.
    pub alias_number: i64,
    /// What makes it one.
    pub key: String,
    /// The event behind it, or what [`seq_of`] says.
    pub event_seq: i64,
    /// The firing that waits, if it is one.
    pub firing_id: Option<Uuid>,
}

impl ClaimedOccasion {
    /// An occasion of an app as it is once it is made. None: no process has it then.
    pub fn of(app_id: Uuid, occasion: &NewOccasion) -> Option<Self> {
        occasion.node.map(|_| Self {
            id: occasion.id,
            app_id,
            campaign_id: occasion.campaign_id,
            alias_number: occasion.alias,
            key: occasion.key.clone(),
            event_seq: occasion.event_seq,
            firing_id: occasion.firing_id,
        })
    }
}

/// The condition that nothing is still to be processed of the person whose row of `table` this is, under whichever
/// alias, that arrived until the row was due. `table` is `timers` or `occasions`. What is claimed under it stays in
/// turn: whatever is committed later was not acknowledged before that was due.
pub fn in_turn<'t>(statement: Statement<'t>, table: &'static str) -> Statement<'t> {
    // Where nothing is, one look tells. Values in values, not joins: no planner begins with all that waits, or with all aliases.
    statement
        .push(
            " (NOT EXISTS (SELECT 1 FROM pending)
               OR (SELECT a.number FROM aliases a
               WHERE a.subject_id = ",
        )
        .push(table)
        .push(
            ".subject_id AND (
                SELECT p.id FROM pending p
                WHERE p.alias_number = a.number AND (SELECT e.received_at FROM events e WHERE e.seq >= p.id * ",
        )
        .push_bind(SEQ_BLOCK)
        .push(" AND e.seq < (p.id + 1) * ")
        .push_bind(SEQ_BLOCK)
        .push(" ORDER BY e.seq LIMIT 1) <= ")
        .push(table)
        .push(".due_at LIMIT 1) IS NOT NULL LIMIT 1) IS NULL)")
}

/// Whether an occasion is due that no process has.
pub async fn any_waits(tx: &mut Tx, now: Timestamp) -> Result<bool> {
    if tx.shards().is_some() {
        return Ok(!across_shards::due(tx, "occasions", now, 1)
            .await?
            .is_empty());
    }
    let due = tx
        .sql("SELECT id FROM occasions WHERE node IS NULL AND due_at <= ")
        .push_bind(now)
        .push(" AND");
    let row: Option<Uuid> = in_turn(due, "occasions")
        .push(" ORDER BY due_at LIMIT 1")
        .fetch_value()
        .await?;
    Ok(row.is_some())
}

/// When the next occasion falls due that no process has.
pub async fn next(tx: &mut Tx) -> Result<Option<Timestamp>> {
    tx.sql("SELECT due_at FROM occasions WHERE node IS NULL ORDER BY due_at LIMIT 1")
        .fetch_value()
        .await
}

/// Claims occasions that are due and that no process has.
pub async fn claim(
    tx: &mut Tx,
    node: Uuid,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<ClaimedOccasion>> {
    claim_due(tx, "occasions", node, now, limit)
        .await?
        .push(" RETURNING id, app_id, campaign_id, alias_number, key, event_seq, firing_id")
        .fetch_all()
        .await
}

/// Begins the statement that claims rows of `timers` or `occasions` which are due, which no process has, and whose turn has come.
pub async fn claim_due<'t>(
    tx: &'t mut Tx,
    table: &'static str,
    node: Uuid,
    now: Timestamp,
    limit: i64,
) -> Result<Statement<'t>> {
    if tx.shards().is_some() {
        let due = across_shards::due(tx, table, now, limit).await?;
        // Nothing has the id of nought: a list has a row at least.
        let ids = due.into_iter().chain([Uuid::nil()]);
        return Ok(tx
            .with_rows("v(id)", Rows::new().uuids(ids))
            .push(" UPDATE ")
            .push(table)
            .push(" SET node = ")
            .push_bind(node)
            .push(" WHERE node IS NULL AND id IN (SELECT v.id FROM v)"));
    }
    let skip_locked = tx.dialect().skip_locked();
    let due = tx
        .sql("UPDATE ")
        .push(table)
        .push(" SET node = ")
        .push_bind(node)
        .push(" WHERE id IN (SELECT id FROM ")
        .push(table)
        .push(" WHERE node IS NULL AND due_at <= ")
        .push_bind(now)
        .push(" AND");
    Ok(in_turn(due, table)
        .push(" ORDER BY due_at LIMIT ")
        .push_bind(limit)
        .push(skip_locked)
        .push(")"))
}

/// The occasions that a process has claimed.
pub async fn claimed_by(tx: &mut Tx, node: Uuid, limit: i64) -> Result<Vec<Uuid>> {
    tx.sql("SELECT id FROM occasions WHERE node = $1 LIMIT $2")
        .bind(node)
        .bind(limit)
        .fetch_values()
        .await
}

/// Removes occasions that were due. False: one is not this process's any longer, or gone.
pub async fn delete_due(tx: &mut Tx, ids: &[Uuid], node: Uuid) -> Result<bool> {
    let mut deleted = 0;
    for chunk in ids.chunks(Rows::MOST) {
        deleted += tx
            .with_rows("v(id)", Rows::new().uuids(chunk.iter().copied()))
            .push(" DELETE FROM occasions WHERE id IN (SELECT v.id FROM v) AND node")
            .push(IS)
            .push_bind(node)
            .execute()
            .await?;
    }
    Ok(deleted == ids.len() as u64)
}

/// Begins the statement that puts rows of `timers` or `occasions` off, which a process has, until their campaigns run again.
fn parked<'t>(tx: &'t mut Tx, table: &'static str, ids: &[Uuid], node: Uuid) -> Statement<'t> {
    // One that a clock of the future set waits as long as any other.
    let set_at = if table == "timers" {
        ", set_at = 0"
    } else {
        ""
    };
    tx.with_rows("v(id)", Rows::new().uuids(ids.iter().copied()))
        .push(" UPDATE ")
        .push(table)
        .push(" SET node = NULL, due_at = ")
        .push_bind(PARKED)
        .push(set_at)
        .push(" WHERE id IN (SELECT v.id FROM v) AND node")
        .push(IS)
        .push_bind(node)
}

/// Puts occasions off until their campaigns run again. False: one is not this process's any longer.
pub async fn park(tx: &mut Tx, ids: &[Uuid], node: Uuid) -> Result<bool> {
    let mut count = 0;
    for chunk in ids.chunks(Rows::MOST) {
        count += parked(tx, "occasions", chunk, node).execute().await?;
    }
    Ok(count == ids.len() as u64)
}

/// Puts off what runs have led to, of rows of `timers` or `occasions`, until their campaigns run again. Answers which those
/// are. `run_firings` tells: it moves with its subject as they do.
pub async fn park_of_runs(
    tx: &mut Tx,
    table: &'static str,
    ids: &[Uuid],
    node: Uuid,
) -> Result<HashSet<Uuid>> {
    let mut of_runs = HashSet::new();
    for chunk in ids.chunks(Rows::MOST) {
        let ids: Vec<Uuid> = parked(tx, table, chunk, node)
            .push(" AND EXISTS (SELECT 1 FROM run_firings f WHERE f.campaign_id = ")
            .push(table)
            .push(".campaign_id AND f.subject_id = ")
            .push(table)
            .push(".subject_id AND f.event_seq = ")
            .push(table)
            .push(".event_seq) RETURNING id")
            .fetch_values()
            .await?;
        of_runs.extend(ids);
    }
    Ok(of_runs)
}

/// Lets deferred firings and changes of segments that were made later than `latest`, by a clock that was ahead, be due now: whether
/// something is in a firing's way is asked again then. Those that a process has claimed are among them: it may give them up.
/// Answers how many.
pub async fn put_right(tx: &mut Tx, now: Timestamp, latest: Timestamp) -> Result<u64> {
    // The beginning of the key, as it stands: a pattern of LIKE has wildcards, and SQLite compares it without regard to case.
    tx.sql(
        "UPDATE occasions SET due_at = $1, event_seq = CASE WHEN firing_id IS NULL THEN $5 ELSE event_seq END
         WHERE due_at > $2 AND due_at < $3 AND id >= $4 AND (firing_id IS NOT NULL OR substr(key, 1, 8) = $6)",
    )
    .bind(now)
    .bind(latest)
    .bind(PARKED)
    .bind(id::first_of(latest))
    .bind(seq_of(now))
    .bind(CHANGE)
    .execute()
    .await
}

#[derive(nudge_db::FromRow)]
struct CancelledRow {
    id: Uuid,
    campaign_id: Uuid,
    subject_id: Uuid,
    event_seq: i64,
}

/// Removes deferred firings: all of some campaigns and subjects, but for those that were due before an instant. Answers for each
/// campaign and subject the event of the firing that was deferred last.
pub async fn cancel_deferred(
    tx: &mut Tx,
    app_id: Uuid,
    of: &[(Uuid, Uuid, Timestamp)],
) -> Result<HashMap<(Uuid, Uuid), Uuid>> {
    let mut cancelled: Vec<CancelledRow> = Vec::new();
    for chunk in of.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|of| of.0))
            .uuids(chunk.iter().map(|of| of.1))
            .timestamps(chunk.iter().map(|of| of.2));
        let rows: Vec<CancelledRow> = tx
            .with_rows("v(campaign_id, subject_id, at)", rows)
            .push(
                " DELETE FROM occasions WHERE (campaign_id, subject_id) IN (SELECT v.campaign_id, v.subject_id FROM v)
                    AND firing_id IS NOT NULL
                    AND due_at >= (SELECT min(v.at) FROM v WHERE v.campaign_id = occasions.campaign_id
                                     AND v.subject_id = occasions.subject_id)
                    AND app_id = ",
            )
            .push_bind(app_id)
            .push(" RETURNING id, campaign_id, subject_id, event_seq")
            .fetch_all()
            .await?;
        cancelled.extend(rows);
    }
    let seqs = cancelled.iter().map(|row| row.event_seq);
    let seqs: Vec<i64> = seqs.filter(|seq| instant_of(*seq).is_none()).collect();
    let sent = events::store::at(tx, &seqs).await?.into_iter();
    let sent: HashMap<i64, Uuid> = sent.map(|(.., it)| (it.seq, it.event.id)).collect();
    // An id begins with the instant at which it was made.
    cancelled.sort_unstable_by_key(|row| row.id);
    let last = cancelled.into_iter().filter_map(|row| {
        let event_id = match instant_of(row.event_seq) {
            Some(at) => event(row.campaign_id, at).event.id,
            None => *sent.get(&row.event_seq)?,
        };
        Some(((row.campaign_id, row.subject_id), event_id))
    });
    Ok(last.collect())
}

/// Keeps occasions, but for those that are there already; answers how many are new.
pub async fn insert(tx: &mut Tx, app_id: Uuid, occasions: &[NewOccasion]) -> Result<u64> {
    let mut inserted = 0;
    for chunk in occasions.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|occasion| occasion.id))
            .uuids(chunk.iter().map(|occasion| occasion.campaign_id))
            .uuids(chunk.iter().map(|occasion| occasion.subject_id))
            .integers(chunk.iter().map(|occasion| occasion.alias))
            .texts(chunk.iter().map(|occasion| occasion.key.clone()))
            .timestamps(chunk.iter().map(|occasion| occasion.due_at))
            .integers(chunk.iter().map(|occasion| occasion.event_seq))
            .uuids(chunk.iter().map(|occasion| occasion.firing_id))
            .uuids(chunk.iter().map(|occasion| occasion.node));
        inserted += tx
            .with_rows(
                "v(id, campaign_id, subject_id, alias_number, key, due_at, event_seq, firing_id, node)",
                rows,
            )
            .push(
                " INSERT INTO occasions (id, campaign_id, subject_id, alias_number, key, due_at, event_seq, firing_id,
                                         node, app_id)
                  SELECT v.id, v.campaign_id, v.subject_id, v.alias_number, v.key, v.due_at, v.event_seq, v.firing_id,
                         v.node, ",
            )
            .push_bind(app_id)
            .push(" FROM v WHERE true ON CONFLICT (campaign_id, subject_id, key) DO NOTHING")
            .execute()
            .await?;
    }
    Ok(inserted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_occasion_has_one_event() {
        let (campaign, at) = (Uuid::from_u128(1), Timestamp(1_800_000_000_123_456));
        let stored = event(campaign, at);
        assert_eq!(stored.event.id, event(campaign, at).event.id);
        assert_ne!(stored.event.id, event(Uuid::from_u128(2), at).event.id);
        assert_ne!(
            stored.event.id,
            event(campaign, Timestamp(at.0 + 1)).event.id
        );
        assert_eq!(instant_of(stored.seq), Some(at));
        assert_eq!(instant_of(0), None);
        assert_eq!(instant_of(512), None);
    }
}
