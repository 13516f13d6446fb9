//! Greets by name: a binding becomes "Hello Ada", or its fallback where the name is not known.

use nudge_guest::personalization::{Personalizer, Recipient, Resolution};
use nudge_guest::{Problem, Reads, Refusal, Value};

struct Plugin;

/// A variant's `personalization`.
#[derive(serde::Deserialize)]
struct Config {
    bindings: Vec<Binding>,
}

/// A place in the message.
#[derive(serde::Deserialize)]
struct Binding {
    id: String,
    fallback: Option<String>,
}

impl Personalizer for Plugin {
    type Config = Config;

    /// Says what is wrong with a configuration, and what decisions under it read.
    fn check(_: &Config) -> Result<Reads, Vec<Problem>> {
        Ok(Reads::new().subject_properties(["name"]))
    }

    /// Resolves the bindings for one recipient; one that is not resolved is missing.
    fn resolve(
        config: &Config,
        recipient: &Recipient<'_>,
        resolutions: &mut Vec<Resolution>,
    ) -> Result<(), Refusal> {
        let name = recipient.property("name").text();
        for Binding { id, fallback } in &config.bindings {
            let greeting = name.map(|name| format!("Hello {name}"));
            let missing = greeting.is_none();
            let text = greeting.or_else(|| fallback.clone());
            resolutions.push(Resolution {
                binding: id.clone(),
                value: text.clone().map(Value::Text),
                used_fallback: missing && text.is_some(),
                issue: if missing { "missing".to_owned() } else { String::new() },
                text: text.unwrap_or_default(),
                ..Resolution::default()
            });
        }
        Ok(())
    }
}

nudge_guest::export!(Plugin: personalization);

// `cargo test` runs the plugin natively; the cases in `cases/` run the component itself.
#[cfg(test)]
mod tests {
    use super::*;
    use nudge_guest::{serde_json::json, testing::PersonalizationTest};

    #[test]
    fn who_is_known_is_greeted_by_name() {
        let config = json!({"bindings": [{"id": "greeting", "fallback": "Hello"}]});
        let mut message = PersonalizationTest::<Plugin>::new(&config).unwrap();
        assert_eq!(message.resolve()["greeting"].text, "Hello");
        message.set_property("name", json!("Ada"));
        assert_eq!(message.resolve()["greeting"].text, "Hello Ada");
    }
}
