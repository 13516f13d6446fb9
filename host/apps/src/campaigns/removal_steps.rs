//! Removing what a deleted survey or in-app message leaves: a job of bounded steps. The campaign's own row and its versions are gone
//! before the job begins, so that nothing leads to what it removes, and nothing new comes.

use nudge_campaigns::campaign::removal::CampaignRemovalInput;
use nudge_platform::jobs::{Error, RunningJob};
use serde_json::{Value, json};

use crate::services::Services;

/// Rows that one statement removes at the most.
const STEP: i64 = 500;

/// What removes rows of the survey or in-app message `$2`, `$3` at the most.
const STATEMENTS: &[&str] = &[
    "DELETE FROM instructions WHERE id IN (
        SELECT id FROM instructions WHERE app_id = $1 AND campaign_id = $2 LIMIT $3)",
    "DELETE FROM survey_answers WHERE (attempt_id, question_id) IN (
        SELECT attempt_id, question_id FROM survey_answers WHERE app_id = $1 AND survey_id = $2 LIMIT $3)",
    "DELETE FROM survey_attempts WHERE id IN (
        SELECT id FROM survey_attempts WHERE app_id = $1 AND survey_id = $2 LIMIT $3)",
    "DELETE FROM survey_counts WHERE (survey_id, day, question_id, measure, value) IN (
        SELECT survey_id, day, question_id, measure, value FROM survey_counts
        WHERE app_id = $1 AND survey_id = $2 LIMIT $3)",
];

/// Runs the job to its end.
pub async fn run(services: &Services, job: &mut RunningJob) -> Result<Value, Error> {
    let CampaignRemovalInput { campaign_id } = job.input()?;
    let mut done: i64 = job.progress()?;
    loop {
        let before = done;
        for statement in STATEMENTS {
            job.check()?;
            let mut tx = services.db.write().await?;
            let rows = tx
                .sql(statement)
                .bind(job.app_id)
                .bind(campaign_id)
                .bind(STEP)
                .execute()
                .await?;
            done += i64::try_from(rows).unwrap_or(i64::MAX);
            job.advance(&mut tx, &done, done, None, services.clock.now())
                .await?;
            tx.commit().await?;
        }
        if done == before {
            return Ok(json!({"removed": done}));
        }
    }
}
