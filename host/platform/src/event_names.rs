//! Names of events that the server or the SDKs give.

/// Whether an event's name is the server's own: no client can send it.
pub fn is_reserved(name: &str) -> bool {
    [PROPERTY_CHANGED, SCHEDULED, SESSION_BEGAN, TRANSACTIONAL].contains(&name)
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

/// The name of the event that stands for a campaign's own occasion. No client can send it.
pub const SCHEDULED: &str = "$scheduled";

/// What a dead letter names in the place of an event where a backend asked for the message. No client can send it.
pub const TRANSACTIONAL: &str = "$transactional";

/// What plugins read to hear of the beginning of each session: the event that it begins with, once more, under this
/// name. No client can send one.
pub const SESSION_BEGAN: &str = "$session_began";

/// What the event of a changed property is called. No client can send one.
pub const PROPERTY_CHANGED: &str = "$property_changed";
