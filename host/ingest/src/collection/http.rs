//! The routes that SDKs of others send to (contract 24).

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts as _, Request, State};
use axum::http::HeaderValue;
use axum::routing::post;
use nudge_apps::auth::{AppKey, Stranger, WRITE_KEY, collection_key};
use nudge_apps::key::{self, Kind};
use nudge_http::body::{self, Few, PlainJsonText};
use nudge_http::request_context::Notes;
use nudge_http::{ApiError, Code, Mark, Params, ResourceName};
use nudge_platform::json::Text;
use nudge_records::events::{MOST_EVENTS, Source};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::MessageKind;
use super::message::{self, Common, Message, MessageError};
use super::people::{Collection, Refused, Trust};
use crate::services::Shared;

/// Messages of a batch at the most: as many as fit into a body, of 128 bytes each.
const MOST_MESSAGES: usize = 8_192;
/// The longest `sentAt` of a batch that is read, in bytes. Each of its messages without a time takes it for one.
const MOST_SENT_AT: usize = 64;

/// Messages of the SDKs of others.
pub fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(collect_messages))
        // As `analytics-java` writes it.
        .route("/v1/compat/v1/{kind}/", post(collect_messages))
        .routes(routes!(collect_batch))
        .routes(routes!(collect_beacon))
}

/// What the tracking protocol's clients send: a message, or a batch of messages. Further members are let be.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CollectionRequest {
    /// The key, where it is not the user name of basic authentication.
    write_key: Option<String>,
    /// Of a batch: 1 to 8,192 messages, each with its `type`.
    batch: Option<Vec<CollectionMessage>>,
    /// The message, where it is no batch.
    #[serde(flatten)]
    message: CollectionMessage,
}

/// A message of the tracking protocol. Further members are let be.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CollectionMessage {
    /// `track`, `identify`, `page`, `screen`, `alias` or `group`; of a message that is no batch the path says it.
    r#type: Option<String>,
    /// Its id, by which it is taken once however often it is sent.
    message_id: Option<String>,
    /// The customer's id of the person.
    user_id: Option<String>,
    /// The id of the person's browser or device.
    anonymous_id: Option<String>,
    /// Of `alias`: the id that becomes the other one's.
    previous_id: Option<String>,
    /// Of `group`: the group.
    group_id: Option<String>,
    /// Of `track`: the event's name.
    event: Option<String>,
    /// Of `page` and `screen`: the name.
    name: Option<String>,
    /// Of `page` and `screen`: the category.
    category: Option<String>,
    /// When it happened.
    timestamp: Option<String>,
    /// When it happened by the client's clock, where `timestamp` is corrected.
    original_timestamp: Option<String>,
    /// When it was sent, by the client's clock; corrects timestamps.
    sent_at: Option<String>,
    /// Of `track`, `page` and `screen`: the event's properties.
    #[schema(value_type = Option<Object>)]
    properties: Option<serde_json::Map<String, serde_json::Value>>,
    /// Of `identify` and `group`: what is known of the person or the group.
    #[schema(value_type = Option<Object>)]
    traits: Option<serde_json::Map<String, serde_json::Value>>,
    /// Where it happened.
    context: Option<CollectionContext>,
}

/// Where a message of the tracking protocol comes from. Further members are let be.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CollectionContext {
    /// The app: its name and version.
    app: Option<CollectionContextPart>,
    /// The device: its id and type.
    device: Option<CollectionContextPart>,
    /// The operating system: its name and version.
    os: Option<CollectionContextPart>,
    /// The client: its name and version.
    library: Option<CollectionContextPart>,
    /// The person's language.
    locale: Option<String>,
    /// The person's time zone, an IANA name.
    timezone: Option<String>,
    /// The page.
    #[schema(value_type = Option<Object>)]
    page: Option<serde_json::Map<String, serde_json::Value>>,
    /// What is known of the person.
    #[schema(value_type = Option<Object>)]
    traits: Option<serde_json::Map<String, serde_json::Value>>,
}

/// A part of a message's context. Further members are let be.
#[derive(Serialize, ToSchema)]
pub(crate) struct CollectionContextPart {
    /// Its id.
    id: Option<String>,
    /// Its type.
    r#type: Option<String>,
    /// Its name.
    name: Option<String>,
    /// Its version.
    version: Option<String>,
}

/// All messages are taken.
#[derive(Debug, Serialize, ToSchema)]
pub struct CollectedView {
    success: bool,
}

/// A request with its key and its body.
pub struct Call {
    key: AppKey,
    caller: Stranger,
    notes: Notes,
    mark: Mark,
    text: String,
}

