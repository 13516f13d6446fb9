//! Guests that were compiled with all of WASI find nothing there.

use nudge_wasm::trigger::Batch;
use nudge_wasm::{Level, LogLine, Plugin};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{NOW, OneOrder, batch, engine};

fn curious() -> (Plugin, TempDir) {
    let (engine, folder) = engine();
    (engine.load(test_guests::CURIOUS).unwrap(), folder)
}

/// What the plugin found, and what it printed.
fn found(plugin: &Plugin, batch: Batch) -> (Value, Vec<LogLine>) {
    let mut outcome = plugin.evaluate(batch, Box::new(OneOrder)).unwrap();
    let state = outcome.states.swap_remove(0).state.unwrap();
    (serde_json::from_slice(&state).unwrap(), outcome.call.logs)
}

fn one_item(seed: u64) -> Batch {
    let mut batch = batch("");
    for campaign in &mut batch.campaigns {
        campaign.items.truncate(1);
    }
    Batch { seed, ..batch }
}

#[test]
fn there_are_no_files_no_network_no_environment_and_no_time() {
    let (plugin, _folder) = curious();
    let (mut found, _) = found(&plugin, one_item(1));
    let found = found.as_object_mut().unwrap();
    for random in ["a random number", "the order of a set"] {
        assert!(found.remove(random).is_some(), "{random}");
    }
    let nothing = json!({
        "read a file": false,
        "wrote a file": false,
        "listed a folder": false,
        "listed the folder it is in": false,
        "connected": false,
        "variables": 0,
        "arguments": 0,
        "time": NOW,
        "time an hour took": 0,
    });
    assert_eq!(Value::Object(found.clone()), nothing);
}

#[test]
fn randomness_follows_from_the_batch() {
    let (plugin, _folder) = curious();
    let [first, second, other] = [1, 1, 2].map(|seed| found(&plugin, one_item(seed)).0);
    assert_eq!(first, second);
    for random in ["a random number", "the order of a set"] {
        assert_ne!(first[random], other[random], "{random}");
    }
}

#[test]
fn what_a_guest_prints_is_in_its_log() {
    let (plugin, _folder) = curious();
    let (_, logs) = found(&plugin, one_item(1));
    let line = |level, message: &str| LogLine {
        level,
        message: message.to_owned(),
    };
    assert_eq!(
        logs,
        [
            line(Level::Info, "to standard output"),
            line(Level::Error, "to standard error"),
        ]
    );
}

#[test]
fn a_default_plugin_works_with_wasi_too() {
    let (engine, _folder) = engine();
    let plugin = engine.load(test_guests::DEFAULT_TRIGGER_WASIP2).unwrap();
    for package in ["wasi:cli/", "wasi:io/"] {
        let mut imports = plugin.imports().iter();
        assert!(
            imports.any(|import| import.starts_with(package)),
            "{package}"
        );
    }

    let mut batch = batch("");
    batch.campaigns[0].config =
        r#"{"trigger":{"kind":"event","eventName":"order","filters":{"all":[
            {"property":"amount","type":"number","operator":"gte","value":10}
        ]}}}"#
            .into();
    let outcome = plugin.evaluate(batch, Box::new(OneOrder)).unwrap();
    let fired: Vec<u32> = outcome.fired.iter().map(|firing| firing.item).collect();
    assert_eq!(fired, [0, 2]);
}
