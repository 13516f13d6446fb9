//! Letters that were replayed: removed, and noted for whoever replays one again.

use std::collections::HashSet;

use nudge_db::{Result, Rows, Timestamp, Tx};
use uuid::Uuid;

/// A letter that was removed.
#[derive(nudge_db::FromRow)]
struct TakenRow {
    id: Uuid,
    app_id: Uuid,
    kept_at: Timestamp,
}

/// Removes letters, each of its app, since they are replayed, and notes that; answers which were there.
pub async fn take(tx: &mut Tx, letters: &[(Uuid, Uuid)]) -> Result<HashSet<Uuid>> {
    let mut taken = HashSet::with_capacity(letters.len());
    for chunk in letters.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|(_, id)| *id))
            .uuids(chunk.iter().map(|(app_id, _)| *app_id));
        let removed: Vec<TakenRow> = tx
            .with_rows("v(id, app_id)", rows)
            .push(
                " DELETE FROM dead_letters WHERE (id, app_id) IN (SELECT v.id, v.app_id FROM v)
                  RETURNING id, app_id, coalesce(kept_at, received_at) AS kept_at",
            )
            .fetch_all()
            .await?;
        note_replayed(tx, &removed).await?;
        taken.extend(removed.iter().map(|letter| letter.id));
    }
    Ok(taken)
}

async fn note_replayed(tx: &mut Tx, letters: &[TakenRow]) -> Result<()> {
    if letters.is_empty() {
        return Ok(());
    }
    let rows = Rows::new()
        .uuids(letters.iter().map(|letter| letter.id))
        .uuids(letters.iter().map(|letter| letter.app_id))
        .timestamps(letters.iter().map(|letter| letter.kept_at));
    tx.with_rows("v(id, app_id, kept_at)", rows)
        .push(
            " INSERT INTO replayed_letters (id, app_id, received_at)
              SELECT v.id, v.app_id, v.kept_at FROM v WHERE true
              ON CONFLICT (id) DO UPDATE SET received_at = excluded.received_at",
        )
        .execute()
        .await?;
    Ok(())
}

/// Whether a letter was replayed that would still be kept otherwise.
pub async fn was_replayed(tx: &mut Tx, app_id: Uuid, id: Uuid) -> Result<bool> {
    let row: Option<Uuid> = tx
        .sql("SELECT id FROM replayed_letters WHERE app_id = $1 AND id = $2")
        .bind(app_id)
        .bind(id)
        .fetch_value()
        .await?;
    Ok(row.is_some())
}
