//! What the keys of the events table cost as it grows.

use std::time::Instant;

use clap::{Args, ValueEnum};
use nudge_db::{Db, Dialect, Rows, Timestamp};
use nudge_platform::clock::Clock;
use uuid::Uuid;

use crate::database::{Databases, Fresh, Kind};
use crate::random::Random;
use crate::report::{Table, median, rate, say};
use crate::request::PROPERTIES;

/// Rows of a transaction, which is one statement: those of 25 requests of 20 events, or of 500 requests of one.
const TRANSACTION: usize = 500;
const NAMES: u64 = 50;
/// Rows that a rate is measured over.
const SAMPLE: usize = 20_000;
/// Measurements of each rate, of which the middle one counts.
const TURNS: usize = 5;

/// The keys of the table, apart from its primary key: the number of the event, on PostgreSQL with that of the alias.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Design {
    /// The schema's: unique by person and id; by person and time; by person, name and time.
    Local,
    /// Unique by app and id, wherever the id falls; the other two as in the schema.
    Global,
    /// The schema's without the key by name.
    Nameless,
    /// The schema's, with the number of the event alone as its primary key.
    Single,
}

/// Whose events they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Spread {
    /// Everybody has as many as anybody else: the least that is in a cache.
    Uniform,
    /// Few have many: Zipf with exponent 1.
    Zipf,
}

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[arg(long, value_enum, default_value = "sqlite")]
    database: Kind,
    /// How large the table becomes.
    #[arg(long, default_value_t = 1_000_000)]
    rows: usize,
    #[arg(long, value_enum, default_values = ["local", "global", "nameless"], value_delimiter = ',')]
    designs: Vec<Design>,
    #[arg(long, value_enum, default_value = "uniform")]
    spread: Spread,
    #[arg(long, default_value_t = 500_000)]
    people: u64,
}

/// What was measured at one size of the table.
#[derive(Debug)]
struct Sample {
    design: Design,
    rows: usize,
    of_twenty: f64,
    of_one: f64,
    bytes: u64,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let databases = Databases::new(arguments.database)?;
    let mut stations = vec![0, 1_000_000, 3_000_000, 10_000_000];
    stations.retain(|station| *station < arguments.rows);
    stations.push(arguments.rows);
    let mut table = Table::new(&[
        "keys",
        "rows in the table",
        "requests of 20, rows/s",
        "requests of 1, rows/s",
        "bytes a row",
    ]);
    let mut fillers = Vec::with_capacity(arguments.designs.len());
    for design in &arguments.designs {
        fillers.push(Filler::new(databases.fresh()?, *design, &arguments).await?);
    }
    for station in &stations {
        for filler in &mut fillers {
            filler.fill(*station).await?;
        }
        for sample in samples(&mut fillers).await? {
            say(format_args!("{sample:.0?}"))?;
            table.row(&[
                format!("{:?}", sample.design),
                sample.rows.to_string(),
                format!("{:.0}", sample.of_twenty),
                format!("{:.0}", sample.of_one),
                match sample.rows {
                    0 => String::new(),
                    rows => (sample.bytes / rows as u64).to_string(),
                },
            ]);
        }
    }
    for filler in fillers {
        filler.db.close().await;
    }
    Ok(table.print()?)
}

/// Measures all designs at the size that they have; they take turns.
async fn samples(fillers: &mut [Filler]) -> anyhow::Result<Vec<Sample>> {
    let mut samples = Vec::with_capacity(fillers.len());
    for filler in fillers.iter() {
        samples.push(Sample {
            design: filler.design,
            rows: filler.rows,
            of_twenty: f64::NAN,
            of_one: f64::NAN,
            bytes: filler.bytes().await?,
        });
    }
    let mut rates = vec![(Vec::new(), Vec::new()); fillers.len()];
    for _ in 0..TURNS {
        for (filler, (of_twenty, of_one)) in fillers.iter_mut().zip(&mut rates) {
            of_twenty.push(filler.rate(20).await?);
            of_one.push(filler.rate(1).await?);
        }
    }
    for (sample, (of_twenty, of_one)) in samples.iter_mut().zip(rates) {
        sample.of_twenty = median(of_twenty);
        sample.of_one = median(of_one);
    }
    Ok(samples)
}

/// Fills a table.
struct Filler {
    db: Db,
    database: Fresh,
    design: Design,
    people: u64,
    spread: Spread,
    random: Random,
    app_id: Uuid,
    rows: usize,
    request: i64,
}

#[derive(nudge_db::FromRow)]
struct Size {
    bytes: i64,
}

