//! What a deleted survey leaves, which a job removes.

use nudge_db::{Result, Timestamp, Tx};
use nudge_platform::jobs::{self, NewJob};
use serde::Deserialize;
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

/// The kind of the job.
pub const KIND: &str = "survey.delete";

/// The input of the job.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    /// The deleted survey.
    pub survey_id: Uuid,
}

/// Removes what is counted of a survey and queues the job, in the transaction that deletes the survey.
pub(super) async fn begin(
    tx: &mut Tx,
    app_id: Uuid,
    survey_id: Uuid,
    actor: &str,
    now: Timestamp,
) -> Result<()> {
    tx.sql("DELETE FROM survey_counts WHERE app_id = $1 AND survey_id = $2")
        .bind(app_id)
        .bind(survey_id)
        .execute()
        .await?;
    let job = NewJob {
        app_id,
        kind: KIND,
        input: json!({"surveyId": survey_id}),
        requested_by: actor,
    };
    jobs::queue(tx, &job, now).await?;
    Ok(())
}
