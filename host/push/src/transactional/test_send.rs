//! Trying a campaign out on somebody's devices (specification 4.4; contract 9): no caps, no counts.

use axum::extract::State;
use axum::http::StatusCode;
use nudge_apps::App;
use nudge_apps::auth::{Editor, Scope};
use nudge_campaigns::push::rendered::Rendered;
use nudge_campaigns::push::{self, Campaign, NotPrepared, Prepared, Sending};
use nudge_campaigns::store as campaigns;
use nudge_http::{ApiError, Code, Data, Json, ResourceId};
use nudge_platform::audit::{self, Entry};
use nudge_records::deliveries::{self, Change, NewDelivery, Status, Urgency};
use nudge_records::subjects::current::check_anonymous_id;
use nudge_records::subjects::{self, AliasKind, AliasView};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::personalization::{Made, Recipient, make};
use crate::services::{Services, Shared};
use crate::tokens;

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
    let (campaign, person, devices) = find(&services, app, id, &request.anonymous_id).await?;
    let subject_id = person.subject_id;
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
    let now = services.clock.now();
    let (status, reason, rendered) =
        rendered(&services, app, (&sending, variant), &person, devices).await?;
    let new = NewDelivery {
        id: nudge_platform::id::new(now),
        app_id: app.id,
        campaign_id: id,
        campaign_version: version,
        variant_id: variant.id,
        subject_id,
        event: None,
        data: None,
        idempotency_key: None,
        test: true,
        recipients: i64::try_from(devices).unwrap_or(i64::MAX),
        status,
        reason: reason.map(str::to_owned),
        content: rendered.clone(),
        lane: Urgency::Urgent,
    };
    queue(&services, &scope, &new).await?;
    let view = TestSendView {
        delivery_id: new.id,
        status: status.name(),
        reason: new.reason,
        devices,
        content: rendered,
    };
    Ok((StatusCode::ACCEPTED, Data { data: view }))
}

/// The campaign, the person, and how many devices the person has.
async fn find(
    services: &Services,
    app: &App,
    id: Uuid,
    anonymous_id: &str,
) -> Result<(Campaign, AliasView, usize), ApiError> {
    let mut tx = services.db.read().await?;
    let campaign = campaigns::find::<push::Content>(&mut tx, app.id, id).await?;
    let campaign = campaign.ok_or_else(|| ApiError::new(Code::NotFound))?;
    let kind = AliasKind::Anonymous;
    let person = subjects::store::find(&mut tx, app.id, kind, anonymous_id)
        .await?
        .filter(|person| !person.suppressed)
        .ok_or_else(|| ApiError::new(Code::SubjectNotFound))?;
    let (secrets, whom) = (&services.secrets, [person.subject_id]);
    let targets = tokens::store::active_of(&mut tx, secrets, app.id, &whom).await?;
    Ok((campaign, person, targets.len()))
}

/// What becomes of the test: its status, why, and what it says.
async fn rendered(
    services: &Services,
    app: &App,
    what: (&Sending, &Prepared),
    person: &AliasView,
    devices: usize,
) -> Result<(Status, Option<&'static str>, Option<Rendered>), ApiError> {
    let recipient = Recipient {
        subject_id: person.subject_id,
        data: None,
        trigger: None,
    };
    let now = services.clock.now();
    let made = make(services, app, what.0, what.1, &[recipient], now).await?;
    Ok(match made.into_iter().next() {
        Some(Made::Ready(rendered)) => {
            let skipped = if !person.may_message(app) {
                Some("consent_missing")
            } else if devices == 0 {
                Some("no_active_device")
            } else {
                None
            };
            let status = skipped.map_or(Status::Queued, |_| Status::Skipped);
            (status, skipped, Some(*rendered))
        }
        Some(Made::Skipped(reason)) => (Status::Skipped, Some(reason), None),
        Some(Made::Failed(reason)) => (Status::Failed, Some(reason), None),
        Some(Made::Broken { .. }) => (Status::Failed, Some("plugin_error"), None),
        Some(Made::Unavailable) | None => {
            let cause = anyhow::anyhow!("the plugin could not be asked");
            return Err(ApiError::unavailable(cause));
        }
    })
}

/// Queues a test, with its entry in the audit log.
async fn queue(services: &Services, scope: &Scope, new: &NewDelivery) -> Result<(), ApiError> {
    let now = services.clock.now();
    let mut tx = services.db.write().await?;
    let locked = subjects::store::locked(&mut tx, new.app_id, new.subject_id).await?;
    if locked.is_none_or(|person| person.suppressed) {
        return Err(ApiError::new(Code::SubjectNotFound));
    }
    deliveries::queue(&mut tx, new.app_id, std::slice::from_ref(new), now).await?;
    let reason = new.reason.clone().map(|reason| ("reason", reason));
    let change = Change {
        delivery_id: new.id,
        campaign_id: new.campaign_id,
        variant_id: new.variant_id,
        subject_id: new.subject_id,
        platform: None,
        test: true,
        status: new.status,
        at: now,
        more: reason.into_iter().collect(),
    };
    // One that waits to be sent tells nobody yet.
    let told = deliveries::announce(&mut tx, &scope.app, &[change], now).await?;
    let entry = Entry {
        app_id: new.app_id,
        actor: &scope.actor,
        action: "campaign.test_sent",
        resource: format!("campaign/{}", new.campaign_id),
        detail: json!({"deliveryId": new.id, "variantId": new.variant_id}),
    };
    audit::record(&mut tx, &entry, now).await?;
    tx.commit().await?;
    services.pipeline.deliveries().wake();
    services.webhooks.wake(told);
    Ok(())
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
        NotPrepared::Refused(refused) => nudge_campaigns::lifecycle::Error::from(refused).into(),
    }
}
