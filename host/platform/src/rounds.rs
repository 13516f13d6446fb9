//! What one process at a time does again and again, by a row of `rounds`.
//!
//! A process claims the row for as long as a round takes. The claim of one that ended is released with all its claims, and the
//! round is still due then. So a round has to be such that it can be done again.

use std::time::Duration;

use nudge_db::{Result, Timestamp, Tx};
use uuid::Uuid;

/// Something that one process at a time does.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    /// The name of its row.
    pub name: &'static str,
    /// The longest pause between the beginnings of two rounds.
    pub pause: Duration,
}

impl Round {
    /// Begins a round. False: it is not due, or another process has it in hand.
    pub async fn begin(&self, tx: &mut Tx, node: Uuid, now: Timestamp) -> Result<bool> {
        // A claim of this process has no work: it is from a round that failed, or its answer got lost. What is due later
        // than any pause allows was put off by a clock that has been set back since.
        let begun = tx
            .sql(
                "UPDATE rounds SET node = $2
                 WHERE name = $1 AND (node IS NULL OR node = $2) AND (next_at <= $3 OR next_at > $4)",
            )
            .bind(self.name)
            .bind(node)
            .bind(now)
            .bind(now.plus(self.pause))
            .execute()
            .await?;
        Ok(begun == 1)
    }

    /// Ends a round that this process has in hand, and says when the next one is due.
    pub async fn end(&self, tx: &mut Tx, node: Uuid, next_at: Timestamp) -> Result<()> {
        tx.sql("UPDATE rounds SET node = NULL, next_at = $3 WHERE name = $1 AND node = $2")
            .bind(self.name)
            .bind(node)
            .bind(next_at)
            .execute()
            .await?;
        Ok(())
    }
}
