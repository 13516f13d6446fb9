//! Starting and stopping a server.

use std::fmt::Display;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context as _, bail};
use nudge_apps::console::{Console, Site};
use nudge_apps::{Registry, keys};
use nudge_db::{Db, Schema};
use nudge_http::admission::Admission;
use nudge_http::issuer::Issuer;
use nudge_http::listener::{self, Answers, Limits};
use nudge_http::oidc::AccessTokens;
use nudge_ingest::commit::Committer;
use nudge_ingest::validation::batcher::Batcher;
use nudge_pipeline::segments::preview;
use nudge_pipeline::{Pipeline, Recovery};
use nudge_platform::analytics::{self, AnalyticsStore};
use nudge_platform::clock::Clock;
use nudge_platform::config::Config;
use nudge_platform::due::Trouble;
use nudge_platform::outbound::lookups::{Purpose, System};
use nudge_platform::outbound::{Lookup, Lookups};
use nudge_platform::polls::Polls;
use nudge_platform::rate_limits::RateLimits;
use nudge_platform::schema::migrations;
use nudge_platform::secrets::Secrets;
use nudge_platform::{jobs, sealed, telemetry, traces};
use nudge_plugin_runtime::Plugins;
use nudge_push::providers::Providers;
use nudge_push::tokens;
use nudge_push::webhooks::Webhooks;
use nudge_records::pseudonyms::Pseudonyms;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::services::{Services, Shared};
use crate::{data_dir, listening, memory, opening, retention, router};

/// Files that are open besides connections of clients.
const OTHER_FILES: usize = 1024;
/// Connections to the operators' address.
const OPERATORS: usize = 256;
/// Of them, of one address.
const OPERATORS_OF_AN_ADDRESS: usize = 64;

/// How a server is started, besides its configuration.
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// Whether `/livez`, `/readyz` and `/metrics` are on the main address too.
    pub embedded: bool,
    /// The `nudge` program, to compile plugins in a process of its own. None: in this process.
    pub compiler: Option<PathBuf>,
    /// The clock; tests move it.
    pub clock: Clock,
    /// The analytics store. None: the operational database.
    pub analytics: Option<Arc<dyn AnalyticsStore>>,
    /// Who knows the addresses of names. None: the system's resolver.
    pub lookup: Option<Arc<dyn Lookup>>,
}

/// A running server.
pub struct Server {
    services: Shared,
    address: SocketAddr,
    operations_address: Option<SocketAddr>,
    tasks: TaskTracker,
    requests: TaskTracker,
    // Cancelled after the last request, so that what requests caused is still committed and processed.
    halt: CancellationToken,
    // Held as long as the server runs: nobody else may use the data directory.
    _lock: Option<data_dir::Lock>,
}

