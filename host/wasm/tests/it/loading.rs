//! What is loaded, what is refused, and what the cache does.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use nudge_wasm::{Compiler, Engine, EngineConfig, Failed, Failure, LoadError};
use wit_parser::Resolve;

use crate::idle::{component, idle};
use crate::support::{OneOrder, batch, config, engine, engine_with, fires};

/// A package `nudge:plugin` with a trigger plugin of a single function.
const REDUCED: &str = "
    package nudge:plugin@1.0.0;
    interface trigger-plugin { nothing: func(); }
    interface validation-plugin { nothing: func(); }
    interface validation-host { nothing: func(); }
";

#[test]
fn what_is_no_component_is_refused() {
    let (engine, _folder) = engine();
    for bytes in [&b""[..], b"hello", b"\0asm"] {
        assert!(
            matches!(engine.load(bytes), Err(LoadError::NotAComponent)),
            "{bytes:?}"
        );
    }
    assert!(matches!(
        engine.load(b"\0asm\x01\0\0\0"),
        Err(LoadError::CoreModule)
    ));
}

#[test]
fn a_component_that_is_broken_does_not_compile() {
    let (engine, _folder) = engine();
    let half = &test_guests::MISBEHAVING[..test_guests::MISBEHAVING.len() / 2];
    assert!(matches!(engine.load(half), Err(LoadError::Compile(_))));
}

#[test]
fn a_component_that_is_too_large_is_refused() {
    let (engine, _folder) = engine_with(|config| config.limits.component_bytes = 1000);
    let error = engine.load(test_guests::MISBEHAVING).unwrap_err();
    assert!(
        matches!(error, LoadError::TooLarge { limit: 1000, .. }),
        "{error}"
    );
}

#[test]
fn a_component_of_no_world_is_refused() {
    let (engine, _folder) = engine();
    let error = engine
        .load(&component("package a:b; world w { export run: func(); }"))
        .unwrap_err();
    assert!(matches!(error, LoadError::NoKnownWorld(_)), "{error}");
    assert!(error.to_string().contains("run"), "{error}");

    let two = format!("{REDUCED} world w {{ export trigger-plugin; export validation-plugin; }}");
    let error = engine.load(&component(&two)).unwrap_err();
    assert!(error.to_string().contains("several worlds"), "{error}");

    let reduced = format!("{REDUCED} world w {{ export trigger-plugin; }}");
    let error = engine.load(&component(&reduced)).unwrap_err();
    assert!(matches!(error, LoadError::Misfit { .. }), "{error}");
    assert!(error.to_string().contains("describe"), "{error}");
}

#[test]
fn a_component_that_is_made_of_several_compiles() {
    let component = wat::parse_str(include_str!("composed.wat")).unwrap();
    let (engine, _folder) = engine();
    let refused = engine.load(&component).unwrap_err();
    assert!(
        matches!(&refused, LoadError::NoKnownWorld(exports) if exports == "it exports run"),
        "{refused}"
    );
}

