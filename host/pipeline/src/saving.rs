//! How routes save campaigns of all kinds: a change is checked, written with its entry in the audit log, and put in force.

use futures_util::FutureExt as _;
use nudge_apps::auth::Scope;
use nudge_apps::campaigns::http::{find, patched, record};
use nudge_apps::services::Services;
use nudge_campaigns::campaign::size::{self, Growth};
use nudge_campaigns::campaign::{Change, Status};
use nudge_campaigns::lifecycle::{self, Campaign, Content};
use nudge_db::{Timestamp, Tx};
use nudge_http::ApiError;
use nudge_http::precondition::IfMatch;
use nudge_platform::{audit, id};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::segments;

/// A change of a campaign that was checked and is to be written.
#[derive(Debug)]
pub struct CheckedChange<C> {
    /// The campaign with the change.
    pub campaign: Campaign<C>,
    /// The campaign's status before the change.
    pub was: Status,
    /// Whether the change makes the campaign active.
    pub activates: bool,
    /// When the change is made.
    pub now: Timestamp,
    growth: Growth,
    detail: Map<String, Value>,
}

/// Creates a campaign in the caller's app; an active one runs from then on.
pub async fn create<C: Content>(
    services: &Services,
    scope: &Scope,
    mut content: C,
) -> Result<Campaign<C>, ApiError> {
    let growth = size::check(&content, None)?;
    let app = segments::renewed(services, scope).await?;
    let (plugins, audiences) = (&services.plugins, &app.segments.audiences);
    content
        .validate(plugins, &app.deciders, audiences, None)
        .await?;
    let now = services.clock.now();
    content.identify_variants(None, || id::new(now));
    let campaign = Campaign::new(id::new(now), scope.app.id, content, now);
    let mut tx = services.db.write().await?;
    lifecycle::create(&mut tx, plugins, &campaign).await?;
    size::check_total(&mut tx, scope.app.id, growth).await?;
    let detail = Map::new();
    record(&mut tx, scope, Change::Created, &campaign, detail, now).await?;
    tx.commit().await?;
    put_in_force(services, scope.app.id, campaign.id).await?;
    Ok(campaign)
}

/// Checks a merge patch of a campaign of the caller's app. `if_match` is the caller's condition.
pub async fn check_change<C: Content>(
    services: &Services,
    scope: &Scope,
    id: Uuid,
    if_match: IfMatch,
    patch: Map<String, Value>,
) -> Result<CheckedChange<C>, ApiError> {
    let current: Campaign<C> = find(services, scope, id).await?;
    let detail = audit::of_patch(&patch);
    let patched = patched(&current, if_match, patch)?;
    let before = Some(&current.content);
    let growth = size::check(&patched.content, before)?;
    let app = segments::renewed(services, scope).await?;
    let (plugins, audiences) = (&services.plugins, &app.segments.audiences);
    let check = |content| C::validate(content, plugins, &app.deciders, audiences, before).boxed();
    patched.check(check).await?;
    let mut content = patched.content;
    let now = services.clock.now();
    content.identify_variants(before, || id::new(now));
    let was = current.content.status();
    let (campaign, activates) = current.changed(content, now);
    Ok(CheckedChange {
        campaign,
        was,
        activates,
        now,
        growth,
        detail,
    })
}

impl<C: Content> CheckedChange<C> {
    /// Writes the change; fails if somebody has changed the campaign meanwhile. The caller commits, and then calls [`put_in_force`].
    pub async fn write(
        self,
        services: &Services,
        scope: &Scope,
        tx: &mut Tx,
    ) -> Result<Campaign<C>, ApiError> {
        let (campaign, now) = (self.campaign, self.now);
        lifecycle::update(tx, &services.plugins, &campaign).await?;
        size::check_total(tx, scope.app.id, self.growth).await?;
        record(tx, scope, Change::Updated, &campaign, self.detail, now).await?;
        Ok(campaign)
    }
}

/// Reads an app anew after a campaign of it was saved, and waits a moment until it is known whom the campaign watches.
pub async fn put_in_force(
    services: &Services,
    app_id: Uuid,
    campaign_id: Uuid,
) -> nudge_db::Result<()> {
    let app = services.apps.refresh(app_id).await?;
    segments::watched(services, app.as_deref(), campaign_id).await
}
