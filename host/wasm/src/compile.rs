//! From a component to machine code, in this process or in one of its own.
//!
//! A component can make the compiler use much time and memory, which is nothing that the compiler's authors
//! promise to prevent. So components that strangers upload are compiled in a child process with limits, which has
//! nothing of its parent's but three files: it reads the component from standard input, and writes the code to standard
//! output. Its environment is empty; its limits are arguments.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Seek as _, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rlimit::Resource;
use wasmtime::Engine;

use crate::configuration;
use crate::isolation::isolate;
use crate::limits::{COMPILED_BYTES, COMPILER_FILES, COMPILER_NICENESS, COMPLAINT_BYTES, Limits};
use crate::load::LoadError;
use crate::trusted::CompiledCode;

/// How often a child process is looked after.
const GLANCE: Duration = Duration::from_millis(5);
/// How long a child may take to say what isolates it.
const SAYS: Duration = Duration::from_secs(30);
/// The argument, in the place of limits, for which the child says what isolates it.
pub const ISOLATION: &str = "--isolation";

/// Who compiles.
#[derive(Debug, Clone)]
pub enum Compiler {
    /// This process. For components that can be trusted.
    InProcess,
    /// A child process that calls [`compile_child`].
    Child {
        /// What to run.
        program: PathBuf,
        /// Its arguments, the first of which are followed by the limits: bytes of memory, and seconds. Or by
        /// [`ISOLATION`].
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

impl Compiler {
    /// Has a child say what isolates it. None: components are compiled in this process.
    pub fn isolation(&self) -> io::Result<Option<String>> {
        let Self::Child { program, arguments } = self else {
            return Ok(None);
        };
        let mut answer = tempfile::tempfile()?;
        let mut command = Command::new(program);
        command.args(arguments).arg(ISOLATION);
        let child = alone(&mut command)
            .stdin(Stdio::null())
            .stdout(answer.try_clone()?)
            .stderr(Stdio::null())
            .spawn()?;
        match wait(Running(child), SAYS)? {
            Some(status) if status.success() => {
                answer.rewind()?;
                let mut text = String::new();
                answer
                    .take(COMPLAINT_BYTES as u64)
                    .read_to_string(&mut text)?;
                Ok(Some(text.trim().to_owned()))
            }
            ended => {
                let how = ended.map_or("it took too long".to_owned(), |status| status.to_string());
                Err(io::Error::other(how))
            }
        }
    }
}

/// What the child process does: limits and isolates itself, then compiles the component in `input` to `output`.
///
/// No other thread of the process may be at work on anything that a stranger sent: the limits hold for the process, the
/// isolation for this thread and those that it starts.
pub fn compile_child(
    mut input: impl Read,
    mut output: impl Write,
    memory_bytes: u64,
    seconds: u64,
) -> Result<(), CompileError> {
    let system = |what| move |source| CompileError::System { what, source };
    let limit = |resource: Resource, limit| {
        let set = resource.set(limit, limit);
        set.map_err(system("the compiler's limits cannot be set"))
    };
    let threads = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    // Requests come first: whoever uploads can wait.
    rustix::process::nice(COMPILER_NICENESS)
        .map_err(|error| system("the compiler cannot give way")(error.into()))?;
    limit(Resource::AS, memory_bytes)?;
    // Counted over all threads, while the parent counts the time on the wall.
    limit(Resource::CPU, seconds.saturating_mul(threads as u64))?;
    // Of the compiled code and of the complaints; the parent reads both.
    limit(Resource::FSIZE, COMPILED_BYTES)?;
    limit(Resource::CORE, 0)?;
    limit(Resource::NOFILE, COMPILER_FILES)?;

    let mut component = Vec::new();
    input
        .read_to_end(&mut component)
        .map_err(system("the component cannot be read"))?;
    isolate();
    // The compiler's threads, which begin isolated. The system counts all threads of a user, whatever their process:
    // nothing but "no more" means the same on every machine.
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build_global()
        .map_err(|error| {
            system("the compiler's threads cannot be started")(io::Error::other(error))
        })?;
    limit(Resource::NPROC, 0)?;

    let compiler = |error: wasmtime::Error| CompileError::Compiler(complaint(&error));
    let code = configuration::compiler().and_then(|engine| engine.precompile_component(&component));
    output
        .write_all(&code.map_err(compiler)?)
        .and_then(|()| output.flush())
        .map_err(system("the compiled code cannot be written"))
}

/// Runs a child that compiles. What it writes can be trusted as far as the program can: nobody else has the file.
fn in_child(
    command: &mut Command,
    limits: &Limits,
    folder: &Path,
    component: &[u8],
) -> Result<CompiledCode, LoadError> {
    let system = LoadError::CompilerUnavailable;
    // Files without names instead of pipes: nobody has to read along, and nothing is left of them.
    let file = || tempfile::tempfile_in(folder).map_err(system);
    let (mut input, mut output, mut complaints) = (file()?, file()?, file()?);
    input
        .write_all(component)
        .and_then(|()| input.rewind())
        .map_err(system)?;
    let child = alone(command)
        .arg(limits.compile_memory_bytes.to_string())
        .arg(limits.compile_seconds.to_string())
        .stdin(input)
        .stdout(output.try_clone().map_err(system)?)
        .stderr(complaints.try_clone().map_err(system)?)
        .spawn()
        .map_err(system)?;
    let status =
        wait(Running(child), Duration::from_secs(limits.compile_seconds)).map_err(system)?;
    match status {
        None => Err(LoadError::CompileTimeout {
            seconds: limits.compile_seconds,
        }),
        Some(status) if status.success() => compiled(&mut output).map_err(system),
        // Rust aborts where memory runs out, and the system kills what passes its processor time.
        Some(status) if status.code().is_none() => Err(LoadError::CompileLimits(last_words(
            &mut complaints,
            status,
        ))),
        Some(status) => Err(LoadError::Compile(last_words(&mut complaints, status))),
    }
}

/// A child that learns nothing of its parent: the environment has the server's secrets, the folder its files.
fn alone(command: &mut Command) -> &mut Command {
    command.env_clear().current_dir("/")
}

/// The code that a child wrote.
fn compiled(output: &mut File) -> io::Result<CompiledCode> {
    let mut code = Vec::new();
    output.rewind()?;
    output.take(COMPILED_BYTES).read_to_end(&mut code)?;
    if code.is_empty() {
        return Err(io::Error::other("it wrote nothing"));
    }
    Ok(CompiledCode::vouched_for(code))
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
        // Before its complaints a program says its name.
        Ok(_) if !text.is_empty() && status.code().is_some() => {
            text.trim_start_matches("nudge: ").to_owned()
        }
        _ => format!("the compiler ended before its time ({status})"),
    }
}

/// The compiler's complaint, cut to a size that can be shown.
fn complaint(error: &wasmtime::Error) -> String {
    let mut text = format!("{error:#}");
    text.truncate(text.floor_char_boundary(COMPLAINT_BYTES));
    text
}
