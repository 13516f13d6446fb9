//! `nudge plugin …`: from an empty folder to a plugin that decides on a server.

mod bench;
mod build;
mod check;
pub(super) mod client;
mod engine;
mod files;
mod new;
pub(super) mod observe;
mod project;
pub(super) mod remote;
mod style;
mod test;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use nudge_platform::config::Config;

/// Commands for authors of plugins.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make a project that builds and passes its own test.
    New(new::Arguments),
    /// Build the project to a component.
    Build(Folder),
    /// Check the component as a server does at upload.
    Check(Checked),
    /// Run the project's cases under the server's limits, without a server.
    Test(test::Arguments),
    /// Measure what calls cost, against the limits.
    Bench(bench::Arguments),
    /// Upload the component to a server.
    Push(remote::Push),
    /// Let a version decide: at once, in the shadow of the active one, or for some subjects.
    Activate(remote::Activate),
    /// Make the candidate of a roll-out the active version.
    Promote(remote::Named),
    /// Bring the version before back.
    Rollback(remote::Named),
    /// List plugins.
    List(remote::List),
    /// Say which version decides, how it fares, and why one was rolled back.
    Status(remote::Named),
    /// Show calls, failures, latency and memory by version.
    Metrics(remote::Named),
    /// Show what a shadow candidate would have decided otherwise.
    Shadow(observe::Shadow),
    /// Run recorded events through a version and the active one, and compare.
    Backtest(observe::Backtest),
    /// Print what a plugin logged.
    Logs(remote::Logs),
}

/// Where the project is.
#[derive(Debug, Args)]
pub(super) struct Folder {
    /// The project.
    #[arg(long, value_name = "DIRECTORY", default_value = ".")]
    dir: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// A component: a file, or what the project builds to.
#[derive(Debug, Args)]
pub(super) struct Checked {
    /// The component. Without it, the project is built.
    file: Option<PathBuf>,
    #[command(flatten)]
    folder: Folder,
}

/// The bytes of a component, and where they are from.
struct Component {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Component {
    /// Reads a file, or builds the project.
    fn open(file: Option<&Path>, folder: &Path) -> anyhow::Result<Self> {
        let path = match file {
            Some(file) => file.to_owned(),
            None => build::build(&project::Project::open(folder)?)?,
        };
        let bytes =
            std::fs::read(&path).with_context(|| format!("can't read {}", path.display()))?;
        Ok(Self { path, bytes })
    }
}

pub(super) fn run(config: &Config, command: Command) -> anyhow::Result<()> {
    match command {
        Command::New(arguments) => new::run(&arguments),
        Command::Build(arguments) => build::run(config, &arguments),
        Command::Check(arguments) => check::run(config, &arguments),
        Command::Test(arguments) => test::run(config, &arguments),
        Command::Bench(arguments) => bench::run(config, &arguments),
        Command::Push(arguments) => super::on_runtime(remote::push(config, arguments)),
        Command::Activate(arguments) => super::on_runtime(remote::activate(config, arguments)),
        Command::Promote(arguments) => super::on_runtime(remote::promote(config, arguments)),
        Command::Rollback(arguments) => super::on_runtime(remote::rollback(config, arguments)),
        Command::List(arguments) => super::on_runtime(remote::list(config, arguments)),
        Command::Status(arguments) => super::on_runtime(observe::status(config, arguments)),
        Command::Metrics(arguments) => super::on_runtime(observe::metrics(config, arguments)),
        Command::Shadow(arguments) => super::on_runtime(observe::shadow(config, arguments)),
        Command::Backtest(arguments) => super::on_runtime(observe::backtest(config, arguments)),
        Command::Logs(arguments) => super::on_runtime(remote::logs(config, arguments)),
    }
}
