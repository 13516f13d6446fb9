//! The state of this package's handlers: the state of the package below, and more.

use std::ops::Deref;
use std::sync::Arc;

use nudge_apps::services::AboveApps;
use nudge_platform::turns::Turns;

use crate::Pipeline;
use crate::personalization::Resolver;

/// The state of handlers. Cheap to clone.
pub type Shared = Arc<Services>;

/// What following up on events takes.
pub struct Services {
    /// The state of the package below.
    pub below: Arc<nudge_records::services::Services>,
    /// Processes committed events.
    pub pipeline: Pipeline,
    /// Turns at previews of segments.
    pub previews: Turns,
}

impl Services {
    /// What resolves the bindings of messages.
    pub fn resolver(&self) -> Resolver<'_> {
        Resolver {
            db: &self.db,
            plugins: &self.plugins,
        }
    }
}

impl AboveApps for Services {
    fn apps(&self) -> &nudge_apps::services::Shared {
        self.below.apps()
    }
}

impl Deref for Services {
    type Target = nudge_records::services::Services;

    fn deref(&self) -> &Self::Target {
        &self.below
    }
}
