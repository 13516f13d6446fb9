//! Trying a campaign out on somebody (specification 4.4; contract 9): no caps, no counts. Push messages go to devices; an in-app message is shown
//! ([`in_app`]).

mod in_app;

use axum::extract::State;
use axum::http::StatusCode;
use nudge_apps::App;
use nudge_apps::auth::{Editor, Scope};
use nudge_campaigns::campaign::Kind as CampaignKind;
use nudge_campaigns::lifecycle;
use nudge_campaigns::push::rendered::Rendered;
use nudge_campaigns::push::{self, Campaign, Prepared, Sending};
use nudge_campaigns::store::{self as campaigns, Hold};
use nudge_db::Tx;
use nudge_http::{ApiError, Code, Data, Json, ResourceId};
use nudge_records::deliveries::{self, Change, NewDelivery, Status, Urgency};
use nudge_records::subjects::current::check_anonymous_id;
use nudge_records::subjects::{self, AliasKind, AliasView};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::campaigns::http::kind_of;
use crate::personalization::{Made, Recipient, make};
use crate::services::{Services, Shared};
use crate::tokens;

pub use in_app::InAppTestView;

/// Test messages of a campaign.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(test_send))
}

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

/// A test of a campaign of either type.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum AnyTestView {
    /// Of a push campaign.
    Push(TestSendView),
    /// Of an in-app message.
    InApp(InAppTestView),
}

/// A test of a push campaign that was queued.
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

/// Sends a campaign to somebody, whatever its status: a push message to devices, an in-app message as an instruction.
#[utoipa::path(post, path = "/v1/apps/{appId}/campaigns/{campaignId}/test-send", tag = "push",
    params(("appId" = Uuid, Path), ("campaignId" = Uuid, Path)), request_body = TestSendRequest,
    responses((status = 202, body = Data<AnyTestView>)))]
pub async fn test_send(
    Editor(scope): Editor,
    State(services): State<Shared>,
    ResourceId(id): ResourceId,
    Json(request): Json<TestSendRequest>,
) -> Result<(StatusCode, Data<AnyTestView>), ApiError> {
    if request.data.is_some() {
        return Err(ApiError::new(Code::DataNotAllowed));
    }
    check_anonymous_id("/anonymousId", &request.anonymous_id)?;
    let data = match kind_of(&services, scope.app.id, id).await? {
        CampaignKind::InApp => {
            AnyTestView::InApp(in_app::send(&services, &scope, id, request).await?)
        }
        _ => AnyTestView::Push(send(&services, &scope, id, request).await?),
    };
    Ok((StatusCode::ACCEPTED, Data { data }))
}

/// Sends a push campaign.
async fn send(
    services: &Services,
    scope: &Scope,
    id: Uuid,
    request: TestSendRequest,
) -> Result<TestSendView, ApiError> {
    let app = &scope.app;
    let (campaign, person, devices) = find(services, app, id, &request.anonymous_id).await?;
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
    let sending = sending.await.map_err(lifecycle::Error::from)?;
    let variant = sending.variants.asked(request.variant_id, subject_id);
    let variant = variant.ok_or_else(unknown_variant)?;
    let now = services.clock.now();
    let (status, reason, rendered) =
        rendered(services, app, (&sending, variant), &person, devices).await?;
    let mut new = NewDelivery {
        id: nudge_platform::id::new(now),
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
        urgency: Urgency::Urgent,
        node: None,
    };
    queue(services, scope, &mut new).await?;
    Ok(TestSendView {
        delivery_id: new.id,
        status: status.name(),
        reason: new.reason,
        devices,
        content: rendered,
    })
}

fn unknown_variant() -> ApiError {
    let detail = "the campaign has no such variant";
    ApiError::field("/variantId", "unknown_variant", detail)
}

/// The person of an anonymous id.
async fn person_of(tx: &mut Tx, app: &App, anonymous_id: &str) -> Result<AliasView, ApiError> {
    let kind = AliasKind::Anonymous;
    let found = subjects::store::find(tx, app.id, kind, anonymous_id).await?;
    found
        .filter(|person| !person.suppressed)
        .ok_or_else(|| ApiError::new(Code::SubjectNotFound))
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
    let person = person_of(&mut tx, app, anonymous_id).await?;
    let (secrets, whom) = (&services.secrets, [person.subject_id]);
    let active = tokens::store::active_of(&mut tx, secrets, app.id, &whom).await?;
    Ok((campaign, person, active.devices()))
}

/// What becomes of the test: its status, why, and what it says.
async fn rendered(
    services: &Services,
    app: &App,
    what: (&Sending, &Prepared),
    person: &AliasView,
    devices: usize,
) -> Result<(Status, Option<&'static str>, Option<Rendered>), ApiError> {
    let now = services.clock.now();
    let made = make(services, app, what.0, what.1, &[only(person)], now).await?;
    outcome(made, || {
        if !person.may_message(app) {
            return Some("consent_missing");
        }
        (devices == 0).then_some("no_active_device")
    })
}

/// The one whom a test is for.
fn only(person: &AliasView) -> Recipient {
    Recipient {
        subject_id: person.subject_id,
        data: None,
        trigger: None,
    }
}

/// What becomes of a test whose message was made: its status, why, and what it says. `obstacle` is what else keeps it from
/// the person.
fn outcome<M>(
    made: Vec<Made<M>>,
    obstacle: impl FnOnce() -> Option<&'static str>,
) -> Result<(Status, Option<&'static str>, Option<M>), ApiError> {
    Ok(match made.into_iter().next() {
        Some(Made::Ready(message)) => {
            let skipped = obstacle();
            let status = skipped.map_or(Status::Queued, |_| Status::Skipped);
            (status, skipped, Some(*message))
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
async fn queue(services: &Services, scope: &Scope, new: &mut NewDelivery) -> Result<(), ApiError> {
    let (app_id, now) = (scope.app.id, services.clock.now());
    let mut tx = services.db.write().await?;
    let locked = subjects::store::locked(&mut tx, app_id, new.subject_id).await?;
    if locked.is_none_or(|person| person.suppressed) {
        return Err(ApiError::new(Code::SubjectNotFound));
    }
    // The sender takes a test whatever its campaign does: nothing else would keep that of a deleted one back.
    let held = campaigns::status(&mut tx, app_id, new.campaign_id, Hold::Shared).await?;
    held.ok_or(lifecycle::Error::NotFound)?;
    let in_hand = services.pipeline.deliveries();
    let reserved = in_hand.reserve(app_id, std::slice::from_mut(new), now);
    let made = deliveries::queue(&mut tx, app_id, std::slice::from_ref(new), now).await?;
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
    let told = deliveries::announce(
        &mut tx,
        &scope.app,
        &[change],
        &services.webhooks.in_hand,
        now,
    )
    .await?;
    let resource = format!("campaign/{}", new.campaign_id);
    let detail = json!({"deliveryId": new.id, "variantId": new.variant_id});
    let action = "campaign.test_sent";
    scope.record(&mut tx, action, resource, detail, now).await?;
    tx.commit().await?;
    reserved.send(&made);
    services.webhooks.wake(told);
    Ok(())
}
