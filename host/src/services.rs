//! Everything that a running server is made of.

use std::sync::Arc;

use nudge_db::{Db, Migrations};
use tokio_util::sync::CancellationToken;

use crate::analytics::AnalyticsStore;
use crate::apps::Registry;
use crate::clock::Clock;
use crate::config::Config;
use crate::http::admission::Admission;
use crate::ingest::commit::Committer;
use crate::ingest::together::Together;
use crate::instructions::polls::Polls;
use crate::issuer::Issuer;
use crate::jobs;
use crate::keys;
use crate::oidc::AccessTokens;
use crate::pipeline::Pipeline;
use crate::plugins::Plugins;
use crate::privacy::pseudonyms::Pseudonyms;
use crate::push::providers::Providers;
use crate::push::tokens;
use crate::rate_limits::RateLimits;
use crate::secrets::Secrets;
use crate::stats::Stats;
use crate::traces::Traces;
use crate::webhooks::Webhooks;

/// The state of all handlers.
pub type Shared = Arc<Services>;

/// The parts of a running server.
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
    /// Keyed hashes of people who were deleted.
    pub pseudonyms: Pseudonyms,
    /// Where history is read from.
    pub analytics: Arc<dyn AnalyticsStore>,
    /// The embedded issuer.
    pub issuer: Issuer,
    /// Whose access tokens are taken.
    pub access_tokens: AccessTokens,
    /// How much is in hand.
    pub admission: Arc<Admission>,
    /// How much one caller may ask.
    pub rate_limits: Arc<RateLimits>,
    /// What keys are used for, on its way to the database.
    pub key_uses: keys::Uses,
    /// Apps in memory.
    pub apps: Arc<Registry>,
    /// Plugins and the threads that run them.
    pub plugins: Plugins,
    /// The push services.
    pub providers: Providers,
    /// Tells push tokens that are the same.
    pub push_token_hashes: tokens::Hashes,
    /// Checks events against definitions.
    pub validations: Together,
    /// Commits events.
    pub committer: Committer,
    /// Processes committed events.
    pub pipeline: Pipeline,
    /// Spans on their way to a collector.
    pub traces: Option<Traces>,
    /// Wakes the runner of jobs.
    pub jobs: jobs::Wake,
    /// What sending to webhooks takes.
    pub webhooks: Webhooks,
    /// Counts on their way to the database.
    pub stats: Arc<Stats>,
    /// Open polls.
    pub polls: Polls,
    /// Cancelled when the server stops.
    pub stop: CancellationToken,
}

/// The schema.
pub fn migrations() -> Migrations {
    Migrations {
        sqlite: sqlx::migrate!("migrations/sqlite"),
        postgres: sqlx::migrate!("migrations/postgres"),
    }
}
