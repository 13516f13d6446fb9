//! A subject's earlier events, as plugins ask for them. What a question reads is bounded, however long the history is.

use std::cmp::Reverse;
use std::collections::HashMap;

use nudge_db::{Result, Rows, Timestamp, Tx};
use nudge_records::events::store::{self as events, Stored};
use nudge_wasm::PastEvent;
use uuid::Uuid;

#[derive(nudge_db::FromRow)]
struct PastRow {
    seq: i64,
    event_id: Uuid,
    timestamp: Timestamp,
    properties: String,
}

/// The aliases of a subject.
pub async fn aliases(tx: &mut Tx, app_id: Uuid, subject_id: Uuid) -> Result<Vec<i64>> {
    tx.sql("SELECT number FROM aliases WHERE app_id = $1 AND subject_id = $2 ORDER BY number")
        .bind(app_id)
        .bind(subject_id)
        .fetch_values()
        .await
}

/// A subject's event and the alias that it came under.
pub async fn event_of(
    tx: &mut Tx,
    app_id: Uuid,
    subject_id: Uuid,
    event_id: Uuid,
) -> Result<Option<(i64, Stored)>> {
    for alias in aliases(tx, app_id, subject_id).await? {
        if let Some(stored) = events::find_by_id(tx, app_id, alias, event_id).await? {
            return Ok(Some((alias, stored)));
        }
    }
    Ok(None)
}

/// Leaves out events that wait to be processed. The requests of one alias are processed in their order, so
/// that the last number says it all; those of several aliases overtake each other.
fn only_processed(aliases: &[i64]) -> &'static str {
    if aliases.len() < 2 {
        return "";
    }
    " AND NOT EXISTS (SELECT 1 FROM pending p WHERE p.alias_number = events.alias_number AND p.id = events.seq / 512)"
}

/// How many events of a name aliases have, up to a number, among those processed already.
pub async fn count_events(
    tx: &mut Tx,
    app_id: Uuid,
    aliases: &[i64],
    name: &str,
    since: Option<i64>,
    last_seq: i64,
    at_most: u32,
) -> Result<u32> {
    let number: i64 = tx
        .sql("SELECT count(*) AS number FROM (SELECT 1 AS one FROM events WHERE app_id = $1 AND name = $2 AND timestamp >= $3 AND seq <= $4 AND alias_number IN ")
        .bind(app_id)
        .bind(name.to_owned())
        .bind(since.unwrap_or(i64::MIN))
        .bind(last_seq)
        .push_list(aliases.iter().copied())
        .push(only_processed(aliases))
        .push(" LIMIT ")
        .push_bind(i64::from(at_most))
        .push(") AS counted")
        .fetch_scalar()
        .await?;
    Ok(u32::try_from(number).unwrap_or(at_most))
}

/// When the newest events of a name were that an alias has, among those processed already.
pub async fn newest_events(
    tx: &mut Tx,
    app_id: Uuid,
    alias: i64,
    name: &str,
    last_seq: i64,
    limit: u32,
) -> Result<Vec<i64>> {
    tx
        .sql(
            "SELECT timestamp AS number FROM events
             WHERE app_id = $1 AND alias_number = $2 AND name = $3 AND seq <= $4 ORDER BY timestamp DESC LIMIT $5",
        )
        .bind(app_id)
        .bind(alias)
        .bind(name.to_owned())
        .bind(last_seq)
        .bind(i64::from(limit))
        .fetch_values()
        .await
}

