//! Plugins in an engine, from outside.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails where it panics"
)]
#![expect(clippy::too_many_lines, reason = "tables of cases")]

mod ahead;
mod calls;
mod compiling;
mod contract;
mod defaults;
mod handmade;
mod hostile_bytes;
mod hostile_calls;
mod hostile_loads;
mod hostile_modes;
mod idle;
mod kept;
mod limits;
mod loading;
mod purity;
mod self_test;
mod support;
mod wasi;
mod witness;
mod worlds;
