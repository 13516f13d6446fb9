//! The state of this package's handlers: the state of the package below, and more.

use std::ops::Deref;
use std::sync::Arc;

use nudge_apps::services::AboveApps;

use crate::pseudonyms::Pseudonyms;
use crate::stats::Stats;

/// The state of handlers. Cheap to clone.
pub type Shared = Arc<Services>;

/// What reading and writing records takes.
pub struct Services {
    /// The state of the package below.
    pub below: Arc<nudge_apps::services::Services>,
    /// Keyed hashes of people who were deleted.
    pub pseudonyms: Pseudonyms,
    /// Counts on their way to the database.
    pub stats: Arc<Stats>,
}

impl AboveApps for Services {
    fn apps(&self) -> &nudge_apps::services::Shared {
        &self.below
    }
}

impl Deref for Services {
    type Target = nudge_apps::services::Services;

    fn deref(&self) -> &Self::Target {
        &self.below
    }
}
