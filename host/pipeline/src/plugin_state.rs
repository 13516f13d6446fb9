//! Routes of what plugins keep of a person: states and timers (contract 12).

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use nudge_apps::auth::{Admin, Viewer};
use nudge_campaigns::runs;
use nudge_http::{ApiError, Data, Params, ResourceName};
use nudge_platform::{audit, clock};
use nudge_plugin_runtime::store::plugin_state;
use nudge_records::subjects;
use nudge_records::subjects::named::{IdKind, NameQuery};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::services::Shared;

/// The state that plugins keep of a person.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(get_plugin_state, erase_plugin_state))
}

/// What people's keyed hashes in the audit log are for.
const AUDIT: &str = "subject in the audit log";
/// How much of such a hash is shown.
const HASH_BYTES: usize = 16;

/// What plugins keep of a person.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct KeptView {
    /// As what the id in the path was found. Somebody else may have it as the other kind of id.
    matched_by: IdKind,
    /// Campaigns whose plugins keep something.
    campaigns: Vec<CampaignView>,
    /// What all states take together.
    state_bytes: usize,
    /// How many timers there are.
    timers: usize,
}

/// What one campaign's plugin keeps of a person.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CampaignView {
    campaign_id: Uuid,
    /// Base64. Absent: it keeps timers only.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<String>,
    /// The state, where it is JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    state_json: Option<Value>,
    /// How long the state is.
    bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_at: Option<String>,
    timers: Vec<TimerView>,
}

/// A timer.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TimerView {
    key: String,
    /// When it fires; null: it waits until its campaign, which is paused, runs again.
    due_at: Option<String>,
    /// The payload, where it is JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    payload_json: Option<Value>,
    /// How long its payload is.
    bytes: usize,
}

/// Shows what trigger plugins keep of a person: states and timers, by campaign.
#[utoipa::path(get, path = "/v1/apps/{appId}/users/{anonymousId}/plugin-state", tag = "plugins",
    params(("appId" = Uuid, Path), ("anonymousId" = String, Path), NameQuery),
    responses((status = 200, body = Data<KeptView>)))]
pub async fn get_plugin_state(
    Viewer(scope): Viewer,
    ResourceName(name): ResourceName,
    State(services): State<Shared>,
    Params(query): Params<NameQuery>,
) -> Result<Data<KeptView>, ApiError> {
    let app_id = scope.app.id;
    // Whoever is found may become one with another person meanwhile, who has it all from then on.
    let mut tx = services.db.repeatable_read().await?;
    let named = query.find(&mut tx, app_id, &name).await?;
    let subject_id = named.subject_id;
    let states = plugin_state::states(&mut tx, app_id, subject_id).await?;
    let timers = plugin_state::timers(&mut tx, app_id, subject_id).await?;
    drop(tx);
    let state_bytes = states.iter().map(|row| row.state.len()).sum();
    let count = timers.len();
    let mut campaigns: BTreeMap<Uuid, CampaignView> = BTreeMap::new();
    for row in states {
        let campaign = campaigns.entry(row.campaign_id).or_default();
        campaign.bytes = row.state.len();
        campaign.state_json = plugin_state::as_json(&row.state);
        campaign.state = Some(STANDARD.encode(row.state));
        campaign.updated_at = Some(clock::to_text(row.updated_at));
    }
    for row in timers {
        let campaign = campaigns.entry(row.campaign_id).or_default();
        campaign.timers.push(TimerView {
            key: row.key,
            due_at: runs::due(row.due_at).map(clock::to_text),
            bytes: row.payload.len(),
            payload_json: plugin_state::as_json(&row.payload),
        });
    }
    let campaigns = campaigns
        .into_iter()
        .map(|(campaign_id, campaign)| CampaignView {
            campaign_id,
            ..campaign
        });
    Ok(Data {
        data: KeptView {
            matched_by: named.matched_by,
            campaigns: campaigns.collect(),
            state_bytes,
            timers: count,
        },
    })
}

/// Erases what trigger plugins keep of a person. Campaigns begin with the person as if they were new. An id that is one
/// person's anonymous id and another one's external id names neither: `idKind` says which is meant.
#[utoipa::path(delete, path = "/v1/apps/{appId}/users/{anonymousId}/plugin-state", tag = "plugins",
    params(("appId" = Uuid, Path), ("anonymousId" = String, Path), NameQuery), responses((status = 204)))]
pub async fn erase_plugin_state(
    Admin(scope): Admin,
    ResourceName(name): ResourceName,
    State(services): State<Shared>,
    Params(query): Params<NameQuery>,
) -> Result<StatusCode, ApiError> {
    let (app_id, now) = (scope.app.id, services.clock.now());
    let mut tx = services.db.write().await?;
    let named = query.find(&mut tx, app_id, &name).await?.unambiguous()?;
    let subject_id = named.subject_id;
    subjects::store::lock_found(&mut tx, app_id, subject_id).await?;
    let (states, timers) = plugin_state::erase(&mut tx, app_id, subject_id).await?;
    let hash = services.secrets.sign(AUDIT, &[subject_id.as_bytes()]);
    let hash = URL_SAFE_NO_PAD.encode(hash.get(..HASH_BYTES).unwrap_or_default());
    let entry = audit::Entry {
        app_id,
        actor: &scope.actor,
        action: "plugin_state.erased",
        resource: format!("plugin-state/{hash}"),
        detail: json!({"states": states, "timers": timers}),
    };
    audit::record(&mut tx, &entry, now).await?;
    tx.commit().await?;
    Ok(StatusCode::NO_CONTENT)
}
