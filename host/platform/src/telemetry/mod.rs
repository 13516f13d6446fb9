//! Logs and metrics of the process.

pub mod families;
mod process;
mod requests;

use std::io::IsTerminal as _;
use std::time::Duration;

use metrics::{Key, KeyName, Label, Metadata, Recorder};
use metrics_exporter_prometheus::{
    BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder,
};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use self::families::{FAMILIES, Kind};
use self::requests::ShortRequests;
use crate::config::Telemetry;

/// What was measured is summed up so often, whether or not anybody reads it; until then it takes memory.
const SUM_UP: Duration = Duration::from_secs(5);

/// How logs are written, and which.
#[derive(Debug)]
pub struct Logs {
    filter: Targets,
    json: bool,
    short_requests: bool,
}

impl Logs {
    /// Reads the configuration.
    pub fn new(config: &Telemetry) -> anyhow::Result<Self> {
        let json = match config.log_format.as_str() {
            "json" => true,
            "text" => false,
            other => anyhow::bail!("telemetry.logFormat: `{other}` is neither `text` nor `json`"),
        };
        anyhow::ensure!(
            !config.log_filter.contains('['),
            "telemetry.logFilter: name targets and levels, as in `info,sqlx=warn`: spans and fields are no filters"
        );
        let filter = filter(&config.log_filter)?;
        Ok(Self {
            filter,
            json,
            short_requests: false,
        })
    }

    /// Has a short line for each request that changes something or fails, where lines are text.
    #[must_use]
    pub fn with_short_requests(self) -> Self {
        Self {
            short_requests: true,
            ..self
        }
    }

    /// Starts logging to standard error.
    pub fn start(self) -> anyhow::Result<()> {
        let lines = tracing_subscriber::fmt::layer()
            .with_ansi(std::io::stderr().is_terminal())
            .with_writer(std::io::stderr);
        let lines = if self.json {
            lines.json().boxed()
        } else if self.short_requests {
            lines.event_format(ShortRequests::default()).boxed()
        } else {
            lines.boxed()
        };
        let outcome = tracing_subscriber::registry()
            .with(lines)
            .with(self.filter)
            .try_init();
        outcome.map_err(|error| anyhow::anyhow!("{error}"))
    }
}

/// Reads a filter. A word alone is a level: a misspelt one would be a target, and nothing else would be logged.
fn filter(text: &str) -> anyhow::Result<Targets> {
    let parts: Vec<&str> = text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect();
    for part in &parts {
        anyhow::ensure!(
            part.contains('=') || part.parse::<LevelFilter>().is_ok(),
            "telemetry.logFilter: `{part}` is no level: off, error, warn, info, debug or trace. A target has its level with it, as in \
             `info,sqlx=warn`"
        );
    }
    // Its cause says the same.
    (parts.join(",").parse::<Targets>())
        .map_err(|error| anyhow::anyhow!("telemetry.logFilter: {error}"))
}

/// The process's metrics. Made once; servers of one process share them.
pub fn metrics() -> PrometheusHandle {
    static HANDLE: std::sync::OnceLock<PrometheusHandle> = std::sync::OnceLock::new();
    HANDLE
        .get_or_init(|| {
            process::started();
            let recorder = recorder().unwrap_or_else(|error| {
                tracing::error!(%error, "the histograms of /metrics are summaries");
                PrometheusBuilder::new().build_recorder()
            });
            describe(&recorder);
            let handle = recorder.handle();
            if metrics::set_global_recorder(recorder).is_err() {
                tracing::warn!("another metrics recorder is installed; /metrics stays empty");
            }
            handle
        })
        .clone()
}

/// All metrics, those of the process among them, in Prometheus' text format.
pub fn exposition() -> String {
    let handle = metrics();
    handle.run_upkeep();
    let mut text = handle.render();
    process::write(&mut text);
    text
}

fn recorder() -> Result<PrometheusRecorder, BuildError> {
    let mut builder = PrometheusBuilder::new();
    for family in FAMILIES {
        if let Kind::Histogram(buckets) = family.kind {
            let name = Matcher::Full(family.name.to_owned());
            builder = builder.set_buckets_for_metric(name, buckets)?;
        }
    }
    Ok(builder.build_recorder())
}

/// Says what each family is. Counters without labels begin at 0, so that the first increase is one.
fn describe(recorder: &PrometheusRecorder) {
    let metadata = Metadata::new(module_path!(), metrics::Level::INFO, None);
    for family in FAMILIES {
        let name = KeyName::from_const_str(family.name);
        let (unit, help) = (family.unit(), family.help.into());
        match family.kind {
            Kind::Counter(zeros) => {
                recorder.describe_counter(name, unit, help);
                for labels in zeros {
                    let labels: Vec<Label> = labels.iter().map(Label::from).collect();
                    let key = Key::from_parts(family.name, labels);
                    recorder.register_counter(&key, &metadata).increment(0);
                }
            }
            Kind::Gauge => recorder.describe_gauge(name, unit, help),
            Kind::Histogram(_) => recorder.describe_histogram(name, unit, help),
            Kind::Process => {}
        }
    }
}

/// Sums up what was measured, until the server stops.
pub async fn run(halt: CancellationToken) {
    while halt
        .run_until_cancelled(tokio::time::sleep(SUM_UP))
        .await
        .is_some()
    {
        metrics().run_upkeep();
    }
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn a_word_alone_is_a_level() {
        for text in ["", "info", "OFF", "3", "warn,nudge_http::request=info"] {
            assert!(filter(text).is_ok(), "{text}");
        }
        for text in ["inof", "info,sqlx", "info;sqlx"] {
            let refused = filter(text).unwrap_err().to_string();
            assert!(refused.contains("is no level"), "{text}: {refused}");
        }
        let spaced = filter("debug, sqlx=warn,").unwrap();
        assert!(spaced.would_enable("nudge", &Level::DEBUG));
        assert!(!spaced.would_enable("sqlx", &Level::INFO));
    }
}
