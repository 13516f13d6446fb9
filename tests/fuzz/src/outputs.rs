//! What plugins return: the guests that break every rule on request, told by the input how.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use nudge_wasm::{
    Compiler, Engine, EngineConfig, Limits, Plugin, personalization, trigger, validation,
};
use serde_json::json;
use tempfile::TempDir;
use uuid::Uuid;

const NOW: i64 = 1_772_366_400_000_000;

/// What is reported of a violation is cut at so many characters.
const REPORTED: usize = 200;

/// A plugin of each kind, and the folder that they need.
struct Guests {
    trigger: Plugin,
    validation: Plugin,
    personalization: Plugin,
    _folder: TempDir,
}

static GUESTS: LazyLock<Guests> = LazyLock::new(|| {
    let folder = TempDir::with_prefix("nudge-fuzz-").expect("a folder");
    let config = EngineConfig {
        cache_dir: folder.path().to_owned(),
        cache_key: [7; 32],
        compiler: Compiler::InProcess,
        limits: Limits {
            // What loops is to be ended soon, and what does not is to be ended never.
            trigger_deadline: Duration::from_millis(100),
            validation_deadline: Duration::from_millis(100),
            personalization_deadline: Duration::from_millis(100),
            ..Limits::default()
        },
        pool_slots: 4,
        made_ahead: 0,
    };
    let engine = Engine::new(config).expect("an engine");
    let load = |bytes| engine.load(bytes).expect("the guest loads");
    Guests {
        trigger: load(test_guests::MISBEHAVING),
        validation: load(test_guests::MISBEHAVING_VALIDATION),
        personalization: load(test_guests::MISBEHAVING_PERSONALIZATION),
        _folder: folder,
    }
});

/// A mode of a guest. What gets through keeps to the contract's limits, and is about what was asked.
pub fn outputs(input: &[u8]) {
    let mode = String::from_utf8_lossy(input);
    evaluated(&mode);
    validated(&mode);
    resolved(&mode);
}

fn evaluated(mode: &str) {
    let plugin = &GUESTS.trigger;
    let config = json!({ "mode": mode }).to_string();
    let limits = Limits::default();
    drop(plugin.check_config(&config));
    if let Ok(outcome) = plugin.evaluate(batch(&config), Box::new(trigger::Nobody)) {
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

fn batch(config: &str) -> trigger::Batch {
    let item = |subject: u32, properties: &str| trigger::Item {
        subject,
        event_id: Uuid::from_u128(u128::from(subject)),
        name: "order".into(),
        timestamp: NOW,
        received: NOW,
        session: 0,
        properties: properties.into(),
        timer: None,
    };
    let campaign = trigger::Campaign {
        id: Uuid::from_u128(9),
        config: config.into(),
        properties: Arc::from(["amount".to_owned(), "cart.items".to_owned()]),
        items: vec![0, 1],
    };
    trigger::Batch {
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

fn validated(mode: &str) {
    let item = validation::Item {
        timestamp: NOW,
        properties: json!({ "mode": mode }).to_string().into(),
    };
    let definition = validation::Definition {
        config: "{}".into(),
        properties: Arc::from(["mode".to_owned()]),
        items: vec![0],
    };
    let batch = validation::Batch {
        now: NOW,
        items: vec![item],
        definitions: vec![definition],
    };
    if let Ok(outcome) = GUESTS.validation.validate(batch) {
        for violation in outcome.violations {
            assert_eq!(violation.item, 0);
            assert!(violation.actual.chars().count() <= REPORTED);
        }
    }
}

fn resolved(mode: &str) {
    let item = personalization::Item {
        recipient: Uuid::from_u128(1),
        data: "{}".into(),
        trigger: None,
    };
    let message = personalization::Message {
        config: mode.into(),
        properties: Arc::default(),
        subject_properties: Arc::default(),
        items: vec![0],
    };
    let batch = personalization::Batch {
        now: NOW,
        seed: 5,
        items: vec![item],
        messages: vec![message],
    };
    let nobody = Box::new(personalization::Nobody);
    if let Ok(outcome) = GUESTS.personalization.resolve(batch, nobody) {
        for resolution in outcome.resolutions {
            assert_eq!(resolution.item, 0);
            match resolution.value {
                Some(nudge_wasm::Value::Number(number)) => assert!(number.is_finite()),
                Some(nudge_wasm::Value::Json(text)) => {
                    serde_json::from_str::<serde_json::Value>(&text).expect("JSON");
                }
                _ => {}
            }
        }
    }
}
