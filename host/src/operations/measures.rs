//! What is measured when somebody reads the metrics, and not before: a server that nobody watches has no work with it.

use std::time::Duration;

use metrics::gauge;
use nudge_db::Timestamp;

use super::disk::Disk;
use super::readiness;
use super::store::{self, Backlog, Queue};
use crate::services::Shared;

/// How long the database may take to say what waits; what was found last is told again then.
const PATIENCE: Duration = Duration::from_secs(5);

/// Measures.
pub(super) async fn take(services: &Shared) {
    let node = services.pipeline().pipeline.node().to_string();
    gauge!("nudge_build_info", "version" => env!("CARGO_PKG_VERSION"), "node" => node).set(1.0);
    measure_connections(services);
    measure_disk(services);
    let now = services.clock.now();
    // At once: whoever reads metrics waits ten seconds at the most, as Prometheus does. What readiness is is a metric itself.
    let (_ready, found) = tokio::join!(
        readiness::look(services),
        tokio::time::timeout(PATIENCE, backlog(services, now)),
    );
    if let Ok(Ok(backlog)) = &found {
        tell(backlog, now);
    }
    gauge!("nudge_database_up").set(if matches!(found, Ok(Ok(_))) { 1.0 } else { 0.0 });
}

async fn backlog(services: &Shared, now: Timestamp) -> nudge_db::Result<Backlog> {
    let mut tx = services.db.read().await?;
    store::backlog(&mut tx, now).await
}

#[expect(clippy::cast_precision_loss, reason = "gauges")]
fn tell(backlog: &Backlog, now: Timestamp) {
    let queue = |number: &'static str, oldest: &'static str, queue: &Queue| {
        gauge!(number).set(queue.number as f64);
        gauge!(oldest).set(queue.waited(now).as_secs_f64());
    };
    queue(
        "nudge_pipeline_pending_requests",
        "nudge_pipeline_oldest_pending_seconds",
        &backlog.requests,
    );
    queue(
        "nudge_push_due",
        "nudge_push_oldest_due_seconds",
        &backlog.pushes,
    );
    queue(
        "nudge_webhooks_due",
        "nudge_webhooks_oldest_due_seconds",
        &backlog.webhooks,
    );
    queue(
        "nudge_timers_due",
        "nudge_timers_oldest_due_seconds",
        &backlog.timers,
    );
    queue(
        "nudge_jobs_due",
        "nudge_jobs_oldest_due_seconds",
        &backlog.jobs,
    );
    gauge!("nudge_dead_letters").set(backlog.dead_letters as f64);
}

#[expect(clippy::cast_precision_loss, reason = "gauges")]
fn measure_connections(services: &Shared) {
    let usage = services.db.usage();
    gauge!("nudge_database_connections", "state" => "in_use").set(usage.in_use as f64);
    gauge!("nudge_database_connections", "state" => "idle").set(usage.idle as f64);
    gauge!("nudge_database_connections_max").set(f64::from(usage.most));
    metrics::counter!("nudge_database_acquire_timeouts_total").absolute(usage.timeouts);
}

#[expect(clippy::cast_precision_loss, reason = "gauges")]
fn measure_disk(services: &Shared) {
    // A system that does not tell has no such metrics.
    if let Ok(disk) = Disk::of(&services.config.server.data_dir) {
        gauge!("nudge_disk_size_bytes").set(disk.size_bytes as f64);
        gauge!("nudge_disk_free_bytes").set(disk.free_bytes as f64);
    }
}
