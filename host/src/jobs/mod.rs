//! Every kind of job that the server knows: each package names its own.

pub mod http;

use nudge_people::privacy::{deletion, exports};
use nudge_platform::jobs::Kinds;

use crate::dead_letters::bulk;
use crate::services::Shared;

/// Every kind of job.
pub fn kinds(services: &Shared) -> Kinds {
    let mut kinds = Kinds::default();
    nudge_apps::tasks::add_jobs(&mut kinds, services.apps());
    nudge_pipeline::tasks::add_jobs(&mut kinds, services.pipeline());
    nudge_people::tasks::add_jobs(&mut kinds, services.records());
    nudge_push::tasks::add_jobs(&mut kinds, &services.push);
    kinds.add(bulk::REPLAY, services, |services, job| {
        Box::pin(bulk::run_replay(services, job))
    });
    kinds.add(bulk::ACKNOWLEDGE, services, |services, job| {
        Box::pin(bulk::run_acknowledge(services, job))
    });
    kinds
}

/// Of these kinds, those of which a job is of interest for some time after its end. What was done about a person's privacy is
/// kept as the record of it.
pub fn passing(kinds: &Kinds) -> Vec<&'static str> {
    let mut names = kinds.names();
    names.retain(|name| ![deletion::KIND, exports::KIND].contains(name));
    names
}
