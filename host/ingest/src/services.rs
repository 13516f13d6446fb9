//! The state of this package's handlers: the state of the package below, and more.

use std::ops::Deref;
use std::sync::Arc;

use nudge_apps::services::AboveApps;

use crate::commit::Committer;
use crate::validation::batcher::Batcher;

/// The state of handlers. Cheap to clone.
pub type Shared = Arc<Services>;

/// What taking events takes.
pub struct Services {
    /// The state of the package below.
    pub below: Arc<nudge_pipeline::services::Services>,
    /// Checks events against definitions.
    pub validations: Batcher,
    /// Commits events.
    pub committer: Committer,
}

impl AboveApps for Services {
    fn apps(&self) -> &nudge_apps::services::Shared {
        self.below.apps()
    }
}

impl Deref for Services {
    type Target = nudge_pipeline::services::Services;

    fn deref(&self) -> &Self::Target {
        &self.below
    }
}
