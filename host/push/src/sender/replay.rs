//! Rendering a delivery again that a plugin failed on, once the plugin is mended.

use std::collections::HashMap;
use std::sync::Arc;

use nudge_apps::App;
use nudge_campaigns::push::Sending;
use nudge_campaigns::push::rendered::Rendered;
use nudge_campaigns::variants::NotPrepared;
use nudge_http::{ApiError, Code};
use nudge_plugin_runtime::Refused;
use nudge_records::dead_letters::store::Failure;
use nudge_records::dead_letters::{self, Letter};
use nudge_records::deliveries::{self, Change, Status, store};
use nudge_records::events;
use uuid::Uuid;

use super::campaign::at_version;
use super::plan::past;
use crate::personalization::{Made, Recipient, make};
use crate::services::Services;

/// Deliveries of one event and campaign that are looked at.
const MOST: i64 = 64;

/// Runs the stage again that a letter failed in: its deliveries are rendered, and sent once. Answers false where the
/// plugin still fails; the letter says how often.
pub async fn replay(services: &Services, app: &Arc<App>, letter: Letter) -> Result<bool, ApiError> {
    let gone = || ApiError::new(Code::DeliveryGone);
    let campaign_id = letter.campaign_id.ok_or_else(gone)?;
    let mut tx = services.db.read().await?;
    let event = (letter.alias, letter.event_id);
    let failed = store::broken(&mut tx, app.id, campaign_id, event, MOST).await?;
    let stored = events::store::find_by_id(&mut tx, app.id, letter.alias, letter.event_id).await?;
    drop(tx);
    if failed.is_empty() {
        return Err(gone());
    }
    let trigger = stored.as_ref().map(past);
    let mut made = HashMap::new();
    for delivery in &failed {
        let version = delivery.campaign_version;
        let Some(sending) = sending(services, app, campaign_id, version).await? else {
            let code = "plugin_unavailable";
            let detail = "no active version of the plugin takes what the campaign says";
            still_fails(services, app, &letter, code, detail.to_owned()).await?;
            return Ok(false);
        };
        let variant = sending.variants.get(delivery.variant_id).ok_or_else(gone)?;
        let recipient = Recipient {
            subject_id: delivery.subject_id,
            data: delivery
                .data
                .as_deref()
                .and_then(|text| serde_json::from_str(text).ok()),
            trigger: trigger.clone(),
        };
        let now = services.clock.now();
        let outcome = make(services, app, &sending, variant, &[recipient], now).await?;
        let outcome = match outcome.into_iter().next() {
            Some(Made::Ready(rendered)) => ReplayOutcome::Ready(rendered),
            Some(Made::Skipped(reason)) => ReplayOutcome::Ends(Status::Skipped, reason),
            Some(Made::Failed(reason)) => ReplayOutcome::Ends(Status::Failed, reason),
            Some(Made::Broken { code, detail, .. }) => {
                still_fails(services, app, &letter, code, detail).await?;
                return Ok(false);
            }
            Some(Made::Unavailable) | None => {
                return Err(ApiError::unavailable(anyhow::anyhow!(
                    "the plugin could not be asked"
                )));
            }
        };
        made.insert(delivery.id, outcome);
    }
    commit(services, app, &letter, &failed, made).await?;
    Ok(true)
}

/// Notes how the plugin fails now.
async fn still_fails(
    services: &Services,
    app: &App,
    letter: &Letter,
    code: &str,
    detail: String,
) -> Result<(), ApiError> {
    let failure = Failure {
        id: letter.id,
        reason: code.to_owned(),
        detail: Some(detail),
        violations: Vec::new(),
    };
    let mut tx = services.db.write().await?;
    dead_letters::store::update_failed(&mut tx, app.id, &[failure]).await?;
    Ok(tx.commit().await?)
}

/// What a delivery that is rendered again comes to.
enum ReplayOutcome {
    Ready(Box<Rendered>),
    Ends(Status, &'static str),
}

/// Queues what was rendered, and removes the letter: both or neither, and once.
async fn commit(
    services: &Services,
    app: &App,
    letter: &Letter,
    failed: &[store::BrokenRow],
    made: HashMap<Uuid, ReplayOutcome>,
) -> Result<(), ApiError> {
    let now = services.clock.now();
    let mut tx = services.db.write().await?;
    if !dead_letters::store::delete(&mut tx, app.id, letter.id).await? {
        // Somebody else replayed it just now.
        return Err(ApiError::new(Code::NotFound));
    }
    let mut changes = Vec::new();
    for delivery in failed {
        match made.get(&delivery.id) {
            Some(ReplayOutcome::Ready(rendered)) => {
                store::queue_again(&mut tx, app.id, delivery.id, rendered, now).await?;
            }
            Some(ReplayOutcome::Ends(status, reason)) => {
                let ended = (status.name(), *reason);
                if store::end_otherwise(&mut tx, app.id, delivery.id, ended, now).await?
                    && *status != Status::Failed
                {
                    changes.push(Change {
                        delivery_id: delivery.id,
                        campaign_id: delivery.campaign_id,
                        variant_id: delivery.variant_id,
                        subject_id: delivery.subject_id,
                        platform: None,
                        test: delivery.test,
                        status: *status,
                        at: now,
                        more: vec![("reason", (*reason).to_owned())],
                    });
                }
            }
            None => {}
        }
    }
    let queued = deliveries::announce(&mut tx, app, &changes, now).await?;
    tx.commit().await?;
    services.webhooks.wake(queued);
    services.pipeline.deliveries().wake();
    Ok(())
}

/// The campaign as of the version that fired, with the plugin as it is now. None: that refuses it, or is not there.
async fn sending(
    services: &Services,
    app: &App,
    id: Uuid,
    version: i64,
) -> Result<Option<Arc<Sending>>, ApiError> {
    let prepared = at_version(services, app, id, version).await?;
    let prepared =
        prepared.ok_or_else(|| ApiError::because(Code::NotFound, "the campaign was deleted"))?;
    match prepared {
        Ok(sending) => Ok(Some(sending)),
        Err(NotPrepared::Refused(Refused::Invalid(_))) => Ok(None),
        Err(NotPrepared::Refused(Refused::Check(cause))) => Err(ApiError::unavailable(cause)),
        Err(NotPrepared::Template(cause)) => Err(ApiError::internal(cause)),
    }
}
