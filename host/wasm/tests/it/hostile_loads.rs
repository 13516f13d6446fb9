//! Plugins that fail before there is anything to decide: when they start, describe themselves, or check a
//! configuration.

use nudge_wasm::{Failure, LoadError};

use crate::handmade::{FOREVER, Parts};
use crate::support::impatient;
use crate::witness::{End, Witness};

#[test]
fn what_breaks_before_it_has_a_name_is_not_loaded() {
    let (engine, _folder) = impatient();
    let witness = Witness::new(&engine);
    let starting = |start| Parts {
        start,
        ..Parts::default()
    };
    let describing = |describe| Parts {
        describe,
        ..Parts::default()
    };
    let described = |described| Parts {
        described,
        ..Parts::default()
    };
    let cases = [
        (
            "a trap at the start",
            starting("(unreachable)"),
            End::Trap("unreachable"),
        ),
        ("endless at the start", starting(FOREVER), End::Deadline),
        (
            "recursion at the start",
            starting("(call $start)"),
            End::Trap("call stack exhausted"),
        ),
        (
            "memory at the start",
            starting(
                "(if (i32.eq (memory.grow (i32.const 60000)) (i32.const -1)) (then (unreachable)))",
            ),
            End::Memory,
        ),
        (
            "a batch at the start",
            starting("(drop (call $now (i32.const 1)))"),
            End::Trap("unknown handle index"),
        ),
        (
            "a trap in describe",
            describing("(unreachable)"),
            End::Trap("unreachable"),
        ),
        (
            "endless in describe",
            describing("(loop $again (br $again)) (unreachable)"),
            End::Deadline,
        ),
        (
            "a batch in describe",
            describing("(drop (call $now (i32.const 1))) (unreachable)"),
            End::Trap("unknown handle index"),
        ),
        (
            "a flood of lines in describe",
            describing(
                "(loop $again (call $write (i32.const 0) (i32.const 0) (i32.const 0)) (br $again)) (unreachable)",
            ),
            End::Trap("more than 1000 host calls"),
        ),
        (
            "a name past the end",
            describing("(i32.const 0xffff0)"),
            End::Trap("out of bounds"),
        ),
        (
            "a trap after describe",
            described("(unreachable)"),
            End::Trap("unreachable"),
        ),
        ("endless after describe", described(FOREVER), End::Deadline),
    ];
    for (what, parts, end) in cases {
        let component = parts.component();
        match witness.watch(what, || engine.load(&component)) {
            Err(LoadError::DescribeFailed(failed)) => {
                end.assert(what, &Err::<(), Failure>(failed.failure));
            }
            other => panic!("{what}: {other:?}"),
        }
    }
    let what = "an empty name";
    match engine.load(&describing("(i32.const 512)").component()) {
        Err(LoadError::BadDescription(reason)) => assert!(reason.contains("name"), "{reason}"),
        other => panic!("{what}: {other:?}"),
    }
}

#[test]
fn checking_a_configuration_is_a_call_like_others() {
    let (engine, _folder) = impatient();
    let witness = Witness::new(&engine);
    let checking = |check| Parts {
        check,
        ..Parts::default()
    };
    let cases = [
        (
            "a trap",
            checking("(unreachable)"),
            End::Trap("unreachable"),
        ),
        (
            "endless",
            checking("(loop $again (br $again)) (unreachable)"),
            End::Deadline,
        ),
        (
            "past the end",
            checking("(i32.const 0x100000)"),
            End::Trap("out of bounds"),
        ),
        (
            "a batch",
            checking("(drop (call $now (i32.const 1))) (unreachable)"),
            End::Trap("unknown handle index"),
        ),
        (
            "memory",
            checking("(drop (memory.grow (i32.const 60000))) (unreachable)"),
            End::Memory,
        ),
        (
            "no memory for the configuration",
            Parts {
                realloc: "(i32.const -1)",
                ..Parts::default()
            },
            End::Trap("beyond end of memory"),
        ),
    ];
    for (what, parts, end) in cases {
        let plugin = engine.load(&parts.component()).unwrap();
        let checked = witness.watch(what, || plugin.check_config(r#"{"mode":"fine"}"#));
        end.assert(what, &checked.map_err(|failed| failed.failure));
    }
}
