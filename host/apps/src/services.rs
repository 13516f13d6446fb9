//! The state of this package's handlers, and the part that every package above shares.

use std::sync::Arc;

use nudge_db::Db;
use nudge_http::admission::Admission;
use nudge_http::issuer::Issuer;
use nudge_http::oidc::AccessTokens;
use nudge_platform::analytics::AnalyticsStore;
use nudge_platform::clock::Clock;
use nudge_platform::config::Config;
use nudge_platform::jobs;
use nudge_platform::polls::Polls;
use nudge_platform::rate_limits::RateLimits;
use nudge_platform::secrets::Secrets;
use nudge_platform::traces::Traces;
use nudge_plugin_runtime::Plugins;
use tokio_util::sync::CancellationToken;

use crate::console::Console;
use crate::{Registry, keys};

/// The state of handlers. Cheap to clone.
pub type Shared = Arc<Services>;

/// A state of handlers that has this package's. The extractors of credentials take any such state.
pub trait AppsState {
    /// This package's part.
    fn apps(&self) -> &Shared;
}

impl AppsState for Shared {
    fn apps(&self) -> &Shared {
        self
    }
}

/// What a package above this one has in its state, this package's among it.
pub trait AboveApps {
    /// This package's part.
    fn apps(&self) -> &Shared;
}

impl<T: AboveApps> AppsState for Arc<T> {
    fn apps(&self) -> &Shared {
        AboveApps::apps(&**self)
    }
}

/// What managing apps takes.
pub struct Services {
    /// The configuration.
    pub config: Config,
    /// The URL under which clients reach the server.
    pub public_url: String,
    /// The database.
    pub db: Db,
    /// Where instants come from.
    pub clock: Clock,
    /// Keys derived from the master key.
    pub secrets: Secrets,
    /// Where history is read from.
    pub analytics: Arc<dyn AnalyticsStore>,
    /// The embedded issuer.
    pub issuer: Issuer,
    /// Whose access tokens are taken.
    pub access_tokens: AccessTokens,
    /// Who is signed in to the console.
    pub console: Console,
    /// How much is in hand.
    pub admission: Arc<Admission>,
    /// How much one caller may ask.
    pub rate_limits: Arc<RateLimits>,
    /// Uses of keys, on their way to the database.
    pub key_uses: keys::Uses,
    /// Apps in memory.
    pub apps: Arc<Registry>,
    /// Plugins and the threads that run them.
    pub plugins: Plugins,
    /// Spans on their way to a collector.
    pub traces: Option<Traces>,
    /// Wakes the runner of jobs.
    pub jobs: jobs::Wake,
    /// Open polls.
    pub polls: Polls,
    /// Cancelled before the server stops: what balances requests is to send no more; those that come are answered.
    pub draining: CancellationToken,
    /// Cancelled when the server stops.
    pub stop: CancellationToken,
}
