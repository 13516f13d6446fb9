//! Logs and metrics of the process.

use std::io::IsTerminal as _;
use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use crate::config::Telemetry;

/// Upper bounds of the latency histograms, in seconds.
const BUCKETS: &[f64] = &[
    0.000_01, 0.000_05, 0.000_1, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
    1.0, 2.5, 10.0,
];

/// What was measured is summed up so often, whether or not anybody reads it; until then it takes memory.
const SUM_UP: Duration = Duration::from_secs(5);

/// How logs are written, and which.
#[derive(Debug)]
pub struct Logs {
    filter: EnvFilter,
    json: bool,
}

impl Logs {
    /// Reads the configuration.
    pub fn new(config: &Telemetry) -> anyhow::Result<Self> {
        let json = match config.log_format.as_str() {
            "json" => true,
            "text" => false,
            other => anyhow::bail!("telemetry.logFormat: `{other}` is neither `text` nor `json`"),
        };
        // Its cause says the same.
        let filter = EnvFilter::try_new(&config.log_filter)
            .map_err(|error| anyhow::anyhow!("telemetry.logFilter: {error}"))?;
        Ok(Self { filter, json })
    }

    /// Starts logging to standard error.
    pub fn start(self) -> anyhow::Result<()> {
        let builder = tracing_subscriber::fmt()
            .with_env_filter(self.filter)
            .with_ansi(std::io::stderr().is_terminal())
            .with_writer(std::io::stderr);
        let outcome = if self.json {
            builder.json().try_init()
        } else {
            builder.try_init()
        };
        outcome.map_err(|error| anyhow::anyhow!("{error}"))
    }
}

/// The process's metrics. Made once; servers of one process share them.
pub fn metrics() -> PrometheusHandle {
    static HANDLE: std::sync::OnceLock<PrometheusHandle> = std::sync::OnceLock::new();
    HANDLE
        .get_or_init(|| {
            let builder = PrometheusBuilder::new()
                .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), BUCKETS)
                .unwrap_or_else(|_| PrometheusBuilder::new());
            let recorder = builder.build_recorder();
            let handle = recorder.handle();
            if metrics::set_global_recorder(recorder).is_err() {
                tracing::warn!("another metrics recorder is installed; /metrics stays empty");
            }
            handle
        })
        .clone()
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
