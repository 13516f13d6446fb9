//! What an upload is: whether it loads, and whether it does what every plugin must.

use std::time::Instant;

use nudge_platform::field_error::FieldError;
use nudge_wasm::{Engine, Failed, Kind, Plugin, TriedDecision};

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

/// Whether no upload can have a name; why, for a person.
pub fn reserved(name: &str) -> Option<String> {
    name.starts_with(RESERVED).then(|| {
        format!("the name `{name}` begins with `{RESERVED}`, as only the built-in plugins' names do; choose another")
    })
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
    if let Some(detail) = reserved(&description.name) {
        return Err(UploadRefusal::Rejected(upload_errors::refused(
            "reserved_name",
            detail,
        )));
    }
    let self_test = self_test(&plugin)?;
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
        Check::passed("compile", format!("compiled in {milliseconds} ms")),
        Check::passed(
            "describe",
            format!("{} {}", description.name, description.version),
        ),
        Check::passed("self-test", self_test.configuration),
        Check::passed("decision", self_test.decision),
    ];
    Ok(Inspected { plugin, checks })
}

/// What the self-test found.
#[derive(Debug)]
pub struct SelfTest {
    /// What came of `describe` and `check-config`, for a person.
    pub configuration: &'static str,
    /// What came of a decision about a made-up batch, for a person.
    pub decision: String,
}

/// A plugin says the same of itself each time, and answers about an empty configuration and a made-up batch, whatever it
/// answers. Blocks, for a few seconds at the most. Fails with the fault, in words for the plugin's author.
pub fn self_test(plugin: &Plugin) -> Result<SelfTest, UploadRefusal> {
    let again = plugin
        .describe()
        .map_err(|failed| failed_on("`describe` once more", failed))?;
    if &again != plugin.description() {
        let detail = "the self-test called `describe` twice, and the answers differ; a plugin says the same each time";
        return Err(failed_self_test(detail));
    }
    let checked = plugin
        .check_config("{}")
        .map_err(|failed| failed_on("`check-config` with {}", failed))?;
    let configuration = match checked {
        Ok(_) => "describe answers the same twice; check-config accepts {}",
        Err(_) => "describe answers the same twice; check-config refuses {}, which is its right",
    };
    Ok(SelfTest {
        configuration,
        decision: decision(plugin)?,
    })
}

/// What came of a decision about a made-up batch.
fn decision(plugin: &Plugin) -> Result<String, UploadRefusal> {
    let export = match plugin.kind() {
        Kind::Trigger => "evaluate",
        Kind::Validation => "validate",
        Kind::Personalization => "resolve",
    };
    let tried = plugin
        .try_decision()
        .map_err(|failed| UploadRefusal::Unavailable(failed.into()))?;
    Ok(match tried {
        TriedDecision::Answered {
            refusal: Some(refusal),
            ..
        } => {
            let said = upload_errors::cut(&refusal.to_string()).to_owned();
            format!("{export} answers a made-up batch: {said}; it may")
        }
        TriedDecision::Answered {
            config: Some(config),
            ..
        } => {
            let config = upload_errors::cut(&config).to_owned();
            format!("{export} answers a made-up batch under the configuration {config}")
        }
        TriedDecision::Answered { config: None, .. } => format!(
            "{export} answers an empty batch; check-config refuses each made-up configuration, so that no other was \
             tried: give the configuration's schema `examples`"
        ),
        TriedDecision::Unknown(failed) => format!(
            "not tried: check-config refuses each made-up configuration, and on an empty batch {export} fails ({}): give \
             the configuration's schema `examples`",
            upload_errors::cut(&failed.to_string())
        ),
        TriedDecision::Fails(failed) => {
            let call = format!("`{export}` with made-up batches, and each call fails alike");
            return Err(failed_on(&call, failed));
        }
        TriedDecision::Slow { took, deadline } => {
            let detail = format!(
                "the self-test called `{export}` with a made-up batch three times, and each call took at least {} ms of \
                 processor time; it may take {} ms, so that every call would fail: make the decision quicker",
                took.as_millis(),
                deadline.as_millis()
            );
            return Err(failed_self_test(&detail));
        }
    })
}

fn failed_self_test(detail: &str) -> UploadRefusal {
    UploadRefusal::Rejected(upload_errors::refused("self_test_failed", detail))
}

fn failed_on(call: &str, failed: Failed) -> UploadRefusal {
    match upload_errors::of_self_test(call, &failed) {
        Some(errors) => UploadRefusal::Rejected(errors),
        None => UploadRefusal::Unavailable(failed.into()),
    }
}
