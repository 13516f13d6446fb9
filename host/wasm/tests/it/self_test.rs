//! Decisions about made-up batches: what is found of a plugin before it decides anything.

use std::time::Duration;

use nudge_wasm::{Engine, Failure, TriedDecision};

use crate::handmade::{DONE, FOREVER, MEMORY, Parts};
use crate::support::{engine, engine_with};

fn tried(engine: &Engine, parts: &Parts) -> TriedDecision {
    let plugin = engine.load(&parts.component()).unwrap();
    plugin.try_decision().unwrap()
}

/// A plugin that accepts each configuration and decides so.
fn accepting(decide: &'static str) -> Parts {
    Parts {
        decide,
        ..Parts::default()
    }
}

/// A plugin that refuses each configuration and decides so: the result `err` with no problems stands at 600.
fn refusing(decide: &'static str) -> Parts {
    Parts {
        declared: format!(r#"{MEMORY} (data (i32.const 600) "\01")"#),
        check: "(i32.const 600)",
        ..accepting(decide)
    }
}

#[test]
fn a_plugin_that_answers_is_no_failure() {
    let (engine, _folder) = engine();
    let TriedDecision::Answered { config, refusal } = tried(&engine, &accepting(DONE)) else {
        panic!("it answers");
    };
    assert_eq!((config.as_deref(), refusal), (Some("{}"), None));
    let TriedDecision::Answered { config, .. } = tried(&engine, &refusing(DONE)) else {
        panic!("it answers");
    };
    assert_eq!(config, None);
}

#[test]
fn a_plugin_that_fails_on_each_batch_is_found() {
    let (engine, _folder) = engine();
    for (what, decide, words) in [
        ("traps", "(unreachable)", "unreachable"),
        ("keeps the batch", "(i32.const 512)", "borrow handles"),
    ] {
        let TriedDecision::Fails(failed) = tried(&engine, &accepting(decide)) else {
            panic!("{what}");
        };
        assert!(failed.detail().contains(words), "{}", failed.detail());
    }
}

#[test]
fn a_plugin_that_never_ends_is_found() {
    let (engine, _folder) = engine_with(|config| {
        config.limits.trigger_deadline = Duration::from_millis(20);
        config.limits.describe_deadline = Duration::from_millis(500);
    });
    let forever: &'static str = String::leak(format!("{FOREVER} (i32.const 512)"));
    let plugin = engine.load(&accepting(forever).component()).unwrap();
    match plugin.try_decision() {
        Ok(TriedDecision::Fails(failed)) => assert_eq!(failed.failure, Failure::Deadline),
        // The machine was too busy to say.
        Err(failed) => assert!(failed.was_starved(), "{failed}"),
        Ok(other) => panic!("{other:?}"),
    }
}

#[test]
fn without_a_configuration_only_what_no_batch_explains_counts() {
    let (engine, _folder) = engine();
    let found = tried(&engine, &refusing("(unreachable)"));
    assert!(matches!(found, TriedDecision::Unknown(_)), "{found:?}");
    let found = tried(&engine, &refusing("(i32.const 512)"));
    assert!(matches!(found, TriedDecision::Fails(_)), "{found:?}");
}

#[test]
fn a_plugin_that_fails_on_some_events_is_no_failure() {
    let (engine, _folder) = engine();
    // Its schema names no configuration, and none that is made up makes it fail.
    let plugin = engine.load(test_guests::MISBEHAVING).unwrap();
    let found = plugin.try_decision().unwrap();
    assert!(matches!(found, TriedDecision::Answered { .. }), "{found:?}");
    for guest in [
        test_guests::MISBEHAVING_VALIDATION,
        test_guests::MISBEHAVING_PERSONALIZATION,
        test_guests::CURIOUS,
    ] {
        let plugin = engine.load(guest).unwrap();
        let found = plugin.try_decision().unwrap();
        assert!(matches!(found, TriedDecision::Answered { .. }), "{found:?}");
    }
}
