//! What a trigger costs under other runtimes, and ingest by the plain way, each next to Nudge in the same run.
//!
//! A workspace of its own: what the others depend on is in no build of Nudge.

mod ingest;
#[path = "../../src/report.rs"]
#[expect(dead_code, reason = "the driver of `tests/load` uses more of it")]
mod report;
mod triggers;

use clap::{Parser, Subcommand};

/// That of the server, for all that run in this process, those in C included.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Nudge against others.
#[derive(Debug, Parser)]
#[command(name = "peers")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// A trigger of three conditions: native, Nudge, Extism, `QuickJS`, Node's `vm`, isolated and not.
    Triggers(triggers::Arguments),
    /// Events a second over HTTP: a server that makes one INSERT a request, and Nudge.
    Ingest(ingest::Arguments),
    /// The plain server that `ingest` measures.
    #[command(hide = true)]
    Plain(ingest::plain::Arguments),
}

fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    let runtime = || {
        tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
    };
    match cli.command {
        Command::Triggers(arguments) => triggers::run(&arguments),
        Command::Ingest(arguments) => runtime()?.block_on(ingest::run(arguments)),
        Command::Plain(arguments) => runtime()?.block_on(ingest::plain::run(arguments)),
    }
}
