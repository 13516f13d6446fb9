//! Campaigns whose schedule is over become `completed` by themselves (contract 8, Schedule).

use nudge_campaigns::push::Content;
use nudge_db::Result;

use crate::campaigns::ending;
use crate::services::Services;

/// Completes what is over.
pub async fn complete_ended(services: &Services) -> Result<()> {
    ending::complete_ended::<Content>(services).await
}
