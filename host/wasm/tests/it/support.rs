//! What the tests of this package share.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use nudge_wasm::trigger::{Batch, Campaign, Facts, Item};
use nudge_wasm::{
    Compiler, Engine, EngineConfig, FactsUnavailable, Limits, PastEvent, Plugin, Value,
};
use tempfile::TempDir;
use uuid::Uuid;

/// 2026-01-31T09:30:00Z.
pub(crate) const NOW: i64 = 1_769_851_800_000_000;

/// An engine's configuration. Deadlines are so long that a machine with other things to do passes too;
/// what tests a deadline sets one.
pub(crate) fn config(folder: &Path) -> EngineConfig {
    let patient = Duration::from_secs(10);
    EngineConfig {
        cache_dir: folder.to_owned(),
        cache_key: [7; 32],
        compiler: Compiler::InProcess,
        limits: Limits {
            trigger_deadline: patient,
            validation_deadline: patient,
            personalization_deadline: patient,
            describe_deadline: patient,
            ..Limits::default()
        },
        pool_slots: 4,
        made_ahead: 2,
    }
}

/// An engine, and the folder that it needs as long as it lives.
pub(crate) fn engine() -> (Engine, TempDir) {
    engine_with(|_| {})
}

pub(crate) fn engine_with(change: impl FnOnce(&mut EngineConfig)) -> (Engine, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path());
    change(&mut config);
    (Engine::new(config).unwrap(), folder)
}

/// An engine that soon ends trigger plugins, and what they do outside of batches.
pub(crate) fn impatient() -> (Engine, TempDir) {
    engine_with(|config| {
        config.limits.trigger_deadline = Duration::from_millis(60);
        config.limits.describe_deadline = Duration::from_millis(500);
    })
}

/// The misbehaving plugin, and what it needs as long as it lives.
pub(crate) fn misbehaving() -> (Plugin, TempDir) {
    let (engine, folder) = engine();
    (engine.load(test_guests::MISBEHAVING).unwrap(), folder)
}

/// Checks that an engine loads and runs the misbehaving plugin.
pub(crate) fn fires(engine: &Engine) {
    let plugin = engine.load(test_guests::MISBEHAVING).unwrap();
    assert_eq!(
        plugin
            .evaluate(batch("fine"), Box::new(OneOrder))
            .unwrap()
            .fired
            .len(),
        2
    );
}

pub(crate) fn item(subject: u32, name: &str, properties: &str) -> Item {
    Item {
        subject,
        event_id: Uuid::from_u128(u128::from(subject)),
        name: name.into(),
        timestamp: NOW - 1_000_000,
        received: NOW,
        session: 0,
        properties: properties.into(),
        timer: None,
    }
}

/// A batch of one campaign, in this mode, that all items but the last concern.
pub(crate) fn batch(mode: &str) -> Batch {
    let items = vec![
        item(0, "order", r#"{"amount":10,"cart":{"items":[1,2]}}"#),
        item(1, "order", r#"{"amount":5}"#),
        item(0, "order", r#"{"amount":12.5}"#),
        item(0, "visit", "{}"),
    ];
    let campaign = Campaign {
        id: Uuid::from_u128(9),
        config: format!(r#"{{"mode":"{mode}"}}"#).into(),
        properties: Arc::from(["amount".to_owned(), "cart.items".to_owned()]),
        items: vec![0, 1, 2],
    };
    Batch {
        now: NOW,
        items,
        campaigns: vec![campaign],
        explaining: true,
        seed: 5,
    }
}

/// A configuration of the default personalization plugin with a binding of each kind of source.
pub(crate) const BINDINGS: &str = r#"{
    "version": 1,
    "missingData": "skip",
    "sources": [
        {"id": "user", "label": "User", "kind": "user_property"},
        {"id": "data", "label": "Data", "kind": "send_data"},
        {"id": "event", "label": "Event", "kind": "trigger_event"},
        {"id": "past", "label": "Past", "kind": "latest_event", "eventName": "order", "lookbackDays": 30}
    ],
    "bindings": [
        {"id": "name", "label": "Name", "sourceId": "user", "key": "name", "type": "string"},
        {"id": "code", "label": "Code", "sourceId": "data", "key": "code", "type": "string"},
        {"id": "total", "label": "Total", "sourceId": "event", "key": "total", "type": "number"},
        {"id": "last", "label": "Last", "sourceId": "past", "key": "amount", "type": "number"}
    ]
}"#;

/// Facts about subjects that did one order before the batch.
pub(crate) struct OneOrder;

impl Facts for OneOrder {
    fn subject_property(&mut self, _: u32, _: &str) -> Result<Option<Value>, FactsUnavailable> {
        Ok(None)
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
        Ok(1)
    }

    fn recent_events(
        &mut self,
        _: u32,
        _: &str,
        _: Option<i64>,
        _: u32,
    ) -> Result<Vec<PastEvent>, FactsUnavailable> {
        let properties = r#"{"amount":1}"#.into();
        Ok(vec![PastEvent {
            id: Uuid::max(),
            timestamp: NOW - 9_000_000,
            properties,
        }])
    }

    fn state(&mut self, _: u32, subject: u32) -> Option<Vec<u8>> {
        (subject == 0).then(|| vec![40])
    }
}

/// Facts of a database that is gone.
pub(crate) struct NoFacts;

impl Facts for NoFacts {
    fn subject_property(&mut self, _: u32, _: &str) -> Result<Option<Value>, FactsUnavailable> {
        Ok(None)
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
        Err(FactsUnavailable)
    }

    fn recent_events(
        &mut self,
        _: u32,
        _: &str,
        _: Option<i64>,
        _: u32,
    ) -> Result<Vec<PastEvent>, FactsUnavailable> {
        Err(FactsUnavailable)
    }

    fn state(&mut self, _: u32, _: u32) -> Option<Vec<u8>> {
        None
    }
}

/// Facts about recipients nobody knows, of a database that is gone.
pub(crate) struct NoPerson;

impl nudge_wasm::personalization::Facts for NoPerson {
    fn subject_property(&mut self, _: u32, _: &str) -> Option<Value> {
        None
    }

    fn subject_fact(&mut self, _: u32, _: &str) -> Option<Value> {
        None
    }

    fn recent_events(
        &mut self,
        _: u32,
        _: &str,
        _: Option<i64>,
        _: u32,
    ) -> Result<Vec<PastEvent>, FactsUnavailable> {
        Err(FactsUnavailable)
    }
}
