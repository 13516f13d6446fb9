//! When and why a version of a plugin was rolled back.

use nudge_db::Timestamp;
use nudge_platform::clock;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A roll-back, as it is stored with the plugin and told to people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rollback {
    /// When.
    pub at: String,
    /// The version that was rolled back.
    pub version: String,
    /// What it was: `active` or `candidate`.
    pub role: String,
    /// The version that decides since; none: the plugin decides nothing.
    pub active_version: Option<String>,
    /// Whether the server did it by itself.
    pub automatic: bool,
    /// Why, in a sentence.
    pub reason: String,
    /// How the version failed, where that was the reason.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub failing: Option<FailureRate>,
}

/// How often a version failed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureRate {
    /// Calls.
    pub calls: i64,
    /// Those that failed.
    pub failures: i64,
    /// Their share, 0 to 1.
    pub failure_rate: f64,
    /// The share that may fail: `settings.plugins.maxFailureRate`.
    pub max_failure_rate: f64,
}

impl FailureRate {
    /// The same in a sentence.
    pub fn sentence(&self) -> String {
        format!(
            "{} of {} calls failed, a share of {:.3}; {} may",
            self.failures, self.calls, self.failure_rate, self.max_failure_rate
        )
    }
}

impl Rollback {
    /// One that the server did by itself.
    pub fn automatic(
        at: Timestamp,
        version: &str,
        role: &str,
        active_version: Option<String>,
        failing: FailureRate,
    ) -> Self {
        Self {
            reason: failing.sentence(),
            automatic: true,
            failing: Some(failing),
            ..Self::requested(at, version, role, active_version)
        }
    }

    /// One that somebody asked for.
    pub fn requested(
        at: Timestamp,
        version: &str,
        role: &str,
        active_version: Option<String>,
    ) -> Self {
        Self {
            at: clock::to_text(at),
            version: version.to_owned(),
            role: role.to_owned(),
            active_version,
            automatic: false,
            reason: "somebody asked for it".to_owned(),
            failing: None,
        }
    }
}