/// The key of a body.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Keyed<'a> {
    #[serde(borrow)]
    write_key: Option<Text<'a>>,
}

/// A batch as it comes.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BatchWire<'a> {
    #[serde(borrow)]
    batch: Option<Few<&'a RawValue, MOST_MESSAGES>>,
    #[serde(borrow)]
    sent_at: Option<&'a RawValue>,
    #[serde(borrow)]
    context: Option<&'a RawValue>,
}

impl FromRequest<Shared> for Call {
    type Rejection = ApiError;

    async fn from_request(request: Request, services: &Shared) -> Result<Self, ApiError> {
        let (mut parts, body) = request.into_parts();
        let named = collection_key(&parts)?;
        let key = match &named {
            Some(text) => Some(AppKey::of_text(&parts, services, text).await?),
            None => None,
        };
        let Ok(mark) = Mark::from_request_parts(&mut parts, services).await;
        let Ok(caller) = Stranger::from_request_parts(&mut parts, services).await;
        let request = Request::from_parts(parts.clone(), body);
        let text = PlainJsonText::from_request(request, services).await;
        if key.is_none() && text.is_err() {
            // Who is nobody learns nothing of what is wrong with the body.
            return Err(ApiError::new(Code::InvalidCredentials));
        }
        let PlainJsonText(text) = text?;
        let inside: Option<Keyed<'_>> = body::parse_good(&text);
        let inside = inside.and_then(|keyed| keyed.write_key);
        let notes = Notes::of(&parts.extensions);
        let key = match (key, named, inside) {
            (Some(_), Some(named), Some(inside)) if *named != *inside => {
                return Err(ApiError::new(Code::CredentialConflict));
            }
            (Some(key), ..) => key,
            (None, _, Some(inside)) => {
                let key = AppKey::of_text(&parts, services, &inside).await?;
                notes.count_bytes(text.len())?;
                key
            }
            (None, _, None) => return Err(ApiError::new(Code::InvalidCredentials)),
        };
        if key.key.kind != Kind::Write {
            key.require_scope(services, key::EVENTS_WRITE)?;
        }
        Ok(Self {
            key,
            caller,
            notes,
            mark,
            text,
        })
    }
}

/// The key of a beacon.
#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
struct BeaconQuery {
    /// A public write key.
    write_key: Option<String>,
}

/// A beacon with its key and its body.
pub struct BeaconCall(Call);

impl FromRequest<Shared> for BeaconCall {
    type Rejection = ApiError;

    async fn from_request(request: Request, services: &Shared) -> Result<Self, ApiError> {
        let (mut parts, body) = request.into_parts();
        let Params(query) = Params::<BeaconQuery>::from_request_parts(&mut parts, services).await?;
        if let Some(key) = query.write_key {
            let key =
                HeaderValue::try_from(key).map_err(|_| ApiError::new(Code::InvalidCredentials))?;
            let other = parts.headers.insert(WRITE_KEY, key.clone());
            if other.is_some_and(|other| other != key) {
                return Err(ApiError::new(Code::CredentialConflict));
            }
        }
        let call = Call::from_request(Request::from_parts(parts, body), services).await?;
        call.key.require_kind(services, Kind::Write)?;
        Ok(Self(call))
    }
}

/// Takes messages of the tracking protocol that Segment's and `RudderStack`'s clients speak: their host is this server's URL
/// with `/v1/compat`. `kind` is track, identify, page, screen, alias, group or batch, or the first letter of one; some clients call
/// a batch import. With a public write key, only what is anonymous is taken, unless the app has `settings.ingest.allowUnverifiedServerEvents`.
#[utoipa::path(post, path = "/v1/compat/v1/{kind}", tag = "sdk", params(("kind" = String, Path)),
    request_body = CollectionRequest, responses((status = 200, body = CollectedView)))]
pub async fn collect_messages(
    ResourceName(kind): ResourceName,
    State(services): State<Shared>,
    call: Call,
) -> Result<axum::Json<CollectedView>, ApiError> {
    let kind = MessageKind::parse(&kind).ok_or_else(|| ApiError::new(Code::NotFound))?;
    collect(&services, &call, kind).await
}

/// Takes a batch of messages from clients that drop the path of their host, as `@segment/analytics-node` does.
#[utoipa::path(post, path = "/v1/batch", tag = "sdk", request_body = CollectionRequest,
    responses((status = 200, body = CollectedView)))]
pub async fn collect_batch(
    State(services): State<Shared>,
    call: Call,
) -> Result<axum::Json<CollectedView>, ApiError> {
    collect(&services, &call, MessageKind::Batch).await
}

