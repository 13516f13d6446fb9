//! C, by clang: bindings of the contract by wit-bindgen, a module by clang, a component of it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::{Context as _, bail};
use nudge_wasm::Kind;
use wit_bindgen_core::Files;
use wit_bindgen_core::wit_parser::Resolve;
use wit_component::ComponentEncoder;

use super::super::project::Project;
use super::Tool;

const HOW_TO_GET_CLANG: &str = "get clang and lld: apt-get install clang lld, or brew install llvm lld, or https://releases.llvm.org";
const LINKER: &str = "wasm-ld";
/// What clang is called with, a word a line.
const FLAGS: &str = "compile_flags.txt";
/// How the linker makes a module without a `main`. The stack comes first, so that one that is too small traps.
const LINK: [&str; 4] = [
    "-nostdlib",
    "-Wl,--no-entry",
    "-Wl,--strip-debug",
    "-Wl,--stack-first",
];
/// The beginning of names that belong to the plugin's world, and of the bindings' files.
const WORLD: &str = "plugin";

pub(super) fn build(project: &Project, component: &Path) -> anyhow::Result<()> {
    let folder = &project.folder;
    let bindings = folder.join("build").join("bindings");
    write_bindings(&project.wit, project.kind, &bindings)?;
    let clang = Tool::new("clang", HOW_TO_GET_CLANG);
    check_linker(&clang, folder)?;
    let flags = folder.join(FLAGS);
    let flags =
        fs::read_to_string(&flags).with_context(|| format!("can't read {}", flags.display()))?;
    let module = folder.join("build").join("module.wasm");
    let mut command = clang.command(folder);
    command.args(flags.lines().map(str::trim).filter(|flag| !flag.is_empty()));
    command.args(LINK).arg("-o").arg(&module);
    let mut sources = Vec::new();
    for source in [&folder.join("src"), &project.sdk] {
        find_sources(source, &mut sources).with_context(|| source.display().to_string())?;
    }
    sources.sort();
    command.args(sources);
    command.arg(bindings.join(format!("{WORLD}.c")));
    command.arg(bindings.join(format!("{WORLD}_component_type.o")));
    clang.run(&mut command)?;
    let module = fs::read(&module).with_context(|| format!("can't read {}", module.display()))?;
    let bytes = ComponentEncoder::default()
        .validate(true)
        .module(&module)
        .and_then(|mut encoder| encoder.encode())
        .context(
            "the module is no plugin; does it export what build/bindings/plugin.h declares?",
        )?;
    fs::write(component, bytes).with_context(|| format!("can't write {}", component.display()))
}

/// Writes what wit-bindgen makes of the contract. Names are short: `host_` for what the host has, `exports_plugin_` for
/// what the plugin has.
fn write_bindings(wit: &Path, kind: Kind, folder: &Path) -> anyhow::Result<()> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(wit)?;
    let world = resolve.select_world(&[package], Some(kind.as_str()))?;
    let contract = resolve.id_of_name(package, "types");
    let renamed = |interface: &str, name: &str| (contract.replace("types", interface), name.into());
    let options = wit_bindgen_c::Opts {
        rename: vec![
            renamed("types", "types"),
            renamed("log", "log"),
            renamed(&format!("{kind}-host"), "host"),
            renamed(&format!("{kind}-plugin"), "plugin"),
        ],
        rename_world: Some(WORLD.to_owned()),
        autodrop_borrows: wit_bindgen_c::Enabled::Yes,
        ..Default::default()
    };
    let mut files = Files::default();
    options
        .build()
        .generate(&mut resolve, world, &mut files)
        .context("can't make the bindings")?;
    fs::create_dir_all(folder).with_context(|| format!("can't make {}", folder.display()))?;
    for (name, bytes) in files.iter() {
        let path = folder.join(name);
        fs::write(&path, bytes).with_context(|| format!("can't write {}", path.display()))?;
    }
    Ok(())
}

/// Says in one line what is missing, which clang itself does not.
fn check_linker(clang: &Tool<'_>, folder: &Path) -> anyhow::Result<()> {
    let mut command = clang.command(folder);
    command.args([
        "--target=wasm32-unknown-unknown",
        "--print-prog-name=wasm-ld",
    ]);
    let output = clang.ask(&mut command)?;
    let found = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && !Path::new(found.trim()).is_absolute() {
        bail!("`{LINKER}` is not installed: {HOW_TO_GET_CLANG}");
    }
    Ok(())
}

/// Finds the sources in C below a folder.
fn find_sources(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            find_sources(&path, found)?;
        } else if path.extension() == Some(OsStr::new("c")) {
            found.push(path);
        }
    }
    Ok(())
}
