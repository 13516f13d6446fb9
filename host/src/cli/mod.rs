//! The command line: one file a command.

mod backup;
mod compile;
mod console_link;
mod dead_letters;
mod demo;
pub mod dev;
mod doctor;
mod migrate;
mod plugin;
mod secrets;
mod serve;
mod shell;
mod token;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, Parser, Subcommand};
use nudge_http::issuer::Role;
use nudge_platform::config::{self, Config};
use nudge_platform::telemetry::Logs;
use tokio::signal::unix::{SignalKind, signal};
use uuid::Uuid;

use crate::server::{Server, Start};

/// Engagement server whose decisions are WebAssembly plugins.
#[derive(Debug, Parser)]
#[command(name = "nudge", version)]
struct Cli {
    /// Configuration file; `nudge.toml` if it is there.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run an embedded server with a demo app. It is the default: its flags need no command.
    Dev(dev::Arguments),
    /// Run a server.
    Serve(ServerArguments),
    /// Show what Nudge does on 20,000 events of a shop.
    Demo(demo::Arguments),
    /// Bring the database's schema up to date.
    Migrate(migrate::Arguments),
    /// Print every configuration key with its default.
    Config,
    /// Check the configuration and the database.
    Check(ServerArguments),
    /// Look at a running server and its database, and say what to do next.
    Doctor(doctor::Arguments),
    /// Change the master key.
    #[command(subcommand)]
    Secrets(secrets::Command),
    /// Write an encrypted backup of the embedded database and the master key, while the server runs.
    Backup(backup::BackupArguments),
    /// Make the embedded database of a backup.
    Restore(backup::RestoreArguments),
    /// Do the deletions of a later state of the database again, on one that was restored.
    RepeatDeletions(backup::DeletionsArguments),
    /// Issue an access token from the embedded issuer.
    Token(token::Arguments),
    /// Make a link that signs somebody in to the console, once, within ten minutes.
    ConsoleLink(console_link::Arguments),
    /// Write, test and deploy plugins.
    #[command(subcommand)]
    Plugin(plugin::Command),
    /// List and replay events that nothing was decided about.
    #[command(subcommand)]
    DeadLetters(dead_letters::Command),
    /// Print what has a shell complete commands and flags: `nudge completions bash > /etc/bash_completion.d/nudge`.
    Completions(shell::CompletionsArguments),
    /// Write a manual page for each command into a directory.
    Man(shell::ManArguments),
    #[command(name = nudge_plugin_runtime::COMPILE_COMMAND, hide = true)]
    CompileComponent(compile::Arguments),
}

/// Flags of every command that runs or reaches a server's parts.
#[derive(Clone, Debug, Default, Args)]
struct ServerArguments {
    /// Address of the API, 127.0.0.1:8480 unless configured; port 0 picks a free one.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Address of /livez, /readyz and /metrics, 127.0.0.1:9464 unless configured; `dev` has them at the API's
    /// address, and here only if asked.
    #[arg(long, value_name = "ADDRESS")]
    ops_listen: Option<String>,
    /// Where the database, the key file and the compiled plugins are, ./nudge-data unless configured.
    #[arg(long, value_name = "DIRECTORY")]
    data_dir: Option<PathBuf>,
    /// `sqlite:PATH` or `postgres://…`; SQLite in the data directory unless configured.
    #[arg(long, value_name = "URL")]
    database_url: Option<String>,
    /// A component that runs in place of the built-in plugin of its kind; once for each kind.
    #[arg(long = "plugin", value_name = "FILE")]
    plugins: Vec<PathBuf>,
}

/// Flags of every command that gives somebody a role.
#[derive(Debug, Args)]
struct GrantArguments {
    /// The workspace that is opened.
    #[arg(long, value_name = "ID")]
    workspace: Uuid,
    /// What may be done there.
    #[arg(long, value_enum)]
    role: Role,
    /// Whether the operator routes are opened too.
    #[arg(long)]
    operator: bool,
}

impl GrantArguments {
    fn roles(&self) -> BTreeMap<Uuid, Role> {
        BTreeMap::from([(self.workspace, self.role)])
    }
}

