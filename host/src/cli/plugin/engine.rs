//! The sandbox without a server: the same engine, compiler and limits.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use nudge_platform::config::Config;
use nudge_platform::secrets::Secrets;
use nudge_plugin_runtime as plugins;
use nudge_wasm::{Compiler, Engine, EngineConfig, Plugin};

use crate::private;

/// An engine with the server's limits, which keeps what it compiles in `folder`.
pub(super) fn open(config: &Config, folder: &Path) -> anyhow::Result<Engine> {
    let program = std::env::current_exe().context("can't find this program's own file")?;
    private::folder(folder).with_context(|| folder.display().to_string())?;
    let secrets = Secrets::open(&config.secrets.master_key, folder)?;
    let config = EngineConfig {
        cache_dir: folder.to_owned(),
        cache_key: secrets.derive("plugin cache"),
        compiler: Compiler::Child {
            program,
            arguments: vec![OsString::from(plugins::COMPILE_COMMAND)],
        },
        limits: plugins::limits(config),
        pool_slots: 1,
        made_ahead: 0,
    };
    Ok(Engine::new(config)?)
}

/// Makes a plugin of a component, from the cache where it was compiled before.
pub(super) fn load(config: &Config, component: &[u8]) -> anyhow::Result<Plugin> {
    let engine = match cache(config) {
        Some(folder) => open(config, &folder)?,
        None => open(config, tempfile::tempdir()?.path())?,
    };
    Ok(engine.load(component)?)
}

/// Where an author's compiled plugins are kept: the configured folder, or one of the user's own, which the
/// plugin's sources can't bring along.
fn cache(config: &Config) -> Option<PathBuf> {
    if !config.plugins.cache_dir.as_os_str().is_empty() {
        return Some(config.plugins.cache_dir.clone());
    }
    let absolute = |variable| {
        std::env::var_os(variable)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    Some(caches?.join("nudge").join("plugins"))
}
