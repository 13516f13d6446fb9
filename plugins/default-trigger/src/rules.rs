//! The rules without a host: a trigger against events in JSON, for previews and measurements.

use nudge_guest::config::Config as _;
use nudge_guest::serde_json::Value;
use nudge_guest::{Cell, Instant, Problem};

use crate::Config;

/// A compiled trigger.
#[derive(Clone, Debug)]
pub struct Rules(Config);

impl Rules {
    /// Compiles `{"trigger": …}`.
    pub fn compile(config: &str) -> Result<Self, Vec<Problem>> {
        Config::parse(config).map(Self)
    }

    /// Whether an event matches, but for occurrence and delay.
    pub fn matches(&self, event_name: &str, properties: &Value, now: Instant) -> bool {
        let cell = |column: usize| {
            self.0
                .paths
                .get(column)
                .map_or(Cell::Missing, |path| cell(properties, path))
        };
        self.0.matches(event_name, &|| now, &cell)
    }

    /// The events that concern the trigger.
    pub fn event_names(&self) -> &[String] {
        self.0.source.event_names()
    }
}

/// The value at a dotted path; a key that has the dots itself comes first.
///
/// No rule looks into arrays and objects, so their text is left out.
fn cell<'v>(object: &'v Value, path: &str) -> Cell<'v> {
    match object.get(path) {
        Some(Value::Null) => Cell::Null,
        Some(Value::Bool(boolean)) => Cell::Boolean(*boolean),
        Some(Value::Number(number)) => number.as_f64().map_or(Cell::Missing, Cell::Number),
        Some(Value::String(text)) => Cell::Text(text),
        Some(Value::Array(_) | Value::Object(_)) => Cell::Json(""),
        None => match path.split_once('.') {
            Some((first, rest)) => object
                .get(first)
                .map_or(Cell::Missing, |inner| cell(inner, rest)),
            None => Cell::Missing,
        },
    }
}

#[cfg(test)]
mod tests {
    use nudge_guest::serde_json::json;

    use super::*;

    #[test]
    fn nested_properties_are_reached() -> Result<(), Vec<Problem>> {
        let config = json!({"trigger": {"kind": "event", "eventName": "cart_updated", "filters": {"all": [
            {"property": "cart.total", "type": "number", "operator": "gt", "value": 10}
        ]}}});
        let rules = Rules::compile(&config.to_string())?;
        assert!(rules.matches(
            "cart_updated",
            &json!({"cart": {"total": 11}}),
            Instant::default()
        ));
        assert!(rules.matches(
            "cart_updated",
            &json!({"cart.total": 11}),
            Instant::default()
        ));
        assert!(!rules.matches(
            "cart_updated",
            &json!({"cart": {"total": 9}}),
            Instant::default()
        ));
        assert!(!rules.matches(
            "purchase",
            &json!({"cart": {"total": 11}}),
            Instant::default()
        ));
        Ok(())
    }
}
