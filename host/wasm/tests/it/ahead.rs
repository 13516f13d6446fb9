//! Instances that are made between calls.

use std::thread;
use std::time::Duration;

use nudge_wasm::{Lowered, Plugin, between_calls};

use crate::handmade::{MEMORY, Parts};
use crate::purity::text;
use crate::support::{OneOrder, batch, engine};

/// What a call in this mode comes to, and whether its instance was made ahead.
fn call(plugin: &Plugin, mode: &str) -> (String, bool) {
    let (said, call) = match plugin.evaluate(batch(mode), Box::new(OneOrder)) {
        Ok(outcome) => {
            let call = outcome.call.clone();
            (text(outcome), call)
        }
        Err(failed) => (failed.failure.to_string(), *failed.call),
    };
    (said, call.instantiation == Duration::ZERO)
}

/// What a call in this mode comes to on a thread of its own, whose calls begin with nothing.
fn alone(plugin: &Plugin, mode: &str) -> String {
    thread::scope(|scope| {
        let called = scope.spawn(|| call(plugin, mode));
        called.join().unwrap().0
    })
}

/// Runs something on a thread of its own that ends instances between calls.
fn between<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    thread::scope(|scope| {
        let working = scope.spawn(|| {
            between_calls();
            work()
        });
        working.join().unwrap()
    })
}

#[test]
fn an_instance_that_was_made_ahead_decides_like_any_other() {
    let (engine, _folder) = engine();
    let [first, second] = [test_guests::MISBEHAVING, test_guests::CURIOUS]
        .map(|component| engine.load(component).unwrap());
    let modes = ["fine", "trap", "nan", "memory", "recursion", "huge_output"];
    let expected = modes.map(|mode| alone(&first, mode));
    let curious = alone(&second, "");
    between(|| {
        for round in 0..2 {
            for (mode, expected) in modes.iter().zip(&expected) {
                let (said, was_ahead) = call(&first, mode);
                assert_eq!(&said, expected, "{mode}");
                assert_eq!(was_ahead, round > 0 || *mode != modes[0], "{mode}");
                assert_eq!(call(&second, "").0, curious);
                between_calls();
                assert_eq!(call(&first, mode).0, *expected, "{mode}");
                between_calls();
            }
        }
    });
}

#[test]
fn calls_that_follow_without_a_pause_have_fresh_instances() {
    let (engine, _folder) = engine();
    let plugin = engine.load(test_guests::MISBEHAVING).unwrap();
    between(|| {
        call(&plugin, "fine");
        between_calls();
        let ahead = [(); 3].map(|()| call(&plugin, "fine").1);
        assert_eq!(ahead, [true, false, false]);
    });
}

#[test]
fn threads_share_what_was_made_ahead_and_each_plugin_has_one_at_the_most() {
    let (engine, _folder) = engine();
    let plugin = engine.load(test_guests::MISBEHAVING).unwrap();
    for _ in 0..2 {
        between(|| {
            call(&plugin, "fine");
            between_calls();
        });
    }
    let ahead = [(); 2].map(|()| call(&plugin, "fine").1);
    assert_eq!(ahead, [true, false]);
}

#[test]
fn what_waited_longest_makes_room() {
    let (engine, _folder) = engine();
    let plugins = ["one", "two", "three"].map(|name| {
        let declared = format!("{MEMORY} (global ${name} i32 (i32.const 0))");
        let parts = Parts {
            declared,
            ..Parts::default()
        };
        engine.load(&parts.component()).unwrap()
    });
    between(|| {
        for plugin in &plugins {
            call(plugin, "");
            between_calls();
        }
        let ahead = plugins.each_ref().map(|plugin| call(plugin, "").1);
        assert_eq!(ahead, [false, true, true]);
    });
}

#[test]
fn an_app_that_allows_less_memory_has_no_instance_with_more() {
    let (engine, _folder) = engine();
    let plugin = engine.load(test_guests::MISBEHAVING).unwrap();
    let less = plugin.within(&Lowered {
        memory_bytes: Some(64 << 10),
        ..Lowered::default()
    });
    let expected = alone(&less, "fine");
    between(|| {
        call(&plugin, "fine");
        between_calls();
        assert_eq!(call(&less, "fine").0, expected);
    });
}

#[test]
fn a_start_that_says_something_or_takes_long_is_not_ahead() {
    let (engine, _folder) = engine();
    // The first writes the text `hand`, the second counts for some milliseconds.
    let starts = [
        "(call $write (i32.const 1) (i32.const 800) (i32.const 4))",
        "(local i32) (loop $again
            (local.set 0 (i32.add (local.get 0) (i32.const 1)))
            (br_if $again (i32.lt_u (local.get 0) (i32.const 50000000))))",
    ];
    for start in starts {
        let declared = format!("{MEMORY} (func (export \"_initialize\") {start})");
        let parts = Parts {
            declared,
            ..Parts::default()
        };
        let plugin = engine.load(&parts.component()).unwrap();
        let expected = alone(&plugin, "");
        between(|| {
            for _ in 0..3 {
                assert_eq!(call(&plugin, ""), (expected.clone(), false));
                between_calls();
            }
        });
    }
}
