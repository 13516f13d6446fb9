//! The route of an app's events (contract 21).

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use nudge_apps::auth::Viewer;
use nudge_http::cursor::Cursors;
use nudge_http::page::{DEFAULT_LIMIT, Page, checked_limit};
use nudge_http::query::range;
use nudge_http::{ApiError, Data, Params};
use nudge_platform::clock;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::store::FeedEvent;
use super::stream::EventStream;
use super::{EventVerdict, FeedPosition, Filter};
use crate::services::Shared;

/// The events of an app.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(list_events))
        .routes(routes!(stream_events))
}

/// Events of the largest page (contract 0).
const MOST_EVENTS: u32 = 500;

/// Which events of an app to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
pub struct FeedQuery {
    /// Only events of this name.
    name: Option<String>,
    /// No events of this name.
    exclude_name: Option<String>,
    /// Received at or after: an ISO 8601 instant, or a day (UTC).
    from: Option<String>,
    /// Received before: an ISO 8601 instant; or a day, which is included.
    to: Option<String>,
    /// Only those that were accepted, or only those that were rejected within the last hour.
    verdict: Option<EventVerdict>,
    /// How many items, 1 to 500; 50 unless given.
    #[param(minimum = 1, maximum = 500, default = 50)]
    limit: Option<u32>,
    /// Where to go on: `nextCursor` of the page before.
    cursor: Option<String>,
}

/// An event of an app.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeedEventView {
    subject_id: Uuid,
    verdict: EventVerdict,
    /// Why it was rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<FeedErrorView>>)]
    errors: Option<Box<RawValue>>,
    /// Null for a rejected event without a usable one.
    event_id: Option<Uuid>,
    /// Null for a rejected event without one.
    name: Option<String>,
    /// Null for a rejected event without a usable one.
    timestamp: Option<String>,
    /// When by the client's clock, where that differed from the server's and `timestamp` was corrected.
    #[serde(skip_serializing_if = "Option::is_none")]
    client_timestamp: Option<String>,
    received_at: String,
    /// Of a rejected event, without what the privacy policy denies; empty if they could not be read.
    #[schema(value_type = Object)]
    properties: Box<RawValue>,
    /// Null for what a server sent under an external id.
    anonymous_id: Option<String>,
    /// The external id that a server sent it under.
    #[serde(skip_serializing_if = "Option::is_none")]
    external_id: Option<String>,
    platform: Option<String>,
    app_version: Option<String>,
    source: String,
}

/// Why an event was rejected.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeedErrorView {
    /// A stable reason, as in the answer of the ingest route.
    code: String,
    /// A sentence for a person.
    message: String,
    /// Whether the same event may be accepted later.
    retryable: bool,
    /// Where it is kept, if it broke its definition.
    dead_letter_id: Option<Uuid>,
}

/// Lists events of all people of an app, newest first by receipt. Where there are very many names, a page may have fewer events
/// than its limit, or none, and still a `nextCursor`.
#[utoipa::path(get, path = "/v1/apps/{appId}/events", tag = "events",
    params(("appId" = Uuid, Path), FeedQuery), responses((status = 200, body = Data<Page<FeedEventView>>)))]
pub async fn list_events(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    Params(query): Params<FeedQuery>,
) -> Result<Data<Page<FeedEventView>>, ApiError> {
    let limit = checked_limit(query.limit, DEFAULT_LIMIT, MOST_EVENTS)? as usize;
    let (from, to) = range("", query.from.as_deref(), query.to.as_deref())?;
    let filter = Filter {
        name: query.name,
        exclude_name: query.exclude_name,
        from,
        to,
        verdict: query.verdict,
    };
    let (app_id, now) = (scope.app.id, services.clock.now());
    let list = format!("feed {app_id} {filter:?}");
    let cursors = Cursors::new(&services.secrets, list, now);
    let after: Option<FeedPosition> = cursors.open(query.cursor.as_deref())?;
    let mut tx = services.db.read().await?;
    let (events, next) = super::page(&mut tx, app_id, &filter, after, limit, now).await?;
    drop(tx);
    let data = Page {
        next_cursor: next.map(|position| cursors.seal(&position)),
        items: events.into_iter().map(FeedEventView::from).collect(),
    };
    Ok(Data { data })
}

/// Which events of an app to send.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
pub struct StreamQuery {
    /// Only events of this name.
    name: Option<String>,
    /// No events of this name.
    exclude_name: Option<String>,
    /// Only those that are accepted, or only those that are rejected.
    verdict: Option<EventVerdict>,
}

/// Sends events of all people of an app as they are committed: server-sent events `event`, whose data is an item of the list
/// of events. Above 50 a second it is a sample, of which `sampled` tells the `rate`. `Last-Event-ID` goes on after an event.
#[utoipa::path(get, path = "/v1/apps/{appId}/events/stream", tag = "events",
    params(("appId" = Uuid, Path), StreamQuery),
    responses((status = 200, body = String, content_type = "text/event-stream")))]
pub async fn stream_events(
    Viewer(scope): Viewer,
    State(services): State<Shared>,
    headers: HeaderMap,
    Params(query): Params<StreamQuery>,
) -> Result<Response, ApiError> {
    let place = services.admission.stream_of(scope.app.id)?;
    let filter = Filter {
        name: query.name,
        exclude_name: query.exclude_name,
        verdict: query.verdict,
        ..Filter::default()
    };
    let last = headers.get("last-event-id");
    let last = last.and_then(|value| value.to_str().ok());
    let stream = EventStream::open(services, &scope, filter, last, place).await?;
    Ok(stream.answer())
}

impl From<FeedEvent> for FeedEventView {
    fn from(event: FeedEvent) -> Self {
        let verdict = match event.errors {
            Some(_) => EventVerdict::Rejected,
            None => EventVerdict::Accepted,
        };
        let json = |text| RawValue::from_string(text).unwrap_or_default();
        Self {
            subject_id: event.subject_id,
            verdict,
            errors: event.errors.map(json),
            event_id: event.event_id,
            name: event.name,
            timestamp: event.timestamp.map(clock::to_text),
            client_timestamp: event.client_timestamp.map(clock::to_text),
            received_at: clock::to_text(event.received_at),
            properties: json(event.properties),
            anonymous_id: event.anonymous_id,
            external_id: event.external_id,
            platform: event.platform,
            app_version: event.app_version,
            source: event.source,
        }
    }
}