/// The aliases of people, ascending.
pub async fn aliases_of(
    tx: &mut Tx,
    app_id: Uuid,
    subjects: &[Uuid],
) -> Result<HashMap<Uuid, Vec<i64>>> {
    #[derive(nudge_db::FromRow)]
    struct AliasRow {
        subject_id: Uuid,
        number: i64,
    }
    let mut found: HashMap<Uuid, Vec<i64>> = HashMap::new();
    for chunk in subjects.chunks(Rows::MOST) {
        let rows: Vec<AliasRow> = tx
            .with_rows("v(id)", Rows::new().uuids(chunk.iter().copied()))
            .push(" SELECT a.subject_id, a.number FROM v JOIN aliases a ON a.subject_id = v.id WHERE a.app_id = ")
            .push_bind(app_id)
            .push(" ORDER BY a.number")
            .fetch_all()
            .await?;
        for row in rows {
            found.entry(row.subject_id).or_default().push(row.number);
        }
    }
    Ok(found)
}

/// Whose newest events of a name are asked for.
#[derive(Clone, Debug)]
pub struct NewestQuestion {
    /// The alias.
    pub alias: i64,
    /// The events' name.
    pub name: String,
    /// The last number that is processed.
    pub last_seq: i64,
}

/// What [`newest_events`] answers, for many questions in one statement and in their order.
pub async fn newest_of_many(
    tx: &mut Tx,
    app_id: Uuid,
    questions: &[NewestQuestion],
    limit: u32,
) -> Result<Vec<Vec<i64>>> {
    #[derive(nudge_db::FromRow)]
    struct NewestRow {
        number: i64,
        timestamps: Option<String>,
    }
    if tx.shards().is_some() {
        // Shards answer about one alias each.
        let mut newest = Vec::with_capacity(questions.len());
        for of in questions {
            newest.push(newest_events(tx, app_id, of.alias, &of.name, of.last_seq, limit).await?);
        }
        return Ok(newest);
    }
    let mut newest = vec![Vec::new(); questions.len()];
    let mut begin = 0;
    for chunk in questions.chunks(Rows::MOST) {
        let rows = Rows::new()
            .integers((0_i64..).take(chunk.len()))
            .uuids(chunk.iter().map(|_| app_id))
            .integers(chunk.iter().map(|of| of.alias))
            .texts(chunk.iter().map(|of| of.name.clone()))
            .integers(chunk.iter().map(|of| of.last_seq));
        let rows: Vec<NewestRow> = tx
            .with_rows("v(number, app_id, alias, name, last_seq)", rows)
            .push(
                " SELECT v.number, (SELECT string_agg(CAST(n.timestamp AS TEXT), ',') FROM (
                    SELECT e.timestamp FROM events e
                    WHERE e.app_id = v.app_id AND e.alias_number = v.alias AND e.name = v.name AND e.seq <= v.last_seq
                    ORDER BY e.timestamp DESC LIMIT ",
            )
            .push_bind(i64::from(limit))
            .push(") AS n) AS timestamps FROM v WHERE true")
            .fetch_all()
            .await?;
        for row in rows {
            let texts = row.timestamps.unwrap_or_default();
            let mut timestamps: Vec<i64> = texts
                .split(',')
                .filter_map(|text| text.parse().ok())
                .collect();
            timestamps.sort_unstable_by_key(|at| Reverse(*at));
            let place = usize::try_from(row.number)
                .ok()
                .and_then(|number| newest.get_mut(begin + number));
            if let Some(place) = place {
                *place = timestamps;
            }
        }
        begin += chunk.len();
    }
    Ok(newest)
}

/// Whose newest event of a name is asked for.
#[derive(Clone, Debug)]
pub struct LatestQuestion {
    /// The alias, a person's only one.
    pub alias: i64,
    /// The event's name.
    pub name: String,
    /// Older events do not count.
    pub since: i64,
    /// The last number that is processed.
    pub last_seq: i64,
}

