//! Events that retention removes while they may still be sent again: their ids stay known, so that whoever sends one again
//! changes nothing (contract 3).
//!
//! An id is noted [`SETTLES`] before its event is removed. A commit that looked for ids before the note finds the event.

use std::collections::HashSet;
use std::time::Duration;

use nudge_db::{Result, Rows, Timestamp, Tx};
use uuid::Uuid;

use super::{Key, store};

/// Longer than a commit takes from its look for ids to its end.
pub const SETTLES: Duration = Duration::from_mins(10);
/// The youngest that an event can be when it is removed: apps keep events for a day at least.
const YOUNGEST: Duration = Duration::from_hours(24);
/// Ids that one statement forgets at the most.
const STEP: i64 = 500;

/// Events with times up to this one may have been removed. Clocks of devices that are ahead count where an app removes events
/// now: `kept` says for how long it keeps them, `future` how far ahead a time may be.
pub fn may_be_until(now: Timestamp, kept: Option<Duration>, future: Duration) -> Timestamp {
    let ahead = kept.map(|kept| now.minus(kept).plus(future));
    now.minus(YOUNGEST)
        .max(ahead.unwrap_or(Timestamp(i64::MIN)))
}

/// Which of some events, each with its alias and subject, were removed under any alias of the subject; with the alias that
/// was asked about.
pub async fn known(tx: &mut Tx, asked: &[(i64, Uuid, Uuid)]) -> Result<HashSet<Key>> {
    let statement =
        " SELECT v.alias_number, v.event_id FROM v CROSS JOIN aliases a CROSS JOIN removed_events r
          WHERE a.subject_id = v.subject_id AND r.alias_number = a.number AND r.event_id = v.event_id";
    store::keys(tx, asked, statement).await
}

/// Notes the ids of events of an app that are about to be removed, each with the time until which it stays known. Answers
/// those that were noted [`SETTLES`] ago, which may be removed now.
pub async fn note(
    tx: &mut Tx,
    app_id: Uuid,
    events: &[(Key, Timestamp)],
    now: Timestamp,
) -> Result<HashSet<Key>> {
    let mut settled = HashSet::new();
    for chunk in events.chunks(Rows::MOST) {
        let keys = || {
            Rows::new()
                .integers(chunk.iter().map(|((alias, _), _)| *alias))
                .uuids(chunk.iter().map(|((_, id), _)| *id))
        };
        let found: Vec<Key> = tx
            .with_rows("v(alias_number, event_id)", keys())
            .push(
                " SELECT v.alias_number, v.event_id FROM v CROSS JOIN removed_events r
                  WHERE r.alias_number = v.alias_number AND r.event_id = v.event_id AND r.noted_at <= ",
            )
            .push_bind(now.minus(SETTLES))
            .fetch_all()
            .await?;
        settled.extend(found);
        let rows = keys().timestamps(chunk.iter().map(|(_, until)| *until));
        tx.with_rows("v(alias_number, event_id, until)", rows)
            .push(
                " INSERT INTO removed_events (alias_number, event_id, app_id, noted_at, until)
                  SELECT v.alias_number, v.event_id, ",
            )
            .push_bind(app_id)
            .push(", ")
            .push_bind(now)
            .push(", v.until FROM v WHERE true ON CONFLICT (alias_number, event_id) DO NOTHING")
            .execute()
            .await?;
    }
    Ok(settled)
}

/// Forgets ids of an app that no event may have any longer; answers how many.
pub async fn forget(tx: &mut Tx, app_id: Uuid, now: Timestamp) -> Result<u64> {
    tx.sql(
        "DELETE FROM removed_events WHERE (app_id = $1) IS TRUE AND (alias_number, event_id) IN (
            SELECT alias_number, event_id FROM removed_events WHERE app_id = $1 AND until < $2
            ORDER BY until LIMIT $3)",
    )
    .bind(app_id)
    .bind(now)
    .bind(STEP)
    .execute()
    .await
}
