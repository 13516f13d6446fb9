//! A plugin's project: its folder, its language, its kind.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::ValueEnum;
use nudge_wasm::Kind;
use serde::Deserialize;

/// The file that says what a folder is.
const MANIFEST: &str = "nudge-plugin.toml";

/// What plugins are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Language {
    /// Rust, by cargo.
    Rust,
    /// JavaScript, by componentize-js.
    #[value(name = "js", alias = "javascript")]
    #[serde(alias = "js")]
    Javascript,
    /// Python, by componentize-py.
    Python,
    /// C, by clang.
    C,
}

impl Language {
    /// The name of its folder of templates.
    pub(super) fn folder(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Javascript => "javascript",
            Self::Python => "python",
            Self::C => "c",
        }
    }
}

/// A project.
#[derive(Clone, Debug)]
pub(super) struct Project {
    /// Its folder, absolute.
    pub(super) folder: PathBuf,
    pub(super) language: Language,
    /// What it decides; the component's own word counts.
    pub(super) kind: Kind,
    /// The folder with the contract and the helpers of the language.
    pub(super) sdk: PathBuf,
    /// The folder with the contract.
    pub(super) wit: PathBuf,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    kind: String,
    language: Language,
    sdk: Option<PathBuf>,
    wit: Option<PathBuf>,
}

impl Project {
    /// Whether a folder says itself that it is a project.
    pub(super) fn is_declared(folder: &Path) -> bool {
        folder.join(MANIFEST).is_file()
    }

    /// Reads what the folder says of itself. One with only a `Cargo.toml` is in Rust.
    pub(super) fn open(folder: &Path) -> anyhow::Result<Self> {
        let folder = folder
            .canonicalize()
            .with_context(|| format!("there is no folder {}", folder.display()))?;
        let path = folder.join(MANIFEST);
        let manifest: Manifest = match std::fs::read_to_string(&path) {
            Ok(text) => toml::from_str(&text).with_context(|| path.display().to_string())?,
            Err(_) if folder.join("Cargo.toml").is_file() => Manifest {
                kind: Kind::Trigger.to_string(),
                language: Language::Rust,
                sdk: None,
                wit: None,
            },
            Err(_) => bail!(
                "{} is no plugin's project (it has no {MANIFEST}); make one with `nudge plugin new NAME --kind trigger`, or name its folder with --dir",
                folder.display()
            ),
        };
        let sdk = folder.join(manifest.sdk.unwrap_or_else(|| PathBuf::from("sdk")));
        let wit = manifest
            .wit
            .map_or_else(|| sdk.join("wit"), |wit| folder.join(wit));
        Ok(Self {
            kind: manifest
                .kind
                .parse()
                .with_context(|| path.display().to_string())?,
            language: manifest.language,
            sdk,
            wit,
            folder,
        })
    }

    /// Where components of languages that are not compiled by cargo go.
    pub(super) fn component(&self) -> PathBuf {
        self.folder.join("build").join("plugin.wasm")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_names_a_language_as_the_flag_does_too() {
        for name in ["js", "javascript"] {
            let text = format!("kind = \"trigger\"\nlanguage = \"{name}\"");
            let manifest: Manifest = toml::from_str(&text).unwrap();
            assert_eq!(manifest.language, Language::Javascript);
        }
    }
}
