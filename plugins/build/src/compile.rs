//! The nested cargo.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::target::Target;

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
pub(crate) fn compile(
    target: Target,
    root: &Path,
    target_folder: &Path,
    packages: &[&str],
) -> Result<PathBuf> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(cargo);
    command.args([
        "build",
        "--locked",
        "--lib",
        "--profile",
        "plugin",
        "--target",
        target.triple(),
    ]);
    command.arg("--manifest-path").arg(root.join("Cargo.toml"));
    command.arg("--target-dir").arg(target_folder);
    for package in packages {
        command.args(["--package", package]);
    }
    for variable in NOT_INHERITED {
        command.env_remove(variable);
    }
    if let Some((variable, flags)) = target.flags() {
        command.env(variable, flags);
    }

    // Its errors go to the standard error of the build script, which the outer cargo shows.
    let status = command.status().context("starting cargo")?;
    if !status.success() {
        bail!(
            "compiling {} failed, see the output of the build script",
            packages.join(", ")
        );
    }
    Ok(target_folder.join(target.triple()).join("plugin"))
}
