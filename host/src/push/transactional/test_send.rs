//! Trying a campaign out on somebody's devices (specification 4.4; contract 9): no caps, no counts.

use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::audit::{self, Entry};
use crate::http::auth::Editor;
use crate::http::{ApiError, Code, Data, Json, ResourceId};
use crate::push::campaigns::{self, NotPrepared, Prepared, Sending};
use crate::push::deliveries::{self, Lane, NewDelivery, Rendered, Status};
use crate::push::personalization::{Made, Recipient, make};
use crate::push::tokens;
use crate::services::Shared;
use crate::subjects::http::check_anonymous_id;
use crate::subjects::{self, AliasKind};

/// Whom to send a campaign to.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TestSendRequest {
    /// By an anonymous id.
    anonymous_id: String,
    /// Which variant; the one that the person would get unless given.
    variant_id: Option<Uuid>,
    /// Tests have none.
    data: Option<Value>,
}

/// A test that was queued.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TestSendView {
    delivery_id: Uuid,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// How many devices it goes to.
    devices: usize,
    /// What they get; null where it could not be resolved.
    content: Option<Rendered>,
}

/// Sends a campaign to somebody's devices, whatever its status.
#[utoipa::path(post, path = "/v1/apps/{appId}/campaigns/{campaignId}/test-send", tag = "push",
    params(("appId" = Uuid, Path), ("campaignId" = Uuid, Path)), request_body = TestSendRequest,
    responses((status = 202, body = Data<TestSendView>)))]
pub async fn test_send(
    Editor(scope): Editor,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
    Json(request): Json<TestSendRequest>,
) -> Result<(StatusCode, Data<TestSendView>), ApiError> {
    let app = &scope.app;
    if request.data.is_some() {
        return Err(ApiError::new(Code::DataNotAllowed));
    }
    check_anonymous_id("/anonymousId", &request.anonymous_id)?;
    let mut tx = services.db.read().await?;
    let campaign = campaigns::store::find(&mut tx, app.id, id).await?;
    let campaign = campaign.ok_or_else(|| ApiError::new(Code::NotFound))?;
    let named =
        subjects::store::find(&mut tx, app.id, AliasKind::Anonymous, &request.anonymous_id).await?;
    let person = named
        .filter(|person| !person.suppressed)
        .ok_or_else(|| ApiError::new(Code::SubjectNotFound))?;
    let subject_id = person.subject_id;
    let targets =
        tokens::store::active_of(&mut tx, &services.secrets, app.id, &[subject_id]).await?;
    drop(tx);
    let (version, content) = (campaign.version, &campaign.content);
    let before = app.push.get(&id).map(|sending| &**sending);
    let sending = Sending::prepare(
        &services.plugins,
        &app.deciders,
        id,
        version,
        content,
        before,
    );
    let sending = sending.await.map_err(not_prepared)?;
    let variant = variant(&sending, request.variant_id, subject_id)?;

    let recipient = Recipient {
        subject_id,
        data: None,
        trigger: None,
    };
    let now = services.clock.now();
    let made = make(&services, app, variant, &sending.options, &[recipient], now).await?;
    let (mut status, mut reason, rendered) = match made.into_iter().next() {
        Some(Made::Ready(rendered)) => (Status::Queued, None, Some(*rendered)),
        Some(Made::Skipped(reason)) => (Status::Skipped, Some(reason), None),
        Some(Made::Failed(reason)) => (Status::Failed, Some(reason), None),
        Some(Made::Broken { .. }) => (Status::Failed, Some("plugin_error"), None),
        Some(Made::Unavailable) | None => {
            return Err(ApiError::unavailable(anyhow::anyhow!(
                "the plugin could not be asked"
            )));
        }
    };
    if status == Status::Queued && targets.is_empty() {
        (status, reason) = (Status::Skipped, Some("no_active_device"));
    }
    if !person.may_message(app) {
        (status, reason) = (Status::Skipped, Some("consent_missing"));
    }
    let new = NewDelivery {
        id: crate::id::new(now),
        app_id: app.id,
        campaign_id: id,
        campaign_version: version,
        variant_id: variant.id,
        subject_id,
        event: None,
        data: None,
        idempotency_key: None,
        test: true,
        recipients: i64::try_from(targets.len()).unwrap_or(i64::MAX),
        status,
        reason: reason.map(str::to_owned),
        content: rendered.clone(),
        lane: Lane::Urgent,
    };
    let mut tx = services.db.write().await?;
    let locked = subjects::store::locked(&mut tx, app.id, subject_id).await?;
    if locked.is_none_or(|person| person.suppressed) {
        return Err(ApiError::new(Code::SubjectNotFound));
    }
    deliveries::queue(&mut tx, app.id, std::slice::from_ref(&new), now).await?;
    let entry = Entry {
        app_id: app.id,
        actor: &scope.actor,
        action: "campaign.test_sent",
        resource: format!("campaign/{id}"),
        detail: json!({"deliveryId": new.id, "variantId": variant.id}),
    };
    audit::record(&mut tx, &entry, now).await?;
    tx.commit().await?;
    services.pipeline.deliveries().wake();
    let view = TestSendView {
        delivery_id: new.id,
        status: status.name(),
        reason: new.reason,
        devices: targets.len(),
        content: rendered,
    };
    Ok((StatusCode::ACCEPTED, Data { data: view }))
}

/// The variant that is asked for, or the person's.
fn variant(
    sending: &Sending,
    asked: Option<Uuid>,
    subject_id: Uuid,
) -> Result<&Prepared, ApiError> {
    let found = match asked {
        Some(id) => sending.variant(id),
        None => sending
            .variant_for(subject_id)
            .or_else(|| sending.variants.first()),
    };
    found.ok_or_else(|| {
        let detail = "the campaign has no such variant";
        ApiError::field("/variantId", "unknown_variant", detail)
    })
}

/// Why a campaign as it is stored can't make messages.
pub fn not_prepared(error: NotPrepared) -> ApiError {
    match error {
        NotPrepared::Template(cause) => {
            ApiError::field("/variants", "unknown_token", cause.to_string())
        }
        NotPrepared::Refused(refused) => campaigns::Error::from(refused).into(),
    }
}
