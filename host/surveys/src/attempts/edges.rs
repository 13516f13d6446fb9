//! Counting attempts one by one: of days that a question about results takes only a part of, and wherever counts
//! are to be compared with what they count.

use std::collections::HashMap;

use nudge_campaigns::surveys::flow::{Answers, Flow, Walker};
use nudge_campaigns::{store as campaigns, surveys};
use nudge_db::{Result, Timestamp, Tx};
use uuid::Uuid;

use super::Attempt;
use super::store::{self, Whose};
use super::tally::Tally;

/// Attempts that are read at once.
const PAGE: i64 = 500;

/// What the attempts add up to that began from an instant on and before another.
pub async fn tally(tx: &mut Tx, key: (Uuid, Uuid), range: (Timestamp, Timestamp)) -> Result<Tally> {
    tally_of(tx, key, range, Whose::Everybody).await
}

/// What of [`tally`] is of people who are being deleted: in the counts until their attempts are erased.
pub(super) async fn hidden(
    tx: &mut Tx,
    key: (Uuid, Uuid),
    range: (Timestamp, Timestamp),
) -> Result<Tally> {
    tally_of(tx, key, range, Whose::Hidden).await
}

async fn tally_of(
    tx: &mut Tx,
    (app_id, survey_id): (Uuid, Uuid),
    range: (Timestamp, Timestamp),
    whose: Whose,
) -> Result<Tally> {
    let mut sum = Tally::default();
    let mut flows: HashMap<i64, Option<Flow>> = HashMap::new();
    let mut after = None;
    loop {
        let page = store::list(tx, (app_id, survey_id), range, after, PAGE, whose).await?;
        let Some(last) = page.last() else {
            return Ok(sum);
        };
        after = Some((last.started_at, last.id));
        for attempt in &page {
            if !flows.contains_key(&attempt.survey_version) {
                let version = attempt.survey_version;
                let content =
                    campaigns::version::<surveys::Content>(tx, app_id, survey_id, version).await?;
                flows.insert(version, content.and_then(|content| content.flow));
            }
        }
        let ids: Vec<Uuid> = page.iter().map(|attempt| attempt.id).collect();
        let mut answers: HashMap<Uuid, Answers> = HashMap::new();
        for (id, question_id, answer) in store::answers(tx, app_id, &ids).await? {
            answers
                .entry(id)
                .or_default()
                .insert(question_id, answer.value);
        }
        for (version, flow) in &flows {
            let Some(flow) = flow else { continue };
            let walker = Walker::new(flow);
            let none = Answers::new();
            let of_version = |attempt: &&Attempt| attempt.survey_version == *version;
            for attempt in page.iter().filter(of_version) {
                let answers = answers.get(&attempt.id).unwrap_or(&none);
                sum.merge(&attempt.tally(&walker, answers));
            }
        }
    }
}
