//! People and events by the million, written past the server.

use nudge_db::{Db, Dialect, Rows, Timestamp, Tx};
use nudge_platform::clock::Clock;
use nudge_platform::id;
use serde_json::Value;
use uuid::Uuid;

use crate::child::Server;
use crate::random::Random;
use crate::request::PROPERTIES;

/// Statements of a transaction while the database is filled.
const STATEMENTS: usize = 50;
/// Events of a request, which follow each other in the table.
const REQUEST: usize = 20;
/// The first number of a request: beyond those of the server.
const FIRST_REQUEST: i64 = 1_000_000;
/// Names of events.
pub(crate) const NAMES: u64 = 50;
/// The span that events are spread over, in microseconds: 90 days.
const SPAN: u64 = 90 * 24 * 3600 * 1_000_000;

/// Fills a database past the server.
#[derive(Debug)]
pub(crate) struct Filler {
    db: Db,
    app_id: Uuid,
    random: Random,
    now: Timestamp,
    request: i64,
}

#[derive(nudge_db::FromRow)]
struct Range {
    first: i64,
    last: i64,
}

impl Filler {
    pub(crate) fn new(server: &Server) -> anyhow::Result<Self> {
        Ok(Self {
            db: server.db().clone(),
            app_id: server.access("appId")?.parse()?,
            random: Random::new(17),
            now: Clock::default().now(),
            request: FIRST_REQUEST,
        })
    }

    /// Makes people: `person-0` and so on, each with three properties.
    pub(crate) async fn people(&mut self, count: usize) -> anyhow::Result<()> {
        let mut made = 0;
        while made < count {
            let mut tx = self.db.write().await?;
            for _ in 0..STATEMENTS {
                let size = Rows::MOST.min(count - made);
                if size == 0 {
                    break;
                }
                self.some_people(&mut tx, made, size).await?;
                made += size;
            }
            tx.commit().await?;
        }
        Ok(())
    }

