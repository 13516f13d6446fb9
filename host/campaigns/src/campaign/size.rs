//! How large campaigns and event definitions may be: each, and all of an app.
//!
//! Those that run are in memory, and lists have them all. What was saved before there were limits stays as it is and can
//! be changed, as long as it does not grow.

use nudge_db::{Result, Tx};
use nudge_http::body::budget;
use serde::Serialize;
use uuid::Uuid;

use crate::lifecycle::Error;

/// The bytes of what people write of one survey, campaign or definition, as JSON.
pub const MOST_BYTES: usize = 256 * 1024;
/// The bytes of what people write of all surveys, campaigns and definitions of an app, as JSON.
pub const MOST_TOTAL: usize = 64 * 1024 * 1024;

/// What a campaign grows by when it is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth(bool);

/// Checks how large a campaign becomes. `before` is what it said until now.
pub fn check<C: Serialize>(content: &C, before: Option<&C>) -> std::result::Result<Growth, Error> {
    let text = |content: &C| {
        serde_json::to_string(content)
            .map_err(|cause| Error::Storage(nudge_db::Error::corrupt("campaigns", "body", cause)))
    };
    let (after, before) = (text(content)?, before.map(text).transpose()?);
    let before = before.unwrap_or_default();
    let tree_bytes = budget::tree_bytes(&after);
    if after.len() > MOST_BYTES && after.len() > before.len() {
        return Err(Error::TooLarge);
    }
    if !budget::fits(&after, tree_bytes, budget::LEAST) && tree_bytes > budget::tree_bytes(&before)
    {
        return Err(Error::TooMuch);
    }
    Ok(Growth(after.len() > before.len()))
}

/// Checks how large all campaigns of an app are once one was written, whose app is locked.
pub async fn check_total(
    tx: &mut Tx,
    app_id: Uuid,
    growth: Growth,
) -> std::result::Result<(), Error> {
    if growth.0 && total(tx, app_id).await? > MOST_TOTAL {
        return Err(Error::TooLargeTogether);
    }
    Ok(())
}

/// The bytes of what people write of all surveys, campaigns and definitions of an app.
pub async fn total(tx: &mut Tx, app_id: Uuid) -> Result<usize> {
    let bytes: i64 = tx
        .sql(
            "SELECT CAST(coalesce(sum(bytes), 0) AS bigint) AS bytes FROM (
                SELECT octet_length(body) AS bytes FROM campaigns WHERE app_id = $1
                UNION ALL
                SELECT octet_length(body) AS bytes FROM definitions WHERE app_id = $1) AS bodies",
        )
        .bind(app_id)
        .fetch_scalar()
        .await?;
    Ok(usize::try_from(bytes).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn of_length(bytes: usize) -> Value {
        Value::from("x".repeat(bytes - 2))
    }

    #[test]
    fn what_is_too_large_may_not_grow() {
        let grows = |after: usize, before: Option<usize>| {
            let before = before.map(of_length);
            check(&of_length(after), before.as_ref()).ok()
        };
        assert_eq!(grows(MOST_BYTES, None), Some(Growth(true)));
        assert_eq!(grows(MOST_BYTES + 1, None), None);
        assert_eq!(grows(MOST_BYTES + 1, Some(MOST_BYTES)), None);
        let larger = MOST_BYTES + 7;
        assert_eq!(grows(larger, Some(larger)), Some(Growth(false)));
        assert_eq!(grows(larger - 1, Some(larger)), Some(Growth(false)));
        assert_eq!(grows(larger + 1, Some(larger)), None);
    }

    #[test]
    fn what_becomes_large_in_memory_is_refused() {
        let small = vec![json!({"": 0}); 10_000];
        assert!(matches!(check(&json!(small), None), Err(Error::TooMuch)));
        assert!(check(&json!(small), Some(&json!(small))).is_ok());
        assert!(check(&json!(&small[1..]), Some(&json!(small))).is_ok());
    }
}
