//! Instants as both databases store them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Microseconds since 1970-01-01T00:00:00Z, stored as `INTEGER` or `BIGINT`.
///
/// One number orders and compares alike in Rust, SQLite and PostgreSQL.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    sqlx_macros::Type,
    Serialize,
    Deserialize,
)]
#[sqlx(transparent)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    /// From whole seconds since the epoch.
    pub fn from_seconds(seconds: i64) -> Self {
        Self(seconds.saturating_mul(1_000_000))
    }

    /// Whole milliseconds since the epoch, rounded down.
    pub fn millis(self) -> i64 {
        self.0.div_euclid(1_000)
    }

    /// Whole seconds since the epoch, rounded down.
    pub fn seconds(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// This instant and a while.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(micros(duration)))
    }

    /// This instant less a while.
    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(micros(duration)))
    }

    /// How long ago `earlier` was; zero when it is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}
