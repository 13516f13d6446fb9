//! Routes of instructions (contract 4).

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use nudge_db::{Db, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::polling::{self, Place};
use super::{Instruction, POLL_AFTER_SECONDS, Status, store};
use crate::apps::App;
use crate::campaigns::Act;
use crate::clock;
use crate::http::auth::SdkSubject;
use crate::http::notes::Notes;
use crate::http::page::checked_limit;
use crate::http::{ApiError, Data, Json, Params, cursor};
use crate::services::Shared;
use crate::subjects::current;
use crate::subjects::http::check_anonymous_id;
use crate::surveys::{self, Payload};
use crate::{attempts, subjects};

/// Instructions of a page unless `limit` says otherwise, and at the most.
const MOST: u32 = 20;
/// The longest poll, in seconds.
const MOST_WAIT_SECONDS: u64 = 25;
/// Acknowledgements of one request.
const MOST_ACKS: usize = 50;

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

/// How to poll.
#[derive(Debug, Default, Deserialize, IntoParams)]
pub struct PollQuery {
    /// Where to go on: `nextCursor` of the answer before.
    cursor: Option<String>,
    /// How long to wait for an instruction, 0 to 25 seconds.
    wait: Option<u64>,
    /// How many instructions, 1 to 20.
    limit: Option<u32>,
}

/// Instructions on offer.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PollView {
    items: Vec<InstructionView>,
    next_cursor: String,
    poll_after_seconds: u32,
}

/// What became of instructions.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AckRequest {
    anonymous_id: String,
    acks: Vec<Ack>,
}

/// What became of one instruction.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ack {
    instruction_id: Uuid,
    status: AckStatus,
    at: Option<String>,
}

/// What an SDK can say of an instruction.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "Status describes them")]
pub enum AckStatus {
    Received,
    Displayed,
    Dismissed,
    Completed,
    Discarded,
}

/// Which acknowledgements were taken.
#[derive(Debug, Serialize, ToSchema)]
pub struct AckView {
    accepted: usize,
    unknown: Vec<Uuid>,
}

impl From<AckStatus> for Status {
    fn from(status: AckStatus) -> Self {
        match status {
            AckStatus::Received => Self::Received,
            AckStatus::Displayed => Self::Displayed,
            AckStatus::Dismissed => Self::Dismissed,
            AckStatus::Completed => Self::Completed,
            AckStatus::Discarded => Self::Discarded,
        }
    }
}

/// Gets the instructions on offer; waits for one if asked to.
#[utoipa::path(get, path = "/v1/sdk/instructions", tag = "sdk", params(PollQuery),
    responses((status = 200, body = Data<PollView>)))]
pub async fn poll_instructions(
    subject: SdkSubject,
    notes: Notes,
    State(services): State<Shared>,
    Params(query): Params<PollQuery>,
) -> Result<Data<PollView>, ApiError> {
    let limit = checked_limit(query.limit, MOST, MOST)?;
    let wait = match query.wait.unwrap_or(0) {
        wait @ 0..=MOST_WAIT_SECONDS => Duration::from_secs(wait),
        _ => {
            return Err(ApiError::field(
                "/wait",
                "out_of_range",
                "wait must be 0 to 25",
            ));
        }
    };
    let now = services.clock.now();
    let list = format!("instructions {}", subject.token.subject_id);
    let place = match &query.cursor {
        Some(text) => cursor::decode(&services.secrets, &list, text, now)?,
        None => Place::default(),
    };
    let page = polling::poll(&services, &subject, &notes, place, limit, wait).await?;
    let expires = services.clock.now().plus(cursor::LIFETIME);
    let items = views(&services.db, &subject.app, page.instructions).await?;
    let next_cursor = cursor::encode(&services.secrets, &list, &page.place, expires);
    Ok(Data {
        data: PollView {
            items,
            next_cursor,
            poll_after_seconds: POLL_AFTER_SECONDS,
        },
    })
}

/// Says what became of instructions. Saying it again changes nothing.
#[utoipa::path(post, path = "/v1/sdk/instructions/ack", tag = "sdk", request_body = AckRequest,
    responses((status = 200, body = Data<AckView>)))]
pub async fn acknowledge_instructions(
    subject: SdkSubject,
    State(services): State<Shared>,
    Json(request): Json<AckRequest>,
) -> Result<Data<AckView>, ApiError> {
    if request.acks.is_empty() || request.acks.len() > MOST_ACKS {
        return Err(ApiError::field(
            "/acks",
            "out_of_range",
            format!("acks must have 1 to {MOST_ACKS} items"),
        ));
    }
    check_anonymous_id("/anonymousId", &request.anonymous_id)?;
    let now = services.clock.now();
    let mut acks = Vec::with_capacity(request.acks.len());
    for (index, ack) in request.acks.into_iter().enumerate() {
        let at = ack
            .at
            .map_or(Some(now), |text| clock::from_text(&text))
            .ok_or_else(|| {
                ApiError::field(
                    format!("/acks/{index}/at"),
                    "invalid",
                    "an ISO 8601 instant with an offset",
                )
            })?;
        acks.push((
            ack.instruction_id,
            Status::from(ack.status),
            Timestamp::min(at, now),
        ));
    }
    let mut tx = services.db.write().await?;
    let standing = current::lock_of(&mut tx, &subject.token, &request.anonymous_id).await?;
    let mut view = AckView {
        accepted: 0,
        unknown: Vec::new(),
    };
    for (id, status, at) in acks {
        if store::acknowledge(&mut tx, subject.app.id, standing.subject_id, id, status, at).await? {
            view.accepted += 1;
        } else {
            view.unknown.push(id);
        }
    }
    tx.commit().await?;
    Ok(Data { data: view })
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
        let Act::Present(payload) = &campaign.act else {
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
            let content = surveys::store::version(&mut tx, app.id, id, version).await?;
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
            attempt_id: attempts::counterpart(instruction.id),
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
