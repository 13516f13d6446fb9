//! What was acknowledged, compared with what is in the database.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use nudge_db::{Db, Record};
use serde_json::Value;
use uuid::Uuid;

use super::{BROKEN, CARTED, ORDERED, PUSHED};

/// Longer than anything takes that the servers still have to do.
const SETTLES: Duration = Duration::from_mins(2);

/// What clients sent and servers acknowledged.
#[derive(Debug, Default)]
pub(super) struct Sent {
    pub events: HashMap<Uuid, &'static str>,
    pub requests: usize,
    pub repeated: usize,
}

/// A number in the database.
#[derive(nudge_db::FromRow)]
pub(super) struct Number {
    pub number: i64,
}

#[derive(nudge_db::FromRow)]
struct Counted {
    id: Uuid,
    number: i64,
}

impl Sent {
    /// Notes a request that was answered with 200: its events are accepted, but for those that break their
    /// definition, which are dead letters.
    pub(super) fn acknowledge(
        &mut self,
        events: Vec<(Uuid, &'static str)>,
        answer: &Value,
        repeated: bool,
    ) -> anyhow::Result<()> {
        let broken = events.iter().filter(|(_, name)| *name == BROKEN).count();
        let count = |pointer| answer.pointer(pointer).and_then(Value::as_u64);
        ensure!(
            count("/data/accepted") == Some((events.len() - broken) as u64)
                && count("/data/rejected") == Some(broken as u64),
            "{broken} of {} events are broken, and the answer is {answer}",
            events.len()
        );
        self.requests += 1;
        self.repeated += usize::from(repeated);
        self.events.extend(events);
        Ok(())
    }

    pub(super) fn extend(&mut self, other: Self) {
        self.events.extend(other.events);
        self.requests += other.requests;
        self.repeated += other.repeated;
    }

    fn of(&self, wanted: impl Fn(&str) -> bool) -> impl Iterator<Item = Uuid> {
        let events = self.events.iter();
        events
            .filter(move |(_, name)| wanted(name))
            .map(|(id, _)| *id)
    }
}

/// Waits until nothing is left to do.
pub(super) async fn settle(db: &Db) -> anyhow::Result<()> {
    let started = Instant::now();
    loop {
        let mut left = Vec::new();
        for (what, sql) in [
            (
                "requests",
                "SELECT count(*) AS number FROM pending WHERE node IS NULL OR node IN (SELECT id FROM nodes)",
            ),
            (
                "requests of processes that are not there",
                "SELECT count(*) AS number FROM pending WHERE node NOT IN (SELECT id FROM nodes)",
            ),
            ("timers", "SELECT count(*) AS number FROM timers"),
            (
                "firings that wait",
                "SELECT count(*) AS number FROM occasions",
            ),
            (
                "jobs",
                "SELECT count(*) AS number FROM jobs WHERE completed_at IS NULL",
            ),
            (
                "push messages",
                "SELECT count(*) AS number FROM deliveries WHERE due_at IS NOT NULL OR node IS NOT NULL",
            ),
            (
                "webhook messages",
                "SELECT count(*) AS number FROM webhook_messages WHERE due_at IS NOT NULL OR node IS NOT NULL",
            ),
        ] {
            let rows: Vec<Number> = all(db, sql).await?;
            let number = rows.first().context("a count")?.number;
            if number > 0 {
                left.push(format!("{number} {what}"));
            }
        }
        if left.is_empty() {
            return Ok(());
        }
        if started.elapsed() > SETTLES {
            bail!("stuck: {}", left.join(", "));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Compares what was acknowledged with what is there.
pub(super) async fn compare(db: &Db, sent: &Sent) -> anyhow::Result<()> {
    let stored = "SELECT event_id AS id, count(*) AS number FROM events GROUP BY event_id";
    once("events", sent.of(|name| name != BROKEN), db, stored).await?;
    let letters = "SELECT event_id AS id, count(*) AS number FROM dead_letters GROUP BY event_id";
    once("dead letters", sent.of(|name| name == BROKEN), db, letters).await?;
    let shown = "SELECT trigger_event_id AS id, count(*) AS number FROM instructions
                 WHERE trigger_name IN ('order_completed', 'cart_updated') GROUP BY trigger_event_id";
    let orders = |name: &str| [ORDERED, CARTED].contains(&name);
    once("instructions", sent.of(orders), db, shown).await?;
    let pushed = "SELECT event_id AS id, count(*) AS number FROM deliveries GROUP BY event_id";
    once("push messages", sent.of(|name| name == PUSHED), db, pushed).await?;
    let miscounted: Vec<Number> = all(
        db,
        "SELECT count(*) AS number FROM subjects s WHERE s.event_count <>
           (SELECT count(*) FROM events e JOIN aliases a ON a.number = e.alias_number WHERE a.subject_id = s.id)",
    )
    .await?;
    let number = miscounted.first().context("a count")?.number;
    ensure!(number == 0, "{number} people have another count of events");
    Ok(())
}

/// Fails unless exactly the expected ids are there, each once.
async fn once(
    what: &str,
    expected: impl Iterator<Item = Uuid>,
    db: &Db,
    sql: &'static str,
) -> anyhow::Result<()> {
    let rows: Vec<Counted> = all(db, sql).await?;
    let mut found: HashMap<Uuid, i64> = rows.into_iter().map(|row| (row.id, row.number)).collect();
    let (mut lost, mut doubled) = (Vec::new(), Vec::new());
    for id in expected {
        match found.remove(&id) {
            Some(1) => {}
            Some(_) => doubled.push(id),
            None => lost.push(id),
        }
    }
    let of_nobody: Vec<Uuid> = found.into_keys().collect();
    let wrong = lost.len() + doubled.len() + of_nobody.len();
    ensure!(
        wrong == 0,
        "{what}: lost {lost:?}, doubled {doubled:?}, of nobody {of_nobody:?}"
    );
    Ok(())
}

/// The rows of a query.
pub(super) async fn all<T: Record>(db: &Db, sql: &'static str) -> anyhow::Result<Vec<T>> {
    let mut tx = db.read().await?;
    Ok(tx.sql(sql).fetch_all().await?)
}
