//! Components, what plugins return, and what the built-in plugins read.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use default_trigger::DefaultTrigger;
use default_validation::DefaultValidation;
use nudge_guest::testing::{TriggerTest, ValidationTest};
use nudge_wasm::trigger::{Batch, Campaign, Facts, Item};
use nudge_wasm::{
    Compiler, Engine, EngineConfig, FactsUnavailable, Limits, PastEvent, Plugin, Value,
};
use serde_json::Value as Json;
use tempfile::TempDir;
use uuid::Uuid;

use crate::halves;

/// Larger than any seed: a mutation grows it by little.
const COMPONENT_BYTES: usize = 4 << 20;
const NOW: i64 = 1_772_366_400_000_000;

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
    };
    (Engine::new(config).expect("an engine"), folder)
});

static MISBEHAVING: LazyLock<Plugin> = LazyLock::new(|| {
    let patient = EngineConfig {
        cache_dir: ENGINE.1.path().to_owned(),
        cache_key: [7; 32],
        compiler: Compiler::InProcess,
        limits: Limits::default(),
        pool_slots: 4,
    };
    let engine = Engine::new(patient).expect("an engine");
    engine
        .load(test_guests::MISBEHAVING)
        .expect("the guest loads")
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

/// What a plugin asks the host for: the guest that breaks every rule on request, told by the input how.
pub fn outputs(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let config = serde_json::json!({ "mode": text }).to_string();
    let limits = Limits::default();
    drop(MISBEHAVING.check_config(&config));
    if let Ok(outcome) = MISBEHAVING.evaluate(batch(&config), Box::new(Nothing)) {
        let states = outcome
            .states
            .iter()
            .filter_map(|write| write.state.as_ref());
        let kept: usize = states.map(Vec::len).sum();
        assert!(kept <= limits.output_bytes);
        assert!(
            outcome
                .fired
                .iter()
                .all(|firing| firing.item < 2 && firing.campaign < 1)
        );
    }
}

fn batch(config: &str) -> Batch {
    let item = |subject: u32, properties: &str| Item {
        subject,
        event_id: Uuid::from_u128(u128::from(subject)),
        name: "order".into(),
        timestamp: NOW,
        received: NOW,
        session: 0,
        properties: properties.into(),
        timer: None,
    };
    let campaign = Campaign {
        id: Uuid::from_u128(9),
        config: config.into(),
        properties: Arc::from(["amount".to_owned(), "cart.items".to_owned()]),
        items: vec![0, 1],
    };
    Batch {
        now: NOW,
        items: vec![
            item(0, r#"{"amount": 10, "cart": {"items": [1, 2]}}"#),
            item(1, "{}"),
        ],
        campaigns: vec![campaign],
        explaining: true,
        seed: 5,
    }
}

/// Knows nothing of anybody.
struct Nothing;

impl Facts for Nothing {
    fn subject_property(&mut self, _: u32, _: &str) -> Option<Value> {
        None
    }

    fn subject_fact(&mut self, _: u32, _: &str) -> Result<Option<Value>, FactsUnavailable> {
        Ok(None)
    }

    fn count_events(
        &mut self,
        _: u32,
        _: &str,
        _: Option<i64>,
        _: u32,
    ) -> Result<u32, FactsUnavailable> {
        Ok(0)
    }

    fn recent_events(
        &mut self,
        _: u32,
        _: &str,
        _: Option<i64>,
        _: u32,
    ) -> Result<Vec<PastEvent>, FactsUnavailable> {
        Ok(Vec::new())
    }

    fn state(&mut self, _: u32, _: u32) -> Option<Vec<u8>> {
        None
    }
}
