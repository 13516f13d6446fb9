//! What goes on beside requests.

use nudge_platform::jobs::Kinds;

use crate::privacy::{deletion, exports};
use crate::services::Shared;

/// Adds the kinds of jobs.
pub fn add_jobs(kinds: &mut Kinds, services: &Shared) {
    kinds.add(exports::KIND, services, |services, job| {
        Box::pin(exports::run(services, job))
    });
    kinds.add(deletion::KIND, services, |services, job| {
        Box::pin(deletion::run(services, job))
    });
}
