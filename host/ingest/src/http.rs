//! The ingest route (specification 4.2, contract 3).

use std::collections::HashSet;
use std::sync::Arc;

use axum::extract::State;
use nudge_apps::App;
use nudge_db::Timestamp;
use nudge_http::request_context::Notes;
use nudge_http::{ApiError, Code, Data, JsonText};
use nudge_platform::field_error::FieldError;
use nudge_records::events::Event;
use nudge_records::instructions::views::InstructionView;
use nudge_records::subjects::{self, NOBODY};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::body::{Body, Delivery};
use super::event::{self, Rules};
use super::owner::{self, Caller, Owner};
use super::taking::{self, Batch};
use crate::services::Shared;
use crate::submission::Rejection;

/// Events, from SDKs.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(ingest_events))
}

/// What became of a request's events.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct IngestView {
    accepted: usize,
    rejected: usize,
    errors: Vec<Rejection>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<Vec<InstructionView>>,
}

/// Takes events. 200 means that the accepted ones are on disk. With `settings.ingest.allowUnverifiedServerEvents`, the server-side
/// shape takes a write key alone too.
#[utoipa::path(post, path = "/v1/sdk/ingest", tag = "sdk", request_body = super::schema::IngestRequest,
    responses((status = 200, body = Data<IngestView>)))]
pub async fn ingest_events(
    caller: Caller,
    notes: Notes,
    State(services): State<Shared>,
    JsonText(text): JsonText,
) -> Result<Data<IngestView>, ApiError> {
    take(&services, &caller, &notes, &text).await
}

/// Takes the events of a body, whichever way it came. Events that can't be committed are 503, whatever the reason (contract 3).
pub(super) async fn take(
    services: &Shared,
    caller: &Caller,
    notes: &Notes,
    text: &str,
) -> Result<Data<IngestView>, ApiError> {
    let taken = take_all(services, caller, notes, text).await;
    taken.map_err(ApiError::may_be_repeated)
}

async fn take_all(
    services: &Shared,
    caller: &Caller,
    notes: &Notes,
    text: &str,
) -> Result<Data<IngestView>, ApiError> {
    let received_at = services.clock.now();
    let (body, events) = Body::parse(text)?;
    caller.count_bytes(notes, &body, text.len())?;
    let delivery = body.delivery()?;
    let owner = owner::of(services, caller, &body, &events, received_at).await?;
    let rules = rules(&caller.app, &body, &owner, received_at);
    let (checked, rejections) = event::check_all(events, &rules);
    if let Some(delivery) = &delivery {
        check_delivery(services, caller, delivery, &checked, &rejections).await?;
    }
    let batch = Batch {
        app: &caller.app,
        owner: &owner,
        origin: Arc::new(body.origin()),
        received_at,
    };
    let taken = taking::take(services, notes, &batch, (checked, rejections), delivery).await?;
    let data = IngestView {
        accepted: taken.accepted,
        rejected: taken.rejections.len(),
        errors: taken.rejections,
        instructions: taken.instructions,
    };
    Ok(Data { data })
}

/// What the events are checked against.
fn rules<'a>(app: &'a App, body: &Body<'_>, owner: &'a Owner, received_at: Timestamp) -> Rules<'a> {
    Rules {
        app_id: app.id,
        alias: owner.alias,
        mismatch: owner.mismatch,
        anonymous_id: owner.anonymous_id.as_deref(),
        external_id: owner.external_id.as_deref(),
        events_after: owner.events_after,
        settings: &app.settings.ingest,
        received_at,
        skew: event::skew(body.sent_at(), received_at),
    }
}

/// Every id of a delivery must be one of the request's, its browser session the subject's own.
async fn check_delivery(
    services: &Shared,
    caller: &Caller,
    delivery: &Delivery,
    checked: &[(usize, Event)],
    rejections: &[Rejection],
) -> Result<(), ApiError> {
    let known: HashSet<Uuid> = checked
        .iter()
        .map(|(_, event)| event.id)
        .chain(rejections.iter().filter_map(|rejection| rejection.event_id))
        .collect();
    if let Some(index) = delivery
        .event_ids
        .items
        .iter()
        .position(|id| !known.contains(id))
    {
        let pointer = format!("/delivery/eventIds/{index}");
        let error = FieldError::new(
            pointer,
            "unknown_id",
            "the request has no event with this eventId",
        );
        return Err(ApiError::fields(Code::InvalidDelivery, vec![error]));
    }
    if let (Some(client_id), Some(token)) = (delivery.client_id, &caller.token)
        && token.alias != NOBODY
    {
        let mut tx = services.db.read().await?;
        let session = subjects::store::find_client(&mut tx, caller.app.id, client_id).await?;
        if !session.is_some_and(|session| session.subject_id == token.subject_id && !session.ended)
        {
            // What ended the browser session, or gave it to another subject, may have revoked the token too.
            subjects::current::read(&mut tx, token).await?;
            return Err(ApiError::new(Code::ClientSessionInvalid));
        }
    }
    Ok(())
}
