//! The ingest request as the API's description shows it. `body` is what reads it.

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

/// Events of one person: with `context` from an SDK, with `userId` from a server.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct IngestRequest {
    /// Who the events are of, and where they come from. Required but for the server-side shape.
    context: Option<IngestContext>,
    /// The customer's own id of the user, for the server-side shape.
    user_id: Option<String>,
    /// The events, 1 to 500.
    events: Vec<IngestEvent>,
    /// Asks for what the events fire, at once.
    delivery: Option<IngestDelivery>,
}

/// Who the events are of, and where they come from.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct IngestContext {
    /// The anonymous id that the subject token was issued for.
    anonymous_id: String,
    /// The identified user's own id.
    external_id: Option<String>,
    /// The SDK's version.
    sdk_version: Option<String>,
    /// Such as `ios`.
    platform: Option<String>,
    /// The app's version.
    app_version: Option<String>,
    /// Language and region, such as `de-AT`.
    locale: Option<String>,
    /// IANA time zone, such as `Europe/Vienna`. The person's `country` is the one that it is in; without one, the region of the locale.
    timezone: Option<String>,
    /// What the SDK calls the device, at most 256 characters.
    device_id: Option<String>,
    /// What the SDK calls its session, at most 256 characters. Another name is another session.
    session_id: Option<String>,
    /// When the request was sent, by the client's clock; corrects timestamps.
    sent_at: Option<String>,
}

/// One event.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct IngestEvent {
    /// Stable across retries; derived from the content when it is missing.
    event_id: Option<Uuid>,
    /// What happened, 1 to 200 characters.
    name: String,
    /// When, ISO 8601 with an offset.
    timestamp: String,
    /// That of the context.
    anonymous_id: Option<String>,
    /// That of the identified subject.
    external_id: Option<String>,
    /// At most 256 members.
    properties: Option<Map<String, Value>>,
}

/// Asks for what events fire, at once.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct IngestDelivery {
    /// 1 to 20 ids of this request's events.
    event_ids: Vec<Uuid>,
    /// At most 120 characters.
    screen_name: Option<String>,
    /// The active browser session.
    client_id: Option<Uuid>,
}
