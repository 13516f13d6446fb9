//! How a plugin fares, as the API shows it.

use std::collections::BTreeMap;
use std::time::Duration;

use nudge_db::{Timestamp, Tx};
use nudge_http::ApiError;
use nudge_http::query::{begin, end};
use nudge_platform::clock;
use nudge_plugin_runtime::rollback::FailureRate;
use nudge_plugin_runtime::shadow;
use nudge_plugin_runtime::statistics::store::{self, Row};
use nudge_plugin_runtime::statistics::{CallOutcome, KEPT, histogram, rate};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::plugins::lists;
use crate::plugins::shadow::views::ShadowView;
use crate::services::Services;

/// What the answer is about unless the query says otherwise.
const LATELY: Duration = Duration::from_hours(24);
/// What a plugin's health is judged by.
const JUST_NOW: Duration = Duration::from_mins(15);
/// All ways to fail.
const FAILURES: [&str; 5] = ["trap", "deadline", "memory", "output_too_large", "refused"];

/// Which time is asked about.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
pub struct MetricsQuery {
    /// From this minute on: an ISO 8601 instant, or a day (UTC); a day before `to` unless given. Counts are kept for 7 days.
    from: Option<String>,
    /// Until before: an ISO 8601 instant; or a day, which is included; now unless given.
    to: Option<String>,
}

/// How the versions of a plugin fared.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct MetricsView {
    name: String,
    from: String,
    to: String,
    versions: Vec<VersionMetricsView>,
}

/// How a version fared.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct VersionMetricsView {
    version: String,
    /// Calls that decided or failed.
    calls: i64,
    /// Events, timers or recipients that they were about.
    items: i64,
    /// Failed calls by reason: `trap`, `deadline`, `memory`, `output_too_large`, `refused`.
    failures: BTreeMap<String, i64>,
    /// Failed calls among all, 0 to 1. Those that failed by their deadline because the machine was busy do not
    /// count.
    failure_rate: f64,
    /// Calls besides that failed on a batch, whose parts were then tried on their own.
    taken_apart: i64,
    /// Calls besides that were made again: they hardly ran before their deadline, or what followed from them could
    /// not be written.
    retried: i64,
    latency_micros: LatencyView,
    memory_peak_bytes: i64,
    /// For a shadow candidate: what it would have decided otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    shadow: Option<ShadowView>,
}

/// How long calls took, in microseconds; quantiles are rounded up by at most a fifth.
#[derive(Clone, Copy, Debug, Default, Serialize, ToSchema)]
pub(crate) struct LatencyView {
    p50: u64,
    p95: u64,
    p99: u64,
    max: u64,
}

/// How the active version fares.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HealthView {
    /// `idle`: no calls in the last quarter of an hour; `healthy`: none failed; `degraded`: some did; `failing`:
    /// more than `settings.plugins.maxFailureRate`.
    state: &'static str,
    /// Calls in the last quarter of an hour.
    calls: i64,
    /// Those that failed.
    failures: i64,
    failure_rate: f64,
}

impl VersionMetricsView {
    /// Adds the counts of a version's rows up, which ascend by `bucket`.
    fn of(version: &str, rows: &[&Row]) -> Self {
        let mut view = Self {
            version: version.to_owned(),
            failures: FAILURES.map(|code| (code.to_owned(), 0)).into(),
            ..Self::default()
        };
        let mut starved = 0;
        let mut steps = Vec::new();
        let mut max = 0;
        for row in rows {
            let bucket = u8::try_from(row.bucket).unwrap_or(u8::MAX);
            steps.push((bucket, row.calls.unsigned_abs()));
            max = max.max(row.max_micros.unsigned_abs());
            view.memory_peak_bytes = view.memory_peak_bytes.max(row.memory_bytes);
            let outcome = row.outcome.as_str();
            if outcome == CallOutcome::TakenApart.name() {
                view.taken_apart += row.calls;
                continue;
            }
            if outcome == CallOutcome::Retried.name() {
                view.retried += row.calls;
                continue;
            }
            if outcome == CallOutcome::Unavailable.name() {
                continue;
            }
            view.calls += row.calls;
            view.items += row.items;
            if outcome == CallOutcome::Starved.name() {
                starved += row.calls;
                *view.failures.entry("deadline".to_owned()).or_default() += row.calls;
            } else if outcome != CallOutcome::Decided.name() {
                *view.failures.entry(outcome.to_owned()).or_default() += row.calls;
            }
        }
        let failed: i64 = view.failures.values().sum();
        view.failure_rate = rate(view.calls - starved, failed - starved);
        let quantile = |share| histogram::quantile(&steps, share, max);
        view.latency_micros = LatencyView {
            p50: quantile(0.5),
            p95: quantile(0.95),
            p99: quantile(0.99),
            max,
        };
        view
    }

    fn failed(&self) -> i64 {
        self.failures.values().sum()
    }
}

