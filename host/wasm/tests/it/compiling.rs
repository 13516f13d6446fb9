//! The child process that compiles, and components that are made to hurt it.

use std::fs;
use std::time::{Duration, Instant};

use nudge_wasm::{Compiler, Engine, Limits, LoadError, compile_child};
use tempfile::TempDir;

use crate::support::{engine_with, fires};

/// What the child may use, which in these tests can be less than its parent waits for.
#[derive(Clone, Copy)]
struct Allowed {
    memory_bytes: u64,
    seconds: u64,
}

impl Allowed {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            memory_bytes: limits.compile_memory_bytes,
            seconds: limits.compile_seconds,
        }
    }
}

/// The test program itself, as the child that compiles: it runs only the test below.
fn child(allowed: Allowed) -> Compiler {
    let Allowed {
        memory_bytes,
        seconds,
    } = allowed;
    // The test harness takes what follows `--exact` for filters, so the files go through a shell.
    let script = format!(
        r#"NUDGE_TEST_INPUT="$1" NUDGE_TEST_OUTPUT="$2" \
            NUDGE_TEST_MEMORY={memory_bytes} NUDGE_TEST_SECONDS={seconds} \
            exec "$0" --exact compiling::the_child_that_compiles --ignored --nocapture"#
    );
    let arguments = vec![
        "-c".into(),
        script.into(),
        std::env::current_exe().unwrap().into_os_string(),
    ];
    Compiler::Child {
        program: "/bin/sh".into(),
        arguments,
    }
}

#[test]
#[ignore = "run by other tests as a child process"]
fn the_child_that_compiles() {
    let [input, output] =
        ["NUDGE_TEST_INPUT", "NUDGE_TEST_OUTPUT"].map(|name| std::env::var_os(name).unwrap());
    let [compile_memory_bytes, compile_seconds] = ["NUDGE_TEST_MEMORY", "NUDGE_TEST_SECONDS"]
        .map(|name| std::env::var(name).unwrap().parse().unwrap());
    let limits = Limits {
        compile_memory_bytes,
        compile_seconds,
        ..Limits::default()
    };
    if let Err(error) = compile_child(input.as_ref(), output.as_ref(), &limits) {
        panic!("{error}");
    }
}

fn engine_with_child(allowed: Allowed) -> (Engine, TempDir) {
    engine_with(|config| config.compiler = child(allowed))
}

/// The bytes, after their number in the form that WebAssembly has for it.
fn sized(bytes: Vec<u8>) -> Vec<u8> {
    let mut length = bytes.len();
    let mut sized = Vec::with_capacity(length + 5);
    while length >= 0x80 {
        sized.push(0x80 | u8::try_from(length & 0x7f).unwrap());
        length >>= 7;
    }
    sized.push(u8::try_from(length).unwrap());
    sized.extend(bytes);
    sized
}

/// A component with a module of one enormous function: each of its instructions needs the one before, and
/// none can be left out.
fn enormous_function() -> Vec<u8> {
    const GET: [u8; 2] = [0x20, 0];
    const MULTIPLY: u8 = 0x6c;
    let mut body = vec![0];
    body.extend(GET);
    for _ in 0..2_000_000 {
        body.extend(GET);
        body.push(MULTIPLY);
    }
    body.push(0x0b);

    let mut module = b"\0asm\x01\0\0\0".to_vec();
    // One type, from a number to a number; one function of it, exported so that it counts.
    module.extend(b"\x01\x06\x01\x60\x01\x7f\x01\x7f\x03\x02\x01\0\x07\x05\x01\x01f\0\0");
    module.push(0x0a);
    let function = sized(body);
    module.extend(sized([vec![1], function].concat()));

    let mut component = b"\0asm\x0d\0\x01\0\x01".to_vec();
    component.extend(sized(module));
    component
}

#[test]
fn a_child_compiles_what_the_engine_runs() {
    let (engine, _folder) = engine_with_child(Allowed::default());
    fires(&engine);
}

#[test]
fn a_child_says_what_is_wrong_with_a_component() {
    let (engine, folder) = engine_with_child(Allowed::default());
    let mut broken = test_guests::MISBEHAVING.to_vec();
    broken.truncate(broken.len() / 2);
    match engine.load(&broken) {
        Err(LoadError::Compile(reason)) => assert!(reason.contains("out of bounds"), "{reason}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_child_that_takes_too_long_is_ended() {
    let (engine, folder) = engine_with(|config| {
        config.compiler = child(Allowed::default());
        config.limits.compile_seconds = 1;
    });
    let start = Instant::now();
    let error = engine.load(&enormous_function()).unwrap_err();
    assert!(matches!(error, LoadError::CompileTimeout), "{error}");
    assert!(start.elapsed() < Duration::from_secs(30));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[track_caller]
fn assert_killed(allowed: Allowed) {
    let (engine, folder) = engine_with_child(allowed);
    match engine.load(&enormous_function()) {
        Err(LoadError::CompileLimits(reason)) => {
            assert!(reason.contains("ended before its time"), "{reason}");
            assert!(reason.contains("signal"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    // The limit is not too tight for components that mean no harm.
    fires(&engine);
}

#[test]
fn a_component_that_uses_up_the_compilers_time_ends_the_child_only() {
    assert_killed(Allowed {
        seconds: 1,
        ..Allowed::default()
    });
}

#[test]
fn a_component_that_uses_up_the_compilers_memory_ends_the_child_only() {
    assert_killed(Allowed {
        memory_bytes: 512 << 20,
        ..Allowed::default()
    });
}
