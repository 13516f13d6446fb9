//! Bytes that nobody would call a plugin, and components that are too much of something.

use std::fmt::Write as _;
use std::time::Duration;
use std::{fs, thread};

use nudge_wasm::{Failed, Failure, LoadError};

use crate::handmade::{MEMORY, Parts};
use crate::support::{OneOrder, batch, engine, engine_with, fires};
use crate::witness::{End, Witness};

/// Sections of components.
const CUSTOM: u8 = 0;
const CORE_MODULE: u8 = 1;
const CORE_INSTANCE: u8 = 2;
const COMPONENT: u8 = 4;

/// What a component, and a core module, begins with.
pub(crate) const COMPONENT_HEADER: &[u8] = b"\0asm\x0d\0\x01\0";
const MODULE_HEADER: &[u8] = b"\0asm\x01\0\0\0";

/// A number as WebAssembly writes it.
pub(crate) fn number(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(0x80 | u8::try_from(number & 0x7f).unwrap());
        number >>= 7;
    }
    bytes.push(u8::try_from(number).unwrap());
    bytes
}

fn section(id: u8, content: &[u8]) -> Vec<u8> {
    [&[id][..], &number(content.len()), content].concat()
}

fn module(text: &str) -> Vec<u8> {
    wat::parse_str(format!("(module {text})")).unwrap()
}

/// Where sections begin, those of modules and components inside included, and the identifiers of those that
/// are not inside.
fn sections(bytes: &[u8]) -> (Vec<usize>, Vec<u8>) {
    let (mut starts, mut identifiers) = (Vec::new(), Vec::new());
    let mut at = 8;
    while at < bytes.len() {
        starts.push(at);
        let id = bytes[at];
        identifiers.push(id);
        let (mut length, mut shift) = (0, 0);
        loop {
            at += 1;
            length |= usize::from(bytes[at] & 0x7f) << shift;
            shift += 7;
            if bytes[at] & 0x80 == 0 {
                break;
            }
        }
        at += 1;
        let content = &bytes[at..at + length];
        if content.starts_with(MODULE_HEADER) || content.starts_with(COMPONENT_HEADER) {
            starts.extend(sections(content).0.into_iter().map(|start| at + start));
        }
        at += length;
    }
    (starts, identifiers)
}

/// A plugin that does nothing, with more sections.
fn stuffed(more: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Parts::default().component();
    bytes.extend(more.concat());
    bytes
}

/// A plugin that has this module too, this many times, and instances of all of them.
fn instances(text: &str, count: usize) -> Vec<u8> {
    let bytes = Parts::default().component();
    let (_, mut identifiers) = sections(&bytes);
    identifiers.retain(|id| *id == CORE_MODULE);
    let modules = identifiers.len();
    let module = module(text);
    let more: Vec<Vec<u8>> = (0..count)
        .flat_map(|index| {
            let instance = [vec![1, 0], number(modules + index), vec![0]].concat();
            [
                section(CORE_MODULE, &module),
                section(CORE_INSTANCE, &instance),
            ]
        })
        .collect();
    stuffed(&more)
}

/// Whatever bytes do, the host goes on; and what loads stays within its limits.
#[test]
fn no_broken_component_breaks_the_host() {
    let (engine, _folder) = engine_with(|config| {
        config.limits.trigger_deadline = Duration::from_millis(30);
        config.limits.describe_deadline = Duration::from_millis(300);
    });
    let good = Parts::default().component();
    let witness = Witness::new(&engine);
    let load = |bytes: &[u8]| {
        if let Ok(plugin) = engine.load(bytes) {
            // Both are as good: what counts is that there is an answer.
            drop(plugin.evaluate(batch("fine"), Box::new(OneOrder)));
            return true;
        }
        false
    };

    let (starts, _) = sections(&good);
    assert!(starts.len() > 30, "{starts:?}");
    for start in &starts {
        for end in start.saturating_sub(1)..=(start + 2).min(good.len()) {
            load(&good[..end]);
        }
        for at in *start..(start + 4).min(good.len()) {
            for bit in 0..8 {
                let mut flipped = good.clone();
                flipped[at] ^= 1 << bit;
                load(&flipped);
            }
        }
    }
    witness.watch("broken sections", || ());

    let mut loaded = 0;
    for at in (0..good.len()).step_by(3) {
        let mut flipped = good.clone();
        flipped[at] ^= 1 << (at % 8);
        loaded += usize::from(load(&flipped));
    }
    // Names of what is inside may be any, so some work.
    assert!((1..good.len() / 6).contains(&loaded), "{loaded}");
    witness.watch("broken bytes", || ());
    fires(&engine);
}

