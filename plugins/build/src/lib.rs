//! Compiles plugin packages of this workspace to components, from a build script.
//!
//! ```no_run
//! // In `main` of `build.rs`:
//! plugin_build::build(&[("default-trigger", "DEFAULT_TRIGGER")]);
//! ```
//!
//! `OUT_DIR/plugins.rs`, which the package includes, then has a documented constant for each.
//!
//! Each package is compiled with the profile `plugin`, by a cargo of its own in a target folder of its own:
//! the outer build holds the lock of the outer one.

mod compile;
mod component;
mod sources;
mod target;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, process};

use anyhow::{Context as _, Result};
use target::Target;

/// Compiles packages for `wasm32-unknown-unknown` and writes `OUT_DIR/plugins.rs`, which has a constant
/// with the component of each.
///
/// `plugins` are pairs of a package and the name of its constant. When something fails, the outer build
/// stops with one line that says what.
pub fn build(plugins: &[(&str, &str)]) {
    build_or_exit(Target::Bare, plugins);
}

/// Compiles packages for `wasm32-wasip2`, as authors do, and writes `OUT_DIR/plugins_wasip2.rs`; all else
/// is like [`build`].
pub fn build_wasip2(plugins: &[(&str, &str)]) {
    build_or_exit(Target::Wasip2, plugins);
}

fn build_or_exit(target: Target, plugins: &[(&str, &str)]) {
    if let Err(error) = try_build(target, plugins) {
        tell_cargo("error", &format!("{error:#}"));
        process::exit(1);
    }
}

fn try_build(target: Target, plugins: &[(&str, &str)]) -> Result<()> {
    let root = workspace_root()?;
    let out = PathBuf::from(
        env::var_os("OUT_DIR").context("OUT_DIR is not set: call this from a build script")?,
    );

    target.ensure_installed()?;
    let packages: Vec<&str> = plugins.iter().map(|(package, _)| *package).collect();
    let artifacts = compile::compile(target, &root, &nested_target_folder(&out)?, &packages)?;

    let mut constants = String::new();
    for (package, constant) in plugins {
        let module = artifacts.join(format!("{}.wasm", package.replace('-', "_")));
        let name = format!("{package}{}.wasm", target.suffix());
        let bytes = target
            .component(&module)
            .with_context(|| format!("making a component of {package}"))?;
        fs::write(out.join(&name), bytes).with_context(|| format!("writing {name}"))?;
        writeln!(
            constants,
            "/// The component of the package `{package}`.\n\
             pub const {constant}: &[u8] = include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{name}\"));"
        )?;
    }
    let list = format!("plugins{}.rs", target.suffix());
    fs::write(out.join(&list), constants).with_context(|| format!("writing {list}"))?;

    for path in sources::of(&root, &artifacts, &packages)? {
        tell_cargo("rerun-if-changed", &path.display().to_string());
    }
    Ok(())
}

fn workspace_root() -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    root.map(Path::to_path_buf)
        .context("plugin-build is not in `plugins/build` of its workspace")
}

/// `target/plugins`, found from `OUT_DIR`, which is `target/<profile>/build/<package>/out`.
fn nested_target_folder(out: &Path) -> Result<PathBuf> {
    let build = out
        .ancestors()
        .find(|path| path.file_name().is_some_and(|name| name == "build"));
    let target = build.and_then(Path::parent).and_then(Path::parent);
    Ok(target
        .context("OUT_DIR is not in a cargo target folder")?
        .join("plugins"))
}

#[expect(
    clippy::print_stdout,
    reason = "build scripts talk to cargo through standard output"
)]
fn tell_cargo(key: &str, text: &str) {
    println!("cargo::{key}={}", text.replace('\n', " "));
}
