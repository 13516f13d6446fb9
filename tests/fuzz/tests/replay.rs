//! Replays the corpus through every target, and mutates it.
//!
//! A short run by default. `NUDGE_FUZZ_MUTATIONS=100` makes a hundred times as many. What fails is written to
//! the target folder, to become a file of the corpus once it is mended. The mutations are the same in each run.
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails where it stands"
)]

mod mutate;

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use fuzz::Target;

/// No input takes longer; what does hangs.
const HANGS: Duration = Duration::from_mins(2);

macro_rules! replayed {
    ($($name:ident),* $(,)?) => {
        $(
            #[test]
            fn $name() {
                replay(stringify!($name));
            }
        )*

        #[test]
        fn every_target_is_replayed() {
            let replayed = [$(stringify!($name)),*];
            let names = fuzz::TARGETS.map(|target| target.name);
            assert_eq!(replayed, names);
        }
    };
}

replayed!(
    bodies,
    ingest,
    triggers,
    audiences,
    definitions,
    flows,
    answers,
    tokens,
    cursors,
    identities,
    urls,
    patches,
    keys,
    claims,
    components,
    outputs,
);

fn replay(name: &str) {
    let target = fuzz::TARGETS
        .into_iter()
        .find(|one| one.name == name)
        .unwrap();
    let corpus = corpus(name);
    assert!(!corpus.is_empty(), "{name} has a corpus");
    let times = std::env::var("NUDGE_FUZZ_MUTATIONS").map_or(1, |text| text.parse().unwrap());
    let mutations = mutate::mutations(&corpus, target.mutations.saturating_mul(times));
    run(target, corpus.iter().cloned().chain(mutations));
}

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(name);
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path())
        .collect();
    files.sort();
    let read = files.iter().map(|file| std::fs::read(file).unwrap());
    read.chain(fuzz::seeds(name)).collect()
}

/// Runs inputs on a thread of their own, so that one that never ends is noticed.
fn run(target: Target, inputs: impl Iterator<Item = Vec<u8>>) {
    let (todo, taken) = mpsc::sync_channel::<Vec<u8>>(0);
    let (done, ended) = mpsc::channel();
    let worker = std::thread::spawn(move || {
        for input in taken {
            (target.run)(&input);
            done.send(()).unwrap();
        }
    });
    for input in inputs {
        todo.send(input.clone()).unwrap();
        match ended.recv_timeout(HANGS) {
            Ok(()) => {}
            Err(mpsc::RecvTimeoutError::Timeout) => fail(target, &input, "takes too long"),
            // The worker's panic says what is wrong.
            Err(mpsc::RecvTimeoutError::Disconnected) => fail(target, &input, "panics"),
        }
    }
    drop(todo);
    worker.join().unwrap();
}

fn fail(target: Target, input: &[u8], what: &str) -> ! {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("failure-{}", target.name));
    std::fs::write(&file, input).unwrap();
    panic!("{} {what} on {}", target.name, file.display());
}
