//! Campaigns whose schedule is over become `completed` by themselves (contract 8, Schedule).

use nudge_db::Result;

use super::Content;
use crate::campaigns::ending;
use crate::services::Shared;

/// Completes what is over.
pub async fn complete_ended(services: &Shared) -> Result<()> {
    ending::complete_ended::<Content>(services).await
}
