//! Rendering a delivery again that a plugin failed on, once the plugin is mended.

use std::collections::HashMap;
use std::sync::Arc;

use nudge_apps::App;
use nudge_campaigns::push::rendered::Rendered;
use nudge_campaigns::push::{self, Campaign, Sending};
use nudge_campaigns::store::{self as campaigns, Hold};
use nudge_campaigns::variants::NotPrepared;
use nudge_db::{Timestamp, Tx};
use nudge_http::{ApiError, Code};
use nudge_plugin_runtime::Refused;
use nudge_records::dead_letters::store::Failure;
use nudge_records::dead_letters::{self, Letter};
use nudge_records::deliveries::{self, Change, Status, store};
use nudge_records::{events, subjects};
use uuid::Uuid;

use super::campaign::{NOT_ACTIVE, PLUGIN_UNAVAILABLE, TAKEN_BY_NONE, at_version, halted};
use super::plan::past;
use crate::personalization::{Made, Recipient, make};
use crate::services::Services;
use crate::transactional::full_cap;

/// Deliveries of one event and campaign that are looked at.
const MOST: i64 = 64;

/// Runs the stage again that a letter failed in: its deliveries are rendered, and sent once. Answers false where the
/// plugin still fails or the campaign does not send; the letter says how often.
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
            let detail = TAKEN_BY_NONE.to_owned();
            still_fails(services, app, &letter, PLUGIN_UNAVAILABLE, detail).await?;
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
    commit(services, app, &letter, &failed, made).await
}

/// Notes how the plugin fails now.
async fn still_fails(
    services: &Services,
    app: &App,
    letter: &Letter,
    code: &str,
    detail: String,
) -> Result<(), ApiError> {
    let mut tx = services.db.write().await?;
    note(&mut tx, app, letter, code, Some(detail)).await?;
    Ok(tx.commit().await?)
}

/// Notes why a replay was in vain.
async fn note(
    tx: &mut Tx,
    app: &App,
    letter: &Letter,
    reason: &str,
    detail: Option<String>,
) -> nudge_db::Result<()> {
    let failure = Failure {
        id: letter.id,
        reason: reason.to_owned(),
        detail,
        violations: Vec::new(),
    };
    dead_letters::store::update_failed(tx, app.id, &[failure]).await?;
    Ok(())
}

/// What a delivery that is rendered again comes to.
enum ReplayOutcome {
    Ready(Box<Rendered>),
    Ends(Status, &'static str),
}

/// Queues what was rendered, and removes the letter: both or neither, and once. Answers false where the campaign does
/// not send: the letter waits until it does.
async fn commit(
    services: &Services,
    app: &App,
    letter: &Letter,
    failed: &[store::BrokenRow],
    made: HashMap<Uuid, ReplayOutcome>,
) -> Result<bool, ApiError> {
    let now = services.clock.now();
    let mut tx = services.db.write().await?;
    let campaign = held(&mut tx, app, letter).await?;
    if halted(campaign.content.status).is_some() {
        note(&mut tx, app, letter, NOT_ACTIVE, letter.detail.clone()).await?;
        tx.commit().await?;
        return Ok(false);
    }
    // All of an event's are one person's, whose caps nobody else fills meanwhile.
    let person = failed.first().map(|delivery| delivery.subject_id);
    let is_there = match person {
        Some(person) => subjects::store::lock(&mut tx, app.id, person).await?,
        None => false,
    };
    let taken = dead_letters::store::take(&mut tx, &[(app.id, letter.id)]).await?;
    if taken.is_empty() {
        // Somebody else replayed it just now.
        return Err(ApiError::new(Code::NotFound));
    }
    if !is_there {
        // Merged into another since the deliveries were read.
        return Err(nudge_db::Error::lost_race().into());
    }
    let mut changes = Vec::new();
    for delivery in failed {
        let ended = match made.get(&delivery.id) {
            Some(ReplayOutcome::Ready(rendered)) => {
                let full = queue(&mut tx, app, &campaign, delivery, rendered, now).await?;
                full.map(|reason| (Status::Skipped, reason))
            }
            Some(ReplayOutcome::Ends(status, reason)) => Some((*status, *reason)),
            None => None,
        };
        if let Some(ended) = ended {
            changes.extend(end(&mut tx, app, delivery, ended, now).await?);
        }
    }
    let queued =
        deliveries::announce(&mut tx, app, &changes, &services.webhooks.in_hand, now).await?;
    tx.commit().await?;
    services.webhooks.wake(queued);
    services.pipeline.deliveries().wake();
    Ok(true)
}

/// The campaign of a letter, which stays as it is until the transaction ends.
async fn held(tx: &mut Tx, app: &App, letter: &Letter) -> Result<Campaign, ApiError> {
    let found = match letter.campaign_id {
        Some(id) => campaigns::hold::<push::Content>(tx, app.id, id, Hold::Shared).await?,
        None => None,
    };
    found.ok_or_else(deleted)
}

fn deleted() -> ApiError {
    ApiError::because(Code::NotFound, "the campaign was deleted")
}

/// Queues a delivery with what it says now, or answers which cap the person has reached. The person is locked.
async fn queue(
    tx: &mut Tx,
    app: &App,
    campaign: &Campaign,
    delivery: &store::BrokenRow,
    rendered: &Rendered,
    now: Timestamp,
) -> nudge_db::Result<Option<&'static str>> {
    if !delivery.test {
        let full = full_cap(tx, app, campaign, delivery.subject_id, now).await?;
        if full.is_some() {
            return Ok(full);
        }
    }
    let queued = store::queue_again(tx, app.id, delivery.id, rendered, now).await?;
    if queued && !delivery.test {
        subjects::store::bump_version(tx, app.id, delivery.subject_id).await?;
    }
    Ok(None)
}

/// Ends a delivery, with status and reason; answers what is told of it. That it failed was told before.
async fn end(
    tx: &mut Tx,
    app: &App,
    delivery: &store::BrokenRow,
    (status, reason): (Status, &'static str),
    now: Timestamp,
) -> nudge_db::Result<Option<Change>> {
    let ended = (status.name(), reason);
    let changed = store::end_otherwise(tx, app.id, delivery.id, ended, now).await?;
    let is_news = changed && status != Status::Failed;
    Ok(is_news.then(|| Change {
        delivery_id: delivery.id,
        campaign_id: delivery.campaign_id,
        variant_id: delivery.variant_id,
        subject_id: delivery.subject_id,
        platform: None,
        test: delivery.test,
        status,
        at: now,
        more: vec![("reason", reason.to_owned())],
    }))
}

/// The campaign as of the version that fired, with the plugin as it is now. None: that refuses it, or is not there.
async fn sending(
    services: &Services,
    app: &App,
    id: Uuid,
    version: i64,
) -> Result<Option<Arc<Sending>>, ApiError> {
    let prepared = at_version(services, app, id, version).await?;
    match prepared.ok_or_else(deleted)? {
        Ok(sending) => Ok(Some(sending)),
        Err(NotPrepared::Refused(Refused::Invalid(_))) => Ok(None),
        Err(NotPrepared::Refused(Refused::Check(cause))) => Err(ApiError::unavailable(cause)),
        Err(NotPrepared::Template(cause)) => Err(ApiError::internal(cause)),
    }
}
