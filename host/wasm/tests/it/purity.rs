//! The same batch gives the same outcome: in other instances, on other threads, in other processes.

use std::process::Command;
use std::{env, thread};

use nudge_wasm::trigger;

use crate::support::{OneOrder, batch, engine, misbehaving};

/// Everything of an outcome but what the clock says.
pub(crate) fn text(outcome: trigger::TriggerOutcome) -> String {
    let trigger::TriggerOutcome {
        fired,
        states,
        timers,
        cancelled_at,
        explanations,
        call,
    } = outcome;
    format!(
        "{fired:?} {states:?} {timers:?} {cancelled_at:?} {explanations:?} {:?} {}",
        call.logs, call.memory_bytes
    )
}

/// A plugin that asks for random numbers and for the order of a hash set, and one that uses all there is.
fn decide() -> Vec<String> {
    let (engine, _folder) = engine();
    let decide = |component: &[u8], mode: &str| {
        let plugin = engine.load(component).unwrap();
        text(plugin.evaluate(batch(mode), Box::new(OneOrder)).unwrap())
    };
    vec![
        decide(test_guests::CURIOUS, ""),
        decide(test_guests::MISBEHAVING, "fine"),
        decide(test_guests::MISBEHAVING, "nan"),
    ]
}

#[test]
fn every_instance_on_every_thread_decides_alike() {
    let expected = decide();
    thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(decide)).collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), expected);
        }
    });
}

const MARK: &str = "decided: ";

#[test]
#[ignore = "run by another test as a process of its own"]
#[expect(clippy::print_stdout, reason = "its parent reads it")]
fn the_process_that_decides() {
    println!("\n{MARK}{:?}", decide());
}

#[test]
fn every_process_decides_alike() {
    let decided = || {
        let output = Command::new(env::current_exe().unwrap())
            .args([
                "--exact",
                "purity::the_process_that_decides",
                "--ignored",
                "--nocapture",
            ])
            .output()
            .unwrap();
        let output = String::from_utf8(output.stdout).unwrap();
        let line = output.lines().find_map(|line| line.strip_prefix(MARK));
        line.unwrap_or_else(|| panic!("{output}")).to_owned()
    };
    let first = decided();
    assert_eq!(first, decided());
    assert_eq!(first, format!("{:?}", decide()));
}

#[test]
fn what_a_plugin_has_seen_before_does_not_count() {
    let (trigger, _folder) = misbehaving();
    let fresh = text(trigger.evaluate(batch("fine"), Box::new(OneOrder)).unwrap());
    for mode in [
        "trap",
        "memory",
        "recursion",
        "state:4096",
        "count",
        "count",
    ] {
        drop(trigger.evaluate(batch(mode), Box::new(OneOrder)));
        let again = trigger.evaluate(batch("fine"), Box::new(OneOrder)).unwrap();
        assert_eq!(text(again), fresh, "after {mode}");
    }
}