#[test]
fn foreign_imports_are_named() {
    let (engine, _folder) = engine();
    let wit = format!(
        "{REDUCED} world w {{
            import validation-host;
            import launch-missiles: func();
            export trigger-plugin;
        }}"
    );
    match engine.load(&component(&wit)) {
        Err(LoadError::ForeignImports(mut names)) => {
            names.sort();
            assert_eq!(
                names,
                ["launch-missiles", "nudge:plugin/validation-host@1.0.0"]
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_function_that_only_a_newer_host_has_is_named() {
    let (engine, _folder) = engine();
    let contract = tempfile::tempdir().unwrap();
    for file in fs::read_dir("../../wit").unwrap() {
        let file = file.unwrap();
        let text = fs::read_to_string(file.path()).unwrap();
        let newer = text.replace(
            "explaining: func() -> bool;",
            "explaining: func() -> bool; weather: func() -> string;",
        );
        fs::write(contract.path().join(file.file_name()), newer).unwrap();
    }
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(contract.path()).unwrap();
    let world = resolve.select_world(&[package], Some("trigger")).unwrap();
    let error = engine.load(&idle(&resolve, world)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "this plugin imports the function `batch.weather` of `nudge:plugin/trigger-host@1.0.0`, which this server does not have"
    );
}

#[test]
fn a_plugin_that_cannot_describe_itself_is_refused() {
    let (engine, _folder) = engine();
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir("../../wit").unwrap();
    for world in ["trigger", "validation", "personalization"] {
        let world = resolve.select_world(&[package], Some(world)).unwrap();
        match engine.load(&idle(&resolve, world)) {
            Err(LoadError::DescribeFailed(Failed {
                failure: Failure::Trap(_),
                ..
            })) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn without_room_for_a_pool_plugins_run_all_the_same() {
    let (engine, _folder) = engine_with(|config| config.pool_slots = 10_000_000);
    fires(&engine);
}

#[test]
fn when_all_slots_are_taken_a_call_can_be_tried_again() {
    let (engine, _folder) = engine_with(|config| {
        config.pool_slots = 1;
        config.made_ahead = 0;
        config.limits.trigger_deadline = Duration::from_secs(2);
    });
    let plugin = engine.load(test_guests::MISBEHAVING).unwrap();
    thread::scope(|scope| {
        let call = || {
            plugin
                .evaluate(batch("loop"), Box::new(OneOrder))
                .unwrap_err()
                .failure
        };
        let calls = [scope.spawn(call), scope.spawn(call)];
        let mut codes = calls.map(|call| call.join().unwrap().code());
        codes.sort_unstable();
        assert_eq!(codes, ["deadline", "unavailable"]);
    });
    fires(&engine);
}

fn compiled(folder: &Path) -> PathBuf {
    let files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    let [file] = files.as_slice() else {
        panic!("{files:?}")
    };
    file.clone()
}

#[test]
fn a_compiled_plugin_is_found_again() {
    let (engine, folder) = engine();
    fires(&engine);
    let file = compiled(folder.path());
    let before = fs::metadata(&file).unwrap().ino();
    // A compiler that cannot run: what loads comes from the cache.
    let program = PathBuf::from("/nonexistent");
    let compiler = Compiler::Child {
        program,
        arguments: Vec::new(),
    };
    fires(
        &Engine::new(EngineConfig {
            compiler,
            ..config(folder.path())
        })
        .unwrap(),
    );
    assert_eq!(fs::metadata(&file).unwrap().ino(), before);
}

#[test]
fn a_compiled_plugin_that_was_changed_is_compiled_again() {
    let (engine, folder) = engine();
    fires(&engine);
    let file = compiled(folder.path());
    let good = fs::read(&file).unwrap();
    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 1;
    let mut forged = good.clone();
    forged[0] ^= 1;
    for bad in [
        &flipped[..],
        &forged,
        &good[..good.len() - 1],
        &good[..40],
        &good[..10],
        b"",
    ] {
        fs::write(&file, bad).unwrap();
        fires(&engine);
        assert_eq!(fs::read(&file).unwrap().len(), good.len());
    }
}

#[test]
fn a_compiled_plugin_under_another_name_or_key_is_not_loaded() {
    let (engine, folder) = engine();
    fires(&engine);
    let file = compiled(folder.path());
    let renamed = file.with_file_name(file.file_name().unwrap().to_str().unwrap().replace(
        engine.load(test_guests::MISBEHAVING).unwrap().digest(),
        &"0".repeat(64),
    ));
    fs::rename(&file, renamed).unwrap();
    fires(&engine);

    let program = PathBuf::from("/nonexistent");
    let compiler = Compiler::Child {
        program,
        arguments: Vec::new(),
    };
    let other = EngineConfig {
        compiler,
        cache_key: [8; 32],
        ..config(folder.path())
    };
    let error = Engine::new(other)
        .unwrap()
        .load(test_guests::MISBEHAVING)
        .unwrap_err();
    assert!(error.to_string().contains("cannot be run"), "{error}");
}

#[test]
fn what_a_killed_process_left_behind_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    let make = |name: &str| {
        let path = folder.path().join(name);
        if name.starts_with("compiling") {
            fs::create_dir(&path).unwrap();
            fs::write(path.join("component.wasm"), "half").unwrap();
        } else {
            fs::write(&path, "half").unwrap();
        }
        path
    };
    for name in ["compiling-old", "writing-old", "other-old"] {
        fs::File::open(make(name))
            .unwrap()
            .set_modified(old)
            .unwrap();
    }
    for name in ["compiling-new", "writing-new"] {
        make(name);
    }

    Engine::new(config(folder.path())).unwrap();

    let entries = fs::read_dir(folder.path()).unwrap();
    let mut left: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["compiling-new", "other-old", "writing-new"]);
}

#[test]
fn the_cache_has_its_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let entry = |digit: &str| {
        let name = format!("{}-{}.cwasm", digit.repeat(64), digit.repeat(32));
        let file = fs::File::create(folder.path().join(name)).unwrap();
        // Without content: it takes no room.
        file.set_len(3 << 30).unwrap();
        file
    };
    let now = entry("a").metadata().unwrap().modified().unwrap();
    let hour = Duration::from_hours(1);
    entry("a").set_modified(now - 91 * 24 * hour).unwrap();
    entry("b").set_modified(now - 2 * hour).unwrap();
    let names = || -> Vec<String> {
        let entries = fs::read_dir(folder.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut starts: Vec<String> = names.map(|name| name[..2].to_owned()).collect();
        starts.sort();
        starts
    };

    let engine = Engine::new(config(folder.path())).unwrap();
    assert_eq!(names(), ["bb"], "what is old goes at the start");
    entry("c").set_modified(now - hour).unwrap();
    fires(&engine);
    let digest = engine.load(test_guests::MISBEHAVING).unwrap();
    let mut expected = vec!["cc".to_owned(), digest.digest()[..2].to_owned()];
    expected.sort();
    assert_eq!(
        names(),
        expected,
        "what was used least goes as another is kept"
    );

    // A use counts: what was compiled first is the older file, and stays.
    let file = |digest: &str| {
        let mut entries = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path());
        entries
            .find(|path| {
                path.file_name()
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .starts_with(digest)
            })
            .unwrap()
    };
    let kept = file(digest.digest());
    fs::File::open(&kept)
        .unwrap()
        .set_modified(now - 3 * hour)
        .unwrap();
    fires(&engine);
    assert!(fs::metadata(kept).unwrap().modified().unwrap() > now - hour);
}
