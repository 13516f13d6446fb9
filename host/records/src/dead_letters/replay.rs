//! Replay.

use nudge_platform::field_error::FieldError;
use nudge_platform::json::merge;
use serde_json::Map;
use serde_json::Value;

use crate::dead_letters::Letter;
use crate::events::Event;

/// The event that a letter keeps, patched.
pub fn event(letter: &Letter, patch: Option<&Map<String, Value>>) -> Result<Event, FieldError> {
    let mut kept: Value = serde_json::from_str(&letter.event).unwrap_or_default();
    let mut properties = kept
        .get_mut("properties")
        .map(Value::take)
        .unwrap_or_default();
    if let Some(patch) = patch {
        merge::apply(&mut properties, Value::Object(patch.clone()));
        crate::events::check_properties(&properties.to_string())
            .map_err(|detail| FieldError::new("/patch", "invalid", detail))?;
    }
    Ok(Event {
        id: letter.event_id,
        name: letter.event_name.as_str().into(),
        timestamp: letter.timestamp,
        client_timestamp: letter.client_timestamp,
        properties: properties.to_string().into(),
    })
}
