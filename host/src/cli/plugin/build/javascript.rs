//! JavaScript, by componentize-js, which `build.mjs` of the project calls.

use std::path::Path;
use std::process::Stdio;

use super::super::project::Project;
use super::{Tool, tell};

const PACKAGE: &str = "@bytecodealliance/componentize-js";
const HOW_TO_GET_NODE: &str = "get Node.js 20 or later with npm from https://nodejs.org";

pub(super) fn build(project: &Project, component: &Path) -> anyhow::Result<()> {
    let node = Tool::new("node", HOW_TO_GET_NODE);
    // Found as Node.js finds it, so that projects may share what a folder above them has.
    let resolve = format!("import.meta.resolve('{PACKAGE}')");
    let mut look = node.command(&project.folder);
    look.args(["--input-type=module", "--eval", &resolve]);
    let found = look.stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !found.map_err(|error| node.explain(error))?.success() {
        tell(format_args!("installing {PACKAGE}, by npm install"));
        let npm = Tool::new("npm", HOW_TO_GET_NODE);
        let mut install = npm.command(&project.folder);
        npm.run(install.args(["install", "--no-fund", "--no-audit", "--loglevel=error"]))?;
    }
    let mut build = node.command(&project.folder);
    build.arg("build.mjs").arg(&project.wit);
    build.arg(project.kind.as_str()).arg(component);
    node.run(&mut build)
}