/// Takes a batch of a page that goes away, as `RudderStack`'s client for browsers sends it with `useBeacon`. A beacon has no
/// headers of its own, so its key is in the URL, where only a public write key may be.
#[utoipa::path(post, path = "/v1/compat/beacon/v1/batch", tag = "sdk", params(BeaconQuery), request_body = CollectionRequest,
    responses((status = 200, body = CollectedView)))]
pub async fn collect_beacon(
    State(services): State<Shared>,
    BeaconCall(call): BeaconCall,
) -> Result<axum::Json<CollectedView>, ApiError> {
    collect(&services, &call, MessageKind::Batch).await
}

async fn collect(
    services: &Shared,
    call: &Call,
    kind: MessageKind,
) -> Result<axum::Json<CollectedView>, ApiError> {
    let app = &call.key.app;
    let of_server = call.key.key.kind != Kind::Write;
    let collection = Collection {
        services,
        app,
        caller: &call.caller,
        notes: &call.notes,
        mark: call.mark,
        trust: match app.settings.ingest.allow_unverified_server_events {
            _ if of_server => Trust::Server,
            true => Trust::Unverified,
            false => Trust::Anonymous,
        },
        received_at: services.clock.now(),
    };
    let source = if of_server {
        Source::Server
    } else {
        Source::Sdk
    };
    let common = Common {
        app_id: app.id,
        origin: Arc::new(message::common_origin(None, source)),
        sent_at: None,
        received_at: collection.received_at,
    };
    let (messages, mut refused) = read(&call.text, kind, &common).map_err(rejected)?;
    let never_gives_up = messages.iter().any(Message::never_gives_up);
    let taken = collection.take(messages).await.map_err(rejected);
    // What can't be committed is 503, whatever the reason (contract 3).
    refused.extend(taken.map_err(ApiError::may_be_repeated)?);
    let codes: BTreeSet<&str> = refused.iter().map(|one| &*one.error.code).collect();
    if refused.iter().any(|one| one.retryable) {
        // All is sent again then, and what was taken changes nothing.
        let cause = anyhow::anyhow!("messages could not be taken yet: {codes:?}");
        return Err(ApiError::unavailable(cause));
    }
    if refused.is_empty() {
        return Ok(axum::Json(CollectedView { success: true }));
    }
    if never_gives_up {
        // Nothing else would ever come from there. The feed shows refused events; of the rest there is this line.
        let count = refused.len();
        tracing::info!(app.id = %app.id, count, ?codes, "messages were refused of a client that never gives up");
        return Ok(axum::Json(CollectedView { success: true }));
    }
    refused.sort_by_key(|one| one.index);
    refused.truncate(MOST_EVENTS);
    let errors = refused.into_iter().map(|one| one.error).collect();
    Err(ApiError::fields(Code::MessagesRejected, errors))
}

/// The protocol knows one status for whatever is wrong with a request (contract 24).
fn rejected(error: ApiError) -> ApiError {
    match error.code() {
        Code::ValidationFailed => ApiError::fields(Code::MessagesRejected, error.errors().to_vec()),
        _ => error,
    }
}

/// The messages of a request, and why others can't be read.
fn read<'a>(
    text: &'a str,
    kind: MessageKind,
    common: &Common<'a>,
) -> Result<(Vec<Message<'a>>, Vec<Refused>), ApiError> {
    let mut messages = Vec::new();
    let mut refused = Vec::new();
    let mut add = |read: Result<Message<'a>, MessageError>, index| match read {
        Ok(message) => messages.push(message),
        Err(error) => refused.push(Refused {
            index,
            error,
            retryable: false,
        }),
    };
    if kind != MessageKind::Batch {
        let raw: &RawValue = body::parse_quickly(text)?;
        add(Message::read(raw, kind, (0, String::new()), common), 0);
        return Ok((messages, refused));
    }
    let wire: BatchWire<'a> = body::parse_quickly(text)?;
    let Few { items, count } = wire.batch.unwrap_or_default();
    if count == 0 || count > MOST_MESSAGES {
        let detail = format!("batch must have 1 to {MOST_MESSAGES} messages");
        return Err(ApiError::field("/batch", "out_of_range", detail));
    }
    let origin = message::common_origin(wire.context, common.origin.source);
    let is_short = |raw: &&RawValue| raw.get().len() <= MOST_SENT_AT;
    let common = Common {
        origin: Arc::new(origin),
        sent_at: wire.sent_at.filter(is_short),
        ..*common
    };
    for (index, raw) in items.into_iter().enumerate() {
        let place = (index, format!("/batch/{index}"));
        add(Message::read(raw, kind, place, &common), index);
    }
    Ok((messages, refused))
}
