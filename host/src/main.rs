//! The `nudge` program.

use std::process::ExitCode;

/// Many threads free what others allocated; this allocator is made for that. Libraries in C, SQLite among them, have it in place of
/// `malloc` (`override` in `Cargo.toml`).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    nudge::memory::use_small_pages();
    nudge::cli::main()
}
