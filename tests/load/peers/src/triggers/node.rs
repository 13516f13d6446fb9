//! Node's `vm`, in a process that measures itself. Its limits are `timeout` of each call, which a thread of Node's keeps, and
//! the heap of the whole process. Node's own manual says that `vm` keeps no hostile code in.

use std::cell::RefCell;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::json;
use tempfile::TempDir;

use super::events::{Events, joined};
use super::{DEADLINE, MEMORY, Round, timed};

const PROGRAM: &str = include_str!("node.mjs");
const TRIGGER: &str = include_str!("trigger.js");

/// How Node makes a call.
#[derive(Clone, Copy, Debug)]
pub(super) enum Mode {
    Reused,
    Fresh,
    ReusedWithoutDeadline,
    FreshWithoutDeadline,
}

/// Node, and the files of what it runs.
pub(super) struct Programs {
    node: String,
    process: RefCell<Process>,
    _folder: TempDir,
}

struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// Node with the events that it decides about.
#[derive(Clone, Copy)]
pub(super) struct Programmed<'a> {
    process: &'a RefCell<Process>,
    events: &'a Events,
}

impl Programs {
    pub(super) fn start(node: &str) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let (program, trigger) = (
            folder.path().join("node.mjs"),
            folder.path().join("trigger.js"),
        );
        std::fs::write(&program, PROGRAM)?;
        std::fs::write(&trigger, TRIGGER)?;
        let mut child = Command::new(node)
            .arg(format!("--max-old-space-size={}", MEMORY >> 20))
            .args([&program, &trigger])
            .arg(DEADLINE.as_millis().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("can't start {node}"))?;
        let input = child.stdin.take().context("a pipe")?;
        let output = BufReader::new(child.stdout.take().context("a pipe")?);
        Ok(Self {
            node: node.to_owned(),
            process: RefCell::new(Process {
                child,
                input,
                output,
            }),
            _folder: folder,
        })
    }

    pub(super) fn version(&self) -> anyhow::Result<String> {
        let output = Command::new(&self.node).arg("--version").output()?;
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }

    /// Tells it the events that it decides about from now on.
    pub(super) fn with<'a>(&'a self, events: &'a Events) -> anyhow::Result<Programmed<'a>> {
        let message = json!({"texts": events.texts, "fire": events.fire});
        self.process.borrow_mut().ask(&message.to_string())?;
        Ok(Programmed {
            process: &self.process,
            events,
        })
    }
}

impl<'a> Programmed<'a> {
    /// Calls of which Node measures the time, without the way to it.
    pub(super) fn round(self, mode: Mode) -> Round<'a> {
        let mode = match mode {
            Mode::Reused => "reused",
            Mode::Fresh => "fresh",
            Mode::ReusedWithoutDeadline => "reusedWithoutDeadline",
            Mode::FreshWithoutDeadline => "freshWithoutDeadline",
        };
        Box::new(move |calls| {
            let message = json!({"mode": mode, "calls": calls}).to_string();
            let nanoseconds = self.process.borrow_mut().ask(&message)?.parse()?;
            Ok(Duration::from_nanos(nanoseconds))
        })
    }

    /// Calls from here: a line there and a line back.
    pub(super) fn asked(self) -> Round<'a> {
        Box::new(move |calls| {
            timed(self.events, calls, |texts| {
                let answer = self.process.borrow_mut().ask(&joined(texts))?;
                Ok(serde_json::from_str(&answer)?)
            })
        })
    }
}

impl Process {
    fn ask(&mut self, line: &str) -> anyhow::Result<String> {
        let mut message = String::with_capacity(line.len() + 1);
        message.push_str(line);
        message.push('\n');
        self.input.write_all(message.as_bytes())?;
        let mut answer = String::new();
        self.output.read_line(&mut answer)?;
        ensure!(answer.ends_with('\n'), "Node has ended");
        answer.pop();
        Ok(answer)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A run that failed may leave it in the middle of something.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
