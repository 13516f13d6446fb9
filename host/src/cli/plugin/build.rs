//! `nudge plugin build`: a component from a project, by the language's own tools.

mod c;
mod javascript;
mod python;
mod rust;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::SystemTime;
use std::{fs, io};

use anyhow::{Context as _, bail};
use nudge_platform::config::{Config, PREFIX};
use serde_json::json;

use super::project::{Language, Project};
use super::{Folder, engine, style};

pub(super) fn run(config: &Config, arguments: &Folder) -> anyhow::Result<()> {
    let path = build(&Project::open(&arguments.dir)?)?;
    let bytes = fs::read(&path).with_context(|| format!("can't read {}", path.display()))?;
    let plugin = engine::load(config, &bytes)?;
    let description = plugin.description();
    if arguments.json {
        super::super::say(json!({
            "path": path,
            "sizeBytes": bytes.len(),
            "kind": plugin.kind().as_str(),
            "name": description.name,
            "version": description.version,
            "digest": plugin.digest(),
        }));
    } else {
        super::super::say(format_args!(
            "{}\n{} {}, a {} plugin of {}",
            path.display(),
            description.name,
            description.version,
            plugin.kind(),
            style::bytes(bytes.len())
        ));
    }
    Ok(())
}

/// Builds a project and gives the component's path. Tools' messages go to standard error.
pub(super) fn build(project: &Project) -> anyhow::Result<PathBuf> {
    match project.language {
        Language::Rust => rust::build(project),
        Language::Javascript => build_if_stale(project, javascript::build),
        Language::Python => build_if_stale(project, python::build),
        Language::C => build_if_stale(project, c::build),
    }
}

/// Builds unless the component is newer than all that it is made of.
fn build_if_stale(
    project: &Project,
    build: impl FnOnce(&Project, &Path) -> anyhow::Result<()>,
) -> anyhow::Result<PathBuf> {
    let component = project.component();
    let folder = project.folder.clone();
    let sources = [folder.join("src"), project.sdk.clone(), project.wit.clone()];
    let manifests = [
        "package.json",
        "build.mjs",
        "compile_flags.txt",
        "requirements.txt",
        "nudge-plugin.toml",
    ];
    let manifests = manifests.map(|name| folder.join(name));
    let newest = |folders| {
        let mut newest = None;
        for path in sources.iter().chain(&manifests) {
            newest = newest.max(newest_change(path, folders)?);
        }
        anyhow::Ok(newest)
    };
    if let Ok(made) = fs::metadata(&component).and_then(|metadata| metadata.modified())
        && newest(Folders::Count)?.is_some_and(|changed| changed < made)
    {
        return Ok(component);
    }
    fs::create_dir_all(folder.join("build")).context("can't make the folder `build`")?;
    #[expect(
        clippy::disallowed_methods,
        reason = "compared with the times of files, which are the system's"
    )]
    let began = SystemTime::now();
    build(project, &component)?;
    // The component may lack what was saved meanwhile, so that the next command builds again.
    if newest(Folders::DoNotCount)?.is_some_and(|changed| changed >= began) {
        let made = fs::File::options().write(true).open(&component);
        made.and_then(|made| made.set_modified(began))
            .with_context(|| component.display().to_string())?;
    }
    Ok(component)
}

/// Whether the time of a folder counts: it tells of a file that was removed or renamed, and of what a tool leaves behind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Folders {
    Count,
    DoNotCount,
}

/// When anything below a path was last changed; none where there is nothing.
fn newest_change(path: &Path, folders: Folders) -> anyhow::Result<Option<SystemTime>> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| path.display().to_string()),
    };
    if !metadata.is_dir() {
        return Ok(Some(metadata.modified()?));
    }
    let mut newest = None;
    if folders == Folders::Count {
        newest = Some(metadata.modified()?);
    }
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        // What Python itself writes there changes nothing.
        if entry.file_name() != "__pycache__" {
            newest = newest.max(newest_change(&entry.path(), folders)?);
        }
    }
    Ok(newest)
}

/// A tool that a build needs. `missing` says how to get it.
struct Tool<'t> {
    program: &'t OsStr,
    missing: &'t str,
}

impl<'t> Tool<'t> {
    fn new(program: &'t (impl AsRef<OsStr> + ?Sized), missing: &'t str) -> Self {
        Self {
            program: program.as_ref(),
            missing,
        }
    }

    fn command(&self, folder: &Path) -> Command {
        let mut command = Command::new(self.program);
        command.current_dir(folder).stdin(Stdio::null());
        // Builds run what the project and its dependencies say, which the server's keys and tokens are no concern of.
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
                command.env_remove(name);
            }
        }
        command
    }

    /// Runs a command of the tool; what it prints is the user's to read, on standard error.
    fn run(&self, command: &mut Command) -> anyhow::Result<()> {
        let status = command
            .stdout(io::stderr())
            .status()
            .map_err(|error| self.explain(error))?;
        if !status.success() {
            bail!("{} failed ({status})", self.program.display());
        }
        Ok(())
    }

    /// Runs a command of the tool for what it prints; its errors go to standard error.
    fn ask(&self, command: &mut Command) -> anyhow::Result<Output> {
        command
            .stderr(Stdio::inherit())
            .output()
            .map_err(|error| self.explain(error))
    }

    fn explain(&self, error: io::Error) -> anyhow::Error {
        let program = self.program.display();
        if error.kind() == io::ErrorKind::NotFound {
            anyhow::anyhow!("`{program}` is not installed: {}", self.missing)
        } else {
            anyhow::Error::new(error).context(format!("can't run {program}"))
        }
    }
}

/// Tells what a build is about to do that takes long or installs something.
#[expect(clippy::print_stderr, reason = "the command line's own output")]
fn tell(line: impl std::fmt::Display) {
    eprintln!("nudge: {line}");
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::thread;
    use std::time::Duration;

    use nudge_wasm::Kind;

    use super::*;

    /// More than file systems round times by.
    const MOMENT: Duration = Duration::from_millis(50);

    #[test]
    fn a_source_that_is_saved_during_a_build_is_built_by_the_next_command() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().to_owned();
        let sdk = folder.join("sdk");
        let source = folder.join("src").join("plugin.js");
        for made in [&sdk, &folder.join("src")] {
            fs::create_dir_all(made).unwrap();
        }
        fs::write(&source, "1").unwrap();
        let project = Project {
            language: Language::Javascript,
            kind: Kind::Trigger,
            wit: sdk.join("wit"),
            sdk,
            folder,
        };
        let builds = Cell::new(0);
        let build = |meanwhile: &dyn Fn()| {
            thread::sleep(MOMENT);
            let made = build_if_stale(&project, |project, component| {
                builds.set(builds.get() + 1);
                let source = fs::read(project.folder.join("src").join("plugin.js"))?;
                thread::sleep(MOMENT);
                meanwhile();
                thread::sleep(MOMENT);
                fs::write(component, source).context("component")
            });
            fs::read_to_string(made.unwrap()).unwrap()
        };
        assert_eq!(build(&|| fs::write(&source, "2").unwrap()), "1");
        assert_eq!(build(&|| {}), "2");
        assert_eq!(build(&|| {}), "2");
        assert_eq!(builds.get(), 2, "nothing was saved since the second");
    }
}
