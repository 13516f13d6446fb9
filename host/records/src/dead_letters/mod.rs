//! Dead letters: events that broke their definition, or that a plugin failed on. Nothing is lost.

mod announcement;
pub mod replay;
pub mod store;
pub mod violation;

use std::sync::Arc;
use strum::{EnumString, IntoStaticStr};

use nudge_db::{Error, Result, Timestamp};
use nudge_platform::{clock, id, secrets};
use nudge_wasm::Description;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::dead_letters::violation::Violation;
use crate::events::{Event, Origin};
use crate::scheduled_work::DueTimer;

pub use announcement::announce;

/// Where an event failed.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema, EnumString, IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Stage {
    /// It broke its definition and was not accepted.
    Validation,
    /// It was accepted; the trigger plugin failed on it.
    Trigger,
    /// It was accepted; the personalization plugin failed on it.
    Personalization,
}

impl Stage {
    /// The stage's name in the API and the database.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The stage of this name.
    pub fn parse(name: &str) -> Option<Self> {
        name.parse().ok()
    }
}

/// Counts events that have become dead letters, after the commit.
pub fn count(stages: impl IntoIterator<Item = Stage>) {
    for stage in stages {
        metrics::counter!("nudge_dead_letters_total", "stage" => stage.name()).increment(1);
    }
}

/// The plugin that failed, or whose rules an event broke.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct PluginVersion {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// A dead letter.
#[derive(Clone, Debug)]
pub struct Letter {
    /// Its id.
    pub id: Uuid,
    /// The app.
    pub app_id: Uuid,
    /// Whose event it is.
    pub alias: i64,
    /// The event's id.
    pub event_id: Uuid,
    /// The event's name.
    pub event_name: String,
    /// Where it failed.
    pub stage: Stage,
    /// Why, as a stable code: that of the first violation, or of the plugin's failure.
    pub reason: String,
    /// What the plugin said when it failed, for people.
    pub detail: Option<String>,
    /// What is wrong with it.
    pub violations: Vec<Violation>,
    /// The plugin.
    pub plugin: Option<PluginVersion>,
    /// The campaign that could not be decided.
    pub campaign_id: Option<Uuid>,
    /// The event, as JSON.
    pub event: String,
    /// When it happened.
    pub timestamp: Timestamp,
    /// When it happened by the client's clock, where that was corrected.
    pub client_timestamp: Option<Timestamp>,
    /// When it arrived.
    pub received_at: Timestamp,
    /// Of the validation stage, what its request said; of the others, whose events are stored, nothing.
    pub origin: Arc<Origin>,
    /// How often it was replayed in vain.
    pub attempts: i64,
    /// Of the trigger stage, the session that the event was in.
    pub session: Option<i64>,
    /// Whether the plugin failed on the beginning of that session.
    pub opens_session: bool,
    /// The timer that the plugin failed on; none: it failed on the event itself.
    pub timer: Option<DueTimer>,
}

impl Letter {
    /// The letter of an event that broke its definition.
    pub fn broken(
        app_id: Uuid,
        alias: i64,
        received_at: Timestamp,
        origin: &Arc<Origin>,
        event: &Event,
        violations: Vec<Violation>,
        plugin: &Description,
    ) -> Result<Self> {
        let reason = violations
            .first()
            .map_or_else(|| "invalid".to_owned(), |violation| violation.code.clone());
        Ok(Self {
            violations,
            origin: Arc::clone(origin),
            ..Self::new(
                app_id,
                alias,
                received_at,
                event,
                Stage::Validation,
                None,
                reason,
                Some(plugin),
            )?
        })
    }

    /// The letter of an event that a plugin failed on. Without a plugin: no version was there to ask.
    ///
    /// Its id depends on the event, the stage and the campaign alone: an event that is sent again, or
    /// fails again, has one letter.
    #[expect(clippy::too_many_arguments, reason = "one for each column")]
    pub fn new(
        app_id: Uuid,
        alias: i64,
        received_at: Timestamp,
        event: &Event,
        stage: Stage,
        campaign_id: Option<Uuid>,
        reason: String,
        plugin: Option<&Description>,
    ) -> Result<Self> {
        Ok(Self {
            id: id_of(alias, event, stage, campaign_id),
            app_id,
            alias,
            event_id: event.id,
            event_name: event.name.to_string(),
            stage,
            reason,
            detail: None,
            violations: Vec::new(),
            plugin: plugin.map(|plugin| PluginVersion {
                name: plugin.name.clone(),
                version: plugin.version.clone(),
            }),
            campaign_id,
            event: event_text(event)?,
            timestamp: event.timestamp,
            client_timestamp: event.client_timestamp,
            received_at,
            origin: Arc::default(),
            attempts: 0,
            session: None,
            opens_session: false,
            timer: None,
        })
    }

    /// The letter of a timer that the event has set, if it is one: each timer has its own.
    #[must_use]
    pub fn of_timer(self, timer: Option<DueTimer>) -> Self {
        let Some(timer) = timer else {
            return self;
        };
        let hash = secrets::hash(&[self.id.as_bytes(), timer.id.as_bytes()]);
        Self {
            id: id::derived(self.client_timestamp.unwrap_or(self.timestamp), &hash),
            timer: Some(timer),
            ..self
        }
    }

    /// The same letter with what the plugin said when it failed.
    #[must_use]
    pub fn saying(self, detail: &str) -> Self {
        Self {
            detail: Some(detail.to_owned()),
            ..self
        }
    }

    /// What is wrong, in a sentence.
    pub fn summary(&self) -> String {
        match self.violations.first() {
            Some(first) => {
                let more = match self.violations.len() - 1 {
                    0 => String::new(),
                    more => format!(", and {more} more"),
                };
                format!(
                    "{}: {} (expected {}, got {}){more}",
                    first.code, first.property, first.expected, first.actual
                )
            }
            None => self.reason.clone(),
        }
    }
}

/// The id of the letter of an alias's event that failed at a stage: each event has one.
fn id_of(alias: i64, event: &Event, stage: Stage, campaign_id: Option<Uuid>) -> Uuid {
    let hash = secrets::hash(&[
        &alias.to_be_bytes(),
        event.id.as_bytes(),
        stage.name().as_bytes(),
        campaign_id.unwrap_or_default().as_bytes(),
    ]);
    id::derived(event.client_timestamp.unwrap_or(event.timestamp), &hash)
}

/// The event as clients sent it, with what was derived or corrected.
fn event_text(event: &Event) -> Result<String> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct LetterEvent<'e> {
        event_id: Uuid,
        name: &'e str,
        timestamp: String,
        properties: &'e RawValue,
    }
    // Properties are the text of an object: it is not read again for this.
    let corrupt = |cause| Error::corrupt("events", "properties", cause);
    let properties = serde_json::from_str(&event.properties).map_err(corrupt)?;
    let kept = LetterEvent {
        event_id: event.id,
        name: &event.name,
        timestamp: clock::to_text(event.timestamp),
        properties,
    };
    serde_json::to_string(&kept).map_err(corrupt)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_cannot_be_read_makes_no_letter_without_its_properties() {
        let event = |properties: &str| Event {
            id: Uuid::nil(),
            name: "purchase".into(),
            timestamp: Timestamp(0),
            client_timestamp: None,
            properties: properties.into(),
        };
        assert!(
            event_text(&event(r#"{"total": 1.50}"#))
                .unwrap()
                .contains("1.50")
        );
        let error = event_text(&event("{")).unwrap_err();
        assert_eq!(error.kind(), nudge_db::Kind::Corrupt);
    }
}
