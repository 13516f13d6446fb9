//! The server's program, built with the tests: they start it, kill it, and let it compile plugins.

use std::process::ExitCode;

fn main() -> ExitCode {
    nudge::cli::main()
}
