//! Caps of people who were merged while their messages waited: when a message was made, only those of one of the two counted.

use std::collections::HashMap;

use nudge_apps::App;
use nudge_campaigns::{push, store as campaigns};
use nudge_db::{Result, Tx};
use nudge_pipeline::audience::{self, WaitingMessage};
use nudge_records::deliveries::Status;
use nudge_records::deliveries::in_hand::ClaimedDelivery;
use uuid::Uuid;

use super::store;
use crate::transactional::cap_windows;

/// The cap that earlier messages fill, for each queued delivery of a merged person that exceeds one. Of two messages that together
/// exceed a cap, the one that was made first is sent.
pub(super) async fn filled(
    tx: &mut Tx,
    app: &App,
    claimed: &[ClaimedDelivery],
) -> Result<HashMap<Uuid, &'static str>> {
    let waits =
        |delivery: &&ClaimedDelivery| delivery.status == Status::Queued.name() && !delivery.test;
    let waiting: Vec<&ClaimedDelivery> = claimed.iter().filter(waits).collect();
    let merged = store::merged_since(tx, app.id, &waiting).await?;
    let mut filled = HashMap::new();
    for delivery in waiting {
        if !merged.contains(&delivery.id) {
            continue;
        }
        let campaign = campaigns::find::<push::Content>(tx, app.id, delivery.campaign_id).await?;
        // Nothing is sent of a campaign that was deleted.
        let Some(campaign) = campaign else { continue };
        let cap_windows = cap_windows(app, &campaign);
        let message = WaitingMessage {
            id: delivery.id,
            subject_id: delivery.subject_id,
            created_at: delivery.created_at,
        };
        let counts = audience::pushed_before(tx, app.id, message, &cap_windows).await?;
        let mut counted = cap_windows.iter().zip(counts);
        if let Some((full, _)) = counted.find(|(window, count)| *count >= window.max) {
            filled.insert(delivery.id, full.reason.name());
        }
    }
    Ok(filled)
}
