//! One transaction type over SQLite and PostgreSQL, so that SQL is written once.
//!
//! [`Db`] opens either database, [`Tx`] is a transaction on it, [`Statement`] is a statement whose text
//! grows by literals only, and [`Rows`] is a table of parameters for statements about many rows. The few
//! fragments that differ are methods of [`Dialect`]. This package knows no table, but the two that can be on several machines
//! (`distribute`, `shards`).
//!
//! Instants are [`Timestamp`]s (microseconds), UUIDs are `UUID` or 16-byte `BLOB`, JSON is `TEXT`.
//!
//! # Invariants
//!
//! - **A transaction is committed or nothing of it happened.** SQLite has one writer at a time, and a commit of its may be several transactions' (`writer.rs`); transactions of PostgreSQL that lost a race say so.
//! - **A commit is on disk once it returns**, but for one that says [`Durability::Delayed`]: it is durable with the next one.
//! - **SQL is literals and placeholders.** No value is ever part of a statement's text.
//! - **No wait for PostgreSQL is without end.** Past `database.deadlineSeconds` a connection is dropped, and with it all idle ones: they may lead to a database that
//!   takes no writes any more. A commit without an answer may have happened, as with a crash. New connections are to a host that says it takes writes.
//! - **An error carries no value of a row**, as drivers quote them.

mod db;
mod dialect;
mod distribute;
mod error;
mod examine;
mod hosts;
mod migrate;
mod pool;
mod reason;
mod room;
mod rows;
mod shards;
mod single_statement;
mod sqlite;
mod statement;
mod timestamp;
mod tx;
mod url;
mod writer;

pub use db::{Db, Migrations, Options, Usage, is_known_url, sqlite_path};
pub use dialect::{Dialect, Durability};
pub use distribute::{Distributable, Distribution, Share};
pub use error::{Error, Kind, Result};
pub use examine::Finding;
pub use migrate::Schema;
pub use reason::Reason;
pub use rows::Rows;
pub use shards::Shards;
/// What types of rows and columns derive, and migrations are embedded by.
pub use sqlx_macros::{FromRow, Type, migrate};
pub use statement::{Bind, IS, Record, Statement};
pub use timestamp::Timestamp;
pub use tx::{Tx, to_its_end};
