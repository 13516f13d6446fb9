//! What keys are used for, on its way to the database: requests leave a note in memory, a task writes what
//! has come together.
//!
//! Refusals are bounded: a key that is refused for one reason leaves one entry a minute for a route, for ten routes at the
//! most, in each process; a process remembers 4,096 keys and reasons for that, and writes at most 1,024 entries at a time. What
//! is beyond is counted (`nudge_key_refusals_unaudited_total`), but for repetitions.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use strum::IntoStaticStr;

use nudge_db::{Timestamp, to_its_end};
use nudge_platform::audit::{self, Entry};
use nudge_platform::due::{self, Trouble};
use parking_lot::Mutex;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::store;
use crate::key::Key;
use crate::services::Shared;

/// How often notes are written.
const PAUSE: Duration = Duration::from_millis(500);
/// The pause between two entries for the same refusal.
const REFUSALS_APART: Duration = Duration::from_mins(1);
/// Routes of which a key's refusals for one reason are told apart in that time.
const MOST_ROUTES: usize = 10;
/// Refusals that are remembered for that; more in a minute are one flood, not more to know.
const MOST_REMEMBERED: usize = 4096;
/// Notes that wait to be written, of each sort.
const MOST_WAITING: usize = 1024;

/// Why a key was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Reason {
    /// It was revoked.
    Revoked,
    /// Its time is over.
    Expired,
    /// It is of another kind than the route takes.
    WrongKind,
    /// It has not the scope.
    MissingScope,
    /// It is not of the app of the path.
    OtherApp,
    /// It came in `x-write-key`, to a route that takes none there.
    WrongHeader,
}

impl Reason {
    fn name(self) -> &'static str {
        self.into()
    }
}

/// The notes of this process.
#[derive(Debug, Default)]
pub struct Uses {
    notes: Mutex<Notes>,
    /// Held while notes are written, so that nobody reads in between.
    writing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Notes {
    used: Vec<(Uuid, Uuid, Timestamp)>,
    refused: Vec<Refused>,
    /// Where a key was refused for a reason within the last minute.
    remembered: HashMap<(Uuid, Reason), Recent>,
}

#[derive(Debug)]
struct Recent {
    since: Timestamp,
    routes: Vec<String>,
}

#[derive(Clone, Debug)]
struct Refused {
    app_id: Uuid,
    key_id: Uuid,
    reason: Reason,
    route: String,
    at: Timestamp,
}

impl Uses {
    /// Notes that a key was used. Costs next to nothing but once a minute.
    pub fn used(&self, app_id: Uuid, key: &Key, now: Timestamp) {
        if key.notes_use(now) {
            let mut notes = self.notes.lock();
            if notes.used.len() < MOST_WAITING {
                notes.used.push((app_id, key.id, now));
            }
        }
    }

