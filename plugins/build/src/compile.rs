//! The nested cargo.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::target::TRIPLE;

/// A plugin's whole stack lies in pages that each fresh instance touches anew, so it is small.
const STACK_BYTES: u32 = 128 * 1024;

/// Variables of the outer build that would change what the nested one compiles: clippy, coverage and
/// documentation runs must give the same plugins, from the same cache, as a plain build.
const NOT_INHERITED: [&str; 9] = [
    "CARGO_BUILD_RUSTFLAGS",
    "CARGO_BUILD_TARGET",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_TARGET_DIR",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "RUSTDOCFLAGS",
    "RUSTFLAGS",
    "CARGO_BUILD_TARGET_DIR",
];

/// Compiles the packages and returns the folder that their modules are in.
pub(crate) fn compile(root: &Path, target_folder: &Path, packages: &[&str]) -> Result<PathBuf> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(cargo);
    command.args([
        "build",
        "--locked",
        "--lib",
        "--profile",
        "plugin",
        "--target",
        TRIPLE,
    ]);
    command.arg("--manifest-path").arg(root.join("Cargo.toml"));
    command.arg("--target-dir").arg(target_folder);
    for package in packages {
        command.args(["--package", package]);
    }
    for variable in NOT_INHERITED {
        command.env_remove(variable);
    }
    command.env(
        "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS",
        format!("-Clink-arg=-zstack-size={STACK_BYTES}"),
    );

    // Its errors go to the standard error of the build script, which the outer cargo shows.
    let status = command.status().context("starting cargo")?;
    if !status.success() {
        bail!(
            "compiling {} failed, see the output of the build script",
            packages.join(", ")
        );
    }
    Ok(target_folder.join(TRIPLE).join("plugin"))
}
