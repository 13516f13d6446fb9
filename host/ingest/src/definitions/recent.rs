//! Recent events of a name, up to a number.

use nudge_db::{Db, Timestamp};
use nudge_records::events::store::{self, Stored};
use uuid::Uuid;

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

/// Finds events of an app and a name that arrived since an instant, the newest first, up to `most`. Replayed events arrived when
/// their letters did.
pub(super) async fn find(
    db: &Db,
    app_id: Uuid,
    name: &str,
    since: Timestamp,
    most: usize,
) -> nudge_db::Result<Recent> {
    // One more says whether there are others.
    let limit = i64::try_from(most).unwrap_or(i64::MAX).saturating_add(1);
    let mut tx = db.read().await?;
    let mut events = store::newest_named(&mut tx, app_id, name, since, limit).await?;
    drop(tx);
    let looked_at = i64::try_from(events.len()).unwrap_or(i64::MAX);
    let complete = events.len() <= most;
    events.truncate(most);
    Ok(Recent {
        events,
        looked_at,
        complete,
    })
}
