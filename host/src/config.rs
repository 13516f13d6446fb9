//! Configuration: one documented default file, a file, the environment, flags.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde::Deserialize;
use toml::{Table, Value};

/// The default file: every key, documented.
pub const DEFAULTS: &str = include_str!("config.default.toml");
const PREFIX: &str = "NUDGE_";

macro_rules! sections {
    ($($(#[doc = $doc:literal])* $name:ident { $($field:ident: $type:ty,)* })*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, Debug, Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        #[expect(missing_docs, reason = "every key is documented in config.default.toml")]
        pub struct $name { $(pub $field: $type,)* }
    )*};
}

sections! {
    /// The whole configuration; the keys are documented in [`DEFAULTS`].
    Config {
        server: Server,
        database: Database,
        secrets: Secrets,
        ingest: Ingest,
        pipeline: Pipeline,
        plugins: Plugins,
        plugin: PluginCommands,
        auth: Auth,
        telemetry: Telemetry,
    }
    /// Addresses and directories.
    Server {
        listen: String,
        ops_listen: String,
        data_dir: PathBuf,
        public_url: String,
        shutdown_seconds: u64,
    }
    /// Which database.
    Database { url: String, connections: u32, acquire_timeout_seconds: u64, }
    /// Commits.
    Ingest { queue_size: usize, commit_events: usize, postgres_writers: usize, }
    /// What happens after a commit.
    Pipeline {
        memory_events: usize,
        batch_events: usize,
        lanes_per_app: usize,
        poll_ms: u64,
        delivery_wait_ms: u64,
        node_timeout_seconds: u64,
    }
    /// Limits of plugins.
    Plugins {
        files: Vec<PathBuf>,
        memory_bytes: usize,
        deadline_ms: u64,
        validation_deadline_ms: u64,
        output_bytes: usize,
        log_bytes: usize,
        host_calls: u32,
        compile_seconds: u64,
        compile_memory_bytes: u64,
        workers: usize,
        decision_days: u64,
        cache_dir: PathBuf,
    }
    /// Who may manage.
    Auth { embedded_issuer: String, }
    /// Logs.
    Telemetry { log_format: String, log_filter: String, }
}

/// Key material; never printed.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Secrets {
    /// Base64 of 32 bytes, or empty.
    pub master_key: String,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Secrets(***)")
    }
}

/// What `nudge plugin` tells a server; the token is never printed.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PluginCommands {
    /// The server.
    pub url: String,
    /// An access token.
    pub token: String,
    /// The app.
    pub app: String,
}

impl std::fmt::Debug for PluginCommands {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("PluginCommands")
            .field("url", &self.url)
            .field("app", &self.app)
            .finish_non_exhaustive()
    }
}

impl Config {
    /// Reads the configuration of this process. `file` is `nudge.toml` unless a flag names another.
    pub fn load(file: Option<&Path>) -> anyhow::Result<Self> {
        let mut table = defaults()?;
        let path = file.unwrap_or(Path::new("nudge.toml"));
        match std::fs::read_to_string(path) {
            Ok(text) => merge(
                &mut table,
                text.parse().with_context(|| path.display().to_string())?,
                "",
            )?,
            Err(_) if file.is_none() => {}
            Err(error) => return Err(error).with_context(|| path.display().to_string()),
        }
        merge_environment(&mut table, std::env::vars())?;
        Self::from_table(table)
    }

    /// The defaults.
    pub fn defaults() -> anyhow::Result<Self> {
        Self::from_table(defaults()?)
    }

    fn from_table(table: Table) -> anyhow::Result<Self> {
        Ok(Value::Table(table).try_into()?)
    }

    /// The database's URL; SQLite in the data directory unless configured.
    pub fn database_url(&self) -> String {
        if self.database.url.is_empty() {
            format!("sqlite:{}", self.server.data_dir.join("nudge.db").display())
        } else {
            self.database.url.clone()
        }
    }

    /// Where compiled plugins are kept.
    pub fn plugin_cache(&self) -> PathBuf {
        if self.plugins.cache_dir.as_os_str().is_empty() {
            self.server.data_dir.join("plugin-cache")
        } else {
            self.plugins.cache_dir.clone()
        }
    }
}

fn defaults() -> anyhow::Result<Table> {
    DEFAULTS.parse().context("config.default.toml")
}

/// Lays one table over another; what the lower one does not have is a mistake.
fn merge(below: &mut Table, above: Table, path: &str) -> anyhow::Result<()> {
    for (key, value) in above {
        let name = format!("{path}{key}");
        match (below.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => {
                merge(below, above, &format!("{name}."))?;
            }
            (Some(slot), value) => *slot = value,
            (None, _) => {
                bail!("unknown configuration key `{name}`; `nudge config` prints all keys")
            }
        }
    }
    Ok(())
}

fn merge_environment(
    table: &mut Table,
    variables: impl Iterator<Item = (String, String)>,
) -> anyhow::Result<()> {
    for (variable, text) in variables {
        let Some((section, key)) = variable
            .strip_prefix(PREFIX)
            .and_then(|path| path.split_once("__"))
        else {
            continue;
        };
        let (section, key) = (camel_case(section), camel_case(key));
        let slot = table
            .get_mut(&section)
            .and_then(Value::as_table_mut)
            .and_then(|section| section.get_mut(&key))
            .with_context(|| format!("{variable}: unknown configuration key `{section}.{key}`"))?;
        *slot = match slot {
            Value::String(_) => Value::String(text),
            _ => format!("value = {text}")
                .parse::<Table>()
                .ok()
                .and_then(|mut parsed| parsed.remove("value"))
                .with_context(|| {
                    format!("{variable}: `{text}` is not a value of the right type")
                })?,
        };
    }
    Ok(())
}

/// `RETRY_BASE_SECONDS` is `retryBaseSeconds`.
fn camel_case(upper: &str) -> String {
    let mut words = upper.split('_').map(str::to_ascii_lowercase);
    let mut name = words.next().unwrap_or_default();
    for word in words {
        let mut letters = word.chars();
        name.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        name.push_str(letters.as_str());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_file_is_complete() {
        let config = Config::defaults().unwrap();
        assert_eq!(config.plugins.deadline_ms, 50);
        assert!(config.database_url().starts_with("sqlite:./nudge-data"));
    }

    #[test]
    fn the_environment_overrides_and_unknown_keys_are_refused() {
        let mut table = defaults().unwrap();
        let set = |name: &str, value: &str| std::iter::once((name.to_owned(), value.to_owned()));
        merge_environment(&mut table, set("NUDGE_INGEST__QUEUE_SIZE", "7")).unwrap();
        assert_eq!(
            Config::from_table(table.clone()).unwrap().ingest.queue_size,
            7
        );
        assert!(merge_environment(&mut table, set("NUDGE_INGEST__QUEUE", "7")).is_err());
        assert!(merge_environment(&mut table, set("NUDGE_INGEST__QUEUE_SIZE", "many")).is_err());
        assert!(merge(&mut table, "[ingest]\nqueue = 1".parse().unwrap(), "").is_err());
    }
}
