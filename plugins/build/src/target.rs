//! The compilation targets, and their installation where they are missing.

use std::path::Path;
use std::process::Command;
use std::{env, ffi::OsString, fs};

use anyhow::{Context as _, Result, bail};

use crate::component;

/// A plugin's whole stack lies in memory that the host clears after each call, so it is small.
const STACK_BYTES: u32 = 64 * 1024;

/// What plugins are compiled for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    /// A module without any WASI, of which a component is made.
    Bare,
    /// A component, by cargo alone.
    Wasip2,
}

impl Target {
    pub(crate) fn triple(self) -> &'static str {
        match self {
            Self::Bare => "wasm32-unknown-unknown",
            Self::Wasip2 => "wasm32-wasip2",
        }
    }

    /// What tells the files of this target from those of the first.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::Bare => "",
            Self::Wasip2 => "_wasip2",
        }
    }

    /// The variable with the compiler's flags for this target, and the flags.
    pub(crate) fn flags(self) -> Option<(&'static str, String)> {
        match self {
            Self::Bare => Some((
                "CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS",
                format!("-Clink-arg=-zstack-size={STACK_BYTES}"),
            )),
            Self::Wasip2 => None,
        }
    }

    /// The component of what cargo made.
    pub(crate) fn component(self, file: &Path) -> Result<Vec<u8>> {
        let bytes = fs::read(file).with_context(|| format!("reading {}", file.display()))?;
        match self {
            Self::Bare => component::from_module(&bytes),
            Self::Wasip2 => Ok(bytes),
        }
    }

    /// Installs the target with rustup unless it is there.
    pub(crate) fn ensure_installed(self) -> Result<()> {
        if self.installed()? {
            return Ok(());
        }
        let triple = self.triple();
        crate::tell_cargo(
            "warning",
            &format!("installing the missing target: rustup target add {triple}"),
        );
        let added = Command::new("rustup")
            .args(["target", "add", triple])
            .status();
        if !added.is_ok_and(|status| status.success()) || !self.installed()? {
            bail!("plugins need the Rust target {triple}: run `rustup target add {triple}`");
        }
        Ok(())
    }

    fn installed(self) -> Result<bool> {
        let rustc = env::var_os("RUSTC").unwrap_or_else(|| OsString::from("rustc"));
        let output = Command::new(rustc)
            .args(["--print", "target-libdir", "--target", self.triple()])
            .output()
            .context("asking rustc for its target folder")?;
        let folder = String::from_utf8_lossy(&output.stdout);
        Ok(output.status.success() && Path::new(folder.trim()).is_dir())
    }
}
