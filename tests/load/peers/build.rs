//! Compiles the plugin of Extism, by a cargo of its own in a target folder of its own: the outer build holds the lock of
//! the outer one.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, ensure};

const TARGET: &str = "wasm32-unknown-unknown";
/// Variables of the outer build that would change what the inner one compiles.
const NOT_INHERITED: [&str; 6] = [
    "CARGO_BUILD_TARGET",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_TARGET_DIR",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "RUSTFLAGS",
];

fn main() -> anyhow::Result<()> {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").context("OUT_DIR is not set")?);
    let folder = out.join("guest");
    let mut command = Command::new(std::env::var_os("CARGO").context("CARGO is not set")?);
    for variable in NOT_INHERITED {
        command.env_remove(variable);
    }
    let status = command
        .args(["build", "--locked", "--package", "extism-guest"])
        .args(["--profile", "plugin", "--target", TARGET])
        .arg("--target-dir")
        .arg(&folder)
        .status()?;
    ensure!(
        status.success(),
        "the plugin of Extism does not compile: {status}"
    );
    let module = folder.join(TARGET).join("plugin/extism_guest.wasm");
    std::fs::copy(module, out.join("extism_guest.wasm"))?;
    println!("cargo::rerun-if-changed=extism-guest");
    Ok(())
}
