//! Instructions of a clock that was ahead and was set back, in the database.

use nudge_db::{Result, Timestamp, Tx};

use super::Status;

/// Instructions that are put right in one go.
const MOST: i64 = 500;

/// Lets instructions that were issued later than `latest` be available now. What counts as presented later than that counts
/// from now on. Answers of how many it did so; 0: of none that is left.
///
/// The index of campaigns, statuses and instants finds them: an index of instants alone would cost something with each instruction.
pub async fn put_right(tx: &mut Tx, now: Timestamp, latest: Timestamp) -> Result<u64> {
    tx.sql(
        // SQLite goes through the tables of a CROSS JOIN in this order.
        "UPDATE instructions SET available_at = CASE WHEN available_at > $2 THEN $1 ELSE available_at END,
                counted_at = CASE WHEN counted_at > $2 THEN $1 ELSE counted_at END,
                displayed_at = CASE WHEN displayed_at > $2 THEN $1 ELSE displayed_at END
         WHERE id IN (
            SELECT i.id FROM campaigns c CROSS JOIN instructions i
            WHERE i.campaign_id = c.id AND i.created_at > $2
              AND (i.available_at > $2 OR i.counted_at > $2 OR i.displayed_at > $2) AND i.status IN ",
    )
    .bind(now)
    .bind(latest)
    .push_list(Status::ALL.map(Status::name))
    .push(" LIMIT ")
    .push_bind(MOST)
    .push(")")
    .execute()
    .await
}
