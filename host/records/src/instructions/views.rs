//! Views.

use std::sync::Arc;

use nudge_apps::App;
use nudge_campaigns::campaign::CampaignAction;
use nudge_campaigns::store as campaigns;
use nudge_campaigns::surveys::{self, Payload};
use nudge_db::Db;
use nudge_platform::clock;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::instructions::Instruction;
use crate::subjects;

/// An instruction as SDKs get it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstructionView {
    instruction_id: Uuid,
    kind: &'static str,
    campaign_id: Uuid,
    campaign_version: i64,
    priority: i32,
    created_at: String,
    available_at: String,
    expires_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    trigger: Option<TriggerView>,
    payload: PayloadView,
}

/// What to show, as JSON that is not taken apart.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = InstructionPayload)]
pub struct PayloadView {
    #[schema(value_type = Object)]
    survey: Arc<RawValue>,
    /// The attempt that a coordinated survey's instruction authorizes.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<AuthorizedView>,
}

/// An attempt that an instruction authorizes.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AuthorizedAttempt)]
pub struct AuthorizedView {
    attempt_id: Uuid,
    expires_at: String,
}

/// The event that fired an instruction.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TriggerView {
    event_id: Uuid,
    name: String,
}

/// Instructions of one subject with what they show, in its language: from memory where the campaign still has the
/// version that fired.
pub async fn views(
    db: &Db,
    app: &App,
    instructions: Vec<Instruction>,
) -> nudge_db::Result<Vec<InstructionView>> {
    let current = |instruction: &Instruction| {
        let campaign = app
            .campaign(instruction.campaign_id)
            .and_then(|index| app.campaigns.get(index))?;
        let CampaignAction::Present(payload) = &campaign.act else {
            return None;
        };
        (campaign.version == instruction.campaign_version).then(|| Arc::clone(payload))
    };
    let mut payloads = Vec::with_capacity(instructions.len());
    for instruction in instructions {
        let payload = if let Some(payload) = current(&instruction) {
            Some(payload)
        } else {
            let mut tx = db.read().await?;
            let (id, version) = (instruction.campaign_id, instruction.campaign_version);
            let content =
                campaigns::version::<surveys::Content>(&mut tx, app.id, id, version).await?;
            content.map(|content| Arc::new(Payload::new(id, version, &content)))
        };
        // A survey that was deleted a moment ago has nothing to show.
        payloads.extend(payload.map(|payload| (instruction, payload)));
    }
    let mut localized = payloads
        .iter()
        .filter(|(_, payload)| payload.is_localized());
    let locale = match localized.next() {
        Some((instruction, _)) => {
            let mut tx = db.read().await?;
            subjects::store::locale(&mut tx, app.id, instruction.subject_id).await?
        }
        None => None,
    };
    let views = payloads.into_iter().map(|(instruction, payload)| {
        let shown = shown(&instruction, &payload, locale.as_deref());
        InstructionView::new(instruction, shown)
    });
    Ok(views.collect())
}

/// The payload of an instruction; a coordinated survey's has the attempt that it authorizes.
fn shown(instruction: &Instruction, payload: &Payload, locale: Option<&str>) -> PayloadView {
    PayloadView {
        survey: payload.survey(locale),
        attempt: payload.coordinated.then(|| AuthorizedView {
            attempt_id: crate::instructions::counterpart::attempt_id_of(instruction.id),
            expires_at: clock::to_text(instruction.expires_at),
        }),
    }
}

impl InstructionView {
    fn new(instruction: Instruction, payload: PayloadView) -> Self {
        Self {
            instruction_id: instruction.id,
            kind: "survey",
            campaign_id: instruction.campaign_id,
            campaign_version: instruction.campaign_version,
            priority: instruction.priority,
            created_at: clock::to_text(instruction.created_at),
            available_at: clock::to_text(instruction.available_at),
            expires_at: clock::to_text(instruction.expires_at),
            trigger: instruction
                .trigger_event_id
                .zip(instruction.trigger_name)
                .map(|(event_id, name)| TriggerView { event_id, name }),
            payload,
        }
    }
}
