//! Whether a campaign sends, as a delivery of it asks.

use std::sync::Arc;

use nudge_apps::App;
use nudge_campaigns::campaign::Status as CampaignStatus;
use nudge_campaigns::push::{self, Sending};
use nudge_campaigns::store as campaigns;
use nudge_campaigns::variants::NotPrepared;
use nudge_db::Result;
use nudge_platform::field_error::FieldError;
use nudge_plugin_runtime::Refused;
use nudge_records::deliveries::in_hand::ClaimedDelivery;
use uuid::Uuid;

use super::store::CampaignStatuses;
use crate::services::{Services, Shared};

/// Why nothing is sent of a campaign that is archived or a draft, and why a letter of one that does not run waits.
pub(super) const NOT_ACTIVE: &str = "campaign_not_active";
/// Why a letter waits whose campaign no active version of its plugin takes; and that in words.
pub(super) const PLUGIN_UNAVAILABLE: &str = "plugin_unavailable";
pub(super) const TAKEN_BY_NONE: &str =
    "no active version of the plugin takes what the campaign says";
/// Mistakes that are told of a campaign that its plugin refuses.
const MOST_TOLD: usize = 3;

/// A campaign as a delivery finds it.
#[derive(Clone)]
pub(super) enum Campaign {
    Runs(Arc<Sending>),
    Halted(Halted),
    /// No active version of its plugin takes what it says: why, for people.
    Refused(String),
    /// Its texts do not parse.
    Unreadable,
    Unavailable,
}

/// A campaign in the form in which its messages are made, or why there is none.
pub(super) type Prepared = std::result::Result<Arc<Sending>, NotPrepared>;

/// Why a campaign sends nothing now.
#[derive(Clone, Copy)]
pub(super) enum Halted {
    Paused,
    Ended(&'static str),
}

/// A campaign at the version that a delivery is of.
pub(super) async fn campaign(
    services: &Shared,
    app: &App,
    statuses: &CampaignStatuses,
    key: (Uuid, i64),
) -> Result<Campaign> {
    let (id, version) = key;
    if let Some(halted) = why_halted(statuses, id) {
        return Ok(Campaign::Halted(halted));
    }
    // Plugins may have come with the campaign that are not loaded yet.
    let is_behind = app.version < statuses.app_version;
    Ok(match at_version(services, app, id, version).await? {
        None => Campaign::Halted(Halted::Ended("campaign_deleted")),
        Some(Ok(sending)) => Campaign::Runs(sending),
        Some(Err(NotPrepared::Refused(Refused::Check(_)))) => Campaign::Unavailable,
        Some(Err(_)) if is_behind => Campaign::Unavailable,
        Some(Err(error)) => {
            tracing::error!(campaign.id = %id, error = %error, "a campaign's messages can't be made");
            match error {
                NotPrepared::Refused(Refused::Invalid(errors)) => {
                    Campaign::Refused(in_words(&errors))
                }
                _ => Campaign::Unreadable,
            }
        }
    })
}

/// What a plugin has against a campaign, or that there is no such plugin.
fn in_words(errors: &[FieldError]) -> String {
    let told = errors.iter().take(MOST_TOLD);
    let told = told.map(|error| format!("{}: {}", error.pointer, error.detail));
    format!("{TAKEN_BY_NONE}: {}", told.collect::<Vec<_>>().join("; "))
}

/// A campaign as it was at a version, with the plugins as they are now; none: there is no such version.
pub(super) async fn at_version(
    services: &Services,
    app: &App,
    id: Uuid,
    version: i64,
) -> Result<Option<Prepared>> {
    let current = app.push.get(&id);
    if let Some(sending) = current.filter(|sending| sending.version == version) {
        return Ok(Some(Ok(Arc::clone(sending))));
    }
    let mut tx = services.db.read().await?;
    let content = campaigns::version::<push::Content>(&mut tx, app.id, id, version).await?;
    drop(tx);
    let Some(content) = content else {
        return Ok(None);
    };
    let (plugins, deciders) = (&services.plugins, &app.deciders);
    let before = current.map(|sending| &**sending);
    let prepared = Sending::prepare(plugins, deciders, id, version, &content, before).await;
    Ok(Some(prepared.map(Arc::new)))
}

/// Why a campaign sends nothing now; none: it does.
fn why_halted(statuses: &CampaignStatuses, id: Uuid) -> Option<Halted> {
    let status = statuses.campaigns.get(&id);
    status.map_or(Some(Halted::Ended("campaign_deleted")), |status| {
        halted(*status)
    })
}

/// Why a campaign of a status sends nothing; none: it does. One that is complete sends what is left.
pub(super) fn halted(status: CampaignStatus) -> Option<Halted> {
    match status {
        CampaignStatus::Active | CampaignStatus::Completed => None,
        CampaignStatus::Paused => Some(Halted::Paused),
        CampaignStatus::Draft | CampaignStatus::Archived => Some(Halted::Ended(NOT_ACTIVE)),
    }
}

/// Why a message that is made is not to be sent now. A test was accepted whatever its campaign does.
pub(super) fn halted_since(
    statuses: &CampaignStatuses,
    delivery: &ClaimedDelivery,
) -> Option<Halted> {
    if delivery.test {
        return None;
    }
    why_halted(statuses, delivery.campaign_id)
}
