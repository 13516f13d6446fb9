//! The state of this package's handlers: the state of the package below, and more.

use std::ops::Deref;
use std::sync::Arc;

use nudge_apps::services::AboveApps;

use crate::providers::Providers;
use crate::tokens;
use crate::webhooks::Webhooks;

/// The state of handlers. Cheap to clone.
pub type Shared = Arc<Services>;

/// What sending takes.
pub struct Services {
    /// The state of the package below.
    pub below: Arc<nudge_pipeline::services::Services>,
    /// The push services.
    pub providers: Providers,
    /// Tells push tokens that are the same.
    pub push_token_hashes: tokens::Hashes,
    /// What sending to webhooks takes.
    pub webhooks: Webhooks,
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