impl Server {
    /// Starts a server; it takes requests when this returns.
    #[expect(clippy::too_many_lines, reason = "one list of the server's parts")]
    pub async fn start(config: Config, start: Start) -> anyhow::Result<Self> {
        listening::check_differ(&config)?;
        let mut lock = data_dir::claim(&config)?;
        telemetry::metrics();
        let (db, secrets) = open_database(&config).await?;
        let plugins = open_plugins(&config, &secrets, start.compiler, start.clock.clone()).await?;
        allow_open_files(&config);
        let listener = listening::listen(listening::API, &config.server.listen).await?;
        let address = listener.local_addr()?;

        let (tasks, requests) = (TaskTracker::new(), TaskTracker::new());
        let (stop, halt) = (CancellationToken::new(), CancellationToken::new());
        let apps = open_registry(&db, &plugins).await?;
        let polls = Polls::default();
        let lookup = start.lookup.unwrap_or_else(|| Arc::new(System));
        let lookups = Lookups::new(&lookup, config.server.lookup_threads);
        let traces = traces::open(&config.telemetry, &lookups)?;
        if let Some(traces) = traces.clone() {
            let halt = halt.clone();
            tasks.spawn(async move {
                halt.cancelled().await;
                traces.finish().await;
            });
        }
        let pipeline = Pipeline::new(
            db.clone(),
            Arc::clone(&apps),
            plugins.clone(),
            polls.clone(),
            start.clock.clone(),
            traces.clone(),
            config.pipeline.clone(),
            tasks.clone(),
            halt.clone(),
        );
        tasks.spawn(Recovery::sign_in(pipeline.clone()).await?.run());
        let committer = Committer::start(&db, &pipeline, &config.ingest, &tasks, &halt);
        let webhooks = Webhooks::new(&config.webhooks, &lookups, pipeline.node())?;
        let public_url = public_url(&config, address);
        if let Some(lock) = &mut lock {
            lock.tell(&public_url)
                .context("can't write to the data directory")?;
        }
        // A name of this machine leads from another one's page to nothing but this machine.
        let takes_loopback = start.embedded || config.server.public_url.is_empty();
        let console = Console {
            site: Site::new(&public_url, takes_loopback)?,
            tasks: tasks.clone(),
        };
        let apps = nudge_apps::services::Services {
            issuer: Issuer::new(&secrets, &config.auth.embedded_issuer)?,
            access_tokens: AccessTokens::new(&config.auth, &lookups)?,
            admission: Arc::new(Admission::new(&config.server)),
            rate_limits: Arc::new(RateLimits::new(&config.rate_limits, start.embedded)),
            key_uses: keys::Uses::default(),
            analytics: start.analytics.unwrap_or_else(operational),
            console,
            public_url,
            db,
            clock: start.clock,
            secrets,
            apps,
            plugins,
            traces,
            jobs: jobs::Wake::default(),
            polls,
            draining: CancellationToken::new(),
            stop,
            config,
        };
        let records = nudge_records::services::Services {
            pseudonyms: Pseudonyms::open(&apps.db, &apps.secrets).await?,
            stats: pipeline.stats(),
            below: Arc::new(apps),
        };
        let pipeline = Arc::new(nudge_pipeline::services::Services {
            below: Arc::new(records),
            pipeline,
            previews: preview::turns(),
        });
        let push = nudge_push::services::Services {
            providers: Providers::new(
                &pipeline.db,
                &pipeline.secrets,
                &pipeline.clock,
                &pipeline.config.push,
                // Browsers name endpoints, as customers name webhooks: one rule says where those may be.
                webhooks.guard.with_purpose(Purpose::Endpoint),
            )?,
            push_token_hashes: tokens::Hashes::open(&pipeline.db, &pipeline.secrets).await?,
            webhooks,
            below: Arc::clone(&pipeline),
        };
        let ingest = nudge_ingest::services::Services {
            below: pipeline,
            validations: Batcher::default(),
            committer,
        };
        let services = Shared::new(Services {
            ingest: Arc::new(ingest),
            push: Arc::new(push),
            readiness: Mutex::new(Trouble::of_questions("taking requests")),
            demo_app: OnceLock::new(),
        });
        spawn_background_tasks(&services, &tasks, &halt);
        let mut server = Self {
            services,
            address,
            operations_address: None,
            tasks,
            requests,
            halt,
            _lock: lock,
        };
        server.serve(listener, start.embedded).await?;
        Ok(server)
    }

    async fn serve(&mut self, listener: TcpListener, embedded: bool) -> anyhow::Result<()> {
        let limits = Limits::new(&self.services.config.server);
        let answers = Answers {
            name: "api",
            router: router::router(self.services.clone(), embedded)?,
            beyond: router::full_router(self.services.clone(), embedded),
        };
        let stop = self.services.stop.clone();
        self.requests
            .spawn(listener::serve(listener, answers, limits.clone(), stop));
        if !self.services.config.server.ops_listen.is_empty() {
            let listener = listening::listen(
                listening::OPERATIONS,
                &self.services.config.server.ops_listen,
            )
            .await?;
            self.operations_address = Some(listener.local_addr()?);
            let router = router::operations_router(self.services.clone());
            let limits = Limits {
                connections: OPERATORS,
                of_an_address: limits.of_an_address.min(OPERATORS_OF_AN_ADDRESS),
                ..limits
            };
            let answers = Answers {
                name: "operators",
                beyond: router.clone(),
                router,
            };
            // It answers, `/readyz` with 503, as long as requests are finished.
            let halt = self.halt.clone();
            self.tasks
                .spawn(listener::serve(listener, answers, limits, halt));
        }
        Ok(())
    }

