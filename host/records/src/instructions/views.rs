//! Instructions as SDKs get them.

use std::collections::HashMap;
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

use crate::instructions::{Instruction, Kind};
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
#[serde(untagged)]
pub enum PayloadView {
    /// Of the kinds `survey` and `feedback`.
    Survey {
        /// The survey. One with translations has a `locale`: the one that most of its text is of.
        #[schema(value_type = Object)]
        survey: Arc<RawValue>,
        /// The attempt that a coordinated survey's instruction authorizes.
        #[serde(skip_serializing_if = "Option::is_none")]
        attempt: Option<AuthorizedView>,
    },
    /// Of the kind `in_app`.
    Message {
        /// `{variantId, layout, title, body, imageUrl, buttons, dismissible, theme}`, as it was made. One with
        /// translations has a `locale`: the one that most of its text is of.
        #[schema(value_type = Object)]
        message: Box<RawValue>,
    },
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
    // Of one that was a button and is one no longer, rows may be left.
    let is_button = |id: Uuid| {
        let campaign = app.campaign(id).and_then(|index| app.campaigns.get(index));
        campaign.is_some_and(|campaign| campaign.action.feedback().is_some())
    };
    let mut instructions = instructions;
    instructions.retain(|it| it.kind != Kind::Feedback || is_button(it.campaign_id));
    let places: HashMap<Uuid, usize> = instructions
        .iter()
        .enumerate()
        .map(|(place, instruction)| (instruction.id, place))
        .collect();
    let current = |instruction: &Instruction| {
        let campaign = app
            .campaign(instruction.campaign_id)
            .and_then(|index| app.campaigns.get(index))?;
        let CampaignAction::Present(payload) = &campaign.action else {
            return None;
        };
        (campaign.version == instruction.campaign_version).then(|| Arc::clone(payload))
    };
    let mut payloads = Vec::with_capacity(instructions.len());
    let mut views = Vec::with_capacity(instructions.len());
    for instruction in instructions {
        if let Some(content) = &instruction.content {
            let message = serde_json::from_str(content)
                .map_err(|cause| nudge_db::Error::corrupt("instructions", "content", cause))?;
            let payload = PayloadView::Message { message };
            views.push(InstructionView::new(instruction, payload));
            continue;
        }
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
    views.extend(payloads.into_iter().map(|(instruction, payload)| {
        let shown = shown(&instruction, &payload, locale.as_deref());
        InstructionView::new(instruction, shown)
    }));
    // Those with a survey came after the others.
    views.sort_by_key(|view| places.get(&view.instruction_id).copied());
    Ok(views)
}

/// The payload of an instruction; a coordinated survey's has the attempt that it authorizes.
fn shown(instruction: &Instruction, payload: &Payload, locale: Option<&str>) -> PayloadView {
    // Of a button there may be many attempts.
    let coordinated = payload.coordinated && instruction.kind != Kind::Feedback;
    PayloadView::Survey {
        survey: payload.survey(locale),
        attempt: coordinated.then(|| AuthorizedView {
            attempt_id: crate::instructions::counterpart::attempt_id_of(instruction.id),
            expires_at: clock::to_text(instruction.expires_at),
        }),
    }
}

impl InstructionView {
    fn new(instruction: Instruction, payload: PayloadView) -> Self {
        Self {
            instruction_id: instruction.id,
            kind: instruction.kind.name(),
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
