//! Trying an in-app message out: an instruction for one person that is marked as a test.

use nudge_apps::auth::Scope;
use nudge_apps::campaigns::http::find;
use nudge_campaigns::campaign::CampaignAction;
use nudge_campaigns::in_app::{Campaign, Showing};
use nudge_campaigns::lifecycle;
use nudge_campaigns::push::verdict::Values;
use nudge_campaigns::store::{self as campaigns, Hold};
use nudge_db::Timestamp;
use nudge_http::{ApiError, Code};
use nudge_platform::id;
use nudge_records::deliveries::Status;
use nudge_records::instructions::feedback::next_position;
use nudge_records::instructions::{self, Instruction, Kind};
use nudge_records::subjects;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use utoipa::ToSchema;
use uuid::Uuid;

use super::{TestSendRequest, only, outcome, person_of, unknown_variant};
use crate::personalization::{Made, make_with};
use crate::services::Services;

/// A test of an in-app message.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InAppTestView {
    /// The instruction, which the person's next poll has; none where nothing can be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    instruction_id: Option<Uuid>,
    /// `queued`, `skipped` or `failed`.
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    /// What is shown; null where it could not be resolved.
    #[schema(value_type = Option<Object>)]
    content: Option<Box<RawValue>>,
}

/// Shows an in-app message to somebody.
pub(super) async fn send(
    services: &Services,
    scope: &Scope,
    campaign_id: Uuid,
    request: TestSendRequest,
) -> Result<InAppTestView, ApiError> {
    let app = &scope.app;
    let campaign: Campaign = find(services, scope, campaign_id).await?;
    let mut tx = services.db.read().await?;
    let person = person_of(&mut tx, app, &request.anonymous_id).await?;
    let locale = subjects::store::locale(&mut tx, app.id, person.subject_id).await?;
    drop(tx);
    let running = app.campaign(campaign_id);
    let running = running.and_then(|index| app.campaigns.get(index));
    let known = running.and_then(|running| match &running.action {
        CampaignAction::Show(showing) => Some(&**showing),
        _ => None,
    });
    let (plugins, deciders) = (&services.plugins, &app.deciders);
    let showing = Showing::prepare(plugins, deciders, campaign_id, &campaign.content, known);
    let showing = showing.await.map_err(lifecycle::Error::from)?;
    let variant = showing
        .variants
        .asked(request.variant_id, person.subject_id);
    let variant = variant.ok_or_else(unknown_variant)?;
    let render = |values: &Values| match showing.render(variant, values, locale.as_deref()) {
        Ok(message) => Made::Ready(Box::new(message)),
        Err(reason) => Made::Failed(reason.name()),
    };
    let (now, asked) = (services.clock.now(), (campaign_id, variant));
    let made = make_with(services, app, asked, &[only(&person)], render, now).await?;
    let may_message = person.may_message(app);
    let obstacle = || (!may_message).then_some("consent_missing");
    let (status, reason, message) = outcome(made, obstacle)?;
    let shown = message.as_deref().filter(|_| status == Status::Queued);
    let lifetime = showing.lifetime.unwrap_or(instructions::LIFETIME);
    let span = (now, now.plus(lifetime));
    let instruction =
        shown.map(|message| instruction(&campaign, person.subject_id, (variant.id, message), span));
    let instruction_id = instruction.as_ref().map(|instruction| instruction.id);
    let detail = json!({"instructionId": instruction_id, "variantId": variant.id});
    issue(
        services,
        scope,
        (campaign_id, person.subject_id),
        instruction,
        detail,
    )
    .await?;
    let content = message.map(RawValue::from_string).transpose();
    Ok(InAppTestView {
        instruction_id,
        status: status.name(),
        reason,
        content: content.map_err(ApiError::internal)?,
    })
}

/// A test, on offer from `created_at` to `expires_at`. Its position is known once the person is held.
fn instruction(
    campaign: &Campaign,
    subject_id: Uuid,
    (variant_id, message): (Uuid, &str),
    (created_at, expires_at): (Timestamp, Timestamp),
) -> Instruction {
    Instruction {
        id: id::new(created_at),
        app_id: campaign.app_id,
        subject_id,
        kind: Kind::InApp,
        content: Some(message.into()),
        variant_id: Some(variant_id),
        position: 0,
        campaign_id: campaign.id,
        campaign_version: campaign.version,
        priority: campaign.content.priority,
        trigger_event_id: None,
        trigger_name: None,
        created_at,
        available_at: created_at,
        expires_at,
        // Nobody decided.
        plugin: (String::new(), String::new()),
    }
}

/// Puts a test on offer, if there is something to show, with its entry in the audit log.
async fn issue(
    services: &Services,
    scope: &Scope,
    (campaign_id, subject_id): (Uuid, Uuid),
    instruction: Option<Instruction>,
    detail: Value,
) -> Result<(), ApiError> {
    let (app_id, now) = (scope.app.id, services.clock.now());
    let mut tx = services.db.write().await?;
    let locked = subjects::store::locked(&mut tx, app_id, subject_id).await?;
    if locked.is_none_or(|person| person.suppressed) {
        return Err(ApiError::new(Code::SubjectNotFound));
    }
    // A campaign that is deleted meanwhile would leave the instruction behind.
    let held = campaigns::status(&mut tx, app_id, campaign_id, Hold::Shared).await?;
    held.ok_or(lifecycle::Error::NotFound)?;
    if let Some(mut instruction) = instruction {
        instruction.position = next_position(&mut tx, app_id, subject_id).await?;
        instructions::store::insert_test(&mut tx, &instruction).await?;
    }
    let resource = format!("campaign/{campaign_id}");
    let action = "campaign.test_sent";
    scope.record(&mut tx, action, resource, detail, now).await?;
    tx.commit().await?;
    services.polls.wake(subject_id);
    Ok(())
}