#[test]
fn every_beginning_of_a_component_is_refused() {
    let (engine, _folder) = engine();
    let good = Parts::default().component();
    let (starts, _) = sections(&good);
    for end in 0..good.len() {
        match engine.load(&good[..end]) {
            Err(LoadError::NotAComponent) => assert!(end < 8, "{end}"),
            Err(LoadError::Compile(_)) => assert!(end >= 8, "{end}"),
            Err(LoadError::NoKnownWorld(_)) => assert!(starts.contains(&end) || end == 8, "{end}"),
            // What is missing is custom sections.
            Ok(_) => assert!(starts.contains(&end), "{end}"),
            Err(other) => panic!("{end}: {other:?}"),
        }
    }
}

/// What a component has for no purpose costs nothing but its compilation.
#[test]
fn useless_parts_do_no_harm() {
    let (engine, _folder) = engine();
    let witness = Witness::new(&engine);
    let functions =
        "(func (param i32) (result i32) (i32.add (local.get 0) (i32.const 1)))".repeat(10_000);
    let empty = section(CORE_MODULE, MODULE_HEADER);
    let inner = section(COMPONENT, COMPONENT_HEADER);
    let mut data = module("(memory 1) (data \"\")");
    // The one segment, in place of the empty one: an empty memory and 48 MiB that are put nowhere.
    data.truncate(8);
    let megabytes = vec![b'x'; 48 << 20];
    let segment = [vec![1, 1], number(megabytes.len()), megabytes].concat();
    data.extend([section(12, &[1]), section(11, &segment)].concat());
    let cases = [
        ("hundreds of modules", stuffed(&vec![empty; 990])),
        ("components inside", stuffed(&vec![inner; 900])),
        ("an odd number of instances", instances("", 61)),
        (
            "ten thousand functions",
            stuffed(&[section(CORE_MODULE, &module(&functions))]),
        ),
        ("48 MiB of data", stuffed(&[section(CORE_MODULE, &data)])),
        (
            "1 MiB of remarks",
            stuffed(&[section(
                CUSTOM,
                &[&b"\x01x"[..], &vec![b' '; 1 << 20]].concat(),
            )]),
        ),
    ];
    for (what, component) in cases {
        let plugin = witness.watch(what, || engine.load(&component));
        let plugin = plugin.unwrap_or_else(|error| panic!("{what}: {error}"));
        End::Fine.assert(what, &witness.evaluate(&plugin, what));
    }
}

