//! What an upload is: whether it loads, and whether it does what every plugin must.

use std::time::Instant;

use nudge_platform::field_error::FieldError;
use nudge_wasm::{Engine, Plugin};

use crate::check::Check;
use crate::upload_errors;

/// Names that begin like this are the built-in plugins'.
const RESERVED: &str = "default-";

/// A component that can be a plugin.
#[derive(Debug)]
pub struct Inspected {
    /// The plugin.
    pub plugin: Plugin,
    /// What was checked.
    pub checks: Vec<Check>,
}

/// Why an upload is no plugin.
#[derive(Debug)]
pub enum UploadRefusal {
    /// What is wrong with it.
    Rejected(Vec<FieldError>),
    /// The server can't say now.
    Unavailable(anyhow::Error),
}

/// Compiles a component and tries it. Blocks for as long as that takes.
pub fn inspect(engine: &Engine, component: &[u8]) -> Result<Inspected, UploadRefusal> {
    let started = Instant::now();
    let plugin = match engine.load(component) {
        Ok(plugin) => plugin,
        Err(error) => {
            return Err(match upload_errors::of_load(&error) {
                Some(errors) => UploadRefusal::Rejected(errors),
                None => UploadRefusal::Unavailable(error.into()),
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
        return Err(UploadRefusal::Rejected(upload_errors::refused(
            "reserved_name",
            detail,
        )));
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
fn self_test(plugin: &Plugin) -> Result<&'static str, UploadRefusal> {
    let failed =
        |call: &str, failed: nudge_wasm::Failed| match upload_errors::of_self_test(call, &failed) {
            Some(errors) => UploadRefusal::Rejected(errors),
            None => UploadRefusal::Unavailable(failed.into()),
        };
    let again = plugin
        .describe()
        .map_err(|error| failed("`describe` once more", error))?;
    if &again != plugin.description() {
        let detail = "the self-test called `describe` twice, and the answers differ; a plugin says the same each time";
        return Err(UploadRefusal::Rejected(upload_errors::refused(
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
