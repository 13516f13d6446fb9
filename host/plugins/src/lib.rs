//! Running plugins: which version decides, its threads, configuration, statistics, logs and cases.
//!
//! It knows no route and no campaign; managing plugins is above, in `nudge-apps`.
//!
//! # Invariants
//!
//! - **A plugin sees its batch and nothing else.** Every call has a fresh instance and limits on time, memory, output, log and host calls
//!   (`host/wasm/src/limits.rs`). Time is the batch's, random numbers are the item's. A call that fails has no effect.
//! - **Guests never run on the async reactor.** They run on the threads of [`workers`]. Uploads, loading and `check-config` have threads of their own
//!   ([`loaders`]), as do shadow candidates.
//! - **One app's slow plugin is no other app's trouble** (`fair_queue.rs`, pure). An app has at most `plugins.appShare` of the threads at a time, and
//!   `plugins.appMillisPerSecond` of their time.
//! - **One resolved view says which plugin decides** ([`active`]). An app's own plugin goes before the server's of the same name; a slot of the app
//!   before the server's before the built-in one. [`catalogue`] and [`rollout`] hold the rules and are pure.
//! - **A configuration is asked about once** ([`configuration`]): a plugin's answer is kept until its bytes or the configuration change.
//! - **Calls are counted under a period of a rollout**: a version in one of its roles, since it came into it. A trial never counts against a later one.
//! - **Work that no event waits for gives way** ([`aside`]): cases, reruns and backtests have a quarter of the threads.
//! - **Compiled code is never trusted by its place.** The cache file is authenticated with a key derived from the master key.
//! - **A failing version is rolled back once, by whichever process notices** ([`statistics`], [`rollout`]). A call is settled when nothing is tried after it;
//!   twenty settled calls and a failure rate over the setting take a candidate, or a version active for less than ten minutes, back. A call that missed its
//!   deadline while its thread hardly ran is made once more and is not held against the plugin.
//! - **Nothing of an upload is trusted.** A child process with limits compiles it; it is tried under the limits of every call before it is kept.
//! - **A version of the contract is for ever** (`wit/`). Plugins compiled for earlier versions are kept with their decisions, and tests compare.

pub mod active;
mod aside;
pub mod cases;
pub mod catalogue;
pub mod check;
pub mod configuration;
mod fair_queue;
pub mod halving;
pub mod inspect;
pub mod loaders;
pub mod logs;
mod recorder;
pub mod rollback;
pub mod rollout;
pub mod rollout_period;
pub mod shadow;
pub mod statistics;
pub mod store;
pub mod upload_errors;
pub mod workers;

use std::collections::{BTreeSet, HashMap};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use nudge_db::Tx;
use nudge_wasm::{
    Call, Compiler, Engine, EngineConfig, Failed, Kind, Limits, Plugin, Problem, Reads,
};
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use uuid::Uuid;

pub use crate::fair_queue::Share;
pub use crate::rollout_period::RolloutPeriod;
pub use active::{Active, Deciders, Origin};
pub use catalogue::PluginRef;
pub use configuration::{Accepted, Configuration, Reading, Refused};
pub use loaders::{Loaders, Unloadable};
pub use recorder::Recorder;
pub use workers::{Lost, Workers};

use nudge_platform::clock::Clock;
use nudge_platform::config::Config;
use nudge_platform::secrets::Secrets;

/// The name of the hidden command that compiles a component in a process of its own.
pub const COMPILE_COMMAND: &str = "compile-component";

/// Threads that show calls to shadow candidates: one, so that trials never take more than one processor.
const SHADOWS: usize = 1;
/// Instances that are made before they are called: of the built-in plugins, and of those that some apps have of their own.
const MADE_AHEAD: u32 = 8;
/// Plugins and versions that metrics tell apart.
const MOST_LABELED: usize = 256;

/// The built-in plugins and what runs all plugins. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Plugins {
    /// Threads for calls, so that no guest ever sits on the async reactor.
    pub workers: Workers,
    /// Loads plugins, and asks them what no event waits for.
    pub loaders: Loaders,
    /// The thread that shows calls to shadow candidates.
    pub shadows: Workers,
    /// Notes how calls went.
    pub recorder: Arc<Recorder>,
    /// What decides where nothing else was chosen: a plugin of each kind.
    pub built_in: Arc<HashMap<Kind, Arc<Active>>>,
    asides: Arc<Semaphore>,
    /// Whether calls are kept, so that they can be made again.
    pub keeps_decisions: bool,
}

