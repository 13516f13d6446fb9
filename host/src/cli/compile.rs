//! `nudge compile-component`: compiles one component in a process that limits itself.

use std::path::PathBuf;

use clap::Args;

use crate::config::Config;
use crate::plugins;

/// Arguments of the command; the server gives them.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// The component.
    input: PathBuf,
    /// Where the machine code goes.
    output: PathBuf,
}

pub(super) fn run(config: &Config, arguments: &Arguments) -> anyhow::Result<()> {
    nudge_wasm::compile_child(
        &arguments.input,
        &arguments.output,
        &plugins::limits(config),
    )?;
    Ok(())
}