impl ServerArguments {
    /// Lays the flags over a configuration.
    fn apply(self, config: &mut Config) {
        config.plugins.flags.extend(self.plugins);
        config.server.listen = self
            .listen
            .unwrap_or_else(|| std::mem::take(&mut config.server.listen));
        config.server.ops_listen = self
            .ops_listen
            .unwrap_or_else(|| std::mem::take(&mut config.server.ops_listen));
        config.server.data_dir = self
            .data_dir
            .unwrap_or_else(|| std::mem::take(&mut config.server.data_dir));
        config.database.url = self
            .database_url
            .unwrap_or_else(|| std::mem::take(&mut config.database.url));
    }
}

/// Runs the program: errors are one line on standard error and a status that is not zero.
pub fn main() -> ExitCode {
    let cli = match parse(std::env::args_os().collect()) {
        Ok(cli) => cli,
        Err(error) => return misused(&error),
    };
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&with_next_step(error));
            ExitCode::FAILURE
        }
    }
}

/// Reads the arguments. Flags without a command are those of `dev`.
fn parse(arguments: Vec<OsString>) -> Result<Cli, clap::Error> {
    let error = match Cli::try_parse_from(&arguments) {
        Err(error) if error.kind() == ErrorKind::UnknownArgument => error,
        parsed => return parsed,
    };
    let mut of_dev = arguments;
    of_dev.insert(1.min(of_dev.len()), "dev".into());
    match Cli::try_parse_from(of_dev) {
        Err(other) if other.kind() == ErrorKind::UnknownArgument => Err(error),
        parsed => parsed,
    }
}

/// Says on one line what is wrong with the arguments. Help and versions have more lines: somebody asked for them.
fn misused(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        error.exit();
    }
    let text = error.render().to_string();
    let lines = text.lines().map(str::trim);
    let what: Vec<&str> = lines
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"))
        .filter(|line| !line.is_empty())
        .collect();
    let what = what.join(" ");
    let what = what.trim_start_matches("error: ");
    complain(&anyhow::anyhow!("{what}; `--help` says more"));
    ExitCode::from(2)
}

/// An error of the database with what to do about it, where that is known.
fn with_next_step(error: anyhow::Error) -> anyhow::Error {
    let reason = error.downcast_ref::<nudge_db::Error>();
    match reason.and_then(nudge_db::Error::reason) {
        Some(reason) => anyhow::anyhow!("{error:#}. {}", reason.next_step()),
        None => error,
    }
}

/// Says on one line what went wrong. What others say of it, as a compiler or a server, may have several.
#[expect(clippy::print_stderr, reason = "the command line's own output")]
fn complain(error: &anyhow::Error) {
    let told = format!("{error:#}");
    let lines = told.lines().map(str::trim);
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    eprintln!("nudge: {}", lines.join(" "));
}

/// Prints a line to standard error, beside what a command is asked for.
#[expect(clippy::print_stderr, reason = "the command line's own output")]
fn remark(line: &str) {
    eprintln!("{line}");
}

/// Prints a line to standard output. A reader that has gone away is no error.
fn say(line: impl std::fmt::Display) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stdout(), "{line}");
}

fn run(cli: Cli) -> anyhow::Result<()> {
    let load = || Config::load(cli.config.as_deref());
    match cli
        .command
        .unwrap_or_else(|| Command::Dev(dev::Arguments::default()))
    {
        Command::Dev(arguments) => on_runtime(dev::run(load()?, arguments)),
        Command::Serve(arguments) => on_runtime(serve::run(load()?, arguments)),
        Command::Demo(arguments) => on_runtime(demo::run(load()?, arguments)),
        Command::Migrate(arguments) => on_runtime(migrate::run(load()?, arguments)),
        Command::Check(arguments) => {
            if cli.config.is_none() && !Path::new(config::FILE).exists() {
                say(
                    "note: there is no nudge.toml in this folder, so defaults and the environment are checked; --config names a file",
                );
            }
            on_runtime(serve::check(load()?, arguments))
        }
        Command::Doctor(arguments) => on_runtime(doctor::run(load()?, arguments)),
        Command::Secrets(command) => on_runtime(secrets::run(load()?, command)),
        Command::Backup(arguments) => on_runtime(backup::backup(load()?, arguments)),
        Command::Restore(arguments) => on_runtime(backup::restore(load()?, arguments)),
        Command::RepeatDeletions(arguments) => on_runtime(backup::deletions(load()?, arguments)),
        Command::Token(arguments) => token::run(load()?, arguments),
        Command::ConsoleLink(arguments) => on_runtime(console_link::run(load()?, arguments)),
        Command::Plugin(command) => plugin::run(&load()?, command),
        Command::DeadLetters(command) => dead_letters::run(&load()?, command),
        Command::Completions(arguments) => {
            shell::completions(&arguments, &mut Cli::command());
            Ok(())
        }
        Command::Man(arguments) => shell::man(&arguments, Cli::command()),
        Command::CompileComponent(arguments) => compile::run(&arguments),
        Command::Config => {
            say(config::DEFAULTS.trim_end());
            Ok(())
        }
    }
}

