//! `nudge plugin new`: a project that builds and passes its own test as generated.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use nudge_plugin_runtime::inspect;
use nudge_wasm::Kind;

use super::files::{SDK, TEMPLATES, WIT};
use super::project::Language;

/// Longest name of a plugin (the contract's).
const NAME_BYTES: usize = 64;

/// Arguments of the command.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The plugin's name: lower-case letters, digits and hyphens.
    name: String,
    /// What it decides: trigger, validation or personalization.
    #[arg(long, value_name = "KIND")]
    kind: Kind,
    /// What it is written in.
    #[arg(long, value_enum, default_value = "rust")]
    lang: Language,
    /// The folder to make; the name unless given.
    #[arg(long, value_name = "DIRECTORY")]
    dir: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let Arguments {
        name, kind, lang, ..
    } = arguments;
    check_name(name)?;
    let folder = arguments.dir.clone().unwrap_or_else(|| PathBuf::from(name));
    let empty = fs::read_dir(&folder).map_or(true, |mut entries| entries.next().is_none());
    if !empty {
        bail!(
            "{} is not empty; choose another folder with --dir",
            folder.display()
        );
    }
    for (path, text) in project(name, *kind, *lang) {
        write(&folder.join(path), &text)?;
    }
    let shown = folder.display();
    let there = shell_word(&folder);
    super::super::say(format_args!(
        "{shown} is a {kind} plugin in {}. Next:\n\n    cd {there}\n    nudge plugin test\n\nREADME.md leads from there to production.",
        match lang {
            Language::Rust => "Rust",
            Language::Javascript => "JavaScript",
            Language::Python => "Python",
            Language::C => "C",
        }
    ));
    Ok(())
}

/// A path as one word of a shell.
fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+@%:,=".contains(letter);
    if text.chars().all(is_plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A name that is a plugin's, a crate's and a package's.
fn check_name(name: &str) -> anyhow::Result<()> {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let begins = name
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_lowercase());
    if !begins || name.len() > NAME_BYTES || !name.bytes().all(allowed) || name.ends_with('-') {
        bail!(
            "a plugin's name has 1 to {NAME_BYTES} lower-case letters, digits and hyphens, and begins with a letter; `{name}` does not"
        );
    }
    if let Some(why) = inspect::reserved(name) {
        bail!("{why}");
    }
    // Cargo refuses these as names of packages: the crate would hide one of Rust's own.
    if [
        "core",
        "std",
        "alloc",
        "proc-macro",
        "test",
        "nudge-guest",
        "serde",
        "serde-core",
    ]
    .contains(&name)
        || RUST_KEYWORDS.contains(&name)
    {
        bail!("`{name}` is the name of something else in Rust; choose another");
    }
    Ok(())
}

/// Keywords that are lower-case words.
const RUST_KEYWORDS: [&str; 50] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate",
    "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl",
    "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref",
    "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while",
];

/// The files of a project: path in its folder, and text.
fn project(name: &str, kind: Kind, language: Language) -> Vec<(PathBuf, String)> {
    let fill = |text: &str| {
        text.replace("{{name}}", name)
            .replace("{{kind}}", kind.as_str())
            .replace("{{summary}}", summary(kind))
            .replace("{{version}}", env!("CARGO_PKG_VERSION"))
    };
    let mut files = Vec::new();
    let lang = language.folder();
    for (prefix, target) in [
        (format!("{lang}/common/"), ""),
        (format!("{lang}/{kind}/"), ""),
        (format!("cases/{kind}/"), "cases/"),
    ] {
        let found = TEMPLATES
            .iter()
            .filter_map(|(path, text)| Some((path.strip_prefix(&prefix)?, text)));
        files.extend(found.map(|(path, text)| (place(target, path), fill(text))));
    }
    files.extend(
        WIT.iter()
            .map(|(path, text)| (place("sdk/wit/", path), (*text).to_owned())),
    );
    files.extend(SDK.iter().filter_map(|(path, text)| {
        let target = match (language, *path) {
            (_, "cases.schema.json") => place("sdk/", path),
            (Language::Rust, path) if path.starts_with("src/") => place("sdk/nudge-guest/", path),
            (Language::Javascript, path) => place("sdk/", path.strip_prefix("javascript/")?),
            (Language::Python, path) => place("sdk/", path.strip_prefix("python/")?),
            (Language::C, path) => place("sdk/", path.strip_prefix("c/")?),
            (Language::Rust, _) => return None,
        };
        Some((target, (*text).to_owned()))
    }));
    if language == Language::Rust {
        let manifest = TEMPLATES
            .iter()
            .find(|(path, _)| *path == "sdk/Cargo.toml.in");
        files.extend(
            manifest.map(|(_, text)| (place("sdk/nudge-guest/", "Cargo.toml.in"), fill(text))),
        );
    }
    files
}

