//! Components, and what the built-in plugins read.

use std::sync::LazyLock;
use std::time::Duration;

use default_trigger::DefaultTrigger;
use default_validation::DefaultValidation;
use nudge_guest::testing::{TriggerTest, ValidationTest};
use nudge_wasm::{Compiler, Engine, EngineConfig, Limits};
use serde_json::{Value as Json, json};
use tempfile::TempDir;

use crate::halves;

/// Larger than any seed: a mutation grows it by little.
const COMPONENT_BYTES: usize = 4 << 20;

/// An engine that soon ends what runs, and its folder. It compiles in this process: inputs are small, and
/// what the compiler does wrong is to be seen here.
static ENGINE: LazyLock<(Engine, TempDir)> = LazyLock::new(|| {
    let folder = TempDir::with_prefix("nudge-fuzz-").expect("a folder");
    let config = EngineConfig {
        cache_dir: folder.path().to_owned(),
        cache_key: [7; 32],
        compiler: Compiler::InProcess,
        limits: Limits {
            component_bytes: COMPONENT_BYTES,
            describe_deadline: Duration::from_millis(200),
            ..Limits::default()
        },
        pool_slots: 4,
        made_ahead: 0,
    };
    (Engine::new(config).expect("an engine"), folder)
});

/// A trigger, and after a blank line the properties of an event, in the built-in trigger plugin.
pub fn triggers(input: &[u8]) {
    let Some((config, properties)) = halves(input) else {
        return;
    };
    let Some((config, properties)) = parsed(config, properties) else {
        return;
    };
    if let Ok(mut campaign) = TriggerTest::<DefaultTrigger>::new(&config) {
        campaign.set_property("ada", "plan", properties.clone());
        for name in campaign.reads().event_names.clone() {
            campaign.send("ada", &name, properties.clone());
            campaign.send("ada", &name, properties.clone());
        }
        campaign.advance(Duration::from_hours(1));
    }
}

/// An audience, and after a blank line saved properties, which are those of an event too, in the built-in trigger
/// plugin.
pub fn audiences(input: &[u8]) {
    let Some((audience, properties)) = halves(input) else {
        return;
    };
    let Some((audience, properties)) = parsed(audience, properties) else {
        return;
    };
    let config = json!({"trigger": {"kind": "event", "eventName": "go"}, "audience": audience});
    let Ok(mut campaign) = TriggerTest::<DefaultTrigger>::new(&config) else {
        return;
    };
    for (key, value) in properties.as_object().into_iter().flatten() {
        campaign.set_property("ada", key, value.clone());
        campaign.set_fact("ada", key, value.clone());
    }
    let answer = campaign.send("ada", "go", properties.clone());
    // Nothing that an audience may be about has changed.
    let mut again = TriggerTest::<DefaultTrigger>::new(&config).expect("taken before");
    for (key, value) in properties.as_object().into_iter().flatten() {
        again.set_property("ada", key, value.clone());
        again.set_fact("ada", key, value.clone());
    }
    assert_eq!(again.send("ada", "go", properties), answer);
}

/// A definition, and after a blank line the properties of an event, in the built-in validation plugin.
pub fn definitions(input: &[u8]) {
    let Some((config, properties)) = halves(input) else {
        return;
    };
    let Some((config, properties)) = parsed(config, properties) else {
        return;
    };
    if let Ok(definition) = ValidationTest::<DefaultValidation>::new(&config) {
        definition.violations(&properties);
    }
}

/// Both as the host lets them through: the properties are an object.
fn parsed(config: &str, properties: &str) -> Option<(Json, Json)> {
    let properties: Json = serde_json::from_str(properties).ok()?;
    let config = serde_json::from_str(config).ok()?;
    properties.is_object().then_some((config, properties))
}

/// An upload. What loads says the same of itself again, within its limits.
pub fn components(input: &[u8]) {
    let (engine, _) = &*ENGINE;
    if let Ok(plugin) = engine.load(input) {
        let said = plugin.description();
        assert!(said.name.len() <= engine.limits().output_bytes);
        drop(plugin.check_config("{}"));
    }
}
