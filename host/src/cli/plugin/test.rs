//! `nudge plugin test`: the project's cases under the server's limits, without a server.

mod report;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, bail};
use clap::Args;
use nudge_platform::config::Config;
use nudge_plugin_runtime::cases::{self, Case};
use nudge_plugin_runtime::limits;
use report::{Report, Tested};
use serde::Deserialize;

use super::style::Style;
use super::{Checked, Component, engine};

/// Arguments of the command.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    component: Checked,
    /// Only cases whose name or file contains this text.
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
}

/// A file of cases has one or a list of them.
#[derive(Deserialize)]
#[serde(untagged)]
enum File {
    Many(Vec<serde_json::Value>),
    One(serde_json::Value),
}

/// A case, and the file that it is in.
pub(super) struct CaseFile {
    pub(super) file: String,
    pub(super) case: Case,
}

pub(super) fn run(config: &Config, arguments: &Arguments) -> anyhow::Result<()> {
    let Checked { file, folder } = &arguments.component;
    let component = Component::open(file.as_deref(), &folder.dir)?;
    let plugin = engine::load(config, &component.bytes)?;
    let mut report = Report {
        limits: limits(config),
        ..Report::default()
    };
    let started = Instant::now();
    for CaseFile { file, case } in find(&folder.dir.join("cases"))? {
        let wanted = arguments.filter.as_ref();
        if wanted.is_some_and(|text| !case.name.contains(text) && !file.contains(text)) {
            report.skipped += 1;
            continue;
        }
        report.tested.push(Tested {
            outcome: cases::run(&plugin, &case),
            file,
            name: case.name,
        });
    }
    report.elapsed = started.elapsed();
    if folder.json {
        super::super::say(report.as_json(&plugin));
    } else {
        super::super::say(report.as_text(&plugin, Style::of_terminal()));
    }
    match (report.tested.len(), report.failed()) {
        (0, _) if report.skipped > 0 => bail!(
            "no case was run: the name and the file of none contain `{}`",
            arguments.filter.as_deref().unwrap_or_default()
        ),
        (0, _) => bail!("no case was run; cases are the JSON files in `cases`"),
        (_, 0) => Ok(()),
        (all, failed) => bail!("{failed} of {all} cases failed"),
    }
}

/// Reads the cases of a folder, files in the order of their names.
pub(super) fn find(folder: &Path) -> anyhow::Result<Vec<CaseFile>> {
    let entries = fs::read_dir(folder).with_context(|| {
        format!(
            "there is no folder {}, where a project has its cases; name the project with --dir",
            folder.display()
        )
    })?;
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            files.push(path);
        }
    }
    files.sort();
    let mut found = Vec::new();
    for path in files {
        let shown = || path.display().to_string();
        let text = fs::read_to_string(&path).with_context(shown)?;
        let file = match serde_json::from_str(&text).with_context(shown)? {
            File::Many(cases) => cases,
            File::One(case) => vec![case],
        };
        for (index, case) in file.into_iter().enumerate() {
            if !case.is_object() {
                bail!(
                    "{}: case {} is no object with an `input`",
                    path.display(),
                    index + 1
                );
            }
            let case = Case::deserialize(case)
                .with_context(|| format!("{}: case {}", path.display(), index + 1))?;
            let file = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            found.push(CaseFile { file, case });
        }
    }
    Ok(found)
}