fn on_runtime(command: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(command)
}

/// Starts a server that compiles plugins with this program.
async fn start(config: Config, embedded: bool) -> anyhow::Result<Server> {
    let logs = Logs::new(&config.telemetry)?;
    start_with_logs(config, logs, embedded).await
}

async fn start_with_logs(config: Config, logs: Logs, embedded: bool) -> anyhow::Result<Server> {
    logs.start()?;
    let start = Start {
        embedded,
        compiler: Some(compiler()?),
        ..Start::default()
    };
    Server::start(config, start).await
}

/// This program's own file, which compiles plugins in a process of its own.
fn compiler() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("can't find this program's own file")
}

/// Resolves when the terminal goes that a program was started in. From now on that does not end the program by itself. Under `nohup`
/// the signal stays ignored.
fn terminal_gone() -> anyhow::Result<impl Future<Output = ()>> {
    let mut gone = if ignores_hangups() {
        None
    } else {
        Some(signal(SignalKind::hangup())?)
    };
    Ok(async move {
        match &mut gone {
            Some(gone) => drop(gone.recv().await),
            None => std::future::pending().await,
        }
    })
}

/// Whether whoever started the program has had it ignore SIGHUP, the first of the signals.
fn ignores_hangups() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|signals| u64::from_str_radix(signals.trim(), 16).ok());
    ignored.is_some_and(|signals| signals & 1 == 1)
}

/// Says, from now on, that SIGHUP changes nothing.
fn heed_hangups() -> anyhow::Result<impl Future<Output = Infallible>> {
    let mut hangups = signal(SignalKind::hangup())?;
    Ok(async move {
        loop {
            match hangups.recv().await {
                Some(()) => tracing::warn!(
                    "SIGHUP: nothing is read anew; restart to change the configuration"
                ),
                None => std::future::pending().await,
            }
        }
    })
}

/// Resolves at SIGTERM or Ctrl-C.
async fn asked_to_stop() -> anyhow::Result<()> {
    stop_signal()?.await;
    Ok(())
}

/// Catches SIGTERM and Ctrl-C from now on; the future resolves at the first.
fn stop_signal() -> anyhow::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(arguments: &[&str]) -> Result<Cli, clap::Error> {
        let all = ["nudge"].iter().chain(arguments);
        parse(all.map(OsString::from).collect())
    }

    #[test]
    fn flags_without_a_command_are_those_of_dev() {
        for arguments in [
            &[][..],
            &["--listen", "127.0.0.1:0", "--data-dir", "d", "--json", "f"],
            &["--config", "c", "--listen", "127.0.0.1:0"],
            &["dev", "--open"],
        ] {
            let command = parsed(arguments).unwrap().command;
            assert!(
                matches!(command, None | Some(Command::Dev(_))),
                "{arguments:?}"
            );
        }
        for (arguments, kind, named) in [
            (&["--listen"][..], ErrorKind::InvalidValue, "--listen"),
            (&["--lisn", "x"], ErrorKind::UnknownArgument, "--lisn"),
            (&["config", "--lisn"], ErrorKind::UnknownArgument, "--lisn"),
        ] {
            let error = parsed(arguments).unwrap_err();
            assert_eq!(error.kind(), kind, "{arguments:?}");
            assert!(error.to_string().contains(named), "{error}");
        }
    }
}
