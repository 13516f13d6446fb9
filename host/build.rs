//! Embeds the files that `nudge plugin new` writes: the guest SDK, the contract and the templates of projects.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The lists of files, and the folders that they are of.
const LISTS: [(&str, &str); 3] = [
    ("SDK", "../guest-sdk"),
    ("WIT", "../wit"),
    ("TEMPLATES", "../plugins/templates"),
];

fn main() -> io::Result<()> {
    let package = env_path("CARGO_MANIFEST_DIR")?;
    let mut source = String::new();
    for (name, folder) in LISTS {
        println!("cargo:rerun-if-changed={folder}");
        let folder = package.join(folder).canonicalize()?;
        let mut files = Vec::new();
        list(&folder, &mut files)?;
        files.sort();
        let _ = writeln!(
            source,
            "/// Files of a folder: path and text.\npub(super) const {name}: &[(&str, &str)] = &["
        );
        for file in files {
            let path = text(file.strip_prefix(&folder).map_err(io::Error::other)?)?;
            let file = text(&file)?;
            let _ = writeln!(source, "    ({path:?}, include_str!({file:?})),");
        }
        source.push_str("];\n");
    }
    fs::write(env_path("OUT_DIR")?.join("authoring.rs"), source)
}

fn env_path(variable: &str) -> io::Result<PathBuf> {
    env::var_os(variable)
        .map(PathBuf::from)
        .ok_or_else(|| io::Error::other(format!("{variable} is not set")))
}

fn text(path: &Path) -> io::Result<&str> {
    path.to_str()
        .ok_or_else(|| io::Error::other("a path is not Unicode"))
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            // What Python and build tools leave behind is not part of it.
            if name != "target" && name != "__pycache__" {
                list(&path, files)?;
            }
        } else if !name.starts_with('.') {
            files.push(path);
        }
    }
    Ok(())
}