impl Plugins {
    /// Compiles the built-in plugins and the configured ones, or loads them from the cache. Blocks.
    ///
    /// `compiler` is the `nudge` program.
    pub fn open(
        config: &Config,
        secrets: &Secrets,
        compiler: Option<PathBuf>,
        clock: Clock,
    ) -> anyhow::Result<Self> {
        let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        let workers = if config.plugins.workers == 0 {
            threads * 2
        } else {
            config.plugins.workers
        };
        let compiler = match compiler {
            Some(program) => Compiler::Child {
                program,
                arguments: vec![OsString::from(COMPILE_COMMAND)],
            },
            None => Compiler::InProcess,
        };
        let engine = Engine::new(EngineConfig {
            cache_dir: config.plugin_cache(),
            cache_key: secrets.derive("plugin cache"),
            compiler,
            limits: limits(config),
            pool_slots: u32::try_from(workers + SHADOWS + Loaders::SLOTS).unwrap_or(u32::MAX),
            made_ahead: MADE_AHEAD,
        });
        let engine = engine.map_err(|error| unusable(error, config))?;
        let built_in = load_built_in(&engine, config)?;
        Ok(Self {
            workers: Workers::start("plugin", workers, share(config, workers))?,
            loaders: Loaders::start(engine)?,
            shadows: Workers::start("plugin-shadow", SHADOWS, Share::ALL)?,
            recorder: Arc::new(Recorder::new(clock)),
            built_in: Arc::new(built_in),
            asides: aside::turns(workers),
            keeps_decisions: config.plugins.decision_days > 0,
        })
    }

    /// The built-in plugins.
    pub fn built_in(&self) -> impl Iterator<Item = &Arc<Active>> {
        Kind::ALL.iter().filter_map(|kind| self.built_in.get(kind))
    }

    /// Fails as a lost race where a name is neither that of a built-in plugin nor that of one which an app or the server has: one was
    /// removed since the names were checked. Call it once the app's version is moved, which a removal does before it looks
    /// for the plugin's name.
    pub async fn require(
        &self,
        tx: &mut Tx,
        app_id: Uuid,
        mut names: BTreeSet<&str>,
    ) -> nudge_db::Result<()> {
        for active in self.built_in() {
            names.remove(&*active.plugin.description().name);
        }
        store::require(tx, app_id, names).await
    }

    /// Asks a plugin whether it accepts a configuration, and what it reads under it.
    pub async fn check_config(
        &self,
        plugin: &Plugin,
        config: String,
    ) -> Result<Result<Reads, Vec<Problem>>, CheckFailed> {
        Ok(self.call_check_config(plugin, config).await??.0)
    }

    /// The same where somebody saves the configuration, or activates the version: what it logs is kept in an app.
    pub async fn check_config_and_log(
        &self,
        (app_id, period): (Uuid, &Arc<RolloutPeriod>),
        plugin: &Plugin,
        config: String,
    ) -> Result<Result<Reads, Vec<Problem>>, CheckFailed> {
        let checked = self.call_check_config(plugin, config).await?;
        let call = match &checked {
            Ok((_, call)) => call,
            Err(failed) => &*failed.call,
        };
        self.recorder.logged(
            (app_id, period),
            logs::Kind::Check,
            &call.logs,
            logs::Topics::default,
        );
        Ok(checked?.0)
    }

    async fn call_check_config(
        &self,
        plugin: &Plugin,
        config: String,
    ) -> Result<Result<(Result<Reads, Vec<Problem>>, Call), Failed>, Lost> {
        let plugin = plugin.clone();
        let checked = self.loaders.run(move |_| {
            let started = std::time::Instant::now();
            let mut outcome = plugin.check_config_call(&config);
            if outcome.as_ref().is_err_and(Failed::was_starved) {
                outcome = plugin.check_config_call(&config);
            }
            let description = plugin.description();
            let code = outcome.as_ref().err().map(|failed| failed.failure.code());
            let (name, version) = (&description.name, &description.version);
            count(name, version, code.unwrap_or("ok"), started.elapsed());
            outcome
        });
        checked.await
    }
}

