//! The compilation target, and its installation where it is missing.

use std::path::Path;
use std::process::Command;
use std::{env, ffi::OsString};

use anyhow::{Context as _, Result, bail};

/// What plugins are compiled for: a module without any WASI, of which a component is made.
pub(crate) const TRIPLE: &str = "wasm32-unknown-unknown";

/// Installs the target with rustup unless it is there.
pub(crate) fn ensure_installed() -> Result<()> {
    if installed()? {
        return Ok(());
    }
    crate::tell_cargo(
        "warning",
        &format!("installing the missing target: rustup target add {TRIPLE}"),
    );
    let added = Command::new("rustup")
        .args(["target", "add", TRIPLE])
        .status();
    if !added.is_ok_and(|status| status.success()) || !installed()? {
        bail!("plugins need the Rust target {TRIPLE}: run `rustup target add {TRIPLE}`");
    }
    Ok(())
}

fn installed() -> Result<bool> {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| OsString::from("rustc"));
    let output = Command::new(rustc)
        .args(["--print", "target-libdir", "--target", TRIPLE])
        .output()
        .context("asking rustc for its target folder")?;
    let folder = String::from_utf8_lossy(&output.stdout);
    Ok(output.status.success() && Path::new(folder.trim()).is_dir())
}
