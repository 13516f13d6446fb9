//! Comparisons as the API shows them.

use nudge_platform::clock;
use nudge_plugin_runtime::shadow::store::{DifferenceRow, Row};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

/// What a shadow candidate would have decided, against what the active version did, since its trial began.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct ShadowView {
    /// Since when it is tried.
    since: String,
    /// Batches that both were shown.
    calls: i64,
    /// Decisions that are the same. Each decision counts once: here, or as `added`, `removed`, `changed` or `failed`.
    same: i64,
    /// Only the candidate fires, sets a timer that would come due, finds a violation, or makes a message.
    added: i64,
    /// Only the active version does.
    removed: i64,
    /// Other violations, states, timers or values; or the active version failed, and the candidate did not.
    changed: i64,
    /// Decisions that the candidate failed on.
    failed: i64,
    /// Batches that the candidate was not shown, for want of time.
    skipped: i64,
    /// The first differences, at most 100.
    samples: Vec<DifferenceView>,
}

/// A difference.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DifferenceView {
    /// Whose event it is.
    subject_id: Uuid,
    event_id: Uuid,
    /// The campaign that was decided; without one, the event's definition was.
    #[serde(skip_serializing_if = "Option::is_none")]
    campaign_id: Option<Uuid>,
    /// `added`, `removed`, `violations`, `state`, `timer`, `timer_added`, `timer_removed`, `content`, `failed` or `recovered`.
    difference: String,
    /// What the active version left or said.
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<Value>,
    /// What the candidate would have left or said.
    #[serde(skip_serializing_if = "Option::is_none")]
    new: Option<Value>,
    at: String,
}

impl ShadowView {
    pub(crate) fn of(row: &Row, differences: Vec<DifferenceRow>) -> Self {
        // What is stored was JSON when it was written.
        let value = |text: Option<String>| serde_json::from_str(&text?).ok();
        let sample = |difference: DifferenceRow| DifferenceView {
            subject_id: difference.subject_id,
            event_id: difference.event_id,
            campaign_id: difference.campaign_id,
            difference: difference.difference,
            old: value(difference.old_value),
            new: value(difference.new_value),
            at: clock::to_text(difference.at),
        };
        Self {
            since: clock::to_text(row.since),
            calls: row.calls,
            same: row.same,
            added: row.added,
            removed: row.removed,
            changed: row.changed,
            failed: row.failed,
            skipped: row.skipped,
            samples: differences.into_iter().map(sample).collect(),
        }
    }
}
