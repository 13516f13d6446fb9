//! The child process that compiles, and components that are made to hurt it.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use nudge_wasm::{Compiler, Engine, Limits, LoadError, compile_child};
use tempfile::TempDir;

use crate::hostile_bytes::{COMPONENT_HEADER, number};
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
    // The test harness takes what follows `--exact` for filters, and writes to standard output. What `compile`
    // appends are the limits that the parent has.
    let script = format!(
        r#"exec env -i NUDGE_TEST_MEMORY={memory_bytes} NUDGE_TEST_SECONDS={seconds} NUDGE_TEST_HANDED="$1 $2" \
            "$0" --exact compiling::the_child_that_compiles --ignored --nocapture 3<&0 4>&1 >/dev/null"#
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
    let [memory_bytes, seconds] = ["NUDGE_TEST_MEMORY", "NUDGE_TEST_SECONDS"]
        .map(|name| std::env::var(name).unwrap().parse().unwrap());
    let input = fs::File::open("/dev/fd/3").unwrap();
    let output = fs::File::options().write(true).open("/dev/fd/4").unwrap();
    if let Err(error) = compile_child(input, output, memory_bytes, seconds) {
        panic!("{error}");
    }
}

fn engine_with_child(allowed: Allowed) -> (Engine, TempDir) {
    engine_with(|config| config.compiler = child(allowed))
}

