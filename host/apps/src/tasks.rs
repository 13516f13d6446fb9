//! What goes on beside requests.

use std::sync::Arc;

use nudge_campaigns::campaign::removal;
use nudge_platform::jobs::Kinds;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::campaigns::{ending, removal_steps};
use crate::services::Shared;
use crate::{deletion, keys, plugins};

/// Starts the background tasks.
pub fn spawn(services: &Shared, tasks: &TaskTracker, halt: &CancellationToken) {
    tasks.spawn(keys::run(Arc::clone(services), halt.clone()));
    tasks.spawn(ending::run(Arc::clone(services), halt.clone()));
    tasks.spawn(plugins::watch::run(Arc::clone(services), halt.clone()));
}

/// Adds the kinds of jobs.
pub fn add_jobs(kinds: &mut Kinds, services: &Shared) {
    kinds.add(deletion::KIND, services, |services, job| {
        Box::pin(deletion::run(services, job))
    });
    for kind in [removal::SURVEY_KIND, removal::IN_APP_KIND] {
        kinds.add(kind, services, |services, job| {
            Box::pin(removal_steps::run(services, job))
        });
    }
}
