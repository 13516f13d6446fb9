//! What goes on beside requests.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::services::Shared;
use crate::{decisions, instructions, stats};

/// Starts the background tasks.
pub fn spawn(services: &Shared, tasks: &TaskTracker, halt: &CancellationToken) {
    tasks.spawn(instructions::polls::run(Arc::clone(services), halt.clone()));
    tasks.spawn(instructions::polls::run_watched(
        Arc::clone(services),
        halt.clone(),
    ));
    tasks.spawn(decisions::recovery::run(Arc::clone(services), halt.clone()));
    tasks.spawn(stats::run(Arc::clone(services), halt.clone()));
}
