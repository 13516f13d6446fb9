//! Ingest: a request's events are parsed, checked, validated, and committed together with those of
//! other requests.

pub mod canonical;
pub mod insert;
pub mod properties;
pub mod removed;
pub mod store;

use std::sync::Arc;
use strum::IntoStaticStr;

use nudge_db::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// An event by its alias's number and its id.
pub type Key = (i64, Uuid);

/// An event that something follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRef {
    /// The number of the alias that it came under.
    pub alias: i64,
    /// Its number.
    pub seq: i64,
    /// Its id.
    pub id: Uuid,
}

pub use self::MOST_BYTES as MOST_EVENT_BYTES;
pub use self::properties::MOST_PROPERTIES;

/// Events of one request at the most (specification 8).
pub const MOST_EVENTS: usize = 500;

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
    /// What the SDK calls its session. Kept with the request, not with its events.
    #[serde(default)]
    pub session_id: Option<String>,
    /// Who sent it: `sdk` or `server`.
    pub source: Source,
}

/// Who sent an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
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
        self.into()
    }
}

/// Whether a text can be an event's properties; says what is wrong with it.
pub fn check_properties(text: &str) -> Result<(), String> {
    if text.len() > MOST_BYTES {
        return Err(format!("an event has at most {MOST_BYTES} bytes"));
    }
    properties::check(text)
}

/// The largest event, in bytes of JSON (contract 15).
pub const MOST_BYTES: usize = 64 * 1024;

/// The longest name, in characters (contract 15).
const MOST_NAME: usize = 200;

/// An event that passed every check that needs no definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its id: the client's, or derived from its content.
    pub id: Uuid,
    /// What happened.
    pub name: Arc<str>,
    /// When, by the client's clock, corrected.
    pub timestamp: Timestamp,
    /// When, by the client's clock, where that was corrected.
    pub client_timestamp: Option<Timestamp>,
    /// Its properties: the text of a JSON object.
    pub properties: Arc<str>,
}

/// Whether a text can be an event's name: 1 to 200 characters, none of them control characters.
pub fn is_name(text: &str) -> bool {
    let length = text.chars().count();
    (1..=MOST_NAME).contains(&length) && !text.chars().any(char::is_control)
}
