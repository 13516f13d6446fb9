//! Checks what concerns two properties at once: a discount is never more than the total.

use nudge_guest::validation::{Event, Validator, Violation};
use nudge_guest::{Description, Problem, Reads, Refusal};

struct Plugin;

/// What a definition says.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    /// The property that must not be more.
    smaller: String,
    /// The property that it must not be more than.
    larger: String,
}

impl Validator for Plugin {
    type Config = Config;

    /// What a configuration looks like: consoles make a form of it, and servers one to try the plugin with.
    fn describe(description: Description) -> Description {
        description.with_config_schema(
            r#"{
                "type": "object",
                "required": ["smaller", "larger"],
                "properties": {
                    "smaller": {"type": "string", "minLength": 1},
                    "larger": {"type": "string", "minLength": 1}
                }
            }"#,
        )
    }

    /// Says what is wrong with a configuration, and what decisions under it read.
    fn check(config: &Config) -> Result<Reads, Vec<Problem>> {
        let problems: Vec<Problem> = [("/smaller", &config.smaller), ("/larger", &config.larger)]
            .into_iter()
            .filter(|(_, path)| path.is_empty())
            .map(|(pointer, _)| Problem::new("required", pointer, "must be a property, such as cart.total"))
            .collect();
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Reads::new().properties([&config.smaller, &config.larger]))
    }

    /// Finds every violation of an event; one without any is valid.
    fn validate(config: &Config, event: &Event<'_>, found: &mut Vec<Violation>) -> Result<(), Refusal> {
        let smaller = event.property(&config.smaller).number();
        let larger = event.property(&config.larger).number();
        if let (Some(less), Some(more)) = (smaller, larger)
            && less > more
        {
            found.push(Violation {
                code: "out_of_range".to_owned(),
                property: config.smaller.clone(),
                expected: format!("at most {}, {more}", config.larger),
                actual: less.to_string(),
            });
        }
        Ok(())
    }
}

nudge_guest::export!(Plugin: validation);

// `cargo test` runs the plugin natively; the cases in `cases/` run the component itself.
#[cfg(test)]
mod tests {
    use super::*;
    use nudge_guest::{serde_json::json, testing::ValidationTest};

    #[test]
    fn a_discount_is_never_more_than_the_total() {
        let config = json!({"smaller": "discount", "larger": "total"});
        let definition = ValidationTest::<Plugin>::new(&config).unwrap();
        assert!(definition.violations(&json!({"discount": 5, "total": 5})).is_empty());
        assert_eq!(definition.violations(&json!({"discount": 6, "total": 5})).len(), 1);
    }
}