/// The bytes, after their number in the form that WebAssembly has for it.
fn sized(bytes: Vec<u8>) -> Vec<u8> {
    [number(bytes.len()), bytes].concat()
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
    assert!(matches!(error, LoadError::CompileTimeout { .. }), "{error}");
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

/// Components inside components, so deep that whoever goes down by calling itself does not come back.
#[test]
fn a_component_that_uses_up_the_compilers_stack_ends_the_child_only() {
    // From the inside out, written backwards.
    let mut backwards: Vec<u8> = Vec::new();
    for _ in 0..200_000 {
        let mut begun = COMPONENT_HEADER.to_vec();
        if !backwards.is_empty() {
            begun.push(4);
            begun.extend(number(backwards.len()));
        }
        backwards.extend(begun.iter().rev());
    }
    backwards.reverse();
    let (engine, folder) = engine_with_child(Allowed::default());
    match engine.load(&backwards) {
        Err(LoadError::CompileLimits(reason)) => {
            assert!(reason.contains("ended before its time"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// Runs a shell in place of the compiler.
fn shell(script: &str) -> Compiler {
    Compiler::Child {
        program: "/bin/sh".into(),
        arguments: vec!["-c".into(), script.into()],
    }
}

#[test]
fn nothing_is_left_of_a_compiler_that_does_not_end() {
    let notes = tempfile::tempdir().unwrap();
    let note = notes.path().join("pid");
    let (engine, folder) = engine_with(|config| {
        config.compiler = shell(&format!("echo $$ > {}; exec sleep 1000", note.display()));
        config.limits.compile_seconds = 1;
    });
    let error = engine.load(test_guests::MISBEHAVING).unwrap_err();
    assert!(matches!(error, LoadError::CompileTimeout { .. }), "{error}");
    let process = fs::read_to_string(&note).unwrap();
    // It is not there, and not as a zombie either.
    assert!(
        !Path::new("/proc").join(process.trim()).exists(),
        "{process}"
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_compiler_that_answers_nonsense_is_not_believed() {
    let cases = [
        ("exit 0", "it wrote nothing"),
        ("exit 3", "ended before its time (exit status: 3)"),
        ("kill -9 $$", "signal: 9"),
        ("echo something is wrong >&2; exit 1", "something is wrong"),
        // Two KiB of it are shown.
        ("head -c 1000000 /dev/zero | tr '\\0' x >&2; exit 1", "xxx"),
    ];
    for (script, words) in cases {
        let (engine, folder) = engine_with(|config| config.compiler = shell(script));
        let error = engine.load(test_guests::MISBEHAVING).unwrap_err();
        assert!(
            matches!(
                error,
                LoadError::Compile(_)
                    | LoadError::CompileLimits(_)
                    | LoadError::CompilerUnavailable(_)
            ),
            "{script}: {error:?}"
        );
        let reason = error.to_string();
        assert!(reason.contains(words), "{script}: {reason}");
        assert!(reason.len() <= 2048 + 100, "{script}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{script}");
    }
}

#[test]
fn a_child_is_handed_its_limits_and_nothing_else() {
    // Cargo tells tests where they are.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let (engine, folder) = engine_with(|config| {
        config.compiler = shell(r#"pwd >&2; echo "$0 $1" >&2; env >&2; cat >&2; exit 1"#);
        config.limits.compile_memory_bytes = 123_456_789;
        config.limits.compile_seconds = 57;
    });
    let sent = [COMPONENT_HEADER, b"what was sent"].concat();
    let error = engine.load(&sent).unwrap_err();
    let LoadError::Compile(said) = error else {
        panic!("{error:?}");
    };
    let lines: Vec<&str> = said.lines().collect();
    let (first, rest) = lines.split_at(2);
    assert_eq!(first, ["/", "123456789 57"]);
    let (last, environment) = rest.split_last().unwrap();
    assert!(last.ends_with("what was sent"), "{last}");
    // What the shell itself sets.
    for line in environment {
        let name = line.split('=').next().unwrap();
        assert!(["PWD", "OLDPWD", "SHLVL", "_"].contains(&name), "{said}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// What the isolated child below tries, and what becomes of it.
fn tries() -> Vec<(&'static str, bool)> {
    let denied = |what: std::io::Result<()>| what.is_err();
    let program = std::process::Command::new("/bin/true").status();
    let here = std::net::TcpListener::bind("127.0.0.1:0");
    vec![
        ("a file is read", denied(fs::read("/etc/passwd").map(drop))),
        (
            "a file is made",
            denied(fs::write("/tmp/nudge-test-isolated", "x")),
        ),
        (
            "its parent is read",
            denied(fs::read("/proc/1/environ").map(drop)),
        ),
        ("a program is started", denied(program.map(drop))),
        ("a port is opened", denied(here.map(drop))),
        ("a folder is listed", denied(fs::read_dir("/").map(drop))),
    ]
}

#[test]
#[ignore = "run by the test below as a child process"]
fn the_child_that_is_isolated() {
    let isolation = nudge_wasm::isolate();
    let tried = tries();
    let computed = std::thread::spawn(|| (0..1000_u64).sum::<u64>()).join();
    assert_eq!(computed.unwrap(), 499_500);
    let mut said = format!("isolated: {isolation}\n");
    for (what, denied) in tried {
        let how = if denied { "denied" } else { "done" };
        writeln!(said, "{what}: {how}").unwrap();
    }
    io::stdout().write_all(said.as_bytes()).unwrap();
}

/// The kernel that this runs on is asked what it has: where there is neither seccomp nor Landlock, nothing is denied.
#[test]
fn an_isolated_process_computes_and_does_nothing_else() {
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "compiling::the_child_that_is_isolated"])
        .args(["--ignored", "--nocapture"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    if !cfg!(target_os = "linux") {
        return;
    }
    assert!(text.contains("no_new_privs yes"), "{text}");
    if text.contains("seccomp yes") {
        assert_eq!(text.matches(": denied").count(), 6, "{text}");
        assert!(!text.contains(": done"), "{text}");
    }
    if text.contains("landlock yes") {
        for what in ["a file is read", "a file is made", "a port is opened"] {
            assert!(text.contains(&format!("{what}: denied")), "{text}");
        }
    }
}

/// A component that imports an instance of an instance of an instance.
fn deep_import(depth: usize) -> Vec<u8> {
    const ENVIRONMENT: &[u8] = b"\0\x1awasi:cli/environment@0.2.0";
    const PLUGIN: &[u8] = b"\0\x21nudge:plugin/trigger-plugin@1.0.0";
    // Types of instances: one that is empty, around it those that export one of the one before.
    let before = [0x42, 2, 1].repeat(depth);
    let after = b"\x04\0\x01a\x05\0".repeat(depth);
    let types = [&[1][..], &before, &[0x42, 0], &after].concat();
    let section = |id: u8, content: Vec<u8>| [vec![id], sized(content)].concat();
    [
        COMPONENT_HEADER.to_vec(),
        section(7, types),
        section(10, [&[1], ENVIRONMENT, &[5, 0]].concat()),
        section(5, vec![1, 1, 0]),
        section(11, [&[1], PLUGIN, &[5, 1, 0]].concat()),
    ]
    .concat()
}

/// What the child gets through must not be too much for its parent, whose threads have smaller stacks.
#[test]
fn what_compiles_can_be_linked() {
    let (engine, folder) = engine_with_child(Allowed::default());
    let mut refused = Vec::new();
    for depth in [1, 50, 90, 110, 1000, 10_000, 200_000] {
        match engine.load(&deep_import(depth)) {
            Err(LoadError::Misfit { reason, .. }) => assert!(reason.len() < 3000, "{reason}"),
            Err(LoadError::Compile(_) | LoadError::CompileLimits(_)) => refused.push(depth),
            other => panic!("{depth}: {other:?}"),
        }
    }
    assert!(!refused.contains(&50), "{refused:?}");
    assert!(refused.contains(&200_000), "{refused:?}");
    assert!(fs::read_dir(folder.path()).unwrap().count() > 0);
}
