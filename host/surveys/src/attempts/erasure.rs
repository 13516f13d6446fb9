//! Taking a person's attempts out of the counts, and away.

use nudge_campaigns::surveys::flow::Walker;
use nudge_db::{Result, Tx};
use uuid::Uuid;

use super::{Error, Whole, store};

/// Attempts that one transaction removes at the most: each with its answers, and counts that change.
const STEP: i64 = 25;

/// What was removed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Erased {
    /// Attempts.
    pub attempts: i64,
    /// Answers of them.
    pub answers: i64,
}

/// Removes some of a subject's attempts, with their answers and what they add to counts.
pub async fn erase(tx: &mut Tx, app_id: Uuid, subject_id: Uuid) -> Result<Erased> {
    let mut erased = Erased::default();
    for attempt in store::of_subject(tx, app_id, subject_id, STEP).await? {
        let id = attempt.id;
        match Whole::read(tx, attempt).await {
            Ok(whole) => {
                let counts = whole
                    .attempt
                    .tally(&Walker::new(&whole.flow), &whole.values());
                let change = super::tally::Tally::default().since(&counts);
                store::count(tx, &whole.attempt, &change).await?;
            }
            Err(Error::Storage(error)) => return Err(error),
            // The survey was deleted, and with it the counts.
            Err(_) => {}
        }
        let answers = store::delete(tx, app_id, id).await?;
        erased.attempts += 1;
        erased.answers += i64::try_from(answers).unwrap_or(i64::MAX);
    }
    Ok(erased)
}
