//! How a campaign is deleted, and the job that removes what it leaves.

use nudge_db::{Timestamp, Tx};
use nudge_platform::jobs::{self, NewJob};
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::Kind;
use crate::lifecycle::Error;
use crate::{apps, store};

/// The kind of the job for a survey.
pub const SURVEY_KIND: &str = "survey.delete";

/// The kind of the same job for an in-app message.
pub const IN_APP_KIND: &str = "campaign.delete";

/// The input of the job.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CampaignRemovalInput {
    /// The deleted campaign.
    #[serde(rename = "surveyId", alias = "campaignId")]
    pub campaign_id: Uuid,
}

/// Deletes a campaign with all that depends on it. Answers and instructions may be many: a job removes them, which the transaction
/// queues. Nothing leads to them without the campaign. The deliveries of a push campaign stay on record.
pub async fn delete(
    tx: &mut Tx,
    app_id: Uuid,
    kind: Kind,
    id: Uuid,
    actor: &str,
    now: Timestamp,
) -> Result<(), Error> {
    if !store::delete(tx, app_id, kind, id).await? {
        return Err(Error::NotFound);
    }
    let job = match kind {
        Kind::Survey => {
            delete_counts(tx, app_id, id).await?;
            Some((SURVEY_KIND, json!({"surveyId": id})))
        }
        Kind::InApp => Some((IN_APP_KIND, json!({"campaignId": id}))),
        Kind::Push => None,
    };
    if let Some((kind, input)) = job {
        let job = NewJob {
            app_id,
            kind,
            input,
            requested_by: actor,
        };
        jobs::queue(tx, &job, now).await?;
    }
    Ok(apps::bump_version(tx, app_id, now).await?)
}

/// Removes what is counted of a survey, so that no count of it is shown after the answer.
async fn delete_counts(tx: &mut Tx, app_id: Uuid, survey_id: Uuid) -> nudge_db::Result<()> {
    tx.sql("DELETE FROM survey_counts WHERE app_id = $1 AND survey_id = $2")
        .bind(app_id)
        .bind(survey_id)
        .execute()
        .await?;
    Ok(())
}
