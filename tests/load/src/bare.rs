//! Inserts without a server: the same rows, into the same schema, by one statement of 500 rows.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::bail;
use nudge_db::{Db, Rows, Timestamp, Tx};
use nudge_platform::clock::Clock;
use nudge_records::events::{Event, SEQ_BLOCK};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::database::Fresh;
use crate::random::Random;
use crate::request::{COMMON, PROPERTIES};

/// What is inserted, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) rows: usize,
    /// Rows of one request: of one person, with consecutive numbers.
    pub(crate) request: usize,
    /// Rows of one transaction, which is one statement.
    pub(crate) transaction: usize,
    pub(crate) people: usize,
    pub(crate) connections: usize,
}

/// Inserts the rows into a fresh database; answers how long that took.
pub(crate) async fn insert(database: &Fresh, plan: Plan) -> anyhow::Result<Duration> {
    let db = database.open(u32::try_from(plan.connections)?).await?;
    db.migrate(&nudge_platform::schema::migrations()).await?;
    // The first transactions prepare the statement and fill the caches, here as for the server.
    run(&db, plan, plan.transaction * 4 * plan.connections, 0).await?;
    let time = run(&db, plan, plan.rows, 1).await?;
    db.close().await;
    Ok(time)
}

async fn run(db: &Db, plan: Plan, rows: usize, part: i64) -> anyhow::Result<Duration> {
    let share = rows / plan.connections;
    let mut writers = JoinSet::new();
    let started = Instant::now();
    for number in 0..plan.connections {
        let number = i64::try_from(number)?;
        let first_request = (part * 64 + number + 1) << 24;
        let writer = Writer {
            db: db.clone(),
            random: Random::new(u64::try_from(first_request)?),
            next: (first_request, 0),
            alias: 1,
            app_id: Uuid::from_u128(7),
            plan,
        };
        writers.spawn(writer.run(share));
    }
    while let Some(done) = writers.join_next().await {
        done??;
    }
    Ok(started.elapsed())
}

struct Writer {
    db: Db,
    random: Random,
    /// Request and place in it of the next row.
    next: (i64, usize),
    alias: i64,
    app_id: Uuid,
    plan: Plan,
}

impl Writer {
    async fn run(mut self, rows: usize) -> anyhow::Result<()> {
        let mut left = rows;
        while left > 0 {
            let now = Clock::default().now();
            let count = left.min(self.plan.transaction);
            let events: Vec<(i64, i64, Event)> = (0..count).map(|_| self.event(now)).collect();
            let mut tx = self.db.write().await?;
            if insert_rows(&mut tx, self.app_id, now, &events).await? != events.len() as u64 {
                bail!("not every row was new");
            }
            tx.commit().await?;
            left -= count;
        }
        Ok(())
    }

    fn event(&mut self, now: nudge_db::Timestamp) -> (i64, i64, Event) {
        let (request, place) = self.next;
        let offset = i64::try_from(place).unwrap_or_default();
        let event = Event {
            id: self.random.uuid(),
            name: COMMON.into(),
            timestamp: nudge_db::Timestamp(now.0 + offset * 1_000),
            client_timestamp: None,
            properties: Arc::from(PROPERTIES),
        };
        let row = (request * SEQ_BLOCK + offset, self.alias, event);
        self.next = (request, place + 1);
        if place + 1 == self.plan.request {
            self.next = (request + 1, 0);
            self.alias = i64::try_from(self.random.below(self.plan.people as u64)).unwrap_or(0) + 1;
        }
        row
    }
}

/// One statement: `UNNEST` on PostgreSQL, `VALUES` on SQLite.
async fn insert_rows(
    tx: &mut Tx,
    app_id: Uuid,
    now: Timestamp,
    events: &[(i64, i64, Event)],
) -> nudge_db::Result<u64> {
    let texts = |text: &str| {
        let text: Arc<str> = Arc::from(text);
        events.iter().map(move |_| Arc::clone(&text))
    };
    let rows = Rows::new()
        .integers(events.iter().map(|(seq, ..)| *seq))
        .uuids(events.iter().map(|_| app_id))
        .integers(events.iter().map(|(_, alias, _)| *alias))
        .uuids(events.iter().map(|(.., event)| event.id))
        .shared_texts(events.iter().map(|(.., event)| Arc::clone(&event.name)))
        .timestamps(events.iter().map(|(.., event)| event.timestamp))
        .timestamps(events.iter().map(|(.., event)| event.client_timestamp))
        .timestamps(events.iter().map(|_| now))
        .shared_texts(
            events
                .iter()
                .map(|(.., event)| Arc::clone(&event.properties)),
        )
        .shared_texts(texts("ios"))
        .shared_texts(texts("4.2.0"))
        .shared_texts(texts("de-AT"))
        .shared_texts(texts("Europe/Vienna"))
        .shared_texts(texts("sdk"));
    tx.with_rows(
        "v(seq, app_id, alias_number, event_id, name, timestamp, client_timestamp, received_at, properties,
           platform, app_version, locale, timezone, source)",
        rows,
    )
    .push(
        " INSERT INTO events (seq, app_id, alias_number, event_id, name, timestamp, client_timestamp, received_at,
                              properties, platform, app_version, locale, timezone, source)
          SELECT * FROM v WHERE true ON CONFLICT (alias_number, event_id) DO NOTHING",
    )
    .execute()
    .await
}
