//! What goes on beside requests.

use std::sync::Arc;

use nudge_platform::jobs::Kinds;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::sender::Sender;
use crate::services::Shared;
use crate::webhooks::{self, clear, recover};

/// Starts the background tasks.
pub fn spawn(services: &Shared, tasks: &TaskTracker, halt: &CancellationToken) {
    tasks.spawn(Sender::new(Arc::clone(services), tasks.clone(), halt.clone()).run());
    tasks.spawn(webhooks::sender::Sender::new(Arc::clone(services), tasks.clone()).run());
}

/// Adds the kinds of jobs.
pub fn add_jobs(kinds: &mut Kinds, services: &Shared) {
    kinds.add(clear::KIND, services, |services, job| {
        Box::pin(clear::run(services, job))
    });
    kinds.add(recover::KIND, services, |services, job| {
        Box::pin(recover::run(services, job))
    });
}
