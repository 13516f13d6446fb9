//! What it costs to find people among many, and to read their timelines.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use nudge::clock::Clock;
use nudge::id;
use nudge_db::{Db, Dialect, Rows, Timestamp, Tx};
use serde_json::Value;
use uuid::Uuid;

use crate::child::Server;
use crate::client::{self, Connection};
use crate::database::{Databases, Kind};
use crate::random::Random;
use crate::report::{Table, micros, say};
use crate::request::PROPERTIES;

/// Statements of a transaction while the database is filled.
const STATEMENTS: usize = 50;
/// Events of a request, which follow each other in the table.
const REQUEST: usize = 20;
/// The first number of a request: beyond those of the server.
const FIRST_REQUEST: i64 = 1_000_000;
const NAMES: u64 = 50;
/// The span that events are spread over, in microseconds: 90 days.
const SPAN: u64 = 90 * 24 * 3600 * 1_000_000;
/// Events of the one person who has many.
const LONG_HISTORY: usize = 100_000;
const WARM_UP: usize = 20;

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[arg(long, value_enum, default_value = "sqlite")]
    database: Kind,
    #[arg(long, default_value_t = 1_000_000)]
    users: usize,
    #[arg(long, default_value_t = 10_000_000)]
    events: usize,
    /// Requests of each kind.
    #[arg(long, default_value_t = 300)]
    requests: usize,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let databases = Databases::new(arguments.database)?;
    let server = Server::start(&databases, 0).await?;
    let app_id: Uuid = server.access("appId")?.parse()?;
    let mut filler = Filler {
        db: server.db(),
        app_id,
        random: Random::new(17),
        now: Clock::default().now(),
        request: FIRST_REQUEST,
    };
    let started = Instant::now();
    filler.people(arguments.users).await?;
    let aliases = filler.aliases().await?;
    say(format_args!(
        "{} people after {:.0?}",
        arguments.users,
        started.elapsed()
    ))?;
    filler.events(arguments.events, aliases).await?;
    filler.events(LONG_HISTORY, (aliases.0, aliases.0)).await?;
    filler.settle().await?;
    say(format_args!(
        "{} events after {:.0?}",
        arguments.events,
        started.elapsed()
    ))?;
    measure(&server, &arguments).await?;
    server.stop().await
}

/// Fills a database past the server.
struct Filler<'a> {
    db: &'a Db,
    app_id: Uuid,
    random: Random,
    now: Timestamp,
    request: i64,
}

#[derive(sqlx::FromRow)]
struct Range {
    first: i64,
    last: i64,
}

impl Filler<'_> {
    /// Makes people: `person-0` and so on, each with three properties.
    async fn people(&mut self, count: usize) -> anyhow::Result<()> {
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
    async fn aliases(&self) -> anyhow::Result<(i64, i64)> {
        let mut tx = self.db.read().await?;
        let range: Range = tx
            .sql("SELECT min(number) AS first, max(number) AS last FROM aliases WHERE app_id = $1")
            .bind(self.app_id)
            .fetch_one()
            .await?;
        Ok((range.first, range.last))
    }

    /// Makes events of aliases, in requests as SDKs send them.
    async fn events(&mut self, count: usize, aliases: (i64, i64)) -> anyhow::Result<()> {
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
    async fn settle(&self) -> anyhow::Result<()> {
        if self.db.dialect() == Dialect::Postgres {
            let mut tx = self.db.write_each().await?;
            tx.sql("VACUUM ANALYZE").execute().await?;
        }
        Ok(())
    }
}

/// What is asked for: a name for the table, and the path of a request by its number.
type Question<'a> = (&'static str, Box<dyn Fn(u64) -> String + Send + Sync + 'a>);

fn questions(users: &str, people: u64) -> Vec<Question<'_>> {
    let somebody = move |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % people;
    vec![
        (
            "list, first page of 50",
            Box::new(move |_| users.to_owned()),
        ),
        (
            "list, first page of 200",
            Box::new(move |_| format!("{users}?limit=200")),
        ),
        (
            "search by a whole name",
            Box::new(move |number| format!("{users}?q=person-{}", somebody(number))),
        ),
        (
            "search by a common beginning",
            Box::new(move |_| format!("{users}?q=person-")),
        ),
        (
            "search by a rare part of a value",
            Box::new(move |number| format!("{users}?q=pany%20{}%20g", somebody(number) % 100_000)),
        ),
        (
            "search by a common part of a value",
            Box::new(move |_| format!("{users}?q=fession")),
        ),
        (
            "profile",
            Box::new(move |number| format!("{users}/person-{}", somebody(number))),
        ),
        (
            "timeline",
            Box::new(move |number| format!("{users}/person-{}/events", somebody(number))),
        ),
        (
            "timeline of 100,000 events",
            Box::new(move |_| format!("{users}/person-0/events?limit=500")),
        ),
        (
            "timeline of 100,000 events, by name",
            Box::new(move |number| {
                format!(
                    "{users}/person-0/events?name=event_name_{:02}",
                    number % NAMES
                )
            }),
        ),
    ]
}

async fn measure(server: &Server, arguments: &Arguments) -> anyhow::Result<()> {
    let users = format!("/v1/apps/{}/users", server.access("appId")?);
    let people = u64::try_from(arguments.users)?.max(1);
    let token = format!("Bearer {}", server.access("viewerToken")?);
    let mut connection = Connection::open(server.address()).await?;
    let mut table = Table::new(&["request", "p50", "p99"]);
    for (name, path) in &questions(&users, people) {
        let mut latencies = Vec::with_capacity(arguments.requests);
        for number in 0..WARM_UP + arguments.requests {
            let path = path(u64::try_from(number)?);
            let latency = ask(&mut connection, &path, &token).await?.0;
            if number >= WARM_UP {
                latencies.push(latency);
            }
        }
        row(&mut table, name, &latencies);
    }
    let latencies = walk(&mut connection, &users, &token, arguments.requests).await?;
    row(
        &mut table,
        "list, one page of 50 after the other",
        &latencies,
    );
    Ok(table.print()?)
}

pub(crate) fn row(table: &mut Table, name: &str, latencies: &[Duration]) {
    let millis = |part| format!("{:.2} ms", micros(latencies, part) / 1_000.0);
    table.row(&[name.to_owned(), millis(0.5), millis(0.99)]);
}

/// Follows the list from page to page.
async fn walk(
    connection: &mut Connection,
    users: &str,
    token: &str,
    pages: usize,
) -> anyhow::Result<Vec<Duration>> {
    let mut path = users.to_owned();
    let mut latencies = Vec::with_capacity(pages);
    while latencies.len() < pages {
        let (latency, page) = ask(connection, &path, token).await?;
        latencies.push(latency);
        let cursor = page.pointer("/data/nextCursor").and_then(Value::as_str);
        let Some(cursor) = cursor else { break };
        path = format!("{users}?cursor={cursor}");
    }
    Ok(latencies)
}

pub(crate) async fn ask(
    connection: &mut Connection,
    path: &str,
    token: &str,
) -> anyhow::Result<(Duration, Value)> {
    let request = client::request("GET", path, &[("Authorization", token)], "");
    let started = Instant::now();
    let answer = connection.send(&request).await?;
    let latency = started.elapsed();
    anyhow::ensure!(answer.status == 200, "{path}: {}", answer.status);
    let page = serde_json::from_slice(answer.body).with_context(|| path.to_owned())?;
    Ok((latency, page))
}
