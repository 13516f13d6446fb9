//! Every limit, with a guest that passes it.

use std::time::Duration;

use crate::support::{NoFacts, OneOrder, batch, engine_with, misbehaving};
use nudge_wasm::{Failed, Failure, Level};

fn fail(mode: &str) -> Failed {
    let (plugin, _folder) = misbehaving();
    plugin
        .evaluate(batch(mode), Box::new(OneOrder))
        .expect_err(mode)
}

#[track_caller]
fn assert_trap(mode: &str, expected: &str) {
    match fail(mode).failure {
        Failure::Trap(reason) => assert!(reason.contains(expected), "{mode}: {reason}"),
        other => panic!("{mode}: {other:?}"),
    }
}

#[test]
fn an_endless_loop_ends_at_the_deadline() {
    let (engine, _folder) =
        engine_with(|config| config.limits.trigger_deadline = Duration::from_millis(50));
    let plugin = engine.load(test_guests::MISBEHAVING).unwrap();
    let failed = plugin
        .evaluate(batch("loop"), Box::new(OneOrder))
        .unwrap_err();
    assert_eq!(failed.failure, Failure::Deadline);
    assert!(
        failed.call.elapsed >= Duration::from_millis(45),
        "{:?}",
        failed.call.elapsed
    );
    assert!(
        failed.call.elapsed < Duration::from_secs(2),
        "{:?}",
        failed.call.elapsed
    );

    let outcome = plugin.evaluate(batch("nan"), Box::new(OneOrder)).unwrap();
    assert_eq!(outcome.states.len(), 1);
}

#[test]
fn an_endless_loop_in_check_config_ends_too() {
    let (engine, _folder) =
        engine_with(|config| config.limits.describe_deadline = Duration::from_millis(30));
    let plugin = engine.load(test_guests::MISBEHAVING).unwrap();
    let failed = plugin
        .check_config(r#"{"mode":"loop_in_check"}"#)
        .unwrap_err();
    assert_eq!(failed.failure, Failure::Deadline);
}

#[test]
fn memory_is_limited() {
    let failed = fail("memory");
    assert_eq!(failed.failure, Failure::Memory);
    assert!(failed.call.memory_bytes <= 64 << 20);
    assert!(failed.call.memory_bytes > 32 << 20);
}

#[test]
fn a_panic_is_a_trap() {
    assert_trap("trap", "unreachable");
}

#[test]
fn endless_recursion_is_a_trap() {
    assert_trap("recursion", "");
}

#[test]
fn output_is_limited() {
    assert_eq!(fail("huge_output").failure, Failure::OutputTooLarge);
}

#[test]
fn a_long_explanation_is_cut_and_decides_nothing() {
    let (plugin, _folder) = misbehaving();
    let outcome = plugin
        .evaluate(batch("huge_explanation"), Box::new(OneOrder))
        .unwrap();
    let [explanation] = outcome.explanations.as_slice() else {
        panic!("{} explanations", outcome.explanations.len())
    };
    assert_eq!(explanation.check, "size");
    assert_eq!(explanation.detail, "x".repeat(1_000));
}

#[test]
fn copies_are_limited_before_they_are_made() {
    let (engine, _folder) = engine_with(|config| config.limits.output_bytes = 1 << 10);
    let plugin = engine.load(test_guests::MISBEHAVING).unwrap();
    let failed = plugin
        .evaluate(batch("huge_explanation"), Box::new(OneOrder))
        .unwrap_err();
    assert_eq!(failed.failure, Failure::OutputTooLarge);
}

#[test]
fn the_log_is_cut() {
    let (plugin, _folder) = misbehaving();
    let outcome = plugin
        .evaluate(batch("log_flood"), Box::new(OneOrder))
        .unwrap();
    let kept: usize = outcome
        .call
        .logs
        .iter()
        .map(|line| line.message.len())
        .sum();
    assert!(kept < 9 << 10, "{kept}");
    let last = outcome.call.logs.last().unwrap();
    assert_eq!(
        (last.level, last.message.as_str()),
        (Level::Warn, "the rest of this call's log was cut")
    );
}

#[test]
fn host_calls_are_limited_by_the_size_of_the_batch() {
    assert_trap("host_call_flood", "more than 1100 host calls");
}

#[test]
fn states_and_timers_are_limited() {
    assert_trap("state_flood", "a state has at most 4096 bytes");
    assert_trap("timer_flood", "a call sets at most 64 timers");
    assert_trap("timer_late", "at most 90 days ahead");
    assert_trap("timer_key", "a timer's key has at most 128 bytes");
}

#[test]
fn questions_are_limited() {
    assert_trap("many_paths", "at most 256 properties");
}

#[test]
fn numbers_that_mean_nothing_end_the_call() {
    assert_trap("bad_index", "there is no campaign 99");
    assert_trap("foreign_item", "item 3 does not concern campaign 0");
}

#[test]
fn a_refusal_says_why() {
    let failure = fail("refuse").failure;
    let (code, message) = (
        "on_request".to_owned(),
        "It was asked to refuse.".to_owned(),
    );
    assert_eq!(failure, Failure::Refused { code, message });
}

#[test]
fn a_database_that_is_gone_is_not_the_plugins_fault() {
    let (plugin, _folder) = misbehaving();
    let failed = plugin
        .evaluate(batch("fine"), Box::new(NoFacts))
        .unwrap_err();
    assert_eq!(failed.failure, Failure::Unavailable);
}

#[test]
fn a_plugin_that_failed_works_the_next_time() {
    let (plugin, _folder) = misbehaving();
    for mode in ["memory", "trap", "recursion", "huge_output"] {
        plugin
            .evaluate(batch(mode), Box::new(OneOrder))
            .unwrap_err();
        let outcome = plugin.evaluate(batch("fine"), Box::new(OneOrder)).unwrap();
        assert_eq!(outcome.fired.len(), 2);
    }
}

#[test]
fn many_calls_run_side_by_side() {
    let (plugin, _folder) = misbehaving();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let outcome = plugin.evaluate(batch("fine"), Box::new(OneOrder)).unwrap();
                    assert_eq!(outcome.fired.len(), 2);
                }
            });
        }
    });
}
