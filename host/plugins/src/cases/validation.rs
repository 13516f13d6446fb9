//! Cases of validation plugins: one event and its definition.
//!
//! Input: `config`, `properties`, and `now` where it matters. Output:
//! `{"valid": bool, "violations": [{"code", "property", "expected", "actual"}]}`.

use std::sync::Arc;

use nudge_db::Timestamp;
use nudge_wasm::Plugin;
use nudge_wasm::validation::{Batch, Definition, Item};
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};

use super::{BadCase, Run, check, object, time};

/// What the plugin is given.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// The definition's configuration.
    #[serde(default)]
    pub config: Json,
    /// When the event happens.
    #[serde(default)]
    now: Option<String>,
    /// The event's properties.
    #[serde(default)]
    pub properties: Map<String, Json>,
}

impl Input {
    pub(super) fn now(&self) -> Result<Timestamp, BadCase> {
        now(self.now.as_deref())
    }

    pub(super) fn run(&self, plugin: &Plugin) -> Result<Run, BadCase> {
        let now = self.now()?;
        let (reads, mut run) = match check(plugin, &self.config, Run::default()) {
            Ok(checked) => checked,
            Err(run) => return Ok(run),
        };
        let batch = batch(
            &self.config,
            &reads.properties,
            now,
            vec![object(&self.properties)],
        );
        Ok(match plugin.validate(batch) {
            Ok(outcome) => {
                let violations: Vec<Json> = outcome
                    .violations
                    .iter()
                    .map(|violation| {
                        json!({
                            "code": violation.code,
                            "property": violation.property,
                            "expected": violation.expected,
                            "actual": violation.actual,
                        })
                    })
                    .collect();
                run.output = json!({"valid": violations.is_empty(), "violations": violations});
                run.note(outcome.call);
                run
            }
            Err(failed) => run.fail(failed),
        })
    }
}

/// Events under one definition.
pub(super) fn batch(
    config: &Json,
    properties: &[String],
    now: Timestamp,
    events: Vec<Arc<str>>,
) -> Batch {
    let definition = Definition {
        config: config.to_string().into(),
        properties: properties.into(),
        items: (0..).take(events.len()).collect(),
    };
    let item = |properties| Item {
        timestamp: now.0,
        properties,
    };
    Batch {
        now: now.0,
        items: events.into_iter().map(item).collect(),
        definitions: vec![definition],
    }
}

/// A case's start.
pub(super) fn now(given: Option<&str>) -> Result<Timestamp, BadCase> {
    let Some(text) = given else {
        return Ok(time::START);
    };
    nudge_platform::clock::from_text(text)
        .ok_or_else(|| BadCase::new("/input/now", "must be an instant like 2026-01-31T09:30:00Z"))
}