/// A plugin could not say whether it accepts a configuration.
#[derive(Debug, thiserror::Error)]
pub enum CheckFailed {
    /// The call failed.
    #[error("the plugin failed while it checked the configuration")]
    Failed(#[from] Failed),
    /// The thread that ran it is gone.
    #[error(transparent)]
    Lost(#[from] Lost),
}

impl CheckFailed {
    /// The failure, where it is the plugin's own: asked once more it would fail again. None: nothing is known of the plugin.
    pub fn of_plugin(&self) -> Option<&Failed> {
        match self {
            Self::Failed(failed) => Some(failed).filter(|failed| !failed.is_inconclusive()),
            Self::Lost(_) => None,
        }
    }
}

/// The plugins that are a part of the server, and those of its configuration in their place.
fn load_built_in(engine: &Engine, config: &Config) -> anyhow::Result<HashMap<Kind, Arc<Active>>> {
    let mut built_in = HashMap::new();
    for (name, component) in [
        ("default-trigger", nudge_plugins::DEFAULT_TRIGGER),
        ("default-validation", nudge_plugins::DEFAULT_VALIDATION),
        (
            "default-personalization",
            nudge_plugins::DEFAULT_PERSONALIZATION,
        ),
    ] {
        let plugin = engine
            .load(component)
            .with_context(|| format!("the built-in plugin {name}"))?
            .with_unlimited_timers();
        built_in.insert(plugin.kind(), plugin);
    }
    built_in.extend(load_files(engine, &config.plugins.files)?);
    built_in.extend(load_files(engine, &config.plugins.flags)?);
    let built_in = built_in.into_iter().map(|(kind, plugin)| {
        let active = Active {
            origin: Origin::BuiltIn,
            period: Arc::new(RolloutPeriod::built_in(&plugin)),
            plugin: Arc::new(plugin),
            candidate: None,
            rolled_back: None,
        };
        (kind, Arc::new(active))
    });
    Ok(built_in.collect())
}

/// The plugins of some files, of each kind one at the most.
fn load_files(engine: &Engine, files: &[PathBuf]) -> anyhow::Result<HashMap<Kind, Plugin>> {
    let mut loaded: HashMap<Kind, (&PathBuf, Plugin)> = HashMap::new();
    for path in files {
        let name = path.display();
        let bytes = std::fs::read(path).with_context(|| format!("the plugin {name}"))?;
        let plugin = engine
            .load(&bytes)
            .with_context(|| format!("the plugin {name}"))?;
        let kind = plugin.kind();
        if let Some((other, _)) = loaded.insert(kind, (path, plugin)) {
            let other = other.display();
            anyhow::bail!("{other} and {name} are both {kind} plugins; name one");
        }
    }
    let plugins = loaded.into_iter().map(|(kind, (_, plugin))| (kind, plugin));
    Ok(plugins.collect())
}

/// Why there is no engine: mostly that the folder of compiled plugins can't be used.
fn unusable(error: nudge_wasm::Error, config: &Config) -> anyhow::Error {
    let folder = config.plugin_cache();
    match error {
        nudge_wasm::Error::Cache(cause) => anyhow::anyhow!(
            "{}, the folder of compiled plugins, can't be used ({cause}): name another in `plugins.cacheDir`",
            folder.display()
        ),
        error => error.into(),
    }
}

/// The limits of every call, from the configuration.
pub fn limits(config: &Config) -> Limits {
    let plugins = &config.plugins;
    Limits {
        memory_bytes: plugins.memory_bytes,
        trigger_deadline: Duration::from_millis(plugins.deadline_ms),
        personalization_deadline: Duration::from_millis(plugins.deadline_ms),
        validation_deadline: Duration::from_millis(plugins.validation_deadline_ms),
        output_bytes: plugins.output_bytes,
        log_bytes: plugins.log_bytes,
        host_calls: plugins.host_calls,
        compile_seconds: plugins.compile_seconds,
        compile_memory_bytes: plugins.compile_memory_bytes,
        ..Limits::default()
    }
}

/// What an app may have of the threads that run plugins.
fn share(config: &Config, threads: usize) -> Share {
    let plugins = &config.plugins;
    let threads = if plugins.app_share > 0.0 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a part of a number of threads, which is small"
        )]
        let threads = (threads as f64 * plugins.app_share.min(1.0)) as usize;
        threads
    } else {
        // One is always left for the others.
        threads.saturating_sub(1)
    };
    let threads = threads.max(1);
    let milliseconds = match plugins.app_millis_per_second {
        0 => threads as u64 * 1000,
        milliseconds => milliseconds,
    };
    Share {
        threads,
        budget: Duration::from_millis(milliseconds),
    }
}

/// The plugin and version that a call is counted under: the first ones that are called. Anybody who may upload
/// could make any number of them, each of which stays in memory; what an app's fare is in the database.
fn label(name: &str, version: &str) -> (String, String) {
    static LABELED: Mutex<BTreeSet<(String, String)>> = Mutex::new(BTreeSet::new());
    let label = (name.to_owned(), version.to_owned());
    let mut labeled = LABELED.lock();
    if labeled.contains(&label) {
        return label;
    }
    if labeled.len() >= MOST_LABELED {
        return ("other".to_owned(), String::new());
    }
    labeled.insert(label.clone());
    label
}

/// Counts a call by plugin, version and outcome, and its time.
fn count(name: &str, version: &str, outcome: &'static str, elapsed: Duration) {
    let (name, version) = label(name, version);
    let labels = [("plugin", name), ("version", version)];
    metrics::histogram!("nudge_plugin_call_seconds", &labels).record(elapsed.as_secs_f64());
    let [plugin, version] = labels;
    metrics::counter!(
        "nudge_plugin_calls_total",
        &[plugin, version, ("outcome", outcome.to_owned())]
    )
    .increment(1);
}

#[cfg(test)]
mod tests {
    use nudge_wasm::{Call, Failure};

    use super::*;

    #[test]
    fn a_plugin_is_to_blame_for_what_it_had_the_time_for() {
        let failed = |failure, hardly_ran| {
            let call = Call {
                hardly_ran,
                ..Call::default()
            };
            CheckFailed::Failed(Failed {
                failure,
                call: Box::new(call),
            })
        };
        let is_own = |failed: &CheckFailed| failed.of_plugin().is_some();
        assert!(is_own(&failed(Failure::Deadline, false)));
        assert!(is_own(&failed(Failure::Trap(String::new()), true)));
        assert!(!is_own(&failed(Failure::Deadline, true)));
        assert!(!is_own(&failed(Failure::Unavailable, false)));
        assert!(!is_own(&CheckFailed::Lost(Lost)));
    }
}
