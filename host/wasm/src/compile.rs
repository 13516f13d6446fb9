//! From a component to machine code, in this process or in one of its own.
//!
//! A component can make the compiler use much time and memory, which is nothing that the compiler's authors
//! promise to prevent. So components that strangers upload are compiled in a child process with limits.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rlimit::Resource;
use wasmtime::Engine;

use crate::cache::COMPILING;
use crate::configuration;
use crate::limits::{COMPILED_BYTES, COMPILER_NICENESS, COMPLAINT_BYTES, Limits};
use crate::load::LoadError;
use crate::trusted::CompiledCode;

/// How often a child process is looked after.
const GLANCE: Duration = Duration::from_millis(5);

/// Who compiles.
#[derive(Debug, Clone)]
pub enum Compiler {
    /// This process. For components that can be trusted.
    InProcess,
    /// A child process that calls [`compile_child`].
    Child {
        /// What to run.
        program: PathBuf,
        /// Its arguments; the file with the component and the file for the compiled code follow them.
        arguments: Vec<OsString>,
    },
}

/// A component could not be compiled.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// A file cannot be read or written, or a limit cannot be set.
    #[error("{what}")]
    System {
        /// What failed.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The compiler found fault with the component.
    #[error("{0}")]
    Compiler(String),
}

/// Compiles a component, with what `folder` has room for where files are needed.
pub(crate) fn compile(
    compiler: &Compiler,
    engine: &Engine,
    limits: &Limits,
    folder: &Path,
    component: &[u8],
) -> Result<CompiledCode, LoadError> {
    match compiler {
        Compiler::InProcess => {
            let code = engine.precompile_component(component);
            code.map(CompiledCode::vouched_for)
                .map_err(|error| LoadError::Compile(complaint(&error)))
        }
        Compiler::Child { program, arguments } => in_child(
            Command::new(program).args(arguments),
            limits,
            folder,
            component,
        ),
    }
}

/// What the child process does: limits itself, then compiles the component in `input` to `output`.
pub fn compile_child(input: &Path, output: &Path, limits: &Limits) -> Result<(), CompileError> {
    let system = |what| move |source| CompileError::System { what, source };
    let processors = thread::available_parallelism().map_or(1, std::num::NonZero::get) as u64;
    // Requests come first: whoever uploads can wait.
    rustix::process::nice(COMPILER_NICENESS)
        .map_err(|error| system("the compiler cannot give way")(error.into()))?;
    for (resource, limit) in [
        (Resource::AS, limits.compile_memory_bytes),
        // Counted over all threads, while the parent counts the time on the wall.
        (
            Resource::CPU,
            limits.compile_seconds.saturating_mul(processors),
        ),
        // Of the compiled code and of the complaints; the parent reads both.
        (Resource::FSIZE, COMPILED_BYTES),
        (Resource::CORE, 0),
    ] {
        resource
            .set(limit, limit)
            .map_err(system("the compiler's limits cannot be set"))?;
    }

    let component = fs::read(input).map_err(system("the component cannot be read"))?;
    let compiler = |error: wasmtime::Error| CompileError::Compiler(complaint(&error));
    let code = configuration::compiler().and_then(|engine| engine.precompile_component(&component));
    fs::write(output, code.map_err(compiler)?)
        .map_err(system("the compiled code cannot be written"))
}

/// Runs a child that compiles. What it writes can be trusted as far as the program can: the folder is this
/// process's own.
fn in_child(
    command: &mut Command,
    limits: &Limits,
    folder: &Path,
    component: &[u8],
) -> Result<CompiledCode, LoadError> {
    let system = LoadError::CompilerUnavailable;
    let folder = tempfile::Builder::new()
        .prefix(COMPILING)
        .tempdir_in(folder)
        .map_err(system)?;
    let (input, output) = (
        folder.path().join("component.wasm"),
        folder.path().join("compiled.cwasm"),
    );
    fs::write(&input, component).map_err(system)?;
    // A file instead of a pipe: nobody has to read along.
    let mut complaints = tempfile::tempfile_in(folder.path()).map_err(system)?;

    let child = command
        .arg(&input)
        .arg(&output)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(complaints.try_clone().map_err(system)?)
        .spawn()
        .map_err(system)?;
    let status =
        wait(Running(child), Duration::from_secs(limits.compile_seconds)).map_err(system)?;
    match status {
        None => Err(LoadError::CompileTimeout),
        Some(status) if status.success() => fs::read(&output)
            .map(CompiledCode::vouched_for)
            .map_err(system),
        // Rust aborts where memory runs out, and the system kills what passes its processor time.
        Some(status) if status.code().is_none() => Err(LoadError::CompileLimits(last_words(
            &mut complaints,
            status,
        ))),
        Some(status) => Err(LoadError::Compile(last_words(&mut complaints, status))),
    }
}

/// A child process, which ends with this at the latest, and is reaped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // For a child that was waited for, both do nothing.
        if let Err(error) = self.0.kill().and_then(|()| self.0.wait()) {
            tracing::warn!(%error, "a compiler may still be running");
        }
    }
}

/// Waits for a child, and ends it when its time is up.
fn wait(mut child: Running, time: Duration) -> io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.0.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() >= time {
            return Ok(None);
        }
        thread::sleep(GLANCE);
    }
}

/// What a child that failed wrote, or how it ended.
fn last_words(complaints: &mut File, status: ExitStatus) -> String {
    let mut text = Vec::new();
    let read = complaints.rewind().and_then(|()| {
        complaints
            .take(COMPLAINT_BYTES as u64)
            .read_to_end(&mut text)
    });
    let text = String::from_utf8_lossy(&text).trim().to_owned();
    match read {
        Ok(_) if !text.is_empty() && status.code().is_some() => text,
        _ => format!("the compiler ended before its time ({status})"),
    }
}

/// The compiler's complaint, cut to a size that can be shown.
fn complaint(error: &wasmtime::Error) -> String {
    let mut text = format!("{error:#}");
    text.truncate(text.floor_char_boundary(COMPLAINT_BYTES));
    text
}
