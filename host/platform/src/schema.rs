//! The schema: migrations of both databases.

use nudge_db::Migrations;

/// Every migration.
pub fn migrations() -> Migrations {
    let mut postgres = sqlx::migrate!("../migrations/postgres");
    // Its lock is a session's; that of `nudge_db` is a transaction's.
    postgres.set_locking(false);
    Migrations {
        sqlite: sqlx::migrate!("../migrations/sqlite"),
        postgres,
    }
}
