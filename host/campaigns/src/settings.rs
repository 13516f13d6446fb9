//! What an app can set (contract 13).

mod check;

use std::time::Duration;

use nudge_platform::config;
use nudge_wasm::Lowered;
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
    /// What happens when plugins fail, and what they may use.
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

impl Consent {
    /// Whether consent counts as given. `given` is what the person said; none: nothing yet.
    pub fn grants(&self, given: Option<bool>) -> bool {
        given.unwrap_or(!self.required)
    }
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
    /// In-app messages that one person sees; without it, any number.
    #[serde(rename = "in_app", skip_serializing_if = "Option::is_none")]
    pub in_app: Option<Cap>,
    /// The pause between two presentations, surveys or in-app messages, that one person sees.
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
    /// It waits for their end, and where that lies outside of `daysOfWeek` or `timeWindows` for the next one.
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
    /// Memory of a call in bytes, where it is to be less than the server allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<i64>,
    /// Wall-clock time of a call of a trigger or personalization plugin in milliseconds, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<i64>,
    /// Wall-clock time of a call of a validation plugin in milliseconds, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation_deadline_ms: Option<i64>,
    /// What a call may give to the host in bytes, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<i64>,
    /// What is kept of a call's log in bytes, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_bytes: Option<i64>,
    /// Host functions that a call may call before the allowance for each item and campaign, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_calls: Option<i64>,
}

impl Plugins {
    /// What the app allows less of than the server.
    pub fn lowered(&self) -> Lowered {
        let bytes = |given: Option<i64>| given.and_then(|given| usize::try_from(given).ok());
        let time = |given: Option<i64>| {
            let given = given.and_then(|given| u64::try_from(given).ok());
            given.map(Duration::from_millis)
        };
        Lowered {
            memory_bytes: bytes(self.memory_bytes),
            deadline: time(self.deadline_ms),
            validation_deadline: time(self.validation_deadline_ms),
            output_bytes: bytes(self.output_bytes),
            log_bytes: bytes(self.log_bytes),
            host_calls: self.host_calls.and_then(|given| u32::try_from(given).ok()),
        }
    }

    /// What the server allows, as an app could set it.
    fn of_server(config: &config::Plugins) -> Self {
        let whole = |limit: usize| Some(i64::try_from(limit).unwrap_or(i64::MAX));
        let time = |limit: u64| Some(i64::try_from(limit).unwrap_or(i64::MAX));
        Self {
            memory_bytes: whole(config.memory_bytes),
            deadline_ms: time(config.deadline_ms),
            validation_deadline_ms: time(config.validation_deadline_ms),
            output_bytes: whole(config.output_bytes),
            log_bytes: whole(config.log_bytes),
            host_calls: Some(config.host_calls.into()),
            ..Self::default()
        }
    }

    /// The limits by name, each with the least that makes sense.
    fn limits(&self) -> [(&'static str, Option<i64>, i64); 6] {
        [
            ("memoryBytes", self.memory_bytes, 1 << 20),
            ("deadlineMs", self.deadline_ms, 1),
            ("validationDeadlineMs", self.validation_deadline_ms, 1),
            ("outputBytes", self.output_bytes, 1 << 10),
            ("logBytes", self.log_bytes, 0),
            ("hostCalls", self.host_calls, 0),
        ]
    }
}

impl Default for Plugins {
    fn default() -> Self {
        Self {
            // Half of the calls: a plugin that fails on some odd events is better than none, one that fails on
            // most is broken.
            max_failure_rate: 0.5,
            validation_failure: ValidationFailure::default(),
            memory_bytes: None,
            deadline_ms: None,
            validation_deadline_ms: None,
            output_bytes: None,
            log_bytes: None,
            host_calls: None,
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
    /// Days after its receipt that an event is kept; without it, for ever.
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
        every.frequency.in_app = cap;
        every.quiet_hours = Some(QuietHours {
            from: String::new(),
            to: String::new(),
            on_quiet: OnQuiet::Defer,
        });
        let plugins = &mut every.plugins;
        for limit in [
            &mut plugins.memory_bytes,
            &mut plugins.deadline_ms,
            &mut plugins.validation_deadline_ms,
            &mut plugins.output_bytes,
            &mut plugins.log_bytes,
            &mut plugins.host_calls,
        ] {
            *limit = Some(1);
        }
        every.retention.events_days = Some(1);
        every.retention.deliveries_days = Some(1);
        every
    }
}
