//! What an app can set (contract 13).

mod check;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Seconds of a day.
const DAY_SECONDS: i64 = 24 * 3600;

/// An app's settings. Missing parts have their defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// What ingest takes.
    pub ingest: Ingest,
    /// Whether SDKs send lifecycle events by themselves. While they should not, those that come count as accepted, and
    /// nothing else follows from them.
    pub lifecycle_events: bool,
    /// Whether consent must be given before anything is stored or shown.
    pub consent: Consent,
    /// Which properties may be stored.
    pub privacy: Privacy,
    /// How often people are asked or messaged.
    pub frequency: Frequency,
    /// When nobody is disturbed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet_hours: Option<QuietHours>,
    /// What happens when plugins fail.
    pub plugins: Plugins,
    /// The pages that may read the SDK routes' answers: origins, or `*` for all.
    pub allowed_origins: Vec<String>,
    /// How long things are kept.
    pub retention: Retention,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            ingest: Ingest::default(),
            lifecycle_events: true,
            consent: Consent::default(),
            privacy: Privacy::default(),
            frequency: Frequency::default(),
            quiet_hours: None,
            plugins: Plugins::default(),
            allowed_origins: vec!["*".to_owned()],
            retention: Retention::default(),
        }
    }
}

/// Settings of ingest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Ingest {
    /// How old an event may be.
    pub past_window_seconds: i64,
    /// How far ahead of the server's clock an event may be.
    pub future_window_seconds: i64,
    /// Whether a public write key is enough for the server-side shape.
    pub allow_unverified_server_events: bool,
}

impl Default for Ingest {
    fn default() -> Self {
        Self {
            past_window_seconds: 30 * DAY_SECONDS,
            future_window_seconds: DAY_SECONDS,
            allow_unverified_server_events: false,
        }
    }
}

/// Settings of consent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Consent {
    /// Whether consent counts as absent until it is given.
    pub required: bool,
}

/// Settings of privacy (contract 5).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Privacy {
    /// The only property keys that backends may store; without it, all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_keys: Option<Vec<String>>,
    /// Property keys that are never stored.
    pub deny_keys: Vec<String>,
}

/// How often a person is asked or messaged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Frequency {
    /// Surveys that one person sees; without it, any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub surveys: Option<Cap>,
    /// Push messages that one person gets; without it, any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub push: Option<Cap>,
    /// The pause between two presentations.
    pub min_seconds_between_presentations: i64,
}

/// A number in a window of days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cap {
    /// How many.
    pub max: i64,
    /// In how many days.
    pub window_days: i64,
}

/// Hours of the day, in the person's own time zone, in which nobody is disturbed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuietHours {
    /// Their begin, `HH:MM`.
    pub from: String,
    /// Their end, `HH:MM`; the next day's where it is not after the begin.
    pub to: String,
    /// What becomes of a message that falls into them.
    pub on_quiet: OnQuiet,
}

/// What becomes of a message in quiet hours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnQuiet {
    /// It waits for their end.
    Defer,
    /// It is not sent.
    Drop,
}

/// Settings of plugins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Plugins {
    /// The share of calls, 0 to 1, that a candidate or a version activated a short while ago may fail before it
    /// is rolled back.
    pub max_failure_rate: f64,
    /// What becomes of events while the validation plugin fails.
    pub validation_failure: ValidationFailure,
}

impl Default for Plugins {
    fn default() -> Self {
        Self {
            // Half of the calls: a plugin that fails on some odd events is better than none, one that fails on
            // most is broken.
            max_failure_rate: 0.5,
            validation_failure: ValidationFailure::default(),
        }
    }
}

/// What becomes of events while the validation plugin fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ValidationFailure {
    /// They are rejected and can be sent again.
    #[default]
    Closed,
    /// They are accepted unchecked.
    Open,
}

/// How long things are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Retention {
    /// Days after its timestamp that an event is kept; without it, for ever.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events_days: Option<i64>,
    /// Days after its receipt that a dead letter is kept.
    pub dead_letters_days: i64,
    /// Days after it was queued that a push delivery is kept; without it, 90.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deliveries_days: Option<i64>,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            events_days: None,
            dead_letters_days: 30,
            deliveries_days: None,
        }
    }
}

impl Settings {
    /// Settings in which nothing that can be absent is: its keys are all keys.
    pub fn with_everything() -> Self {
        let cap = Some(Cap {
            max: 1,
            window_days: 1,
        });
        let mut every = Self::default();
        every.privacy.allow_keys = Some(Vec::new());
        every.frequency.surveys = cap;
        every.frequency.push = cap;
        every.quiet_hours = Some(QuietHours {
            from: String::new(),
            to: String::new(),
            on_quiet: OnQuiet::Defer,
        });
        every.retention.events_days = Some(1);
        every.retention.deliveries_days = Some(1);
        every
    }
}
