//! `nudge completions` and `nudge man`: what is installed beside the program.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Command};
use clap_complete::Shell;

#[derive(Debug, Args)]
pub(super) struct CompletionsArguments {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Debug, Args)]
pub(super) struct ManArguments {
    /// Where the pages go, such as /usr/local/share/man/man1.
    directory: PathBuf,
}

/// Prints the completions.
pub(super) fn completions(arguments: &CompletionsArguments, cli: &mut Command) {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, cli, "nudge", &mut script);
    super::say(String::from_utf8_lossy(&script).trim_end());
}

/// Writes `nudge.1`, `nudge-serve.1` and so on.
pub(super) fn man(arguments: &ManArguments, cli: Command) -> anyhow::Result<()> {
    let directory = &arguments.directory;
    let cannot = || format!("can't write manual pages to {}", directory.display());
    std::fs::create_dir_all(directory).with_context(cannot)?;
    clap_mangen::generate_to(cli, directory).with_context(cannot)
}
