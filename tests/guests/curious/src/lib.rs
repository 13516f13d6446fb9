//! A trigger plugin that tries whatever a program may find outside: files, variables, clocks, randomness,
//! the network. It stores what it found as its subject's state, and prints.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use std::{env, fs};

use nudge_guest::serde_json::{Value, json};
use nudge_guest::trigger::{Decision, Event, Subject, Trigger};
use nudge_guest::{Problem, Reads, Refusal, export};

/// The plugin.
pub struct Curious;

impl Trigger for Curious {
    type Config = Value;

    fn check(_: &Value) -> Result<Reads, Vec<Problem>> {
        Ok(Reads::new().events(["*"]))
    }

    fn on_event(_: &Value, _: &Event<'_>, subject: &Subject<'_>) -> Result<Decision, Refusal> {
        print();
        subject.set_state(&found())?;
        Ok(Decision::Pass)
    }
}

export!(Curious: trigger);

#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the test is about where it goes"
)]
fn print() {
    println!("to standard output");
    eprintln!("to standard error");
}

#[expect(
    clippy::disallowed_methods,
    reason = "the test is about what the clock says"
)]
fn found() -> Value {
    let start = Instant::now();
    thread::sleep(Duration::from_hours(1));
    let set: HashSet<u32> = (0..16).collect();
    let order: Vec<u32> = set.into_iter().collect();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    json!({
        "read a file": fs::read("/etc/passwd").is_ok(),
        "wrote a file": fs::write("/tmp/curious", "was here").is_ok(),
        "listed a folder": fs::read_dir("/").is_ok(),
        "listed the folder it is in": fs::read_dir(".").is_ok(),
        "connected": TcpStream::connect("127.0.0.1:53").is_ok(),
        "variables": env::vars().count(),
        "arguments": env::args().count(),
        "time": now.map_or(0, |now| now.as_micros()),
        "time an hour took": start.elapsed().as_nanos(),
        "a random number": RandomState::new().hash_one(0),
        "the order of a set": order,
    })
}
