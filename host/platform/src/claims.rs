//! Claims without work: rows that a process has claimed and does not have in hand.

use nudge_db::{Db, IS, Result, Rows, Tx};
use uuid::Uuid;

/// A table whose rows processes claim.
#[derive(Clone, Copy, Debug)]
pub struct Claims {
    /// What the rows are called in the log.
    pub rows: &'static str,
    /// Reads the ids of the rows that the process `$1` has claimed.
    pub claimed: &'static str,
    /// The table's name.
    pub table: &'static str,
}

/// Gives up claims of a process on rows of a table.
pub async fn release(tx: &mut Tx, table: &'static str, ids: &[Uuid], node: Uuid) -> Result<()> {
    for chunk in ids.chunks(Rows::MOST) {
        tx.with_rows("v(id)", Rows::new().uuids(chunk.iter().copied()))
            .push(" UPDATE ")
            .push(table)
            .push(" SET node = NULL WHERE id IN (SELECT v.id FROM v) AND node")
            .push(IS)
            .push_bind(node)
            .execute()
            .await?;
    }
    Ok(())
}

/// Gives up claims whose row is not in hand. The process lives, so that no other one would take the row.
pub async fn release_strays(
    db: &Db,
    claims: Claims,
    node: Uuid,
    is_in_hand: impl Fn(&Uuid) -> bool + Send,
) -> Result<()> {
    let mut tx = db.read().await?;
    let mut strays: Vec<Uuid> = tx.sql(claims.claimed).bind(node).fetch_values().await?;
    drop(tx);
    strays.retain(|id| !is_in_hand(id));
    if strays.is_empty() {
        return Ok(());
    }
    let count = strays.len();
    tracing::warn!(
        rows = claims.rows,
        count,
        "claims without work are given up"
    );
    let mut tx = db.write().await?;
    release(&mut tx, claims.table, &strays, node).await?;
    tx.commit().await
}
