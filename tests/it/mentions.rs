//! What documents name: commands with their flags, keys of the configuration, variables, routes. Each is there.

use std::collections::BTreeMap;
use std::path::Path;

use crate::links::{ROOT, documents};

const API: &str = include_str!("../../host/docs/reference/api.md");
const COMMANDS: &str = include_str!("../../host/docs/reference/command-line.md");
const CONFIGURATION: &str = include_str!("../../host/docs/reference/configuration.md");

/// What is written like a key of the configuration and is something else.
const NO_KEYS: [&str; 4] = [
    "plugin.degraded",
    "plugin.h",
    "push.state",
    "push.transactional",
];
/// Routes that the description of the API does not have: the console's, and Patroni's and the operators' that `HAProxy` asks.
const NO_OPERATIONS: [&str; 3] = ["/console/", "/primary", "/readyz"];

/// The documents that say how things are: their paths, and what stands in them as code.
fn mentions() -> Vec<(String, Vec<String>)> {
    let all = documents(Path::new(ROOT)).into_iter();
    // The list of changes names what was, and the reference is made from the program.
    let current = all.filter(|path| !path.ends_with("CHANGELOG.md"));
    let current = current.filter(|path| {
        !path
            .components()
            .any(|part| part.as_os_str() == "reference")
    });
    let read = current.map(|path| {
        let text = std::fs::read_to_string(&path).unwrap();
        (path.display().to_string(), code(&text))
    });
    read.collect()
}

/// The code of a document: lines of blocks, and what stands between backticks.
fn code(text: &str) -> Vec<String> {
    let mut code = Vec::new();
    for (number, part) in text.split("```").enumerate() {
        if number % 2 == 1 {
            code.extend(part.lines().skip(1).map(str::to_owned));
            continue;
        }
        let (blocks, prose): (Vec<&str>, Vec<&str>) =
            part.lines().partition(|line| line.starts_with("    "));
        code.extend(blocks.into_iter().map(str::to_owned));
        let prose = prose.join(" ");
        code.extend(prose.split('`').skip(1).step_by(2).map(str::to_owned));
    }
    code
}

/// Each command's help, by the command.
fn commands() -> BTreeMap<&'static str, &'static str> {
    let sections = COMMANDS.split("\n## ").skip(1);
    sections
        .map(|section| section.split_once('\n').unwrap())
        .collect()
}

/// What a text names after `nudge`, up to whatever ends a command of a shell.
fn called(text: &str) -> Option<Vec<&str>> {
    let words = text.split_whitespace();
    let mut words = words.skip_while(|word| *word != "nudge");
    words.next()?;
    let words = words.take_while(|word| !["|", "||", "&&", ">", ";", "#"].contains(word));
    Some(words.collect())
}

#[test]
fn commands_and_flags_are_the_programs() {
    let commands = commands();
    let (mut checked, mut faults) = (0, Vec::new());
    for (document, mentions) in mentions() {
        for mention in mentions {
            let Some(words) = called(&mention) else {
                continue;
            };
            let names = words.iter().take_while(|word| {
                word.bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte == b'-')
                    && !word.starts_with('-')
            });
            let names: Vec<&str> = names.copied().collect();
            let longest = (0..=names.len()).rev().find_map(|length| {
                let name = [&["nudge"], &names[..length]].concat().join(" ");
                commands.get(&*name).map(|help| (length, *help))
            });
            let (length, help) = longest.unwrap();
            if length == 0 && !names.is_empty() {
                faults.push(format!("{document}: {mention}: there is no such command"));
            }
            let flags = words.iter().filter(|word| word.starts_with("--"));
            for flag in flags.map(|flag| flag.split('=').next().unwrap()) {
                checked += 1;
                if !help.contains(&format!("{flag} ")) && !help.contains(&format!("{flag}\n")) {
                    faults.push(format!("{document}: {mention}: there is no {flag}"));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(checked >= 50, "{checked} flags were found");
}

/// All keys of the configuration.
fn keys() -> Vec<String> {
    let mut section = "";
    let mut keys = Vec::new();
    for line in CONFIGURATION.lines() {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']');
        } else if let Some((key, _)) = line.split_once(" = ")
            && key.bytes().all(|byte| byte.is_ascii_alphanumeric())
        {
            keys.push(format!("{section}.{key}"));
        }
    }
    keys
}

#[test]
fn keys_and_variables_are_the_configurations() {
    let keys = keys();
    // Without capitals and underscores, as the names of variables are compared.
    let plain: Vec<String> = keys.iter().map(|key| key.to_lowercase()).collect();
    let (mut checked, mut faults) = (0, Vec::new());
    for (document, mentions) in mentions() {
        for mention in mentions {
            let key = mention.split(" = ").next().unwrap();
            let is_key = key
                .bytes()
                .all(|byte| byte.is_ascii_alphabetic() || byte == b'.');
            let begins = key.split_inclusive('.').next().unwrap_or_default();
            if is_key && key.contains('.') && keys.iter().any(|known| known.starts_with(begins)) {
                checked += 1;
                let is_there = keys
                    .iter()
                    .any(|known| known == key || known.starts_with(&format!("{key}.")));
                if !is_there && !NO_KEYS.contains(&key) {
                    faults.push(format!("{document}: there is no key {key}"));
                }
            }
            let words =
                mention.split(|letter: char| !(letter.is_ascii_uppercase() || letter == '_'));
            for name in words.filter_map(|word| word.strip_prefix("NUDGE_")) {
                if !name.contains("__") {
                    continue;
                }
                checked += 1;
                let path = name.replace("__", ".").replace('_', "").to_lowercase();
                if !plain.contains(&path) {
                    faults.push(format!("{document}: there is no variable NUDGE_{name}"));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(checked >= 100, "{checked} keys and variables were found");
}

/// A route, whatever its parameters are called.
fn route(path: &str) -> String {
    let parts = path.split('/').map(|part| {
        let is_parameter = part.starts_with([':', '{', '$', '<']) || part == "ID";
        if is_parameter { "*" } else { part }
    });
    parts.collect::<Vec<_>>().join("/")
}

#[test]
fn routes_are_the_apis() {
    let operations = code(API);
    let operations: Vec<(&str, String)> = operations
        .iter()
        .filter_map(|operation| operation.split_once(' '))
        .map(|(method, path)| (method, route(path)))
        .collect();
    let (mut checked, mut faults) = (0, Vec::new());
    for (document, mentions) in mentions() {
        for mention in mentions {
            let Some((method, path)) = mention.trim().split_once(" /") else {
                continue;
            };
            if !["GET", "POST", "PUT", "PATCH", "DELETE"].contains(&method) {
                continue;
            }
            let path = path.split([' ', '?']).next().unwrap();
            let path = format!("/{path}");
            checked += 1;
            let is_elsewhere = NO_OPERATIONS.iter().any(|known| path.starts_with(known));
            if !is_elsewhere && !operations.contains(&(method, route(&path))) {
                faults.push(format!("{document}: there is no {method} {path}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(checked >= 15, "{checked} routes were found");
}