/// What [`recent_events`] answers of one alias for a limit of one, for many questions in one statement and in their order.
pub async fn latest_of_many(
    tx: &mut Tx,
    app_id: Uuid,
    questions: &[LatestQuestion],
) -> Result<Vec<Option<PastEvent>>> {
    #[derive(nudge_db::FromRow)]
    struct LatestRow {
        number: i64,
        #[sqlx(flatten)]
        event: PastRow,
    }
    let mut latest = Vec::with_capacity(questions.len());
    if tx.shards().is_some() {
        // Shards answer about one alias each.
        for of in questions {
            let (since, last) = (Some(of.since), of.last_seq);
            let found = recent_events(tx, app_id, &[of.alias], &of.name, since, last, 1).await?;
            latest.push(found.into_iter().next().map(|(_, event)| event));
        }
        return Ok(latest);
    }
    for chunk in questions.chunks(Rows::MOST) {
        let rows = Rows::new()
            .integers((0_i64..).take(chunk.len()))
            .uuids(chunk.iter().map(|_| app_id))
            .integers(chunk.iter().map(|of| of.alias))
            .texts(chunk.iter().map(|of| of.name.clone()))
            .integers(chunk.iter().map(|of| of.since))
            .integers(chunk.iter().map(|of| of.last_seq));
        // The join's order is said, so that SQLite does not go through all events instead.
        let rows: Vec<LatestRow> = tx
            .with_rows("v(number, app_id, alias, name, since, last_seq)", rows)
            .push(
                " SELECT v.number, e.seq, e.event_id, e.timestamp, e.properties
                  FROM v CROSS JOIN events e WHERE e.seq = (
                    SELECT max(n.seq) FROM events n
                    WHERE n.app_id = v.app_id AND n.alias_number = v.alias AND n.name = v.name AND n.seq <= v.last_seq
                      AND n.timestamp = (
                        SELECT max(m.timestamp) FROM events m
                        WHERE m.app_id = v.app_id AND m.alias_number = v.alias AND m.name = v.name
                          AND m.timestamp >= v.since AND m.seq <= v.last_seq))",
            )
            .fetch_all()
            .await?;
        let by_number = rows.into_iter().map(|row| (row.number, row.event.read().1));
        let mut found: HashMap<i64, PastEvent> = by_number.collect();
        latest.extend(
            (0_i64..)
                .take(chunk.len())
                .map(|number| found.remove(&number)),
        );
    }
    Ok(latest)
}

/// The events of a name that aliases have, with their numbers, newest first, among those processed already. Of events of
/// one instant the one that arrived last is the newest.
///
/// Each alias is asked by itself, since the index has its events in order of time: what is read is at the most `limit` times
/// the number of aliases, and on PostgreSQL all events of the last instant that is read, however many other events there
/// are. What is older than as many that are known is not read.
pub async fn recent_events(
    tx: &mut Tx,
    app_id: Uuid,
    aliases: &[i64],
    name: &str,
    since: Option<i64>,
    last_seq: i64,
    limit: u32,
) -> Result<Vec<(i64, PastEvent)>> {
    let mut since = since.unwrap_or(i64::MIN);
    let mut newest: Vec<(i64, PastEvent)> = Vec::new();
    for alias in aliases {
        let rows: Vec<PastRow> = tx
            .sql("SELECT seq, event_id, timestamp, properties FROM events WHERE app_id = $1 AND alias_number = $2 AND name = $3 AND timestamp >= $4 AND seq <= $5")
            .bind(app_id)
            .bind(*alias)
            .bind(name.to_owned())
            .bind(since)
            .bind(last_seq)
            .push(only_processed(aliases))
            .newest(("timestamp", "seq"), i64::from(limit))
            .fetch_all()
            .await?;
        newest.extend(rows.into_iter().map(PastRow::read));
        newest.sort_by_key(|(seq, event)| Reverse((event.timestamp, *seq)));
        newest.truncate(limit as usize);
        if let Some((_, oldest)) = newest.get((limit as usize).saturating_sub(1)) {
            since = since.max(oldest.timestamp);
        }
    }
    Ok(newest)
}

impl PastRow {
    fn read(self) -> (i64, PastEvent) {
        let event = PastEvent {
            id: self.event_id,
            timestamp: self.timestamp.0,
            properties: self.properties.into(),
        };
        (self.seq, event)
    }
}
