//! Python, by componentize-py.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use anyhow::Context as _;

use super::super::project::Project;
use super::{Tool, tell};

const TOOL: &str = "componentize-py";
const HOW_TO_GET_PYTHON: &str = "get Python 3.10 or later with venv from https://www.python.org";

pub(super) fn build(project: &Project, component: &Path) -> anyhow::Result<()> {
    let folder = &project.folder;
    let requirements = folder.join("requirements.txt");
    let wanted = fs::read_to_string(&requirements)
        .with_context(|| format!("can't read {}", requirements.display()))?;
    let own = folder.join(".venv").join("bin");
    let program = if fs::read_to_string(own.join(".installed")).is_ok_and(|text| text == wanted) {
        own.join(TOOL)
    } else if on_path(folder, &wanted) {
        TOOL.into()
    } else {
        install(folder, &own, &wanted)?;
        own.join(TOOL)
    };
    let tool = Tool::new(&program, HOW_TO_GET_PYTHON);
    let mut command = tool.command(folder);
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
    python.run(python.command(folder).args(["-m", "venv", ".venv"]))?;
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
