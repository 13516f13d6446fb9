//! `nudge compile-component`: compiles one component in a process that limits and isolates itself.
//!
//! It reads no configuration and no variable: whoever starts it says all that it needs.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;

use clap::Args;

/// Arguments of the command; the server gives them.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    /// Bytes of memory.
    #[arg(required_unless_present = "isolation")]
    memory_bytes: Option<u64>,
    /// Seconds.
    #[arg(required_unless_present = "isolation")]
    seconds: Option<u64>,
    /// Say what isolates the process, and compile nothing.
    #[arg(long)]
    isolation: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let (Some(memory_bytes), Some(seconds)) = (arguments.memory_bytes, arguments.seconds) else {
        super::say(nudge_wasm::isolate());
        return Ok(());
    };
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    nudge_wasm::compile_child(input, output, memory_bytes, seconds)?;
    Ok(())
}
