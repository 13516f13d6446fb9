//! Has everybody looked at: who is in a segment. The job itself is `nudge-pipeline`'s.

use nudge_db::{Result, Timestamp, Tx};
use nudge_platform::audit;
use nudge_platform::jobs::{self, NewJob};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::store;

/// The kind of the job.
pub const KIND: &str = "segment.members";

/// A segment and the version of its conditions.
pub type SegmentVersion = (Uuid, i64);

/// What the job is asked to do.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SegmentMembersInput {
    /// The segments and the versions of their conditions; none: all segments. An older server looks for all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segments: Option<Vec<SegmentVersion>>,
    /// The one that an older server has asked for.
    #[serde(default, skip_serializing)]
    pub segment: Option<SegmentVersion>,
    /// When it was asked for.
    pub at: Timestamp,
}

/// Queues the job; answers its id.
pub async fn queue(
    tx: &mut Tx,
    app_id: Uuid,
    segments: Option<Vec<SegmentVersion>>,
    now: Timestamp,
) -> Result<Uuid> {
    let input = SegmentMembersInput {
        segments,
        segment: None,
        at: now,
    };
    let input = serde_json::to_value(input)
        .map_err(|cause| nudge_db::Error::corrupt("jobs", "input", cause))?;
    let job = NewJob {
        app_id,
        kind: KIND,
        input,
        requested_by: audit::SERVER,
    };
    jobs::queue(tx, &job, now).await
}

/// Who is in segments is not known any longer: everybody is looked at anew, and nobody is told.
pub async fn anew(tx: &mut Tx, app_id: Uuid, ids: &[Uuid], now: Timestamp) -> Result<()> {
    let asked = store::renew(tx, app_id, ids).await?;
    if !asked.is_empty() {
        // One job: everybody is looked at once, however many segments stand on one that was changed.
        queue(tx, app_id, Some(asked), now).await?;
    }
    Ok(())
}
