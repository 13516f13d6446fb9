//! Rust, by cargo.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde::Deserialize;

use super::super::project::Project;
use super::{Tool, tell};

const TARGET: &str = "wasm32-wasip2";
const HOW_TO_GET_RUST: &str = "get Rust from https://rustup.rs";

pub(super) fn build(project: &Project) -> anyhow::Result<PathBuf> {
    add_target(&project.folder)?;
    let program = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let cargo = Tool::new(&program, HOW_TO_GET_RUST);
    let mut command = cargo.command(&project.folder);
    command.args(["build", "--release", "--lib", "--target", TARGET]);
    command.arg("--message-format=json-render-diagnostics");
    let output = cargo.ask(&mut command)?;
    if !output.status.success() {
        bail!("cargo failed ({})", output.status);
    }
    let manifest = project.folder.join("Cargo.toml");
    let messages = String::from_utf8_lossy(&output.stdout);
    component(&messages, &manifest).context(
        "cargo made no component; does Cargo.toml have crate-type = [\"cdylib\"] in [lib]?",
    )
}

/// Adds the target where rustup is in charge and does not have it.
fn add_target(folder: &Path) -> anyhow::Result<()> {
    let rustc = Tool::new("rustc", HOW_TO_GET_RUST);
    let installed = || -> anyhow::Result<bool> {
        let mut command = rustc.command(folder);
        let output = rustc.ask(command.args(["--print", "target-libdir", "--target", TARGET]))?;
        let libraries = String::from_utf8_lossy(&output.stdout);
        Ok(output.status.success() && Path::new(libraries.trim()).is_dir())
    };
    if installed()? {
        return Ok(());
    }
    tell(format_args!(
        "adding the Rust target {TARGET}, by rustup target add {TARGET}"
    ));
    let missing = format!("install the Rust target {TARGET} in the way that Rust was installed");
    let rustup = Tool::new("rustup", &missing);
    rustup.run(rustup.command(folder).args(["target", "add", TARGET]))?;
    if !installed()? {
        bail!("the Rust target {TARGET} is still missing; run rustup target add {TARGET}");
    }
    Ok(())
}

/// A line of cargo's output, as far as it matters here.
#[derive(Deserialize)]
struct Message {
    reason: String,
    manifest_path: Option<PathBuf>,
    #[serde(default)]
    filenames: Vec<PathBuf>,
}

/// The component among the artifacts that cargo reports for a package.
fn component(messages: &str, manifest: &Path) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok())
        .filter(|message| message.reason == "compiler-artifact")
        .filter(|message| message.manifest_path.as_deref() == Some(manifest))
        .flat_map(|message| message.filenames)
        .find(|file| {
            file.extension()
                .is_some_and(|extension| extension == "wasm")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_component_is_the_packages_own() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","manifest_path":"/p/sdk/Cargo.toml","filenames":["/t/sdk.wasm"]}"#,
            "\nnot JSON\n",
            r#"{"reason":"compiler-artifact","manifest_path":"/p/Cargo.toml","filenames":["/t/p.rlib","/t/p.wasm"]}"#,
            "\n",
            r#"{"reason":"build-finished","success":true}"#,
        );
        let found = |manifest| component(messages, Path::new(manifest));
        assert_eq!(found("/p/Cargo.toml"), Some(PathBuf::from("/t/p.wasm")));
        assert_eq!(found("/q/Cargo.toml"), None);
    }
}
