//! What waits in the database, of all apps: operators look after the server, not after an app.

use std::time::Duration;

use nudge_db::{Result, Timestamp, Tx};
use nudge_records::events;
use uuid::Uuid;

/// Rows of a queue that are counted at the most: whoever looks must not be slowed down by what is looked at.
pub const MOST_COUNTED: i64 = 10_000;

/// What of a queue is due.
#[derive(Clone, Copy, Debug, nudge_db::FromRow)]
pub struct Queue {
    /// How much, [`MOST_COUNTED`] at the most.
    pub number: i64,
    /// Since when the oldest of those that were counted is.
    oldest: Option<Timestamp>,
}

impl Queue {
    /// How long the oldest has been due.
    pub fn waited(&self, now: Timestamp) -> Duration {
        self.oldest
            .map_or(Duration::ZERO, |oldest| now.since(oldest))
    }
}

/// What waits.
#[derive(Clone, Copy, Debug)]
pub struct Backlog {
    /// Committed requests whose events are not decided about.
    pub requests: Queue,
    /// Push messages.
    pub pushes: Queue,
    /// Webhook messages.
    pub webhooks: Queue,
    /// Timers of campaigns.
    pub timers: Queue,
    /// Jobs, those that run among them.
    pub jobs: Queue,
    /// Dead letters, [`MOST_COUNTED`] at the most.
    pub dead_letters: i64,
}

/// Reads what waits.
pub async fn backlog(tx: &mut Tx, now: Timestamp) -> Result<Backlog> {
    // Each is the beginning of an index, and its condition is that index's. That of webhooks is by endpoint: it is looked into for
    // each that is sent anything. What waits for one that is switched off is not due.
    let pushes = "SELECT count(*) AS number, min(w.at) AS oldest
        FROM (SELECT due_at AS at FROM deliveries
              WHERE due_at IS NOT NULL AND node IS NULL AND due_at <= $1 LIMIT $2) w";
    let webhooks = "SELECT count(*) AS number, min(w.at) AS oldest
        FROM (SELECT due_at AS at FROM webhook_messages
              WHERE due_at IS NOT NULL AND node IS NULL AND due_at <= $1
                AND webhook_id IN (SELECT id FROM webhooks WHERE active AND disabled_at IS NULL) LIMIT $2) w";
    let timers = "SELECT count(*) AS number, min(w.at) AS oldest
        FROM (SELECT due_at AS at FROM timers
              WHERE node IS NULL AND due_at <= $1 ORDER BY due_at LIMIT $2) w";
    let jobs = "SELECT count(*) AS number, min(w.at) AS oldest
        FROM (SELECT run_at AS at FROM jobs
              WHERE completed_at IS NULL AND run_at <= $1 ORDER BY run_at LIMIT $2) w";
    let requests = events::store::backlog(tx, MOST_COUNTED).await?;
    Ok(Backlog {
        requests: Queue {
            number: requests.requests,
            oldest: requests.oldest,
        },
        pushes: queue(tx, pushes, now).await?,
        webhooks: queue(tx, webhooks, now).await?,
        timers: queue(tx, timers, now).await?,
        jobs: queue(tx, jobs, now).await?,
        dead_letters: tx
            .sql("SELECT count(*) AS number FROM (SELECT id FROM dead_letters LIMIT $1) w")
            .bind(MOST_COUNTED)
            .fetch_scalar()
            .await?,
    })
}

async fn queue(tx: &mut Tx, sql: &'static str, now: Timestamp) -> Result<Queue> {
    tx.sql(sql).bind(now).bind(MOST_COUNTED).fetch_one().await
}

/// A process that has signed in.
#[derive(Clone, Copy, Debug, nudge_db::FromRow)]
pub struct Node {
    /// Its id.
    pub id: Uuid,
    /// When it started.
    pub started_at: Timestamp,
    /// Its last sign of life.
    pub heartbeat_at: Timestamp,
}

/// The processes that use the database, in the order in which they started.
pub async fn nodes(tx: &mut Tx) -> Result<Vec<Node>> {
    tx.sql("SELECT id, started_at, heartbeat_at FROM nodes ORDER BY started_at, id")
        .fetch_all()
        .await
}

/// Dead letters of an app from one stage.
#[derive(Debug, nudge_db::FromRow)]
pub struct LetterGroup {
    /// The app.
    pub app_id: Uuid,
    /// The stage's name.
    pub stage: String,
    /// How many.
    pub number: i64,
    /// When the event of the newest arrived.
    pub newest: Timestamp,
}

/// Dead letters by app and stage, most first; of [`MOST_COUNTED`] letters at the most.
pub async fn dead_letters(tx: &mut Tx) -> Result<Vec<LetterGroup>> {
    tx.sql(
        "SELECT w.app_id, w.stage, count(*) AS number, max(w.received_at) AS newest
         FROM (SELECT app_id, stage, received_at FROM dead_letters LIMIT $1) w
         GROUP BY w.app_id, w.stage ORDER BY number DESC, w.app_id, w.stage",
    )
    .bind(MOST_COUNTED)
    .fetch_all()
    .await
}
