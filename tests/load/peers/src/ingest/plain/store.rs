//! The table, and the statement that fills it.

use jiff::Timestamp;
use sqlx::postgres::PgPool;
use sqlx::sqlite::SqlitePool;
use sqlx::{Executor as _, QueryBuilder, Sqlite};
use uuid::Uuid;

use super::super::database::Pool;
use super::Submission;

/// The only app.
const APP: Uuid = Uuid::from_u128(7);

/// The columns but `seq`, by which each database numbers its rows in a way of its own.
const SQLITE: &str = "
    CREATE TABLE events (
        seq INTEGER PRIMARY KEY,
        app_id BLOB NOT NULL,
        anonymous_id TEXT NOT NULL,
        event_id BLOB NOT NULL,
        name TEXT NOT NULL,
        timestamp INTEGER NOT NULL,
        received_at INTEGER NOT NULL,
        properties TEXT NOT NULL,
        platform TEXT,
        app_version TEXT,
        locale TEXT,
        timezone TEXT,
        source TEXT NOT NULL
    ) STRICT";

const POSTGRES: &str = "
    CREATE TABLE events (
        seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        app_id UUID NOT NULL,
        anonymous_id TEXT NOT NULL,
        event_id UUID NOT NULL,
        name TEXT NOT NULL,
        timestamp BIGINT NOT NULL,
        received_at BIGINT NOT NULL,
        properties TEXT NOT NULL,
        platform TEXT,
        app_version TEXT,
        locale TEXT,
        timezone TEXT,
        source TEXT NOT NULL
    )";

const INDEXES: [&str; 4] = [
    "CREATE UNIQUE INDEX event_of_person ON events (anonymous_id, event_id)",
    "CREATE INDEX events_by_time ON events (anonymous_id, timestamp, event_id)",
    "CREATE INDEX events_by_name ON events (anonymous_id, name, timestamp)",
    "CREATE INDEX events_of_app ON events (app_id, name, received_at, seq)",
];

/// Makes the table.
pub(super) async fn create(pool: &Pool) -> sqlx::Result<()> {
    match pool {
        Pool::Sqlite(pool) => {
            pool.execute(SQLITE).await?;
            for index in INDEXES {
                pool.execute(index).await?;
            }
        }
        Pool::Postgres(pool) => {
            pool.execute(POSTGRES).await?;
            for index in INDEXES {
                pool.execute(index).await?;
            }
        }
    }
    Ok(())
}

/// Stores the events of a request: one statement, which is its own transaction.
pub(super) async fn insert(pool: &Pool, submission: &Submission) -> sqlx::Result<()> {
    match pool {
        Pool::Sqlite(pool) => insert_into_sqlite(pool, submission).await,
        Pool::Postgres(pool) => insert_into_postgres(pool, submission).await,
    }
}

async fn insert_into_sqlite(pool: &SqlitePool, submission: &Submission) -> sqlx::Result<()> {
    let received = Timestamp::now().as_microsecond();
    let context = &submission.context;
    let mut statement: QueryBuilder<Sqlite> = QueryBuilder::new(
        "INSERT INTO events (app_id, anonymous_id, event_id, name, timestamp, received_at, properties,
                             platform, app_version, locale, timezone, source) ",
    );
    statement.push_values(&submission.events, |mut row, event| {
        row.push_bind(APP)
            .push_bind(&context.anonymous_id)
            .push_bind(event.id)
            .push_bind(&event.name)
            .push_bind(event.timestamp.as_microsecond())
            .push_bind(received)
            .push_bind(event.properties.get())
            .push_bind(&context.platform)
            .push_bind(&context.app_version)
            .push_bind(&context.locale)
            .push_bind(&context.timezone)
            .push_bind("sdk");
    });
    statement.push(" ON CONFLICT (anonymous_id, event_id) DO NOTHING");
    statement.build().execute(pool).await?;
    Ok(())
}

async fn insert_into_postgres(pool: &PgPool, submission: &Submission) -> sqlx::Result<()> {
    let context = &submission.context;
    let events = &submission.events;
    let ids: Vec<Uuid> = events.iter().map(|event| event.id).collect();
    let names: Vec<&str> = events.iter().map(|event| event.name.as_str()).collect();
    let times: Vec<i64> = events
        .iter()
        .map(|event| event.timestamp.as_microsecond())
        .collect();
    let properties: Vec<&str> = events.iter().map(|event| event.properties.get()).collect();
    let statement = sqlx::query(
        "INSERT INTO events (app_id, anonymous_id, event_id, name, timestamp, received_at, properties,
                             platform, app_version, locale, timezone, source)
         SELECT $1, $2, v.event_id, v.name, v.timestamp, $3, v.properties, $4, $5, $6, $7, 'sdk'
         FROM unnest($8::uuid[], $9::text[], $10::bigint[], $11::text[])
              AS v (event_id, name, timestamp, properties)
         ON CONFLICT (anonymous_id, event_id) DO NOTHING",
    )
    .bind(APP)
    .bind(&context.anonymous_id)
    .bind(Timestamp::now().as_microsecond())
    .bind(&context.platform)
    .bind(&context.app_version)
    .bind(&context.locale)
    .bind(&context.timezone)
    .bind(ids)
    .bind(names)
    .bind(times)
    .bind(properties);
    statement.execute(pool).await?;
    Ok(())
}