impl Filler {
    async fn new(database: Fresh, design: Design, arguments: &Arguments) -> anyhow::Result<Self> {
        let db = database.open(1).await?;
        let sqlite = "CREATE TABLE events (seq INTEGER NOT NULL PRIMARY KEY, app_id BLOB NOT NULL,
                 alias_number INTEGER NOT NULL, event_id BLOB NOT NULL, name TEXT NOT NULL,
                 timestamp INTEGER NOT NULL, properties TEXT NOT NULL) STRICT";
        let postgres = "CREATE TABLE events (seq bigint NOT NULL, app_id uuid NOT NULL,
                 alias_number bigint NOT NULL, event_id uuid NOT NULL, name text NOT NULL,
                 timestamp bigint NOT NULL, properties text NOT NULL)";
        let primary = match design {
            Design::Single => "ALTER TABLE events ADD PRIMARY KEY (seq)",
            Design::Local | Design::Global | Design::Nameless => {
                "ALTER TABLE events ADD PRIMARY KEY (seq, alias_number)"
            }
        };
        let unique = match design {
            Design::Global => "CREATE UNIQUE INDEX event_ids ON events (app_id, event_id)",
            Design::Local | Design::Nameless | Design::Single => {
                "CREATE UNIQUE INDEX event_ids ON events (alias_number, event_id)"
            }
        };
        let mut tx = db.write().await?;
        let by_time = "CREATE INDEX events_by_time ON events (alias_number, timestamp, event_id)";
        let table: &[&'static str] = match db.dialect() {
            Dialect::Sqlite => &[sqlite],
            Dialect::Postgres => &[postgres, primary],
        };
        for text in table.iter().copied().chain([unique, by_time]) {
            tx.sql(text).execute().await?;
        }
        if design != Design::Nameless {
            tx.sql("CREATE INDEX events_by_name ON events (alias_number, name, timestamp)")
                .execute()
                .await?;
        }
        tx.commit().await?;
        Ok(Self {
            db,
            database,
            design,
            people: arguments.people,
            spread: arguments.spread,
            random: Random::new(11),
            app_id: Uuid::from_u128(7),
            rows: 0,
            request: 0,
        })
    }

    async fn fill(&mut self, rows: usize) -> anyhow::Result<()> {
        while self.rows < rows {
            self.transaction(20).await?;
        }
        Ok(())
    }

    /// Rows a second, for requests with so many events each.
    async fn rate(&mut self, request: usize) -> anyhow::Result<f64> {
        let started = Instant::now();
        for _ in 0..SAMPLE / TRANSACTION {
            self.transaction(request).await?;
        }
        Ok(rate(SAMPLE, started.elapsed()))
    }

    /// One transaction of requests with so many events each.
    async fn transaction(&mut self, request: usize) -> anyhow::Result<()> {
        let now = Clock::default().now();
        let mut rows = Vec::with_capacity(TRANSACTION);
        let mut alias = 0;
        for number in 0..TRANSACTION {
            let offset = i64::try_from(number % request)?;
            if offset == 0 {
                self.request += 1;
                alias = self.alias();
            }
            let name = format!("event_name_{:02}", self.random.below(NAMES));
            let timestamp = Timestamp(now.0 + offset);
            rows.push((
                self.request * 512 + offset,
                alias,
                self.random.uuid(),
                name,
                timestamp,
            ));
        }
        let columns = Rows::new()
            .integers(rows.iter().map(|row| row.0))
            .uuids(rows.iter().map(|_| self.app_id))
            .integers(rows.iter().map(|row| row.1))
            .uuids(rows.iter().map(|row| row.2))
            .texts(rows.iter().map(|row| row.3.clone()))
            .timestamps(rows.iter().map(|row| row.4))
            .texts(rows.iter().map(|_| PROPERTIES.to_owned()));
        let mut tx = self.db.write().await?;
        tx.with_rows(
            "v(seq, app_id, alias_number, event_id, name, timestamp, properties)",
            columns,
        )
        .push(
            " INSERT INTO events (seq, app_id, alias_number, event_id, name, timestamp, properties)
              SELECT v.seq, v.app_id, v.alias_number, v.event_id, v.name, v.timestamp, v.properties
              FROM v WHERE true ON CONFLICT DO NOTHING",
        )
        .execute()
        .await?;
        tx.commit().await?;
        self.rows += TRANSACTION;
        Ok(())
    }

    /// Somebody. Neighbours in rank are no neighbours in number.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a place in a list"
    )]
    fn alias(&mut self) -> i64 {
        let rank = match self.spread {
            Spread::Uniform => self.random.below(self.people),
            Spread::Zipf => (self.people as f64).powf(self.random.fraction()) as u64,
        };
        let number = rank.wrapping_mul(0x9e37_79b9_7f4a_7c15) % self.people.next_power_of_two();
        i64::try_from(number).unwrap_or_default() + 1
    }

    async fn bytes(&self) -> anyhow::Result<u64> {
        if let Some(file) = self.database.file() {
            return Ok(std::fs::metadata(file)?.len());
        }
        let mut tx = self.db.read().await?;
        let size: Size = tx
            .sql("SELECT pg_total_relation_size('events') AS bytes")
            .fetch_one()
            .await?;
        Ok(u64::try_from(size.bytes)?)
    }
}
