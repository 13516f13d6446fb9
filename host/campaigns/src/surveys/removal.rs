//! What a deleted survey leaves, which a job removes.

use nudge_db::{Result, Timestamp, Tx};
use nudge_platform::jobs::{self, NewJob};
use serde::Deserialize;
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

/// The kind of the job.
pub const KIND: &str = "survey.delete";

/// The kind of the same job for an in-app message.
pub const CAMPAIGN_KIND: &str = "campaign.delete";

/// The input of the job.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CampaignRemovalInput {
    /// The deleted survey or campaign.
    #[serde(rename = "surveyId", alias = "campaignId")]
    pub campaign_id: Uuid,
}

/// Queues the job for an in-app message, in the transaction that deletes it.
pub(crate) async fn begin_campaign(
    tx: &mut Tx,
    app_id: Uuid,
    campaign_id: Uuid,
    actor: &str,
    now: Timestamp,
) -> Result<()> {
    let job = NewJob {
        app_id,
        kind: CAMPAIGN_KIND,
        input: json!({"campaignId": campaign_id}),
        requested_by: actor,
    };
    jobs::queue(tx, &job, now).await?;
    Ok(())
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