    /// Notes that a key of an app was refused by a route, as `POST /v1/sdk/ingest`.
    pub fn refused(
        &self,
        app_id: Uuid,
        key_id: Uuid,
        reason: Reason,
        route: String,
        now: Timestamp,
    ) {
        let mut notes = self.notes.lock();
        let is_recent = |recent: &Recent| !due::is_over(REFUSALS_APART, recent.since, now);
        let known = notes.remembered.get(&(key_id, reason));
        let known = known.filter(|recent| is_recent(recent));
        if known.is_some_and(|recent| recent.routes.contains(&route)) {
            return;
        }
        let is_new = known.is_none();
        let spent = known.is_some_and(|recent| recent.routes.len() >= MOST_ROUTES);
        if is_new && notes.remembered.len() >= MOST_REMEMBERED {
            notes.remembered.retain(|_, recent| is_recent(recent));
        }
        let full = is_new && notes.remembered.len() >= MOST_REMEMBERED;
        if spent || full || notes.refused.len() >= MOST_WAITING {
            metrics::counter!("nudge_key_refusals_unaudited_total").increment(1);
            return;
        }
        if is_new {
            let recent = Recent {
                since: now,
                routes: Vec::new(),
            };
            notes.remembered.insert((key_id, reason), recent);
        }
        if let Some(recent) = notes.remembered.get_mut(&(key_id, reason)) {
            recent.routes.push(route.clone());
        }
        notes.refused.push(Refused {
            app_id,
            key_id,
            reason,
            route,
            at: now,
        });
    }
}

/// Writes notes until the server stops, and once more then.
pub async fn run(services: Shared, halt: CancellationToken) {
    let mut trouble = Trouble::new("writing down how keys are used");
    loop {
        let stopping = tokio::select! {
            () = tokio::time::sleep(PAUSE) => false,
            () = halt.cancelled() => true,
        };
        trouble.note(write_waiting(&services).await);
        if stopping {
            return;
        }
    }
}

/// Writes the notes of this process that wait, for a request that is about to read them. In a task of its own: a client
/// that goes away takes no notes along.
pub(crate) async fn flush(services: &Shared) -> nudge_db::Result<()> {
    let there = Arc::clone(services);
    to_its_end(async move { write_waiting(&there).await }).await
}

/// Writes the notes that wait. What can't be written is noted still.
async fn write_waiting(services: &Shared) -> nudge_db::Result<()> {
    let kept = &services.key_uses;
    let _writing = kept.writing.lock().await;
    let (used, refused) = {
        let mut notes = kept.notes.lock();
        (
            std::mem::take(&mut notes.used),
            std::mem::take(&mut notes.refused),
        )
    };
    if used.is_empty() && refused.is_empty() {
        return Ok(());
    }
    let written = write(services, &used, &refused).await;
    if written.is_err() {
        let mut notes = kept.notes.lock();
        if notes.used.len() + used.len() <= MOST_WAITING {
            notes.used.extend(used);
        }
        if notes.refused.len() + refused.len() <= MOST_WAITING {
            notes.refused.extend(refused);
        }
    }
    written
}

async fn write(
    services: &Shared,
    used: &[(Uuid, Uuid, Timestamp)],
    refused: &[Refused],
) -> nudge_db::Result<()> {
    let mut tx = services.db.write().await?;
    store::note_uses(&mut tx, used).await?;
    for refused in refused {
        // A deleted app has no log any longer.
        if nudge_campaigns::apps::find(&mut tx, refused.app_id)
            .await?
            .is_none()
        {
            continue;
        }
        let key = format!("key/{}", refused.key_id);
        let entry = Entry {
            app_id: refused.app_id,
            actor: &key,
            action: "key.refused",
            resource: key.clone(),
            detail: json!({"reason": refused.reason.name(), "route": refused.route}),
        };
        audit::record(&mut tx, &entry, refused.at).await?;
    }
    tx.commit().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_refusals_is_one_note_a_minute_and_takes_bounded_memory() {
        let uses = Uses::default();
        let refused = |key, reason, route: u32, second| {
            let at = Timestamp::from_seconds(second);
            uses.refused(Uuid::nil(), key, reason, format!("GET /{route}"), at);
        };
        let key = Uuid::from_u128(1);
        for second in 0..60 {
            refused(key, Reason::Revoked, 0, second);
            refused(key, Reason::Expired, 0, second);
        }
        assert_eq!(uses.notes.lock().refused.len(), 2);
        refused(key, Reason::Revoked, 0, 60);
        assert_eq!(uses.notes.lock().refused.len(), 3);
        for route in 0..100 {
            refused(key, Reason::Revoked, route, 61);
        }
        assert_eq!(uses.notes.lock().refused.len(), 2 + MOST_ROUTES);

        for number in 0..100_000 {
            refused(Uuid::from_u128(number), Reason::Revoked, 0, 60);
        }
        let notes = uses.notes.lock();
        assert!(notes.refused.len() <= MOST_WAITING);
        assert!(notes.remembered.len() <= MOST_REMEMBERED);
    }

    #[test]
    fn a_use_is_noted_once_a_minute() {
        let uses = Uses::default();
        let key = Key::new(Uuid::nil(), crate::key::Kind::Write, Vec::new(), None, None);
        for second in [1_000, 1_001, 1_059, 1_060, 1_119] {
            uses.used(Uuid::nil(), &key, Timestamp::from_seconds(second));
        }
        assert_eq!(uses.notes.lock().used.len(), 2);
    }
}
