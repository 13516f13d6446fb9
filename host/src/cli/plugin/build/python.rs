//! Python, by componentize-py.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Stdio;

use anyhow::Context as _;

use super::super::project::Project;
use super::{Tool, tell};

const TOOL: &str = "componentize-py";
const HOW_TO_GET_PYTHON: &str = "get Python 3.10 or later with venv from https://www.python.org";
/// Has Python find the tool.
const FIND: &str = "import componentize_py";
/// Has Python call the tool. The tool's own script names the folder in which its environment was made, and fails once the
/// project is moved.
const CALL: &str = "import sys, componentize_py; sys.argv[0] = 'componentize-py'; sys.exit(componentize_py.script())";
/// Has Python take no modules from the folder, and no variables of this shell.
const ISOLATED: &str = "-I";

pub(super) fn build(project: &Project, component: &Path) -> anyhow::Result<()> {
    let folder = &project.folder;
    let requirements = folder.join("requirements.txt");
    let wanted = fs::read_to_string(&requirements)
        .with_context(|| format!("can't read {}", requirements.display()))?;
    let own = folder.join(".venv").join("bin");
    let python = own.join("python");
    let installed = is_installed(folder, &own, &wanted);
    let (program, call): (&OsStr, &[&str]) = if !installed && on_path(folder, &wanted) {
        (OsStr::new(TOOL), &[])
    } else {
        if !installed {
            install(folder, &own, &wanted)?;
        }
        (python.as_os_str(), &[ISOLATED, "-c", CALL])
    };
    let tool = Tool::new(program, HOW_TO_GET_PYTHON);
    let mut command = tool.command(folder);
    command.args(call);
    // The component has what the project says, whatever else this shell works with.
    command.env("VIRTUAL_ENV", folder.join(".venv"));
    command.env_remove("PYTHONPATH").env_remove("PYTHONHOME");
    // The tool's own stack would hide the line of the plugin's that it complains of.
    command.env("RUST_BACKTRACE", "0");
    command.env_remove("RUST_LIB_BACKTRACE");
    command.arg("--quiet").arg("--wit-path").arg(&project.wit);
    command.args([
        "--world",
        project.kind.as_str(),
        "componentize",
        "--stub-wasi",
    ]);
    command
        .args(["--python-path", "src", "--python-path"])
        .arg(&project.sdk);
    command.arg("--output").arg(component).arg("plugin");
    tool.run(&mut command)
        .context("no component came of the project (`/0` above is its src, `/1` the SDK)")
}

/// Whether the wanted version is installed already, in the project, and works: it may come from another machine, or Python be
/// gone since.
fn is_installed(folder: &Path, own: &Path, wanted: &str) -> bool {
    if !fs::read_to_string(own.join(".installed")).is_ok_and(|text| text == wanted) {
        return false;
    }
    let mut command = Tool::new(&own.join("python"), HOW_TO_GET_PYTHON).command(folder);
    let find = command.args([ISOLATED, "-c", FIND]);
    let found = find.stdout(Stdio::null()).stderr(Stdio::null()).status();
    found.is_ok_and(|status| status.success())
}

/// Whether the wanted version is installed already, outside of the project.
fn on_path(folder: &Path, requirements: &str) -> bool {
    let Some(wanted) = requirements.lines().find_map(pinned) else {
        return false;
    };
    let mut command = Tool::new(TOOL, HOW_TO_GET_PYTHON).command(folder);
    let output = command.arg("--version").stderr(Stdio::null()).output();
    output.is_ok_and(|output| {
        let version = String::from_utf8_lossy(&output.stdout);
        version.split_whitespace().last() == Some(wanted)
    })
}

/// The version that a line of `requirements.txt` pins the tool to.
fn pinned(line: &str) -> Option<&str> {
    line.trim()
        .strip_prefix(TOOL)?
        .trim_start()
        .strip_prefix("==")
        .map(str::trim)
}

fn install(folder: &Path, own: &Path, wanted: &str) -> anyhow::Result<()> {
    tell(format_args!(
        "installing {TOOL} into .venv, by pip install -r requirements.txt"
    ));
    let python = Tool::new("python3", HOW_TO_GET_PYTHON);
    // What is there may be of a Python that is gone.
    let make = ["-m", "venv", "--clear", ".venv"];
    python.run(python.command(folder).args(make))?;
    let program = own.join("python");
    let pip = Tool::new(&program, HOW_TO_GET_PYTHON);
    let mut command = pip.command(folder);
    command.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]);
    pip.run(command.args(["--requirement", "requirements.txt"]))?;
    // Written last: an installation that was interrupted is done again.
    fs::write(own.join(".installed"), wanted).context("can't write into .venv")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pin_is_read() {
        assert_eq!(pinned("componentize-py==0.25.1"), Some("0.25.1"));
        assert_eq!(pinned(" componentize-py == 0.25.1 "), Some("0.25.1"));
        assert_eq!(pinned("# componentize-py==0.25.1"), None);
        assert_eq!(pinned("componentize-py>=0.25"), None);
    }
}
