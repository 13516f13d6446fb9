//! Calls that go wrong on purpose: each ends as what it is, and nobody else notices.

use nudge_wasm::Engine;
use wit_component::StringEncoding;

use crate::handmade::{DONE, FOREVER, MEMORY, Parts};
use crate::support::{engine, fires, impatient};
use crate::witness::{End, Witness};

/// Loads each plugin and lets it evaluate.
fn decide(engine: &Engine, cases: Vec<(&str, Parts, End)>) {
    let witness = Witness::new(engine);
    for (what, parts, end) in cases {
        let component = parts.component();
        let plugin = witness.watch(what, || engine.load(&component));
        let plugin = plugin.unwrap_or_else(|error| panic!("{what}: {error}"));
        end.assert(what, &witness.evaluate(&plugin, what));
    }
}

fn deciding(decide: &'static str) -> Parts {
    Parts {
        decide,
        ..Parts::default()
    }
}

#[test]
fn a_plugin_made_by_hand_works() {
    decide(&engine().0, vec![("the rest", Parts::default(), End::Fine)]);
}

#[test]
fn a_trap_names_the_functions_in_which_it_happened() {
    let (engine, _folder) = engine();
    let parts = Parts {
        declared: format!(
            "{MEMORY} (func $average (drop (i32.div_u (i32.const 1) (i32.const 0))))"
        ),
        decide: "(call $average) (i32.const 512)",
        ..Parts::default()
    };
    let end = End::Trap("integer divide by zero, in average called by evaluate");
    decide(&engine, vec![("a call within", parts, end)]);
    // A compiler's own names say nothing to an author.
    let parts = Parts {
        declared: format!("{MEMORY} (func $_ZN7average17h0E (unreachable))"),
        decide: "(call $_ZN7average17h0E) (i32.const 512)",
        ..Parts::default()
    };
    let end = End::Trap("instruction executed, in evaluate");
    decide(&engine, vec![("a mangled name", parts, end)]);
}

#[test]
fn handles_are_the_calls_own() {
    let (engine, _folder) = engine();
    let unknown = End::Trap("unknown handle index");
    let cases = [
        (
            "kept",
            "(i32.const 512)",
            End::Trap("borrow handles still remain"),
        ),
        (
            "used after it was given back",
            "(call $drop (local.get 0)) (drop (call $now (local.get 0))) (i32.const 512)",
            unknown,
        ),
        (
            "given back twice",
            "(call $drop (local.get 0)) (call $drop (local.get 0)) (i32.const 512)",
            unknown,
        ),
        (
            "zero",
            "(drop (call $now (i32.const 0))) (unreachable)",
            unknown,
        ),
        (
            "the next",
            "(drop (call $now (i32.const 2))) (unreachable)",
            unknown,
        ),
        (
            "large",
            "(drop (call $now (i32.const 1000000))) (unreachable)",
            unknown,
        ),
        (
            "negative",
            "(drop (call $now (i32.const -1))) (unreachable)",
            unknown,
        ),
    ];
    decide(
        &engine,
        cases
            .map(|(what, body, end)| (what, deciding(body), end))
            .into(),
    );
}

/// Asks for the configuration, for which the host asks for memory.
const READS: &str = "
    (call $config (local.get 0) (i32.const 0) (i32.const 520))
    (call $drop (local.get 0)) (i32.const 512)";

/// Asks for a list whose elements must be aligned.
const READS_A_LIST: &str = "
    (call $names (local.get 0) (i32.const 520))
    (call $drop (local.get 0)) (i32.const 512)";

#[test]
fn the_host_writes_only_where_it_may() {
    let (engine, _folder) = engine();
    let cases = [
        // Zero is an address like any other: the plugin overwrites its own memory.
        ("null", "(i32.const 0)", READS, End::Fine),
        (
            "the end",
            "(i32.const 0xffff0)",
            READS,
            End::Trap("beyond end of memory"),
        ),
        (
            "past the end",
            "(i32.const 0x100000)",
            READS,
            End::Trap("beyond end of memory"),
        ),
        (
            "far out",
            "(i32.const -1)",
            READS,
            End::Trap("beyond end of memory"),
        ),
        (
            "odd",
            "(i32.const 8193)",
            READS_A_LIST,
            End::Trap("not aligned"),
        ),
        (
            "unreachable",
            "(unreachable)",
            READS,
            End::Trap("unreachable"),
        ),
        (
            "asks the host",
            "(drop (call $now (i32.const 1))) (i32.const 8192)",
            READS,
            End::Trap("cannot leave component instance"),
        ),
        (
            "writes to the log",
            "(call $write (i32.const 0) (i32.const 0) (i32.const 0)) (i32.const 8192)",
            READS,
            End::Trap("cannot leave component instance"),
        ),
        (
            "decides again",
            "(call $evaluate (i32.const 1))",
            READS,
            End::Trap("cannot leave component instance"),
        ),
        (
            "calls itself",
            "(call $realloc (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 1))",
            READS,
            End::Trap("call stack exhausted"),
        ),
    ];
    let parts = |realloc, decide| Parts {
        realloc,
        decide,
        ..Parts::default()
    };
    decide(
        &engine,
        cases
            .map(|(what, realloc, body, end)| (what, parts(realloc, body), end))
            .into(),
    );
}

