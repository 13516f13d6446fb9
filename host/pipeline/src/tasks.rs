//! What goes on beside requests.

use std::sync::Arc;

use nudge_campaigns::segments::looking;
use nudge_platform::jobs::Kinds;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::segments::{checks, job as segments};
use crate::services::Shared;
use crate::{backtest, runs};

/// Starts the background tasks.
pub fn spawn(services: &Shared, tasks: &TaskTracker, halt: &CancellationToken) {
    tasks.spawn(runs::watch::run(Arc::clone(services), halt.clone()));
    tasks.spawn(checks::run(Arc::clone(services), halt.clone()));
}

/// Adds the kinds of jobs.
pub fn add_jobs(kinds: &mut Kinds, services: &Shared) {
    kinds.add(backtest::KIND, services, |services, job| {
        Box::pin(backtest::run(services, job))
    });
    kinds.add(runs::job::KIND, services, |services, job| {
        Box::pin(runs::job::run(services, job))
    });
    kinds.add(looking::KIND, services, |services, job| {
        Box::pin(segments::run(services, job))
    });
    kinds.add(segments::FORGET, services, |services, job| {
        Box::pin(segments::run_forgetting(services, job))
    });
}
