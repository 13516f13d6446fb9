//! A server in this process.
#![expect(
    clippy::expect_used,
    reason = "test support: a test whose server fails fails where it stands"
)]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nudge::cli::dev;
use nudge::cli::dev::Access;
use nudge::server::{Server, Start};
use nudge::services::Services;
use nudge_platform::analytics::AnalyticsStore;
use nudge_platform::clock::{self, Clock};
use nudge_platform::config::Config;
use nudge_platform::outbound::Lookup;
use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::Uuid;

use crate::client::{self, Credential};
use crate::{pooler, postgres, sqlite};

/// Base64 of 32 bytes. All servers have the same key: they share tokens and compiled plugins.
pub const MASTER_KEY: &str = "bnVkZ2UtdGVzdHMtbWFzdGVyLWtleS0zMi1ieXRlcyE=";
/// Longer than any call takes on a machine with other things to do.
const PATIENCE_MS: u64 = 20_000;

/// Where cargo put what the tests need.
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// The server's program.
    pub program: &'static str,
    /// A folder that stays from run to run.
    pub scratch: &'static str,
}

/// Which database a server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// A file in the data directory.
    Sqlite,
    /// A database of its own in the shared cluster.
    Postgres,
}

/// A server with a demo app. A test ends with [`TestApp::finish`].
pub struct TestApp {
    /// The demo app's keys and tokens.
    pub access: Access,
    /// The server's clock.
    pub clock: Clock,
    /// The analytics store; none: the server's own. It takes effect at the next start.
    pub analytics: Option<Arc<dyn AnalyticsStore>>,
    /// Who knows the addresses of webhooks; none: the system. It takes effect at the next start.
    pub lookup: Option<Arc<dyn Lookup>>,
    /// What the server was started with.
    pub config: Config,
    pub(crate) http: reqwest::Client,
    server: Option<Server>,
    site: Site,
    // Removed with the app.
    folder: Option<TempDir>,
    /// The database that was made for the app.
    database: Option<String>,
}

impl TestApp {
    /// Starts a server on an empty database.
    pub async fn start(site: Site, backend: Backend) -> Self {
        Self::start_with(site, backend, |_| {}).await
    }

    /// Starts a server on an empty database, its configuration changed.
    pub async fn start_with(
        site: Site,
        backend: Backend,
        change: impl FnOnce(&mut Config),
    ) -> Self {
        let folder = TempDir::with_prefix("nudge-test-").expect("a folder for the data");
        let mut config = Self::config(site, folder.path());
        let mut database = None;
        match backend {
            Backend::Sqlite => sqlite::copy_migrated(&folder.path().join("nudge.db")).await,
            Backend::Postgres => {
                config.database.url = postgres::migrated_database().await;
                database = Some(config.database.url.clone());
                // Many servers share one cluster.
                config.database.connections = 5;
            }
        }
        change(&mut config);
        let mut app = Self::open(site, config).await.expect("the server starts");
        app.folder = Some(folder);
        app.database = database;
        app
    }

    /// Starts a server with a configuration, whose data directory is the caller's.
    pub async fn open(site: Site, mut config: Config) -> anyhow::Result<Self> {
        if pooler::forgets_statements() {
            config.database.statement_cache = 0;
        }
        let clock = Clock::default();
        let server = serve(site, &config, &clock, None, None).await?;
        let access = dev::access(&server).await?;
        Ok(Self {
            access,
            clock,
            analytics: None,
            lookup: None,
            config,
            http: client::build(),
            server: Some(server),
            site,
            folder: None,
            database: None,
        })
    }

    /// The configuration of a server on SQLite with a data directory.
    pub fn config(site: Site, data_dir: &Path) -> Config {
        let mut config = Config::defaults().expect("the default file is complete");
        "127.0.0.1:0".clone_into(&mut config.server.listen);
        config.server.ops_listen = String::new();
        data_dir.clone_into(&mut config.server.data_dir);
        MASTER_KEY.clone_into(&mut config.secrets.master_key);
        config.plugins.cache_dir = PathBuf::from(site.scratch).join("plugin-cache");
        config.plugins.workers = 2;
        config.database.acquire_timeout_seconds = PATIENCE_MS / 1000;
        config.plugins.deadline_ms = PATIENCE_MS;
        config.plugins.validation_deadline_ms = PATIENCE_MS;
        config.pipeline.delivery_wait_ms = PATIENCE_MS;
        config.pipeline.poll_ms = 50;
        config.privacy.grace_seconds = 0;
        // Receivers of webhooks are on this machine.
        config.webhooks.allow_http = true;
        config.webhooks.allow_private_networks = true;
        config
    }

