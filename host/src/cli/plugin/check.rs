//! `nudge plugin check`: whether a server would take the component, and how far it is from the limits.

use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail};
use nudge_platform::config::Config;
use nudge_plugin_runtime as plugins;
use nudge_plugin_runtime::inspect::{self, SelfTest, UploadRefusal};
use nudge_plugin_runtime::upload_errors;
use nudge_wasm::{Limits, LoadError, Plugin};
use serde_json::json;

use super::style::{self, Style};
use super::{Checked, Component, engine};

/// One thing that is measured, and its limit.
struct Measure {
    what: &'static str,
    key: &'static str,
    used: f64,
    limit: f64,
    shown: String,
}

pub(super) fn run(config: &Config, arguments: &Checked) -> anyhow::Result<()> {
    let component = Component::open(arguments.file.as_deref(), &arguments.folder.dir)?;
    let shown = component.path.display();
    // An empty cache, so that compiling is measured.
    let folder = tempfile::tempdir().context("can't make a temporary folder")?;
    let engine = engine::open(config, folder.path())?;
    let started = Instant::now();
    let plugin = engine
        .load(&component.bytes)
        .map_err(in_words_of_a_server)
        .with_context(|| format!("{shown} would be refused"))?;
    let loading = started.elapsed();
    if let Some(why) = inspect::reserved(&plugin.description().name) {
        bail!("{shown} would be refused: {why}");
    }
    let limits = plugins::limits(config);
    let self_test = self_test(&plugin).with_context(|| format!("{shown} would be refused"))?;
    let measures = measures(&plugin, &limits, component.bytes.len(), loading)?;
    if arguments.folder.json {
        super::super::say(as_json(&plugin, &component, &measures, &self_test));
    } else {
        super::super::say(as_text(&plugin, &component, &measures, &self_test));
    }
    let beyond = measures.iter().find(|measure| measure.used > measure.limit);
    if let Some(measure) = beyond {
        bail!(
            "{shown} is over a limit: {} is {}",
            measure.what,
            measure.shown
        );
    }
    Ok(())
}

/// Why a component can't be loaded and how to mend it, as a server says it.
fn in_words_of_a_server(error: LoadError) -> anyhow::Error {
    let Some(errors) = upload_errors::of_load(&error) else {
        return error.into();
    };
    let details: Vec<String> = errors.into_iter().map(|error| error.detail).collect();
    anyhow!(details.join("; "))
}

#[expect(clippy::cast_precision_loss, reason = "shares of limits")]
fn measures(
    plugin: &Plugin,
    limits: &Limits,
    size: usize,
    loading: Duration,
) -> anyhow::Result<Vec<Measure>> {
    let mut calls = Vec::new();
    for _ in 0..10 {
        calls.push(
            plugin
                .start_up()
                .context("the plugin cannot describe itself")?,
        );
    }
    calls.sort_by_key(|call| call.elapsed);
    let Some(typical) = calls.get(calls.len() / 2) else {
        bail!("nothing was measured");
    };
    let bytes = |what, key, used, limit| Measure {
        what,
        key,
        used: used as f64,
        limit: limit as f64,
        shown: format!("{} of {}", style::bytes(used), style::bytes(limit)),
    };
    let time = |what, key, used: Duration, limit: Duration| Measure {
        what,
        key,
        used: used.as_secs_f64(),
        limit: limit.as_secs_f64(),
        shown: format!("{} of {}", style::time(used), style::time(limit)),
    };
    let compile = Duration::from_secs(limits.compile_seconds);
    Ok(vec![
        bytes("size", "sizeBytes", size, limits.component_bytes),
        time("compiling", "compileSeconds", loading, compile),
        time(
            "start and describe",
            "describeSeconds",
            typical.elapsed,
            limits.describe_deadline,
        ),
        bytes(
            "memory at the start",
            "memoryBytes",
            typical.memory_bytes,
            limits.memory_bytes,
        ),
    ])
}

/// What an import is for.
fn meaning(import: &str) -> &'static str {
    let interface = import.split('@').next().unwrap_or_default();
    match interface {
        "nudge:plugin/types" => "types of the contract",
        "nudge:plugin/log" => "the plugin's log",
        "nudge:plugin/trigger-host" => "events, campaigns, state, timers and history",
        "nudge:plugin/validation-host" => "events and their definitions",
        "nudge:plugin/personalization-host" => "recipients and messages",
        "wasi:cli/stdout" | "wasi:cli/stderr" => "standard output goes to the plugin's log",
        "wasi:clocks/wall-clock" => "the time of the batch, which stands still",
        "wasi:clocks/monotonic-clock" => "time that stands still",
        name if name.starts_with("wasi:random/") => "the same numbers for the same batch",
        name if name.starts_with("wasi:filesystem/") => "no files are there",
        name if name.starts_with("wasi:sockets/") => "every connection is refused",
        _ => "answers, but gives no access to anything",
    }
}

/// What a server's self-test makes of the plugin.
fn self_test(plugin: &Plugin) -> anyhow::Result<SelfTest> {
    inspect::self_test(plugin).map_err(|refusal| match refusal {
        UploadRefusal::Rejected(errors) => {
            let errors = errors.into_iter().map(|error| error.detail);
            anyhow::anyhow!(errors.collect::<Vec<_>>().join("; "))
        }
        UploadRefusal::Unavailable(cause) => cause,
    })
}

fn as_text(
    plugin: &Plugin,
    component: &Component,
    measures: &[Measure],
    self_test: &SelfTest,
) -> String {
    let style = Style::of_terminal();
    let description = plugin.description();
    let mut lines = vec![
        style.good(&format!(
            "{} {}: a server would take it",
            description.name, description.version
        )),
        format!("  file      {}", component.path.display()),
        format!("  world     nudge:plugin/{}", plugin.kind()),
        format!("  summary   {}", description.summary),
        format!("  digest    {}", plugin.digest()),
        format!("  self-test {}", self_test.configuration),
        format!("  decision  {}", self_test.decision),
    ];
    lines.push("  exports".to_owned());
    lines.extend(
        plugin
            .exports()
            .iter()
            .map(|export| format!("    {export}")),
    );
    lines.push("  imports, all of them allowed".to_owned());
    lines.extend(
        plugin
            .imports()
            .iter()
            .map(|import| format!("    {import:<38}  {}", style.faint(meaning(import)))),
    );
    lines.push("  limits".to_owned());
    lines.extend(measures.iter().map(|measure| {
        let share = style::share(measure.used, measure.limit);
        format!("    {:<20}  {:>8}  {}", measure.what, share, measure.shown)
    }));
    lines.join("\n")
}

fn as_json(
    plugin: &Plugin,
    component: &Component,
    measures: &[Measure],
    self_test: &SelfTest,
) -> serde_json::Value {
    let description = plugin.description();
    let limits: serde_json::Map<String, serde_json::Value> = measures
        .iter()
        .map(|measure| {
            let value = json!({
                "used": measure.used,
                "limit": measure.limit,
                "percent": style::percent(measure.used, measure.limit),
            });
            (measure.key.to_owned(), value)
        })
        .collect();
    json!({
        "path": component.path,
        "name": description.name,
        "version": description.version,
        "kind": plugin.kind().as_str(),
        "summary": description.summary,
        "digest": plugin.digest(),
        "sizeBytes": component.bytes.len(),
        "exports": plugin.exports(),
        "imports": plugin.imports().iter()
            .map(|import| json!({"name": import, "allowed": true, "meaning": meaning(import)}))
            .collect::<Vec<_>>(),
        "limits": limits,
        "selfTest": self_test.configuration,
        "decision": self_test.decision,
    })
}
