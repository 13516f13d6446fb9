//! The schema: migrations of both databases.

use nudge_db::Migrations;

/// Every migration.
pub fn migrations() -> Migrations {
    Migrations {
        sqlite: sqlx::migrate!("../migrations/sqlite"),
        postgres: sqlx::migrate!("../migrations/postgres"),
    }
}
