//! What all plugins share: the engine, its limits, its linkers, its cache.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use crate::ahead::Ahead;
use crate::cache::Cache;
use crate::compile::Compiler;
use crate::configuration;
use crate::limits::Limits;
use crate::load::{self, LoadError};
use crate::plugin::Plugin;
use crate::ticker::Ticker;
use crate::worlds::Linkers;

/// How an engine is set up.
#[derive(Debug, Clone)]
pub struct EngineConfig {
    /// Where compiled plugins are kept. It is made where it is missing.
    pub cache_dir: PathBuf,
    /// What signs them. Whoever has it and can write to `cache_dir` runs code in this process.
    pub cache_key: [u8; 32],
    /// Who compiles plugins.
    pub compiler: Compiler,
    /// What plugins may use.
    pub limits: Limits,
    /// How many calls can run at a time.
    pub pool_slots: u32,
    /// How many instances wait for calls at the most, besides. See [`between_calls`](crate::between_calls).
    pub made_ahead: u32,
}

/// Runs plugins. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) engine: wasmtime::Engine,
    pub(crate) ticker: Ticker,
    pub(crate) limits: Limits,
    pub(crate) compiler: Compiler,
    pub(crate) cache: Cache,
    pub(crate) linkers: Linkers,
    pub(crate) ahead: Ahead,
}

/// An engine could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The WebAssembly engine does not work on this machine.
    #[error("the WebAssembly engine cannot start: {0}")]
    Engine(String),
    /// The folder for compiled plugins cannot be used.
    #[error("the folder for compiled plugins cannot be used")]
    Cache(#[source] io::Error),
    /// The thread behind the deadlines cannot be started.
    #[error("the thread that keeps plugins' deadlines cannot start")]
    Ticker(#[source] io::Error),
}

impl Engine {
    /// Starts an engine.
    pub fn new(config: EngineConfig) -> Result<Self, Error> {
        let EngineConfig {
            cache_dir,
            cache_key,
            compiler,
            limits,
            pool_slots,
            made_ahead,
        } = config;
        let slots = pool_slots.saturating_add(made_ahead);
        let engine = match configuration::pooled(&limits, slots) {
            Ok(engine) => engine,
            Err(error) => {
                tracing::warn!(
                    error = format!("{error:#}"),
                    "no room for a pool of plugin instances"
                );
                configuration::on_demand().map_err(engine_error)?
            }
        };
        let shared = Shared {
            cache: Cache::new(cache_dir, cache_key, &engine).map_err(Error::Cache)?,
            linkers: Linkers::new(&engine).map_err(engine_error)?,
            ticker: Ticker::start(&engine).map_err(Error::Ticker)?,
            engine,
            limits,
            compiler,
            ahead: Ahead::new(made_ahead),
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Makes a plugin of a component: compiles it, or finds it compiled, checks its imports and asks it
    /// what it is. Takes as long as that takes.
    pub fn load(&self, component: &[u8]) -> Result<Plugin, LoadError> {
        load::load(&self.shared, component)
    }

    /// Whether the component with this digest need not be compiled any more, as far as can be told without
    /// reading the compiled code.
    pub fn is_compiled(&self, digest: &str) -> bool {
        self.shared.cache.has(digest)
    }

    /// Has the process that compiles say what isolates it. None: components are compiled in this process.
    pub fn isolation(&self) -> io::Result<Option<String>> {
        self.shared.compiler.isolation()
    }

    /// What plugins may use.
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Engine")
            .field("limits", &self.shared.limits)
            .finish_non_exhaustive()
    }
}

#[expect(clippy::needless_pass_by_value, reason = "the form that map_err takes")]
fn engine_error(error: wasmtime::Error) -> Error {
    Error::Engine(format!("{error:#}"))
}
