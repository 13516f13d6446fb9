//! What the routes of campaigns of all kinds have in common.

use nudge_campaigns::campaign::{Change, removal};
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

/// Deletes a campaign of the caller's app and adds that to the audit log. `if_match` is the caller's condition: nobody changes the
/// campaign until the transaction ends.
pub async fn delete<C: Content>(
    tx: &mut Tx,
    scope: &Scope,
    id: Uuid,
    if_match: IfMatch,
    now: Timestamp,
) -> Result<(), ApiError> {
    let app_id = scope.app.id;
    let held: Option<Campaign<C>> = store::hold(tx, app_id, id, Hold::Alone).await?;
    let campaign = held.ok_or(Error::NotFound)?;
    if_match.check(campaign.version)?;
    removal::delete(tx, app_id, C::KIND, id, &scope.actor, now).await?;
    Ok(record(tx, scope, Change::Deleted, &campaign, Map::new(), now).await?)
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
    change: Change,
    campaign: &Campaign<C>,
    patch: Map<String, Value>,
    now: Timestamp,
) -> nudge_db::Result<()> {
    let resource = format!("{}/{}", C::KIND.resource(), campaign.id);
    let mut detail = patch;
    detail.insert("version".to_owned(), json!(campaign.version));
    detail.insert("status".to_owned(), json!(campaign.content.status()));
    let action = C::KIND.action(change);
    scope.record(tx, action, resource, detail.into(), now).await
}