    /// Where the API listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where `/metrics` and its like listen, if on an address of their own.
    pub fn operations_address(&self) -> Option<SocketAddr> {
        self.operations_address
    }

    /// The server's parts.
    pub fn services(&self) -> &Shared {
        &self.services
    }

    /// Stops: tells balancers, takes nothing new, finishes requests and batches in hand, closes the database.
    pub async fn stop(self) {
        let config = &self.services.config.server;
        let limit = Duration::from_secs(config.shutdown_seconds);
        self.services.draining.cancel();
        tokio::time::sleep(Duration::from_secs(config.drain_seconds)).await;
        self.services.stop.cancel();
        let finished = async {
            self.requests.close();
            self.requests.wait().await;
            self.halt.cancel();
            self.tasks.close();
            self.tasks.wait().await;
        };
        let in_time = tokio::time::timeout(limit, finished).await.is_ok();
        if !in_time {
            self.halt.cancel();
            tracing::warn!(
                limit_seconds = limit.as_secs(),
                "shutting down with work in hand; it is in the database"
            );
        }
        let services = &self.services;
        if let Err(error) = services.plugins.recorder.flush(&services.db).await {
            tracing::warn!(error = ?error, "what was noted of plugins last is lost");
        }
        if let Err(error) = services.stats.flush(&services.db).await {
            tracing::warn!(error = ?error, "what was counted last is lost");
        }
        if let Err(error) = Recovery::sign_out(&self.services.pipeline).await {
            // Nothing is lost: others take over once this process has been silent for long enough.
            tracing::warn!(error = ?error, "the database did not take the goodbye");
        }
        self.services.db.close().await;
    }
}

/// Starts what goes on besides requests and the pipeline.
fn spawn_background_tasks(services: &Shared, tasks: &TaskTracker, halt: &CancellationToken) {
    warm_up(services, tasks, halt);
    let kinds = crate::jobs::kinds(services);
    let passing = crate::jobs::passing(&kinds);
    let parts = jobs::Parts {
        db: services.db.clone(),
        clock: services.clock.clone(),
        node: services.pipeline.node(),
        wake: services.jobs.clone(),
        poll_ms: services.config.pipeline.poll_ms,
        kinds,
    };
    let runner = jobs::Runner::new(parts, tasks.clone(), halt.clone());
    tasks.spawn(runner.run());
    tasks.spawn(telemetry::run(halt.clone()));
    tasks.spawn(memory::give_back(halt.clone()));
    tasks.spawn(retention::run(services.clone(), passing, halt.clone()));
    nudge_apps::tasks::spawn(services.apps(), tasks, halt);
    nudge_records::tasks::spawn(services.records(), tasks, halt);
    nudge_pipeline::tasks::spawn(services.pipeline(), tasks, halt);
    nudge_push::tasks::spawn(&services.push, tasks, halt);
}

/// Opens the database and its keys. Both are looked at before either is changed: a database that is in use needs the
/// keys that it was sealed with, and new ones would be of no use to it.
async fn open_database(config: &Config) -> anyhow::Result<(Db, Secrets)> {
    let db = opening::open(config, config.database.connections).await?;
    let (_, secrets) = open_secrets(config, &db).await?;
    db.migrate(&migrations())
        .await
        .context("can't bring the database's schema up to date")?;
    Ok((db, secrets))
}

