//! What an upload is: whether it loads, and whether it does what every plugin must.

use std::time::Instant;

use nudge_wasm::{Engine, Plugin};

use super::views::Check;
use super::words;
use crate::http::FieldError;

/// Names that begin like this are the built-in plugins'.
const RESERVED: &str = "default-";

/// A component that can be a plugin.
#[derive(Debug)]
pub(super) struct Inspected {
    /// The plugin.
    pub(super) plugin: Plugin,
    /// What was checked.
    pub(super) checks: Vec<Check>,
}

/// Why an upload is no plugin.
#[derive(Debug)]
pub(super) enum Refusal {
    /// What is wrong with it.
    Rejected(Vec<FieldError>),
    /// The server can't say now.
    Unavailable(anyhow::Error),
}

/// Compiles a component and tries it. Blocks for as long as that takes.
pub(super) fn inspect(engine: &Engine, component: &[u8]) -> Result<Inspected, Refusal> {
    let started = Instant::now();
    let plugin = match engine.load(component) {
        Ok(plugin) => plugin,
        Err(error) => {
            return Err(match words::of_load(&error) {
                Some(errors) => Refusal::Rejected(errors),
                None => Refusal::Unavailable(error.into()),
            });
        }
    };
    let milliseconds = started.elapsed().as_millis();
    let description = plugin.description();
    if description.name.starts_with(RESERVED) {
        let detail = format!(
            "the name `{}` begins with `{RESERVED}`, as only the built-in plugins' names do; choose another",
            description.name
        );
        return Err(Refusal::Rejected(words::refused("reserved_name", detail)));
    }
    let config = self_test(&plugin)?;
    let limit = engine.limits().component_bytes;
    let imports = match plugin.imports() {
        [] => "none".to_owned(),
        imports => imports.join(", "),
    };
    let checks = vec![
        Check::passed("component", plugin.digest()),
        Check::passed("world", plugin.kind().as_str()),
        Check::passed("imports", imports),
        Check::passed("size", format!("{} of {limit} bytes", component.len())),
        Check::passed("compile", format!("ready after {milliseconds} ms")),
        Check::passed(
            "describe",
            format!("{} {}", description.name, description.version),
        ),
        Check::passed("self-test", config),
    ];
    Ok(Inspected { plugin, checks })
}

/// A plugin says the same of itself each time, and answers about an empty configuration, whatever it answers.
fn self_test(plugin: &Plugin) -> Result<&'static str, Refusal> {
    let failed = |call: &str, failed: nudge_wasm::Failed| match words::of_self_test(call, &failed) {
        Some(errors) => Refusal::Rejected(errors),
        None => Refusal::Unavailable(failed.into()),
    };
    let again = plugin
        .describe()
        .map_err(|error| failed("`describe` once more", error))?;
    if &again != plugin.description() {
        let detail = "the self-test called `describe` twice, and the answers differ; a plugin says the same each time";
        return Err(Refusal::Rejected(words::refused(
            "self_test_failed",
            detail,
        )));
    }
    let checked = plugin
        .check_config("{}")
        .map_err(|error| failed("`check-config` with {}", error))?;
    Ok(match checked {
        Ok(_) => "describe answers the same twice; check-config accepts {}",
        Err(_) => "describe answers the same twice; check-config refuses {}, which is its right",
    })
}