/// Where a template goes. `.in` keeps tools away from files that are not complete yet.
fn place(target: &str, path: &str) -> PathBuf {
    let path = path.strip_suffix(".in").unwrap_or(path);
    let path = if path == "gitignore" {
        ".gitignore"
    } else {
        path
    };
    PathBuf::from(format!("{target}{path}"))
}

/// What the generated plugin does.
fn summary(kind: Kind) -> &'static str {
    match kind {
        Kind::Trigger => {
            "Fires for a purchase of at least `minimum`, at most once in `quietMinutes`"
        }
        Kind::Validation => "Checks that one number of an event is not more than another",
        Kind::Personalization => "Resolves each binding to a greeting with the recipient's name",
    }
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    path.parent()
        .map_or(Ok(()), fs::create_dir_all)
        .and_then(|()| fs::write(path, text))
        .with_context(|| format!("can't write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_names_of_plugins_and_of_crates() {
        for name in ["cart-abandonment", "a", "x2", &"a".repeat(64)] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in [
            "",
            "Cart",
            "2x",
            "a_b",
            "a-",
            "-a",
            "fn",
            "test",
            "a b",
            "../a",
            "default-x",
            &"a".repeat(65),
        ] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        for (path, expected) in [
            ("/home/ana/my-plugin", "/home/ana/my-plugin"),
            ("../über", "../über"),
            ("my plugins/cart", "'my plugins/cart'"),
            ("ana's $HOME", r"'ana'\''s $HOME'"),
        ] {
            assert_eq!(shell_word(Path::new(path)), expected);
        }
    }

    #[test]
    fn the_tools_that_make_components_have_exact_versions() {
        let text = |language, path: &str| {
            let files = project("my-plugin", Kind::Trigger, language);
            let mut files = files.into_iter();
            let found = files.find(|(known, _)| known == Path::new(path));
            found.unwrap().1
        };
        let is_number = |part: &str| part.parse::<u32>().is_ok();
        let is_exact =
            |version: &str| version.split('.').count() == 3 && version.split('.').all(is_number);
        let package = text(Language::Javascript, "package.json");
        let package: serde_json::Value = serde_json::from_str(&package).unwrap();
        for list in ["devDependencies", "overrides"] {
            for (name, version) in package[list].as_object().unwrap() {
                assert!(is_exact(version.as_str().unwrap()), "{name}: {version}");
            }
        }
        let requirements = text(Language::Python, "requirements.txt");
        let tools = requirements.lines().filter(|line| !line.starts_with('#'));
        for line in tools {
            let (name, version) = line.split_once("==").unwrap();
            assert!(is_exact(version), "{name}: {version}");
        }
    }

    #[test]
    fn every_project_is_complete() {
        for kind in Kind::ALL {
            for (language, source) in [
                (Language::Rust, "src/lib.rs"),
                (Language::Javascript, "src/plugin.js"),
                (Language::Python, "src/plugin.py"),
                (Language::C, "src/plugin.c"),
            ] {
                let files = project("my-plugin", kind, language);
                let paths: Vec<&str> = files.iter().filter_map(|(path, _)| path.to_str()).collect();
                for path in [
                    source,
                    "README.md",
                    ".gitignore",
                    "nudge-plugin.toml",
                    "cases/configuration.json",
                    "sdk/cases.schema.json",
                    "sdk/wit/types.wit",
                ] {
                    assert!(
                        paths.contains(&path),
                        "{language:?} {kind}: {path} in {paths:?}"
                    );
                }
                let unfilled = files
                    .iter()
                    .find(|(_, text)| text.contains("{{name}}") || text.contains("{{kind}}"));
                assert_eq!(unfilled, None);
            }
        }
    }
}
