//! What an app can set (contract 13).

use serde::{Deserialize, Serialize};

const DAY_SECONDS: i64 = 24 * 3600;

/// An app's settings. Missing parts have their defaults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// What ingest takes.
    pub ingest: Ingest,
    /// Whether consent must be given before anything is stored or shown.
    pub consent: Consent,
    /// What happens when plugins fail.
    pub plugins: Plugins,
}

/// Settings of ingest.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Consent {
    /// Whether consent counts as absent until it is given.
    pub required: bool,
}

/// Settings of plugins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValidationFailure {
    /// They are rejected and can be sent again.
    #[default]
    Closed,
    /// They are accepted unchecked.
    Open,
}