/// How a plugin fared in an app; for [`SERVER`](nudge_plugin_runtime::catalogue::SERVER), in all apps.
pub(crate) async fn metrics(
    services: &Services,
    app_id: Uuid,
    name: &str,
    query: MetricsQuery,
) -> Result<MetricsView, ApiError> {
    let now = services.clock.now();
    // The minute that is under way is a part of what happened until now.
    let to = end("to", query.to.as_deref())?.unwrap_or(Timestamp(now.0 + 1));
    let from = begin("from", query.from.as_deref())?.unwrap_or(to.minus(LATELY));
    if from >= to {
        let detail = "from must be before to";
        return Err(ApiError::field("/from", "out_of_range", detail));
    }
    // A time of before has no counts, and ends where it was to.
    let from = from.max(now.minus(KEPT)).min(to);
    services.plugins.recorder.flush(&services.db).await?;
    let mut tx = services.db.read().await?;
    let owner_id = lists::owner_of(services, &mut tx, app_id, name).await?;
    let rows = store::rows(&mut tx, app_id, owner_id, name, from, to).await?;
    let mut versions: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for row in &rows {
        versions.entry(&row.version).or_default().push(row);
    }
    let mut shadows = shadows(&mut tx, app_id, owner_id, name).await?;
    for version in shadows.keys() {
        versions.entry(version).or_default();
    }
    let views = versions
        .iter()
        .map(|(version, rows)| VersionMetricsView::of(version, rows));
    let mut views: Vec<VersionMetricsView> = views.collect();
    for view in &mut views {
        view.shadow = shadows.remove(&view.version);
    }
    Ok(MetricsView {
        name: name.to_owned(),
        from: clock::to_text(from),
        to: clock::to_text(to),
        versions: views,
    })
}

/// The newest trial of each version.
async fn shadows(
    tx: &mut Tx,
    app_id: Uuid,
    owner_id: Uuid,
    name: &str,
) -> nudge_db::Result<BTreeMap<String, ShadowView>> {
    let mut shadows = BTreeMap::new();
    for row in shadow::store::of_plugin(tx, app_id, owner_id, name).await? {
        if shadows.contains_key(&row.version) {
            continue;
        }
        let differences = shadow::store::differences(tx, app_id, owner_id, name, &row).await?;
        shadows.insert(row.version.clone(), ShadowView::of(&row, differences));
    }
    Ok(shadows)
}

impl HealthView {
    /// The same, against the share that may fail.
    pub(crate) fn failure_rate(&self, most: f64) -> FailureRate {
        FailureRate {
            calls: self.calls,
            failures: self.failures,
            failure_rate: self.failure_rate,
            max_failure_rate: most,
        }
    }
}

/// How a version fares.
pub(crate) async fn health(
    tx: &mut Tx,
    app_id: Uuid,
    owner_id: Uuid,
    name: &str,
    version: Option<&str>,
    most: f64,
    now: Timestamp,
) -> nudge_db::Result<HealthView> {
    let (from, to) = (now.minus(JUST_NOW), Timestamp(now.0 + 1));
    let rows = store::rows(tx, app_id, owner_id, name, from, to).await?;
    let of_version = |row: &&Row| Some(&*row.version) == version;
    let rows: Vec<&Row> = rows.iter().filter(of_version).collect();
    let view = VersionMetricsView::of(version.unwrap_or_default(), &rows);
    let state = match view.failed() {
        _ if view.calls == 0 => "idle",
        0 => "healthy",
        _ if view.failure_rate > most => "failing",
        _ => "degraded",
    };
    Ok(HealthView {
        state,
        calls: view.calls,
        failures: view.failed(),
        failure_rate: view.failure_rate,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(outcome: CallOutcome, bucket: i64, calls: i64) -> Row {
        Row {
            version: "1.0.0".to_owned(),
            outcome: outcome.name().to_owned(),
            bucket,
            calls,
            items: calls * 2,
            max_micros: bucket * 10,
            memory_bytes: bucket,
        }
    }

    #[test]
    fn only_settled_calls_are_calls_and_the_machines_failures_are_not_the_plugins() {
        let rows = [
            row(CallOutcome::Decided, 1, 6),
            row(CallOutcome::TakenApart, 2, 5),
            row(CallOutcome::Failed("trap"), 3, 2),
            row(CallOutcome::Starved, 4, 4),
            row(CallOutcome::Retried, 5, 7),
            row(CallOutcome::Unavailable, 6, 9),
        ];
        let view = VersionMetricsView::of("1.0.0", &rows.iter().collect::<Vec<_>>());
        assert_eq!((view.calls, view.items), (12, 24));
        assert_eq!((view.failures["trap"], view.failures["deadline"]), (2, 4));
        assert!((view.failure_rate - 0.25).abs() < 1e-9);
        assert_eq!((view.taken_apart, view.retried), (5, 7));
        assert_eq!((view.latency_micros.max, view.memory_peak_bytes), (60, 6));
        assert_eq!(view.failures.len(), FAILURES.len());
    }
}
