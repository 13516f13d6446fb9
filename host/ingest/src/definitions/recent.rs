//! Recent events of a name, as a bounded look at them allows.
//!
//! No index leads from an app and a name to events: it would cost every event. Those of the whole server are looked
//! through from the newest on, up to a number, so that what is found is a sample on a server with much traffic of
//! others.

use std::time::Duration;

use nudge_db::{Db, Timestamp};
use nudge_records::events::store::{self, Stored};
use uuid::Uuid;

/// Events of all apps and names that are looked at, at the most.
const MOST_LOOKED_AT: i64 = 50_000;
/// Events that one statement looks at.
const STEP: i64 = 5_000;
/// By how much numbers of events and the instants of their arrival may disagree about their order.
const SLACK: Duration = Duration::from_mins(1);

/// Hours that a request may ask to look back.
pub(super) const MOST_HOURS: u32 = 720;

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Recent {
    /// Events of the name, the newest first.
    pub events: Vec<Stored>,
    /// How many events of the server were looked at.
    pub looked_at: i64,
    /// Whether these are all events of the name since then.
    pub complete: bool,
}

/// Finds events of an app and a name that arrived since an instant, the newest first, up to `most`.
pub(super) async fn find(
    db: &Db,
    app_id: Uuid,
    name: &str,
    since: Timestamp,
    most: usize,
) -> nudge_db::Result<Recent> {
    let mut tx = db.read().await?;
    let floor = store::first_seq_at(&mut tx, since.minus(SLACK)).await?;
    drop(tx);
    let mut recent = Recent::default();
    let mut end = i64::MAX;
    while recent.looked_at < MOST_LOOKED_AT {
        let mut tx = db.read().await?;
        let (count, first) = store::span_before(&mut tx, end, STEP).await?;
        let limit = i64::try_from(most - recent.events.len() + 1).unwrap_or(i64::MAX);
        let from = first.max(floor);
        let found = store::named_between(&mut tx, app_id, name, from, end, limit).await?;
        drop(tx);
        recent.looked_at += count;
        let arrived = found
            .into_iter()
            .filter(|stored| stored.received_at >= since);
        recent.events.extend(arrived);
        if recent.events.len() > most {
            recent.events.truncate(most);
            return Ok(recent);
        }
        if count < STEP || first <= floor {
            recent.complete = true;
            return Ok(recent);
        }
        end = first;
    }
    Ok(recent)
}
