//! Ingest: a request's events are parsed, checked, validated, and committed together with those of
//! other requests.

mod body;
mod canonical;
pub mod commit;
pub mod event;
pub mod http;
pub mod insert;
pub mod kept;
mod properties;
mod schema;
pub mod store;
pub mod together;
mod trials;
pub mod validation;

use std::collections::HashSet;
use std::sync::Arc;

use nudge_db::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::apps::{App, settings};
use crate::dead_letters::Letter;
use crate::http::ApiError;
use crate::subjects::current::Claims;
pub use event::{Event, MOST_BYTES as MOST_EVENT_BYTES};

/// Events of one request at the most (specification 8).
pub const MOST_EVENTS: usize = 500;

/// Whether an event's name is the server's own: no client can send it.
pub fn is_reserved(name: &str) -> bool {
    [
        crate::properties::PROPERTY_CHANGED,
        crate::pipeline::occasions::SCHEDULED,
        crate::pipeline::SESSION_BEGAN,
    ]
    .contains(&name)
}

/// Each request owns this many event numbers, see [`store`].
pub const SEQ_BLOCK: i64 = 512;

/// What a request says about all its events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    /// Such as `ios`.
    pub platform: Option<String>,
    /// The app's version.
    pub app_version: Option<String>,
    /// Language and region.
    pub locale: Option<String>,
    /// IANA time zone.
    pub timezone: Option<String>,
    /// The device, as its SDK calls it. Kept with the request, not with its events.
    pub device_id: Option<String>,
    /// The SDK's version. Kept with the request, not with its events.
    pub sdk_version: Option<String>,
    /// Who sent it: `sdk` or `server`.
    pub source: Source,
}

/// What SDKs send by themselves while the app's lifecycle toggle is on (specification 6.1).
const LIFECYCLE: [&str; 4] = [
    "app_installed",
    "app_opened",
    SESSION_STARTED,
    SESSION_ENDED,
];
/// The SDK says that a session began.
pub const SESSION_STARTED: &str = "session_started";
/// The SDK says that a session is over.
pub const SESSION_ENDED: &str = "session_ended";

/// Whether events of a name are those that SDKs send by themselves.
pub fn is_lifecycle(name: &str) -> bool {
    LIFECYCLE.contains(&name)
}

/// Who sent an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// An SDK, for its subject.
    #[default]
    Sdk,
    /// A server of the customer's.
    Server,
}

impl Source {
    /// The name in the API and the database.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sdk => "sdk",
            Self::Server => "server",
        }
    }
}

/// A request's events on their way into the database.
#[derive(Clone, Debug)]
pub struct Submission {
    /// The app.
    pub app: Arc<App>,
    /// Whose events they are.
    pub alias: i64,
    /// What the caller's token claims; none for servers.
    pub claims: Option<Claims>,
    /// What the request says about all of them.
    pub origin: Arc<Origin>,
    /// When the request arrived.
    pub received_at: Timestamp,
    /// Events that passed every check.
    pub events: Vec<Arc<Event>>,
    /// Events that broke their definition.
    pub letters: Vec<Letter>,
    /// Events among `events` that break a definition which only observes.
    pub observed: HashSet<Uuid>,
    /// Dead letters that this submission replays.
    pub replays: Vec<Uuid>,
    /// Whether the caller waits for instructions.
    pub wants_instructions: bool,
}

impl Submission {
    /// The ids of its events, those that broke their definition among them.
    fn event_ids(&self) -> impl Iterator<Item = Uuid> {
        let letters = self.letters.iter().map(|letter| letter.event_id);
        self.events.iter().map(|event| event.id).chain(letters)
    }
}

/// What became of a request's events.
#[derive(Debug)]
pub struct Examined {
    /// Those that passed, each with its place in the request.
    pub events: Vec<(usize, Event)>,
    /// The others.
    pub rejections: Vec<Rejection>,
}

/// Parses a request and checks its events as the route does, for anybody, and looks nothing up. What meets
/// hostile bytes first can so be tried without a server.
pub fn examine(
    text: &str,
    settings: &settings::Ingest,
    received_at: Timestamp,
) -> Result<Examined, ApiError> {
    let (body, events) = body::Body::parse(text)?;
    body.delivery()?;
    let context = body.context.as_ref();
    let rules = event::Rules {
        app_id: Uuid::nil(),
        alias: 0,
        mismatch: None,
        anonymous_id: context.and_then(|context| context.anonymous_id.as_deref()),
        external_id: context.and_then(|context| context.external_id.as_deref()),
        settings,
        received_at,
        skew: event::skew(body.sent_at(), received_at),
    };
    let (events, rejections) = event::check_all(events, &rules);
    Ok(Examined { events, rejections })
}

/// Why one event was rejected.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rejection {
    /// Its place in the request.
    pub index: usize,
    /// Its id, where it has a usable one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_id: Option<Uuid>,
    /// A stable reason.
    pub code: &'static str,
    /// A sentence for a person.
    pub message: String,
    /// Whether the same event may be accepted later.
    pub retryable: bool,
    /// Where it is kept, if it broke its definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead_letter_id: Option<Uuid>,
}

/// Reasons that have to do with what an event says, or with a plugin that could not tell.
const ABOUT_CONTENT: [&str; 6] = [
    "event_too_large",
    "invalid_name",
    "invalid_properties",
    "invalid_timestamp",
    "plugin_unavailable",
    "timestamp_out_of_window",
];

impl Rejection {
    /// Whether the event could be one that is there already, sent again.
    fn is_about_content(&self) -> bool {
        ABOUT_CONTENT.contains(&self.code)
    }

    /// A rejection that sending again does not change.
    pub fn new(
        index: usize,
        event_id: Option<Uuid>,
        code: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self {
            index,
            event_id,
            code,
            message: message.into(),
            retryable: false,
            dead_letter_id: None,
        }
    }
}

/// Whether a text can be an event's properties; says what is wrong with it.
pub fn check_properties(text: &str) -> Result<(), String> {
    if text.len() > event::MOST_BYTES {
        return Err(format!("an event has at most {} bytes", event::MOST_BYTES));
    }
    properties::check(text)
}
