//! A request's events on their way into the database.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use nudge_apps::App;
use nudge_campaigns::settings;
use nudge_db::Timestamp;
use nudge_http::ApiError;
use nudge_records::dead_letters::Letter;
use nudge_records::events::{Event, Origin, removed};
use nudge_records::rejected::RejectedEvent;
use nudge_records::subjects::current::Claims;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::rejected::Said;
use crate::{body, event};

const DAY: Duration = Duration::from_hours(24);

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
    /// What is kept of events that were refused.
    pub rejected: Vec<RejectedEvent>,
    /// Dead letters that this submission replays.
    pub replays: Vec<Uuid>,
    /// Whether the caller waits for instructions.
    pub wants_instructions: bool,
}

impl Submission {
    /// The ids of its events, those that broke their definition among them.
    pub fn event_ids(&self) -> impl Iterator<Item = Uuid> {
        let letters = self.letters.iter().map(|letter| letter.event_id);
        self.events.iter().map(|event| event.id).chain(letters)
    }

    /// Those of them that the app may have had before, and removed.
    pub fn old_event_ids(&self) -> impl Iterator<Item = Uuid> {
        let settings = &self.app.settings;
        let days = settings.retention.events_days;
        let kept = days.map(|days| DAY * u32::try_from(days).unwrap_or(u32::MAX));
        let ahead = u64::try_from(settings.ingest.future_window_seconds).unwrap_or(0);
        let until = removed::may_be_until(self.received_at, kept, Duration::from_secs(ahead));
        let letters = self.letters.iter().filter(move |it| it.timestamp <= until);
        let events = self.events.iter().filter(move |it| it.timestamp <= until);
        events
            .map(|event| event.id)
            .chain(letters.map(|letter| letter.event_id))
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
        events_after: None,
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
    /// What the event said, for the feed.
    #[serde(skip)]
    pub said: Option<Box<Said>>,
}

/// The codes of events that are rejected while others of their request may be accepted, and what each means.
pub const EVENT_CODES: [(&str, &str); 12] = [
    ("invalid_event_id", "The event's id is no UUID."),
    (
        "duplicate_event_id_in_batch",
        "An event before it in the request has its id.",
    ),
    (
        "invalid_name",
        "The event's name is missing, too long or reserved.",
    ),
    (
        "invalid_timestamp",
        "The event's timestamp is missing or no instant.",
    ),
    (
        "timestamp_out_of_window",
        "The event is older or newer than `settings.ingest` allows.",
    ),
    (
        "external_id_mismatch",
        "The event names another user than the request.",
    ),
    (
        "invalid_properties",
        "The event's properties are no object, or have something that can't be stored.",
    ),
    ("event_too_large", "The event is over 64 KiB."),
    (
        "schema_violation",
        "The event breaks its definition; it is kept as a dead letter.",
    ),
    (
        "consent_missing",
        "The user has not given the consent that storing the event takes.",
    ),
    (
        "plugin_unavailable",
        "The plugin that checks events could not tell; the same event may be accepted later.",
    ),
    (
        "suppressed_subject",
        "The user was deleted; nothing of before is taken.",
    ),
];

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
    pub fn is_about_content(&self) -> bool {
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
            said: None,
        }
    }

    /// The same, with what the event said.
    #[must_use]
    pub(crate) fn saying(self, said: Said) -> Self {
        Self {
            said: Some(Box::new(said)),
            ..self
        }
    }
}
