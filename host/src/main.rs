//! The `nudge` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    nudge::cli::main()
}
