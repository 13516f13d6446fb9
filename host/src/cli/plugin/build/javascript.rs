//! JavaScript, by componentize-js, which `build.mjs` of the project calls.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::{fs, io};

use anyhow::Context as _;

use super::super::project::Project;
use super::{Tool, tell};

const PACKAGE: &str = "@bytecodealliance/componentize-js";
const HOW_TO_GET_NODE: &str = "get Node.js 20 or later with npm from https://nodejs.org";

pub(super) fn build(project: &Project, component: &Path) -> anyhow::Result<()> {
    let node = Tool::new("node", HOW_TO_GET_NODE);
    // Found as Node.js finds it, so that projects may share what a folder above them has.
    let import = format!("await import('{PACKAGE}')");
    let mut look = node.command(&project.folder);
    look.args(["--input-type=module", "--eval", &import]);
    let found = look.stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !found.map_err(|error| node.explain(error))?.success() {
        tell(format_args!("installing {PACKAGE}, by npm install"));
        let npm = Tool::new("npm", HOW_TO_GET_NODE);
        let mut install = npm.command(&project.folder);
        npm.run(install.args(["install", "--no-fund", "--no-audit", "--loglevel=error"]))?;
    }
    check_syntax(&node, project)?;
    let mut build = node.command(&project.folder);
    build.arg("build.mjs").arg(&project.wit);
    build.arg(project.kind.as_str()).arg(component);
    node.run(&mut build)
}

/// Has Node.js read the project's modules: it names the file and line of an error, which the build does not.
fn check_syntax(node: &Tool<'_>, project: &Project) -> anyhow::Result<()> {
    let source = project.folder.join("src");
    let mut modules = Vec::new();
    find_modules(&source, &mut modules).with_context(|| source.display().to_string())?;
    modules.sort();
    for module in modules {
        let mut check = node.command(&project.folder);
        node.run(check.arg("--check").arg(&module))
            .with_context(|| format!("{} is not JavaScript", module.display()))?;
    }
    Ok(())
}

/// Finds the modules below a folder.
fn find_modules(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            find_modules(&path, found)?;
        } else if path
            .extension()
            .is_some_and(|extension| extension == "js" || extension == "mjs")
        {
            found.push(path);
        }
    }
    Ok(())
}
