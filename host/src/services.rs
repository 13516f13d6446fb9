//! The state of all handlers: the states of the packages, put together.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use nudge_apps::services::AppsState;
use nudge_platform::due::Trouble;
use parking_lot::Mutex;
use uuid::Uuid;

/// The state of all handlers. Cheap to clone.
#[derive(Clone)]
pub struct Shared(Arc<Services>);

/// What a running server is made of. It derefs to the state of the ingest, and so to those below it.
pub struct Services {
    /// What taking events takes.
    pub ingest: Arc<nudge_ingest::services::Services>,
    /// What sending takes.
    pub push: Arc<nudge_push::services::Services>,
    /// Tells in the log when the server is not ready, and when it is again.
    pub readiness: Mutex<Trouble>,
    /// The app of `nudge dev`, once it is known: the shop's.
    pub demo_app: OnceLock<Uuid>,
}

impl Shared {
    /// Shares what a server is made of.
    pub fn new(services: Services) -> Self {
        Self(Arc::new(services))
    }

    /// What following up on events takes.
    pub fn pipeline(&self) -> &nudge_pipeline::services::Shared {
        &self.ingest.below
    }

    /// What reading and writing records takes.
    pub fn records(&self) -> &nudge_records::services::Shared {
        &self.pipeline().below
    }

    /// What managing apps takes.
    pub fn apps(&self) -> &nudge_apps::services::Shared {
        &self.records().below
    }
}

impl Deref for Shared {
    type Target = Services;

    fn deref(&self) -> &Services {
        &self.0
    }
}

impl Deref for Services {
    type Target = nudge_ingest::services::Services;

    fn deref(&self) -> &Self::Target {
        &self.ingest
    }
}

impl AppsState for Shared {
    fn apps(&self) -> &nudge_apps::services::Shared {
        Self::apps(self)
    }
}
