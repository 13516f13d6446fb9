//! Routes of instructions (contract 4).

use std::time::Duration;

use axum::extract::State;
use nudge_apps::auth::SdkSubject;
use nudge_db::Timestamp;
use nudge_http::page::checked_limit;
use nudge_http::request_context::Notes;
use nudge_http::{ApiError, Data, Json, Params, cursor};
use nudge_platform::clock;
use nudge_records::instructions::store::{Acknowledged, Acknowledgement};
use nudge_records::instructions::views::{InstructionView, views};
use nudge_records::instructions::{POLL_AFTER_SECONDS, Status, store};
use nudge_records::stats;
use nudge_records::subjects::current::{self, check_anonymous_id};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::feedback;
use super::polling::{self, PagePosition};
use crate::services::Shared;

/// What SDKs get to show.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(poll_instructions))
        .routes(routes!(acknowledge_instructions))
}

/// Instructions of a page unless `limit` says otherwise, and at the most.
const MOST: u32 = 20;
/// The longest poll, in seconds.
const MOST_WAIT_SECONDS: u64 = 25;
/// Acknowledgements of one request.
const MOST_ACKS: usize = 50;
/// The longest id of a button, in characters.
const MOST_ACTION_ID: usize = 64;

/// How to poll.
#[derive(Debug, Default, Deserialize, IntoParams)]
pub struct PollQuery {
    /// Where to go on: `nextCursor` of the answer before.
    cursor: Option<String>,
    /// How long to wait for an instruction, 0 to 25 seconds.
    #[param(maximum = 25)]
    wait: Option<u64>,
    /// How many instructions, 1 to 20.
    #[param(minimum = 1, maximum = 20)]
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
    /// The button that was pressed, of `clicked`: 1 to 64 characters.
    action_id: Option<String>,
    /// When, ISO 8601; now unless given. Before the instruction was made is when it was made.
    at: Option<String>,
}

/// What an SDK can say of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "Status describes them")]
pub enum AckStatus {
    Received,
    Displayed,
    Dismissed,
    Clicked,
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
            AckStatus::Clicked => Self::Clicked,
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
        None => PagePosition::default(),
    };
    let (app, page) = polling::poll(&services, &subject, &notes, place, limit, wait).await?;
    let expires = services.clock.now().plus(cursor::LIFETIME);
    // The app as it is by now: a page may have a button that became one while the request waited.
    let items = views(&services.db, &app, page.instructions).await?;
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
        let action_id = ack.action_id.filter(|_| ack.status == AckStatus::Clicked);
        let fits =
            |id: &String| (1..=MOST_ACTION_ID).contains(&id.chars().count()) && !id.contains('\0');
        if action_id.as_ref().is_some_and(|id| !fits(id)) {
            let pointer = format!("/acks/{index}/actionId");
            let detail = format!("must have 1 to {MOST_ACTION_ID} characters");
            return Err(ApiError::field(pointer, "invalid", detail));
        }
        acks.push(Acknowledgement {
            id: ack.instruction_id,
            status: Status::from(ack.status),
            action_id,
            at: Timestamp::min(at, now),
        });
    }
    let mut tx = services.db.write().await?;
    let standing = current::lock_of(&mut tx, &subject.token, &request.anonymous_id).await?;
    let mut view = AckView {
        accepted: 0,
        unknown: Vec::new(),
    };
    let mut views = 0;
    for ack in acks {
        match store::acknowledge(&mut tx, subject.app.id, standing.subject_id, &ack).await? {
            Acknowledged::Unknown => view.unknown.push(ack.id),
            Acknowledged::Known => view.accepted += 1,
            Acknowledged::Viewed => {
                view.accepted += 1;
                views += 1;
            }
        }
    }
    tx.commit().await?;
    feedback::wake(&services, &subject.app, standing.subject_id);
    let counted = stats::Kind::InAppViews;
    services.stats.count(subject.app.id, now, counted, views);
    Ok(Data { data: view })
}