#[test]
fn the_host_reads_only_what_is_there() {
    let (engine, _folder) = engine();
    // At 900 a refusal without code; its message's address and length follow.
    let refusal = |bytes: &str| {
        format!(r#"{MEMORY} (data (i32.const 900) "\01") (data (i32.const 912) "{bytes}")"#)
    };
    let refusing = "(call $drop (local.get 0)) (i32.const 900)";
    let answers = [
        (
            "1 GiB",
            r"\00\00\00\00\00\00\00\40",
            End::Trap("out of bounds"),
        ),
        (
            "one byte too many",
            r"\00\00\0f\00\01\00\01\00",
            End::Trap("out of bounds"),
        ),
        ("no UTF-8", r"\a0\03\00\00\03\00\00\00", End::Trap("utf-8")),
        (
            "half a surrogate pair",
            r"\a4\03\00\00\03\00\00\00",
            End::Trap("utf-8"),
        ),
    ];
    let mut cases: Vec<_> = answers
        .map(|(what, bytes, end)| {
            let declared = refusal(bytes)
                + r#"(data (i32.const 928) "\ff\fe\fd") (data (i32.const 932) "\ed\a0\80")"#;
            let parts = Parts {
                declared,
                decide: refusing,
                ..Parts::default()
            };
            (what, parts, end)
        })
        .into();
    cases.push((
        "all that is there",
        Parts {
            declared: refusal(r"\00\00\00\00\00\00\10\00"),
            decide: refusing,
            ..Parts::default()
        },
        End::OutputTooLarge,
    ));
    let described = r#"(data (i32.const 980) "\00\04\00\00\01\00\00\00\02\04\00\00\05\00\00\00")
        (data (i32.const 1024) "a\001\00.\000\00.\000\00")"#;
    cases.push((
        "half a surrogate pair in UTF-16",
        Parts {
            declared: refusal(r"\a4\03\00\00\01\00\00\00")
                + described
                + r#"(data (i32.const 932) "\00\d8")"#,
            decide: refusing,
            describe: "(i32.const 980)",
            encoding: StringEncoding::UTF16,
            ..Parts::default()
        },
        End::Trap("unpaired surrogate"),
    ));
    let others = [
        (
            "no such case",
            r#"(data (i32.const 900) "\07")"#,
            refusing,
            End::Trap("discriminant"),
        ),
        (
            "an answer past the end",
            "",
            "(call $drop (local.get 0)) (i32.const 0x100000)",
            End::Trap("out of bounds"),
        ),
        (
            "an answer at an odd place",
            "",
            "(call $drop (local.get 0)) (i32.const 513)",
            End::Trap("not aligned"),
        ),
        (
            "no such level",
            "",
            "(call $write (i32.const 9) (i32.const 0) (i32.const 0)) (i32.const 512)",
            End::Trap("discriminant"),
        ),
        (
            "a list past the end",
            "",
            "(call $fire (local.get 0) (i32.const 0) (i32.const 0) (i32.const 0x40001)) (i32.const 512)",
            End::Trap("out of bounds"),
        ),
        (
            "an enormous list",
            "",
            "(call $fire (local.get 0) (i32.const 0) (i32.const 0) (i32.const -1)) (i32.const 512)",
            End::Trap("out of bounds"),
        ),
        (
            "a list at an odd place",
            "",
            "(call $fire (local.get 0) (i32.const 0) (i32.const 1) (i32.const 1)) (i32.const 512)",
            End::Trap("not aligned"),
        ),
    ];
    cases.extend(others.map(|(what, data, decide, end)| {
        let declared = format!("{MEMORY}{data}");
        (
            what,
            Parts {
                declared,
                decide,
                ..Parts::default()
            },
            end,
        )
    }));
    let large = "(call $fire (local.get 0) (i32.const 0) (i32.const 65536) (i32.const 1000000)) (i32.const 512)";
    cases.push((
        "a million elements",
        Parts {
            declared: r#"(memory (export "memory") 80)"#.to_owned(),
            decide: large,
            ..Parts::default()
        },
        End::OutputTooLarge,
    ));
    decide(&engine, cases);
}

#[test]
fn memory_and_tables_grow_to_their_limits() {
    let (engine, _folder) = engine();
    let table = |body| Parts {
        declared: format!("{MEMORY} (table $table 0 funcref)"),
        decide: body,
        ..Parts::default()
    };
    let cases = vec![
        (
            "64 MiB",
            deciding(
                "(if (i32.ne (memory.grow (i32.const 1008)) (i32.const 16)) (then (unreachable)))
                (call $drop (local.get 0)) (i32.const 512)",
            ),
            End::Fine,
        ),
        (
            "a page more, without minding the refusal",
            deciding(
                "(if (i32.ne (memory.grow (i32.const 1009)) (i32.const -1)) (then (unreachable)))
                (call $drop (local.get 0)) (i32.const 512)",
            ),
            End::Fine,
        ),
        (
            "a page more",
            deciding(
                "(if (i32.eq (memory.grow (i32.const 1009)) (i32.const -1)) (then (unreachable)))
                (call $drop (local.get 0)) (i32.const 512)",
            ),
            End::Memory,
        ),
        (
            "page by page",
            deciding("(loop $again (br_if $again (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))) (unreachable)"),
            End::Memory,
        ),
        (
            "all there is",
            deciding("(drop (memory.grow (i32.const 65520))) (unreachable)"),
            End::Memory,
        ),
        (
            "100,000 elements",
            table(
                "(if (i32.ne (table.grow $table (ref.null func) (i32.const 100000)) (i32.const 0)) (then (unreachable)))
                (call $drop (local.get 0)) (i32.const 512)",
            ),
            End::Fine,
        ),
        (
            "an element more",
            table(
                "(if (i32.ne (table.grow $table (ref.null func) (i32.const 100001)) (i32.const -1)) (then (unreachable)))
                (call $drop (local.get 0)) (i32.const 512)",
            ),
            End::Fine,
        ),
        (
            "element by element",
            table("(loop $again (br_if $again (i32.ne (table.grow $table (ref.null func) (i32.const 1)) (i32.const -1)))) (unreachable)"),
            End::Trap("unreachable"),
        ),
    ];
    decide(&engine, cases);
}

#[test]
fn no_call_runs_forever() {
    let (engine, _folder) = impatient();
    let mut cases = vec![
        (
            "deciding",
            deciding("(loop $again (br $again)) (unreachable)"),
            End::Deadline,
        ),
        (
            "giving memory",
            Parts {
                realloc: "(loop $again (br $again)) (unreachable)",
                decide: READS,
                ..Parts::default()
            },
            End::Deadline,
        ),
        (
            "tidying up",
            Parts {
                decided: FOREVER,
                ..Parts::default()
            },
            End::Deadline,
        ),
        (
            "growing in vain",
            deciding(
                "(loop $again (drop (memory.grow (i32.const 65520))) (br $again)) (unreachable)",
            ),
            End::Deadline,
        ),
    ];
    cases.push((
        "copying memory",
        Parts {
            declared: r#"(memory (export "memory") 1000)"#.to_owned(),
            decide: "(loop $again (memory.copy (i32.const 0) (i32.const 1) (i32.const 65535999)) (br $again)) (unreachable)",
            ..Parts::default()
        },
        End::Deadline,
    ));
    decide(&engine, cases);
}

#[test]
fn what_follows_a_decision_can_spoil_it() {
    let (engine, _folder) = engine();
    let decided = |decided| Parts {
        decided,
        ..Parts::default()
    };
    let cases = vec![
        ("a trap", decided("(unreachable)"), End::Trap("unreachable")),
        (
            "a call of the host",
            decided("(call $write (i32.const 0) (i32.const 0) (i32.const 0))"),
            End::Trap("cannot leave component instance"),
        ),
        (
            "recursion",
            Parts {
                decided: "(drop (call $evaluate (i32.const 1)))",
                ..deciding("(call $evaluate (local.get 0))")
            },
            End::Trap("call stack exhausted"),
        ),
    ];
    decide(&engine, cases);
}

/// A plugin that is fine at first cannot know when its time has come.
#[test]
fn nothing_is_left_of_a_call() {
    let (engine, _folder) = engine();
    let witness = Witness::new(&engine);
    let counting = [
        (
            "a global",
            "(global $calls (mut i32) (i32.const 0))",
            "(if (global.get $calls) (then (unreachable)))
            (global.set $calls (i32.const 1))",
        ),
        (
            "the memory",
            "",
            "(if (i32.load (i32.const 1000000)) (then (unreachable)))
            (i32.store (i32.const 1000000) (i32.const 1))",
        ),
        (
            "memory that grew",
            "",
            "(if (i32.ne (memory.grow (i32.const 100)) (i32.const 16)) (then (unreachable)))
            (if (i32.load (i32.const 7000000)) (then (unreachable)))
            (i32.store (i32.const 7000000) (i32.const 1))",
        ),
        (
            "a table",
            "(table $table 4 funcref) (elem declare func $start)",
            "(if (i32.eqz (ref.is_null (table.get $table (i32.const 3)))) (then (unreachable)))
            (table.set $table (i32.const 3) (ref.func $start))
            (if (i32.ne (table.grow $table (ref.func $start) (i32.const 9)) (i32.const 4)) (then (unreachable)))",
        ),
        (
            "a data segment that was dropped",
            r#"(data $once "twice")"#,
            "(memory.init $once (i32.const 2000) (i32.const 0) (i32.const 5)) (data.drop $once)",
        ),
    ];
    for (what, declared, body) in counting {
        let parts = Parts {
            declared: format!("{MEMORY}{declared}"),
            decide: Box::leak(format!("{body}{DONE}").into_boxed_str()),
            ..Parts::default()
        };
        let plugin = engine.load(&parts.component()).unwrap();
        for _ in 0..20 {
            End::Fine.assert(what, &witness.evaluate(&plugin, what));
        }
    }
    fires(&engine);
}
