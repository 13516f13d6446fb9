//! The variables of the environment, which come before what a file has.

use std::collections::BTreeSet;

use anyhow::{Context as _, bail};
use toml::{Table, Value};

use super::{PREFIX, defaults};

/// Lays variables over a table. A value's type is that of the default: what a file has in its place may be of another one that the
/// key takes too.
pub(super) fn merge_environment(
    table: &mut Table,
    variables: impl Iterator<Item = (String, String)>,
) -> anyhow::Result<()> {
    let mut defaults = defaults()?;
    let variables: Vec<(String, String)> = variables.collect();
    for (variable, text) in &variables {
        let path = variable.strip_prefix(PREFIX).unwrap_or_default();
        let Some((sections, key)) = path.rsplit_once("__") else {
            if let Some(meant) = meant(table, path)
                && !variables.iter().any(|(name, _)| *name == meant)
            {
                bail!(
                    "{variable} is no variable of Nudge: two underscores are between a section and its key, as in {meant}"
                );
            }
            continue;
        };
        let key = camel_case(key);
        let sections: Vec<String> = sections.split("__").map(camel_case).collect();
        let unknown = || {
            let sections = sections.join(".");
            format!("{variable}: unknown configuration key `{sections}.{key}`")
        };
        let default = &*slot(&mut defaults, &sections, &key).with_context(unknown)?;
        let value = match default {
            Value::String(_) => Value::String(text.clone()),
            // JSON's lists and objects are easier to make in deployments than TOML's.
            _ => format!("value = {text}")
                .parse::<Table>()
                .ok()
                .and_then(|mut parsed| parsed.remove("value"))
                .or_else(|| serde_json::from_str(text).ok())
                // The text may be a secret.
                .with_context(|| format!("{variable}: {} is expected", kind(default)))?,
        };
        *slot(table, &sections, &key).with_context(unknown)? = value;
    }
    Ok(())
}

/// The value of a key in sections of a table.
fn slot<'t>(table: &'t mut Table, sections: &[String], key: &str) -> Option<&'t mut Value> {
    let mut place = Some(table);
    for section in sections {
        place = place
            .and_then(|table| table.get_mut(section))
            .and_then(Value::as_table_mut);
    }
    place.and_then(|table| table.get_mut(key))
}

/// The keys of `[server]` that a file or variables have.
pub(super) fn chosen_of_server(file: &Table, variables: &[(String, String)]) -> BTreeSet<String> {
    let of_file = file.get("server").and_then(Value::as_table);
    let of_file = of_file.into_iter().flatten().map(|(key, _)| key.clone());
    let of_variables = variables.iter().filter_map(|(name, _)| {
        let key = name.strip_prefix(PREFIX)?.strip_prefix("SERVER__")?;
        Some(camel_case(key))
    });
    of_file.chain(of_variables).collect()
}

/// The variable that somebody may have meant who wrote one underscore between a section and its key: a server that took no notice
/// would start with another database.
fn meant(table: &Table, path: &str) -> Option<String> {
    let words: Vec<&str> = path.split('_').collect();
    Some(format!("{PREFIX}{}", in_sections(table, &words)?))
}

/// The words of a variable with two underscores between each section and what is in it, if they lead to a key.
fn in_sections(table: &Table, words: &[&str]) -> Option<String> {
    (1..words.len()).find_map(|at| {
        let (section, rest) = words.split_at(at);
        let (section, key) = (section.join("_"), rest.join("_"));
        let within = table.get(&camel_case(&section))?.as_table()?;
        let key = match within.get(&camel_case(&key)) {
            Some(_) => key,
            None => in_sections(within, rest)?,
        };
        Some(format!("{section}__{key}"))
    })
}

/// The kind of a value, as people call it.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "a text",
        Value::Integer(_) | Value::Float(_) => "a number",
        Value::Boolean(_) => "true or false",
        Value::Array(_) => "a list, as [\"one\", \"another\"]",
        Value::Table(_) => "an object, as {key = 1}",
        Value::Datetime(_) => "a time",
    }
}

/// `RETRY_BASE_SECONDS` is `retryBaseSeconds`.
fn camel_case(upper: &str) -> String {
    let mut words = upper.split('_').map(str::to_ascii_lowercase);
    let mut name = words.next().unwrap_or_default();
    for word in words {
        let mut letters = word.chars();
        name.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        name.push_str(letters.as_str());
    }
    name
}
