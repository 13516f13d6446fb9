//! What the routes of surveys and of push campaigns have in common.

use nudge_campaigns::lifecycle::{Campaign, Content, Error};
use nudge_campaigns::store::{self, Hold};
use nudge_db::{Timestamp, Tx};
use nudge_http::ApiError;
use nudge_http::merge::{self, Patched};
use nudge_http::precondition::IfMatch;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::auth::Scope;
use crate::services::Services;

/// A campaign of the caller's app.
pub async fn find<C: Content>(
    services: &Services,
    scope: &Scope,
    id: Uuid,
) -> Result<Campaign<C>, ApiError> {
    let mut tx = services.db.read().await?;
    let found = store::find(&mut tx, scope.app.id, id).await?;
    Ok(found.ok_or(Error::NotFound)?)
}

/// A campaign of the caller's app that is about to be deleted: nobody changes it until the transaction ends. `if_match` is the
/// caller's condition.
pub async fn hold<C: Content>(
    tx: &mut Tx,
    scope: &Scope,
    id: Uuid,
    if_match: IfMatch,
) -> Result<Campaign<C>, ApiError> {
    let held: Option<Campaign<C>> = store::hold(tx, scope.app.id, id, Hold::Alone).await?;
    let campaign = held.ok_or(Error::NotFound)?;
    if_match.check(campaign.version)?;
    Ok(campaign)
}

/// What a campaign says once a merge patch is applied. `if_match` is the caller's condition.
pub fn patched<C: Content>(
    current: &Campaign<C>,
    if_match: IfMatch,
    patch: Map<String, Value>,
) -> Result<Patched<C>, ApiError> {
    if_match.check(current.version)?;
    merge::patched_and_tried(&current.content, patch)
}

/// Adds what was done to a campaign to the audit log.
pub async fn record<C: Content>(
    tx: &mut Tx,
    scope: &Scope,
    action: &'static str,
    campaign: &Campaign<C>,
    patch: Map<String, Value>,
    now: Timestamp,
) -> nudge_db::Result<()> {
    let resource = format!("{}/{}", C::KIND.resource(), campaign.id);
    let mut detail = patch;
    detail.insert("version".to_owned(), json!(campaign.version));
    detail.insert("status".to_owned(), json!(campaign.content.status()));
    scope.record(tx, action, resource, detail.into(), now).await
}
