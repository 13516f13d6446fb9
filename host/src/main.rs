//! The `nudge` program.

use std::process::ExitCode;

/// Many threads free what others allocated; this allocator is made for that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    nudge::memory::use_small_pages();
    nudge::cli::main()
}