    async fn some_people(&mut self, tx: &mut Tx, first: usize, size: usize) -> anyhow::Result<()> {
        let ids: Vec<Uuid> = (0..size).map(|_| id::new(self.now)).collect();
        let numbers = first..first + size;
        tx.with_rows("v(id)", Rows::new().uuids(ids.iter().copied()))
            .push(
                " INSERT INTO subjects (id, suppressed, first_seen_at, last_seen_at, event_count, platform, country,
                                        session_number, instruction_count, last_seq, version, app_id)
                  SELECT v.id, ",
            )
            .push_bind(false)
            .push(", ")
            .push_bind(self.now)
            .push(", ")
            .push_bind(self.now)
            .push(", 10, 'ios', 'AT', 1, 0, 0, 0, ")
            .push_bind(self.app_id)
            .push(" FROM v WHERE true")
            .execute()
            .await?;
        let rows = Rows::new()
            .uuids(ids.iter().copied())
            .texts(numbers.clone().map(|number| format!("person-{number}")));
        tx.with_rows("v(id, name)", rows)
            .push(
                " INSERT INTO aliases (kind, value, folded, subject_id, token_epoch, created_at, app_id)
                  SELECT 'anonymous', v.name, v.name, v.id, 0, ",
            )
            .push_bind(self.now)
            .push(", ")
            .push_bind(self.app_id)
            .push(" FROM v WHERE true")
            .execute()
            .await?;
        for key in ["company", "plan", "age"] {
            self.property(tx, key, &ids, numbers.clone()).await?;
        }
        Ok(())
    }

    async fn property(
        &self,
        tx: &mut Tx,
        key: &'static str,
        ids: &[Uuid],
        numbers: std::ops::Range<usize>,
    ) -> anyhow::Result<()> {
        let values: Vec<Value> = numbers
            .map(|number| match key {
                "company" => format!("Company {} GmbH", number % 100_000).into(),
                "plan" => "professional".into(),
                _ => (number % 90).into(),
            })
            .collect();
        let rows = Rows::new()
            .uuids(ids.iter().copied())
            .texts(values.iter().map(Value::to_string));
        tx.with_rows("v(id, value)", rows)
            .push(" INSERT INTO subject_properties (subject_id, value, source, key, updated_at, app_id) SELECT v.id, v.value, 'sdk', ")
            .push_bind(key)
            .push(", ")
            .push_bind(self.now)
            .push(", ")
            .push_bind(self.app_id)
            .push(" FROM v WHERE true")
            .execute()
            .await?;
        let texts: Vec<(Uuid, String)> = ids
            .iter()
            .zip(&values)
            .filter_map(|(id, value)| Some((*id, value.as_str()?.to_lowercase())))
            .collect();
        if texts.is_empty() {
            return Ok(());
        }
        let rows = Rows::new()
            .uuids(texts.iter().map(|text| text.0))
            .texts(texts.iter().map(|text| text.1.clone()));
        tx.with_rows("v(id, folded)", rows)
            .push(" INSERT INTO property_texts (subject_id, folded, key, app_id) SELECT v.id, v.folded, ")
            .push_bind(key)
            .push(", ")
            .push_bind(self.app_id)
            .push(" FROM v WHERE true")
            .execute()
            .await?;
        Ok(())
    }

    /// The first and the last alias.
    pub(crate) async fn aliases(&self) -> anyhow::Result<(i64, i64)> {
        let mut tx = self.db.read().await?;
        let range: Range = tx
            .sql("SELECT min(number) AS first, max(number) AS last FROM aliases WHERE app_id = $1")
            .bind(self.app_id)
            .fetch_one()
            .await?;
        Ok((range.first, range.last))
    }

    /// Makes events of aliases, in requests as SDKs send them.
    pub(crate) async fn events(&mut self, count: usize, aliases: (i64, i64)) -> anyhow::Result<()> {
        let mut made = 0;
        while made < count {
            let mut tx = self.db.write().await?;
            for _ in 0..STATEMENTS {
                let size = (Rows::MOST / REQUEST * REQUEST).min(count - made);
                if size == 0 {
                    break;
                }
                self.some_events(&mut tx, size, aliases).await?;
                made += size;
            }
            tx.commit().await?;
        }
        Ok(())
    }

    async fn some_events(
        &mut self,
        tx: &mut Tx,
        size: usize,
        aliases: (i64, i64),
    ) -> anyhow::Result<()> {
        let people = u64::try_from(aliases.1 - aliases.0)? + 1;
        let mut rows = Vec::with_capacity(size);
        let (mut alias, mut at) = (aliases.0, self.now);
        for number in 0..size {
            let place = i64::try_from(number % REQUEST)?;
            if place == 0 {
                self.request += 1;
                alias = aliases.0 + i64::try_from(self.random.below(people))?;
                at = Timestamp(self.now.0 - i64::try_from(self.random.below(SPAN))?);
            }
            let name = format!("event_name_{:02}", self.random.below(NAMES));
            let seq = self.request * 512 + place;
            rows.push((
                seq,
                alias,
                self.random.uuid(),
                name,
                Timestamp(at.0 + place),
            ));
        }
        let columns = Rows::new()
            .integers(rows.iter().map(|row| row.0))
            .integers(rows.iter().map(|row| row.1))
            .uuids(rows.iter().map(|row| row.2))
            .texts(rows.iter().map(|row| row.3.clone()))
            .timestamps(rows.iter().map(|row| row.4));
        tx.with_rows("v(seq, alias, event_id, name, at)", columns)
            .push(
                " INSERT INTO events (seq, alias_number, event_id, name, timestamp, received_at, properties, source,
                                      app_id)
                  SELECT v.seq, v.alias, v.event_id, v.name, v.at, v.at, ",
            )
            .push_bind(PROPERTIES)
            .push(", 'sdk', ")
            .push_bind(self.app_id)
            .push(" FROM v WHERE true")
            .execute()
            .await?;
        Ok(())
    }

    /// Lets PostgreSQL do at once what it does by and by.
    pub(crate) async fn settle(&self) -> anyhow::Result<()> {
        if self.db.dialect() == Dialect::Postgres {
            let mut tx = self.db.write_each().await?;
            tx.sql("VACUUM ANALYZE").execute().await?;
        }
        Ok(())
    }
}
