//! Dead letters as they are read.

use std::sync::Arc;

use nudge_db::{Error, Result, Timestamp};
use uuid::Uuid;

use super::FoundLetter;
use crate::dead_letters::{Letter, PluginVersion, Stage};
use crate::events::Origin;
use crate::scheduled_work::DueTimer;

/// All of an app.
pub(super) const LETTERS: &str =
    "SELECT d.id, d.app_id, d.alias_number, d.event_id, d.event_name, d.stage, d.reason, d.violations,
            d.detail, d.plugin_name, d.plugin_version, d.campaign_id, d.event, d.timestamp, d.client_timestamp,
            d.received_at, d.origin, d.attempts, d.session_number, d.opens_session, d.timer_id, d.timer_key,
            d.timer_payload, d.timer_due_at, d.timer_last_seq, a.subject_id, a.kind, a.value
     FROM dead_letters d JOIN aliases a ON a.number = d.alias_number
     WHERE d.app_id = $1";

/// A row of [`LETTERS`].
#[derive(nudge_db::FromRow)]
pub(super) struct Row {
    id: Uuid,
    app_id: Uuid,
    alias_number: i64,
    event_id: Uuid,
    event_name: String,
    stage: String,
    reason: String,
    detail: Option<String>,
    violations: String,
    plugin_name: Option<String>,
    plugin_version: Option<String>,
    campaign_id: Option<Uuid>,
    event: String,
    timestamp: Timestamp,
    client_timestamp: Option<Timestamp>,
    received_at: Timestamp,
    origin: Option<String>,
    attempts: i64,
    session_number: Option<i64>,
    opens_session: Option<i64>,
    #[sqlx(flatten)]
    timer: TimerColumns,
    subject_id: Uuid,
    kind: String,
    value: String,
}

#[derive(nudge_db::FromRow)]
#[expect(clippy::struct_field_names, reason = "they are the columns' names")]
struct TimerColumns {
    timer_id: Option<Uuid>,
    timer_key: Option<String>,
    timer_payload: Option<Vec<u8>>,
    timer_due_at: Option<Timestamp>,
    timer_last_seq: Option<i64>,
}

impl TimerColumns {
    /// The timer of a campaign's letter, if it is about one. `plugin` has set it.
    fn read(self, campaign_id: Option<Uuid>, plugin: Option<String>) -> Option<DueTimer> {
        Some(DueTimer {
            id: self.timer_id?,
            campaign_id: campaign_id?,
            key: self.timer_key?,
            plugin,
            payload: self.timer_payload?,
            due_at: self.timer_due_at?,
            last_seq: self.timer_last_seq,
        })
    }
}

impl Row {
    pub(super) fn read(self) -> Result<FoundLetter> {
        let stage = Stage::parse(&self.stage)
            .ok_or_else(|| Error::corrupt("dead_letters", "stage", &self.stage))?;
        let violations = serde_json::from_str(&self.violations)
            .map_err(|cause| Error::corrupt("dead_letters", "violations", cause))?;
        let origin = self.origin.as_deref().map(serde_json::from_str);
        let origin: Option<Origin> = origin
            .transpose()
            .map_err(|cause| Error::corrupt("dead_letters", "origin", cause))?;
        // A plugin fails on no timer but its own.
        let decider = self.plugin_name.clone();
        let decider = decider.filter(|_| stage == Stage::Trigger);
        let plugin = self
            .plugin_name
            .zip(self.plugin_version)
            .map(|(name, version)| PluginVersion { name, version });
        Ok(FoundLetter {
            letter: Letter {
                id: self.id,
                app_id: self.app_id,
                alias: self.alias_number,
                event_id: self.event_id,
                event_name: self.event_name,
                stage,
                reason: self.reason,
                detail: self.detail,
                violations,
                plugin,
                campaign_id: self.campaign_id,
                event: self.event,
                timestamp: self.timestamp,
                client_timestamp: self.client_timestamp,
                received_at: self.received_at,
                origin: Arc::new(origin.unwrap_or_default()),
                attempts: self.attempts,
                session: self.session_number,
                opens_session: self.opens_session == Some(1),
                timer: self.timer.read(self.campaign_id, decider),
            },
            subject_id: self.subject_id,
            anonymous_id: (self.kind == "anonymous").then_some(self.value),
        })
    }
}