    /// Stops the server and starts it again, on the same database and with the same clock.
    pub async fn restart(&mut self) {
        self.stop().await;
        self.resume().await;
    }

    /// Stops the server.
    pub async fn stop(&mut self) {
        let server = self.server.take().expect("the server runs");
        server.stop().await;
    }

    /// Starts the server again after [`TestApp::stop`].
    pub async fn resume(&mut self) {
        let analytics = self.analytics.clone();
        let lookup = self.lookup.clone();
        let server = serve(self.site, &self.config, &self.clock, analytics, lookup)
            .await
            .expect("the server starts again");
        self.access.base_url = format!("http://{}", server.address());
        self.server = Some(server);
    }

    /// Ends the test: everything committed must be processed, and the server must stop.
    pub async fn finish(mut self) {
        self.settle().await;
        self.stop().await;
        if let Some(url) = self.database.take() {
            postgres::finish(&url);
        }
    }

    /// The server's parts.
    pub fn services(&self) -> &Services {
        self.server.as_ref().expect("the server runs").services()
    }

    /// Where the operators' listener is, if `server.opsListen` is configured.
    pub fn operations_address(&self) -> Option<std::net::SocketAddr> {
        let server = self.server.as_ref().expect("the server runs");
        server.operations_address()
    }

    /// What the tests were given by cargo.
    pub fn site(&self) -> Site {
        self.site
    }

    /// Moves the server's clock.
    pub fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    /// The server's time plus some seconds, as the API writes it.
    pub fn time(&self, seconds: i64) -> String {
        let now = self.clock.now();
        clock::to_text(nudge_db::Timestamp(now.0 + seconds * 1_000_000))
    }

    /// Quiet hours of which an hour is over and an hour is left, in UTC.
    pub fn an_hour_of_quiet(&self, on_quiet: &str) -> Value {
        let hour = |seconds| {
            let time = self.time(seconds);
            time.get(11..16).expect("a time of day").to_owned()
        };
        json!({"from": hour(-3_600), "to": hour(3_600), "onQuiet": on_quiet})
    }

    /// A new id.
    pub fn id(&self) -> Uuid {
        nudge_platform::id::new(self.clock.now())
    }

    /// A path under the demo app.
    pub fn path(&self, rest: &str) -> String {
        format!("/v1/apps/{}{rest}", self.access.app_id)
    }

    /// The token of a viewer.
    pub fn viewer(&self) -> Credential {
        Credential::bearer(&self.access.viewer_token)
    }

    /// The token of an editor.
    pub fn editor(&self) -> Credential {
        Credential::bearer(&self.access.editor_token)
    }

    /// The token of an admin.
    pub fn admin(&self) -> Credential {
        Credential::bearer(&self.access.admin_token)
    }

    /// The token of an operator, who is an admin too.
    pub fn operator(&self) -> Credential {
        Credential::bearer(&self.access.operator_token)
    }

    /// The write key, without a subject token.
    pub fn sdk(&self) -> Credential {
        Credential::bearer(&self.access.write_key)
    }

    /// The server key, with all scopes.
    pub fn backend(&self) -> Credential {
        Credential::bearer(&self.access.server_key)
    }
}

impl Drop for TestApp {
    fn drop(&mut self) {
        assert!(
            self.server.is_none() || std::thread::panicking(),
            "a test ends with finish or abandon"
        );
    }
}

/// Names what the servers of a test log to standard error, in the syntax of `RUST_LOG`.
const LOG_VARIABLE: &str = "NUDGE_TEST_LOG";

async fn serve(
    site: Site,
    config: &Config,
    clock: &Clock,
    analytics: Option<Arc<dyn AnalyticsStore>>,
    lookup: Option<Arc<dyn Lookup>>,
) -> anyhow::Result<Server> {
    if let Ok(log_filter) = std::env::var(LOG_VARIABLE) {
        let mut telemetry = config.telemetry.clone();
        telemetry.log_filter = log_filter;
        // The second server of the process finds the log started, which is all that is asked here.
        drop(
            nudge_platform::telemetry::Logs::new(&telemetry)
                .and_then(nudge_platform::telemetry::Logs::start),
        );
    }
    let start = Start {
        embedded: true,
        compiler: Some(PathBuf::from(site.program)),
        clock: clock.clone(),
        analytics,
        lookup,
    };
    Server::start(config.clone(), start).await
}