/// Takes the keys of a database, or makes some for one that is empty; says how far its schema is. One that is newer
/// than the program is refused.
pub(crate) async fn open_secrets(config: &Config, db: &Db) -> anyhow::Result<(Schema, Secrets)> {
    let schema = usable_schema(config, db).await?;
    Ok((
        schema,
        Secrets::load(&config.secrets, &config.server.data_dir)?,
    ))
}

/// How far the schema of a database is that this version can use with the keys that are there.
pub(crate) async fn usable_schema(config: &Config, db: &Db) -> anyhow::Result<Schema> {
    let schema = opening::schema(config, db).await?;
    require_known(schema)?;
    require_keys(config, db, schema).await?;
    Ok(schema)
}

/// Fails where a newer version of the program made the schema.
pub(crate) fn require_known(schema: Schema) -> anyhow::Result<()> {
    if schema == Schema::Newer {
        bail!(
            "a newer version of Nudge made the database's schema: run that version, or restore a backup from before"
        );
    }
    Ok(())
}

/// Fails where no keys are there and a database was used with some. None are made.
pub(crate) async fn require_keys(config: &Config, db: &Db, schema: Schema) -> anyhow::Result<()> {
    let data_dir = &config.server.data_dir;
    let has_keys = Secrets::are_there(&config.secrets, data_dir)?;
    if !has_keys && schema != Schema::Empty && sealed::any(db).await? {
        bail!(
            "the database has data that is sealed and {} has no master.key: put the key there that the database was used with, or name \
             it with NUDGE_SECRETS__MASTER_KEY",
            data_dir.display()
        );
    }
    Ok(())
}

fn operational() -> Arc<dyn AnalyticsStore> {
    Arc::new(analytics::Operational)
}

async fn open_registry(db: &Db, plugins: &Plugins) -> nudge_db::Result<Arc<Registry>> {
    let apps = Arc::new(Registry::new(db.clone(), plugins.clone()));
    // No app is in memory yet: reads from where browsers may come.
    drop(apps.changed().await?);
    Ok(apps)
}

/// Loads the built-in plugins and those that the configuration puts in their place.
pub(crate) async fn open_plugins(
    config: &Config,
    secrets: &Secrets,
    compiler: Option<PathBuf>,
    clock: Clock,
) -> anyhow::Result<Plugins> {
    let (config, secrets) = (config.clone(), secrets.clone());
    tokio::task::spawn_blocking(move || Plugins::open(&config, &secrets, compiler, clock)).await?
}

/// Compiles plugins ahead of the requests that need them: at the start, and what other processes take in later.
fn warm_up(services: &Shared, tasks: &TaskTracker, halt: &CancellationToken) {
    let (services, halt) = (services.clone(), halt.clone());
    tasks.spawn(async move {
        if let Err(error) = services.plugins.loaders.tell_isolation().await {
            tracing::warn!(%error, "nobody knows what isolates the plugins' compiler");
        }
        let began = services.clock.now();
        let work = async {
            let loaders = &services.plugins.loaders;
            if let Err(error) = loaders.warm_up(&services.db).await {
                tracing::warn!(error = ?error, "plugins are compiled when they are first needed");
            }
            loaders.follow(&services.db, &services.clock, began).await;
        };
        halt.run_until_cancelled(work).await;
    });
}

/// Every connection is an open file, of which systems allow few unless asked.
fn allow_open_files(config: &Config) {
    let wanted = config.server.max_connections.saturating_add(OTHER_FILES);
    let wanted = u64::try_from(wanted).unwrap_or(u64::MAX);
    match rlimit::increase_nofile_limit(wanted) {
        Ok(files) if files < wanted => {
            tracing::warn!(
                files,
                wanted,
                "fewer files may be open than server.maxConnections takes"
            );
        }
        Ok(_) => {}
        Err(error) => tracing::warn!(error = %error, "the limit of open files can't be asked for"),
    }
}

/// The URL under which clients reach a server.
pub(crate) fn public_url(config: &Config, address: impl Display) -> String {
    match config.server.public_url.as_str() {
        "" => format!("http://{address}"),
        url => url.trim_end_matches('/').to_owned(),
    }
}