#[test]
fn too_much_of_anything_is_refused_in_plain_words() {
    let (engine, _folder) = engine();
    let witness = Witness::new(&engine);
    let declaring = |declared: &str| {
        Parts {
            declared: declared.to_owned(),
            ..Parts::default()
        }
        .component()
    };
    let locals = "(func (local i64)".to_owned() + &"(local i64)".repeat(50_000) + ")";
    let cases = [
        (
            "memory",
            declaring(r#"(memory (export "memory") 1025)"#),
            "memory",
        ),
        (
            "a table",
            declaring(&format!("{MEMORY} (table 100001 funcref)")),
            "table",
        ),
        (
            "tables",
            declaring(&(MEMORY.to_owned() + &"(table 1 funcref)".repeat(17))),
            "table",
        ),
        ("memories", instances("(memory 1)", 4), "memories"),
        ("instances", instances("", 62), "core module instances"),
        (
            "modules",
            stuffed(&vec![section(CORE_MODULE, MODULE_HEADER); 1001]),
            "module",
        ),
        (
            "locals",
            stuffed(&[section(CORE_MODULE, &module(&locals))]),
            "local",
        ),
        (
            "memory of 64 bits",
            stuffed(&[section(CORE_MODULE, &module("(memory i64 1)"))]),
            "memory64",
        ),
        (
            "memories of a module",
            stuffed(&[section(CORE_MODULE, &module("(memory 1) (memory 1)"))]),
            "memories",
        ),
        (
            "threads",
            stuffed(&[section(CORE_MODULE, &module("(memory 1 1 shared)"))]),
            "threads",
        ),
    ];
    for (what, component, words) in cases {
        match witness.watch(what, || engine.load(&component)) {
            Err(LoadError::Compile(reason)) => {
                assert!(reason.contains(words), "{what}: {reason}");
                assert!(reason.len() < 3000, "{what}: {reason}");
            }
            other => panic!("{what}: {other:?}"),
        }
    }
}

#[test]
fn without_a_pool_memory_is_limited_all_the_same() {
    let (engine, _folder) = engine_with(|config| config.pool_slots = 10_000_000);
    let memory = Parts {
        declared: r#"(memory (export "memory") 1025)"#.to_owned(),
        ..Parts::default()
    };
    match engine.load(&memory.component()) {
        Err(LoadError::DescribeFailed(Failed {
            failure: Failure::Memory,
            ..
        })) => {}
        other => panic!("{other:?}"),
    }
    let table = Parts {
        declared: format!("{MEMORY} (table 100001 funcref)"),
        ..Parts::default()
    };
    match engine.load(&table.component()) {
        Err(LoadError::DescribeFailed(Failed {
            failure: Failure::Trap(reason),
            ..
        })) => {
            assert!(reason.contains("table"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
}

/// The pool has room for all that each call may have, so that a component which uses it all takes it from
/// nobody.
#[test]
fn calls_do_not_compete_for_memories_and_tables() {
    let (engine, _folder) = engine_with(|config| {
        config.pool_slots = 2;
        config.made_ahead = 0;
        config.limits.trigger_deadline = Duration::from_millis(100);
    });
    let witness = Witness::new(&engine);
    for (what, more) in [
        ("memories", "(memory 1)"),
        (
            "tables",
            "(table 1 funcref) (table 1 funcref) (table 1 funcref) (table 1 funcref)",
        ),
    ] {
        let endless = Parts {
            decide: "(loop $again (br $again)) (unreachable)",
            ..Parts::default()
        };
        let idle = instances(more, 3);
        let mut component = endless.component();
        component.extend(&idle[Parts::default().component().len()..]);
        let plugin = engine.load(&component).unwrap();
        End::Deadline.assert(what, &witness.evaluate(&plugin, what));
    }
}

#[test]
fn thousands_of_names_make_no_endless_message() {
    let (engine, _folder) = engine();
    let name = |number: usize| format!("{}-{number}", "x".repeat(300));
    let mut imports = String::new();
    for number in 0..2000 {
        writeln!(imports, r#"(import "{}" (func))"#, name(number)).unwrap();
    }
    let mut exports = String::new();
    for number in 0..2000 {
        writeln!(exports, r#"(export "{}" (func $f))"#, name(number)).unwrap();
    }
    let exporting = wat::parse_str(format!(
        r#"(component (core module $m (func (export "f"))) (core instance $i (instantiate $m))
        (func $f (canon lift (core func $i "f"))) {exports})"#
    ));
    let exported = engine.load(&exporting.unwrap()).unwrap_err().to_string();
    assert!(exported.contains("targets no world"), "{exported}");
    assert!(exported.contains("and 1980 more"), "{exported}");
    assert!(exported.len() < 3000, "{exported}");

    let imported = wat::parse_str(format!(
        r#"(component {imports} (instance $i) (export "nudge:plugin/trigger-plugin@1.0.0" (instance $i)))"#
    ));
    let imported = engine.load(&imported.unwrap()).unwrap_err().to_string();
    assert!(
        imported.contains("imports what its world does not have"),
        "{imported}"
    );
    assert!(imported.contains("and 1980 more"), "{imported}");
    assert!(imported.len() < 3000, "{imported}");
}

/// What looks like the contract's or WASI's and is not is named too.
#[test]
fn imports_that_nobody_has_are_named() {
    let (engine, _folder) = engine();
    for (import, ty) in [
        ("nudge:plugin/trigger-host@0.2.0", "(instance)"),
        ("wasi:http/outgoing-handler@0.2.0", "(instance)"),
        (
            "wasi:filesystem/secrets@0.2.0",
            r#"(instance (export "read" (func)))"#,
        ),
        (
            "wasi:cli/environment@0.2.0",
            r#"(instance (export "launch" (func)))"#,
        ),
        (
            "nudge:plugin/log@1.0.0",
            r#"(instance (export "read" (func)))"#,
        ),
        ("nudge:plugin/log@1.0.0", "(core module)"),
        ("wasi:cli/environment@0.2.0", "(func)"),
        ("file", "(func)"),
    ] {
        let component = wat::parse_str(format!(
            r#"(component (import "{import}" {ty})
            (instance $i) (export "nudge:plugin/trigger-plugin@1.0.0" (instance $i)))"#
        ));
        let error = engine.load(&component.unwrap()).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(import), "{import} {ty}: {text}");
    }
}

#[test]
fn a_component_that_several_threads_load_is_loaded() {
    let (engine, folder) = engine();
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| fires(&engine));
        }
    });
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}
