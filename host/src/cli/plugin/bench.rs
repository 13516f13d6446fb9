//! `nudge plugin bench`: what calls cost, and how much of the limits that is.

use std::time::Duration;

use anyhow::bail;
use clap::Args;
use nudge_platform::config::Config;
use nudge_plugin_runtime as plugins;
use nudge_plugin_runtime::cases::{Bench, Measured, bench};
use nudge_wasm::{Call, Kind, Limits, Plugin};
use serde_json::{Value as Json, json};

use super::style::{self, Style};
use super::test::{CaseFile, find};
use super::{Checked, Component, engine};

/// Sizes of batches.
const SIZES: [usize; 2] = [1, 100];

/// Arguments of the command.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    component: Checked,
    /// How long each case and size is measured, in milliseconds.
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 300)]
    time: u64,
}

/// A case, measured with one size.
struct Row {
    name: String,
    measured: Measured,
}

pub(super) fn run(config: &Config, arguments: &Arguments) -> anyhow::Result<()> {
    let Checked { file, folder } = &arguments.component;
    let component = Component::open(file.as_deref(), &folder.dir)?;
    let plugin = engine::load(config, &component.bytes)?;
    let time = Duration::from_millis(arguments.time);
    let mut rows = Vec::new();
    for CaseFile { file, case } in find(&folder.dir.join("cases"))? {
        let name = if case.name.is_empty() {
            file
        } else {
            case.name.clone()
        };
        for size in SIZES {
            match bench(&plugin, &case, size, time) {
                Ok(Bench::Measured(measured)) => {
                    let name = name.clone();
                    rows.push(Row { name, measured });
                }
                Ok(Bench::Nothing) => {}
                Ok(Bench::Failed(failed)) => bail!("{name}, with {size} items: {failed}"),
                Err(bad) => bail!("{name}: {bad}"),
            }
        }
    }
    if rows.is_empty() {
        bail!("no case has anything to measure: one needs an event that its configuration reads");
    }
    let limits = plugins::limits(config);
    if folder.json {
        let rows: Vec<Json> = rows
            .iter()
            .map(|row| row.as_json(&plugin, &limits))
            .collect();
        let description = plugin.description();
        super::super::say(json!({
            "name": description.name,
            "version": description.version,
            "kind": plugin.kind().as_str(),
            "measurements": rows,
        }));
    } else {
        super::super::say(as_text(&plugin, &limits, &rows));
    }
    Ok(())
}

pub(super) fn deadline(kind: Kind, limits: &Limits) -> Duration {
    match kind {
        Kind::Trigger => limits.trigger_deadline,
        Kind::Validation => limits.validation_deadline,
        Kind::Personalization => limits.personalization_deadline,
    }
}

impl Row {
    /// The call that so much of all calls are quicker than.
    fn quantile(&self, share: f64) -> Duration {
        let calls = &self.measured.calls;
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an index of a list"
        )]
        let index = (calls.len() as f64 * share) as usize;
        let call = calls.get(index.min(calls.len().saturating_sub(1)));
        call.map_or(Duration::ZERO, |call| call.elapsed)
    }

    fn most<T: Ord + Default>(&self, of: impl Fn(&Call) -> T) -> T {
        self.measured.calls.iter().map(of).max().unwrap_or_default()
    }

    fn instantiation(&self) -> Duration {
        let mut times: Vec<Duration> = self
            .measured
            .calls
            .iter()
            .map(|call| call.instantiation)
            .collect();
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or_default()
    }

    fn per_item(&self) -> Duration {
        let items = u32::try_from(self.measured.items).unwrap_or(u32::MAX);
        self.quantile(0.5) / items.max(1)
    }

    /// What is used and what is allowed, by name: time, memory, output and host calls.
    #[expect(clippy::cast_precision_loss, reason = "shares of limits")]
    fn shares(&self, kind: Kind, limits: &Limits) -> [(&'static str, f64, f64); 4] {
        let host_calls = limits.host_calls_for(self.measured.items, 1);
        [
            (
                "deadline",
                self.quantile(0.99).as_secs_f64(),
                deadline(kind, limits).as_secs_f64(),
            ),
            (
                "memory",
                self.most(|call| call.memory_bytes) as f64,
                limits.memory_bytes as f64,
            ),
            (
                "output",
                f64::from(self.most(|call| call.output_bytes)),
                limits.output_bytes as f64,
            ),
            (
                "hostCalls",
                f64::from(self.most(|call| call.host_calls)),
                f64::from(host_calls),
            ),
        ]
    }

    fn as_json(&self, plugin: &Plugin, limits: &Limits) -> Json {
        let micros = |duration: Duration| duration.as_secs_f64() * 1e6;
        let shares: serde_json::Map<String, Json> = self
            .shares(plugin.kind(), limits)
            .into_iter()
            .map(|(name, used, limit)| (name.to_owned(), style::percent(used, limit).into()))
            .collect();
        json!({
            "case": self.name,
            "items": self.measured.items,
            "calls": self.measured.calls.len(),
            "medianMicros": micros(self.quantile(0.5)),
            "p99Micros": micros(self.quantile(0.99)),
            "perItemMicros": micros(self.per_item()),
            "instantiationMicros": micros(self.instantiation()),
            "memoryBytes": self.most(|call| call.memory_bytes),
            "outputBytes": self.most(|call| call.output_bytes),
            "hostCalls": self.most(|call| call.host_calls),
            "percentOfLimit": shares,
        })
    }
}

fn as_text(plugin: &Plugin, limits: &Limits, rows: &[Row]) -> String {
    let style = Style::of_terminal();
    let description = plugin.description();
    let mut lines = vec![
        format!("{} {}: every call has a fresh instance", description.name, description.version),
        style.faint("  items   a call, median        p99    an item  instance     memory    output  host calls"),
    ];
    let mut last = "";
    for row in rows {
        if row.name != last {
            lines.push(row.name.clone());
            last = &row.name;
        }
        lines.push(format!(
            "  {:>5}  {:>15}  {:>9}  {:>9}  {:>8}  {:>9}  {:>8}  {:>10}",
            row.measured.items,
            style::time(row.quantile(0.5)),
            style::time(row.quantile(0.99)),
            style::time(row.per_item()),
            style::time(row.instantiation()),
            style::bytes(row.most(|call| call.memory_bytes)),
            style::bytes(row.most(|call| call.output_bytes) as usize),
            row.most(|call| call.host_calls),
        ));
        let [time, memory, output, calls] = row
            .shares(plugin.kind(), limits)
            .map(|(_, used, limit)| style::share(used, limit));
        lines.push(style.faint(&format!(
            "  {:>5}  {:>15}  {time:>9}  {:>9}  {:>8}  {memory:>9}  {output:>8}  {calls:>10}",
            "", "of the limit", "", ""
        )));
    }
    lines.join("\n")
}
