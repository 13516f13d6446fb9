//! What a call gives back.

use crate::support::{NOW, OneOrder, batch, misbehaving};
use nudge_wasm::trigger::{Firing, StateWrite, TimerChange};
use nudge_wasm::{Failure, Kind, Reads, trigger, validation};

#[test]
fn a_plugin_says_what_it_is() {
    let (plugin, _folder) = misbehaving();
    assert_eq!(plugin.kind(), Kind::Trigger);
    assert_eq!(plugin.description().name, "misbehaving");
    assert_eq!(plugin.description().version, "1.0.0");
    assert_eq!(plugin.digest().len(), 64);
    assert!(
        plugin
            .imports()
            .iter()
            .all(|import| import.starts_with("nudge:plugin/"))
    );
}

#[test]
fn a_configuration_is_checked() {
    let (plugin, _folder) = misbehaving();
    let reads = Reads {
        event_names: vec!["*".to_owned()],
        properties: vec!["amount".to_owned(), "cart.items".to_owned()],
        subject_properties: Vec::new(),
        history: Vec::new(),
    };
    assert_eq!(
        plugin.check_config(r#"{"mode":"fine"}"#).unwrap(),
        Ok(reads)
    );
    let problems = plugin.check_config("{}").unwrap().unwrap_err();
    assert_eq!(problems[0].pointer, "/mode");
}

#[test]
fn a_decision_gives_all_that_the_plugin_asked_for() {
    let (plugin, _folder) = misbehaving();
    let outcome = plugin.evaluate(batch("fine"), Box::new(OneOrder)).unwrap();

    assert_eq!(
        outcome.fired,
        [
            Firing {
                campaign: 0,
                item: 0
            },
            Firing {
                campaign: 0,
                item: 2
            }
        ]
    );
    // The stored state is 40; the second of the subject's two items sees what the first has stored.
    assert_eq!(
        outcome.states,
        [StateWrite {
            campaign: 0,
            subject: 0,
            state: Some(vec![42])
        }]
    );
    let [
        TimerChange::Set {
            campaign: 0,
            item: 0,
            key,
            at,
            payload,
        },
        TimerChange::Set { item: 2, .. },
    ] = outcome.timers.as_slice()
    else {
        panic!("{:?}", outcome.timers)
    };
    assert_eq!(
        (key.as_str(), *at, payload.len()),
        ("again", NOW + 1_000_000, 8)
    );
    let passed: Vec<_> = outcome
        .explanations
        .iter()
        .map(|it| (it.item, it.passed))
        .collect();
    assert_eq!(passed, [(0, true), (1, false), (2, true)]);
    // One order before the batch; the second order of the subject sees the first.
    let logs: Vec<_> = outcome
        .call
        .logs
        .iter()
        .map(|line| line.message.as_str())
        .collect();
    assert_eq!(logs, ["order 1 [1.0]", "order 2 [10.0, 1.0]"]);
    assert!(outcome.call.memory_bytes > 0);
    assert!(!outcome.call.elapsed.is_zero());
}

#[test]
fn explanations_are_kept_only_on_request() {
    let (plugin, _folder) = misbehaving();
    let quiet = trigger::Batch {
        explaining: false,
        ..batch("fine")
    };
    let outcome = plugin.evaluate(quiet, Box::new(OneOrder)).unwrap();
    assert!(outcome.explanations.is_empty());
}

#[test]
fn the_same_batch_gives_the_same_outcome() {
    let (plugin, _folder) = misbehaving();
    for mode in ["fine", "nan"] {
        let [first, second] = [(); 2].map(|()| {
            let outcome = plugin.evaluate(batch(mode), Box::new(OneOrder)).unwrap();
            let trigger::TriggerOutcome {
                fired,
                states,
                timers,
                cancelled_at,
                explanations,
                call,
            } = outcome;
            (
                fired,
                states,
                timers,
                cancelled_at,
                explanations,
                call.logs,
                call.memory_bytes,
            )
        });
        assert_eq!(first, second, "{mode}");
    }
}

#[test]
fn a_number_that_is_none_has_one_form() {
    let (plugin, _folder) = misbehaving();
    let outcome = plugin.evaluate(batch("nan"), Box::new(OneOrder)).unwrap();
    let canonical = 0x7ff8_0000_0000_0000_u64.to_le_bytes().to_vec();
    assert_eq!(outcome.states[0].state, Some(canonical));
}

#[test]
fn a_plugin_of_another_kind_is_not_called() {
    let (plugin, _folder) = misbehaving();
    let batch = validation::Batch {
        now: NOW,
        items: Vec::new(),
        definitions: Vec::new(),
    };
    let failed = plugin.validate(batch).unwrap_err();
    let reason = "a trigger plugin was called as a validation plugin".to_owned();
    assert_eq!(failed.failure, Failure::Trap(reason));
}
