//! The schema: migrations of both databases.
//!
//! A migration is written once, in `migrations/common`, with PostgreSQL's types. Where the databases need statements of their
//! own, each has a file of the same name in its own folder instead.

use std::borrow::Cow;

use nudge_db::Migrations;
use sqlx::migrate::{Migration, Migrator};
use sqlx::{AssertSqlSafe, SqlSafeStr as _};

/// What SQLite has in place of PostgreSQL's types.
const TYPES: [(&str, &str); 5] = [
    ("UUID", "BLOB"),
    ("BYTEA", "BLOB"),
    ("BIGINT", "INTEGER"),
    ("BOOLEAN", "INTEGER"),
    ("DOUBLE PRECISION", "REAL"),
];

/// Every migration.
pub fn migrations() -> Migrations {
    let common = nudge_db::migrate!("../migrations/common");
    let of_postgres = nudge_db::migrate!("../migrations/postgres");
    let of_sqlite = nudge_db::migrate!("../migrations/sqlite");
    let mut postgres = joined(&of_postgres, common.iter().cloned());
    // Its lock is a session's; that of `nudge_db` is a transaction's.
    postgres.set_locking(false);
    Migrations {
        sqlite: joined(&of_sqlite, common.iter().map(for_sqlite)),
        postgres,
    }
}

/// The migrations of a database, in the order of their numbers.
fn joined(own: &Migrator, common: impl Iterator<Item = Migration>) -> Migrator {
    let mut all: Vec<Migration> = own.iter().cloned().chain(common).collect();
    all.sort();
    Migrator::with_migrations(all)
}

fn for_sqlite(migration: &Migration) -> Migration {
    Migration::new(
        migration.version,
        Cow::clone(&migration.description),
        migration.migration_type,
        AssertSqlSafe(in_sqlite(migration.sql.as_str())).into_sql_str(),
        migration.no_tx,
    )
}

/// The text of a migration with SQLite's types. Its tables are strict: they refuse values of other types, as PostgreSQL's do.
fn in_sqlite(text: &str) -> String {
    let mut text = text.replace("\n);", "\n) STRICT;");
    for (postgres, sqlite) in TYPES {
        text = text.replace(&format!(" {postgres}"), &format!(" {sqlite}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn sqlite_has_the_same_tables_with_its_own_types() {
        let table = "CREATE TABLE notes (\n    id UUID NOT NULL PRIMARY KEY,\n    bytes BYTEA,\n    at BIGINT NOT NULL,\n    \
                     done BOOLEAN NOT NULL DEFAULT FALSE,\n    share DOUBLE PRECISION\n);\n\
                     CREATE INDEX notes_by_at ON notes (at);\nALTER TABLE jobs ADD COLUMN note_id UUID;\n";
        assert_eq!(
            in_sqlite(table),
            "CREATE TABLE notes (\n    id BLOB NOT NULL PRIMARY KEY,\n    bytes BLOB,\n    at INTEGER NOT NULL,\n    \
             done INTEGER NOT NULL DEFAULT FALSE,\n    share REAL\n) STRICT;\n\
             CREATE INDEX notes_by_at ON notes (at);\nALTER TABLE jobs ADD COLUMN note_id BLOB;\n"
        );
    }

    /// Each was written twice before there was a folder for both.
    #[test]
    fn what_was_written_twice_would_have_been_the_same() {
        let all = migrations();
        for number in [25, 26, 27, 28, 30, 32, 33, 34] {
            let text = |of: &Migrator| {
                let found = of.iter().find(|migration| migration.version == number);
                found.unwrap().sql.as_str().to_owned()
            };
            assert_eq!(
                in_sqlite(&text(&all.postgres)),
                // A way to store rows, not what they are.
                text(&all.sqlite).replace(", WITHOUT ROWID", ""),
                "{number}"
            );
        }
    }

    #[test]
    fn each_number_is_one_migration() {
        let all = migrations();
        for of in [&all.sqlite, &all.postgres] {
            let numbers: BTreeSet<i64> = of.iter().map(|migration| migration.version).collect();
            assert_eq!(numbers.len(), of.iter().count());
        }
    }
}
