//! Configuration: one documented default file, a file, the environment, flags.

mod checks;
mod database;
mod environment;
mod hidden;
mod oidc_issuer;

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use serde::Deserialize;
use toml::{Table, Value};

pub use database::Database;
use environment::{chosen_of_server, merge_environment};
pub use hidden::Hidden;
pub use oidc_issuer::OidcIssuer;

/// The default file: every key, documented.
pub const DEFAULTS: &str = include_str!("config.default.toml");
/// Where every program that speaks OTLP is told the address of the collector, and the whole one for traces (OpenTelemetry,
/// "OTLP Exporter Configuration").
const OTLP_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const OTLP_TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
/// And what it is to be sent besides, as a credential: the same place. What is said of traces comes first.
const OTLP_HEADERS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    "OTEL_EXPORTER_OTLP_HEADERS",
];
/// The reader's words for types of values, and those that people know.
const WORDS: [(&str, &str); 6] = [
    ("expected usize", "expected a whole number of 0 or more"),
    ("expected u16", "expected a whole number from 0 to 65535"),
    ("expected u32", "expected a whole number of 0 or more"),
    ("expected u64", "expected a whole number of 0 or more"),
    ("expected f64", "expected a number"),
    ("expected a sequence", "expected a list"),
];
/// What the names of this program's variables begin with.
pub const PREFIX: &str = "NUDGE_";

macro_rules! sections {
    ($($(#[doc = $doc:literal])* $name:ident { $($(#[$attribute:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, Debug, Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        #[expect(missing_docs, reason = "every key is documented in config.default.toml")]
        pub struct $name { $($(#[$attribute])* pub $field: $type,)* }
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
        rate_limits: RateLimits,
        privacy: Privacy,
        push: Push,
        webhooks: Webhooks,
        telemetry: Telemetry,
    }
    /// Addresses and directories.
    Server {
        /// Those of its keys that a file or the environment has, also with the value of the default.
        #[serde(skip)]
        chosen: BTreeSet<String>,
        listen: String,
        ops_listen: String,
        data_dir: PathBuf,
        public_url: String,
        drain_seconds: u64,
        shutdown_seconds: u64,
        trusted_proxies: usize,
        max_connections: usize,
        max_connections_per_address: usize,
        first_bytes_seconds: u64,
        stalled_seconds: u64,
        max_connection_age_seconds: u64,
        http2_max_streams: u32,
        max_requests: usize,
        max_polls: usize,
        app_share: f64,
        body_memory_bytes: usize,
        answer_memory_bytes: usize,
        lookup_threads: usize,
    }
    /// Key material: the Base64 of 32 bytes, or nothing; and earlier keys, whose signatures and sealed rows are still
    /// accepted.
    Secrets { master_key: Hidden, previous_keys: Hidden<Vec<String>>, }
    /// Commits.
    Ingest { queue_size: usize, queue_wait_ms: u64, commit_events: usize, postgres_writers: usize, }
    /// What happens after a commit.
    Pipeline {
        memory_events: usize,
        memory_bytes: usize,
        batch_events: usize,
        lanes_per_app: usize,
        poll_ms: u64,
        delivery_wait_ms: u64,
        node_timeout_seconds: u64,
    }
    /// Limits of plugins, and files in the place of the built-in ones: those that `--plugin` names go before those of `files`.
    Plugins {
        files: Vec<PathBuf>,
        #[serde(skip)]
        flags: Vec<PathBuf>,
        memory_bytes: usize,
        deadline_ms: u64,
        validation_deadline_ms: u64,
        output_bytes: usize,
        log_bytes: usize,
        host_calls: u32,
        compile_seconds: u64,
        compile_memory_bytes: u64,
        workers: usize,
        app_share: f64,
        app_millis_per_second: u64,
        decision_days: u64,
        cache_dir: PathBuf,
    }
    /// What `nudge plugin` tells a server: an access token and the app.
    PluginCommands { url: String, token: Hidden, app: String, }
    /// Who may manage.
    Auth { embedded_issuer: String, issuers: Vec<OidcIssuer>, allow_http: bool, }
    /// How much one caller may ask.
    RateLimits {
        enabled: Switch,
        key: Bucket,
        key_address: Bucket,
        sessions: Bucket,
        subject: Bucket,
        principal: Bucket,
        address: Bucket,
        subject_bytes: Bucket,
        app_bytes: Bucket,
        key_address_bytes: Bucket,
    }
    /// A token bucket.
    Bucket { per_second: f64, burst: u32, }
    /// Deletion of persons' data.
    Privacy { grace_seconds: u64, }
    /// Push services.
    Push { extra_root_certificates: PathBuf, apns: Apns, fcm: Fcm, }
    /// Apple's.
    Apns { production_url: String, sandbox_url: String, }
    /// Google's.
    Fcm { url: String, token_url: String, }
    /// Requests to customers' endpoints.
    Webhooks {
        allow_http: bool,
        allow_private_networks: bool,
        ports: Vec<u16>,
        retry_base_seconds: f64,
        disable_after_seconds: u64,
        concurrency: usize,
        endpoint_concurrency: usize,
    }
    /// Logs.
    Telemetry { log_format: String, log_filter: String, otlp_endpoint: String, otlp_traces_endpoint: String, otlp_headers: Hidden, }
}

/// Something that is on, off, or as the command that runs has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Value")]
pub enum Switch {
    /// As the command has it.
    Auto,
    /// On.
    On,
    /// Off.
    Off,
}

impl Switch {
    /// Whether it is on, where `auto` stands for a default.
    pub fn decide(self, auto: bool) -> bool {
        match self {
            Self::Auto => auto,
            Self::On => true,
            Self::Off => false,
        }
    }
}

impl TryFrom<Value> for Switch {
    type Error = &'static str;

    /// From a truth value, or its name as environment variables have it.
    fn try_from(value: Value) -> Result<Self, Self::Error> {
        let on = |on| if on { Self::On } else { Self::Off };
        match &value {
            Value::Boolean(value) => Ok(on(*value)),
            Value::String(text) if text == "auto" => Ok(Self::Auto),
            Value::String(text) => text
                .parse()
                .map(on)
                .map_err(|_| "must be true, false or \"auto\""),
            _ => Err("must be true, false or \"auto\""),
        }
    }
}

impl Telemetry {
    /// Takes what is not configured from the variables that all programs with traces read. One that is empty is none.
    fn complete(&mut self, variable: impl Fn(&str) -> Option<String>) {
        let of = |name: &str| variable(name).unwrap_or_default();
        if self.otlp_endpoint.is_empty() && self.otlp_traces_endpoint.is_empty() {
            self.otlp_endpoint = of(OTLP_ENDPOINT);
            self.otlp_traces_endpoint = of(OTLP_TRACES_ENDPOINT);
        }
        if self.otlp_headers.0.is_empty() {
            let headers = OTLP_HEADERS.map(of);
            self.otlp_headers = Hidden(
                headers
                    .into_iter()
                    .find(|it| !it.is_empty())
                    .unwrap_or_default(),
            );
        }
    }
}

/// The configuration file, in the folder where a command is run.
pub const FILE: &str = "nudge.toml";

impl Config {
    /// Reads the configuration of this process. `file` is [`FILE`] unless a flag names another.
    pub fn load(file: Option<&Path>) -> anyhow::Result<Self> {
        let mut table = defaults()?;
        let path = file.unwrap_or(Path::new(FILE));
        let of_file = match std::fs::read_to_string(path) {
            Ok(text) => parse(&text, path)?,
            // What is there and can't be read is no reason to start with defaults.
            Err(error) if file.is_none() && error.kind() == ErrorKind::NotFound => Table::new(),
            Err(error) => return Err(error).with_context(|| path.display().to_string()),
        };
        // Variables that are no text are none of ours; one of ours would be refused by what it says.
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            let name = name.into_string().ok()?;
            Some((name, value.to_string_lossy().into_owned()))
        });
        let variables: Vec<(String, String)> = variables.collect();
        let chosen = chosen_of_server(&of_file, &variables);
        merge(&mut table, of_file, "")?;
        merge_environment(&mut table, variables.into_iter())?;
        let mut config = Self::from_table(table)?;
        config.server.chosen = chosen;
        config.telemetry.complete(|name| std::env::var(name).ok());
        config.check()?;
        Ok(config)
    }

    /// The defaults.
    pub fn defaults() -> anyhow::Result<Self> {
        Self::from_table(defaults()?)
    }

    fn from_table(table: Table) -> anyhow::Result<Self> {
        // The error's second line names the key.
        let one_line = |error: toml::de::Error| {
            let text = error.to_string();
            let lines: Vec<&str> = text.lines().map(str::trim).collect();
            let mut said = lines.join(" ");
            for (of_rust, of_people) in WORDS {
                said = said.replace(of_rust, of_people);
            }
            anyhow!("the configuration: {}", said.trim_end())
        };
        Value::Table(table).try_into().map_err(one_line)
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

/// Reads a file; an error is a line that says where.
fn parse(text: &str, path: &Path) -> anyhow::Result<Table> {
    text.parse().map_err(|error: toml::de::Error| {
        let before = error.span().and_then(|span| text.get(..span.start));
        let line = before.unwrap_or_default().matches('\n').count() + 1;
        anyhow!("{}: line {line}: {}", path.display(), error.message())
    })
}

/// Lays one table over another; what the lower one does not have is a mistake.
fn merge(below: &mut Table, above: Table, path: &str) -> anyhow::Result<()> {
    for (key, value) in above {
        let name = format!("{path}{key}");
        match (below.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => {
                merge(below, above, &format!("{name}."))?;
            }
            // Not left to serde, which would show the value.
            (Some(Value::Table(_)), _) => {
                bail!("`{name}` has keys of its own; `nudge config` prints them")
            }
            (Some(slot), value) => *slot = value,
            (None, _) => {
                bail!("unknown configuration key `{name}`; `nudge config` prints all keys")
            }
        }
    }
    Ok(())
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
    fn what_is_said_of_traces_comes_before_what_is_said_of_all_and_the_configuration_before_both() {
        let completed = |change: fn(&mut Telemetry), set: &[&str]| {
            let mut telemetry = Config::defaults().unwrap().telemetry;
            change(&mut telemetry);
            telemetry.complete(|name| {
                let value = set
                    .contains(&name)
                    .then(|| name.rsplit_once('_').unwrap().0);
                value.map(str::to_owned).or(Some(String::new()))
            });
            let (base, traces) = (telemetry.otlp_endpoint, telemetry.otlp_traces_endpoint);
            [base, traces, telemetry.otlp_headers.0]
        };
        let (all, traces) = ("OTEL_EXPORTER_OTLP", "OTEL_EXPORTER_OTLP_TRACES");
        let [general, special] = [OTLP_ENDPOINT, OTLP_TRACES_ENDPOINT];
        let [special_headers, general_headers] = OTLP_HEADERS;
        assert_eq!(completed(|_| {}, &[]), [""; 3]);
        let set = [general, general_headers];
        assert_eq!(completed(|_| {}, &set), [all, "", all]);
        let set = [general, special, special_headers, general_headers];
        assert_eq!(completed(|_| {}, &set), [all, traces, traces]);
        let configured = |telemetry: &mut Telemetry| {
            telemetry.otlp_endpoint = "here".to_owned();
            telemetry.otlp_headers = Hidden("a=b".to_owned());
        };
        assert_eq!(completed(configured, &set), ["here", "", "a=b"]);
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
        let url = "https://127.0.0.1:1";
        merge_environment(&mut table, set("NUDGE_PUSH__APNS__PRODUCTION_URL", url)).unwrap();
        let config = Config::from_table(table.clone()).unwrap();
        assert_eq!(config.push.apns.production_url, url);
        for unknown in [
            "NUDGE_PUSH__APNS__URL",
            "NUDGE_PUSH__APNS__URL__X",
            "NUDGE_A__B__C",
        ] {
            assert!(merge_environment(&mut table, set(unknown, url)).is_err());
        }
        assert!(merge_environment(&mut table, set("NUDGE_INGEST__QUEUE", "7")).is_err());
        for (variable, meant) in [
            ("NUDGE_DATABASE_URL", "NUDGE_DATABASE__URL"),
            ("NUDGE_RATE_LIMITS_ENABLED", "NUDGE_RATE_LIMITS__ENABLED"),
            ("NUDGE_PUSH_FCM_URL", "NUDGE_PUSH__FCM__URL"),
        ] {
            let refused = merge_environment(&mut table, set(variable, url)).unwrap_err();
            assert!(refused.to_string().ends_with(meant), "{refused}");
        }
        // One that others use beside the right one, and what a cluster tells of a service of this name.
        for (variable, text) in [
            ("NUDGE_DATABASE_URL", "NUDGE_DATABASE__URL"),
            ("NUDGE_SERVER_SERVICE_HOST", "NUDGE_DATABASE__URL"),
            ("NUDGE_PORT", "NUDGE_TEST_LOG"),
        ] {
            let both = set(variable, url).chain(set(text, url));
            merge_environment(&mut table, both).unwrap();
        }
        assert!(merge_environment(&mut table, set("NUDGE_INGEST__QUEUE_SIZE", "many")).is_err());
        assert!(merge(&mut table, "[ingest]\nqueue = 1".parse().unwrap(), "").is_err());
    }

    #[test]
    fn what_is_wrong_with_a_secret_does_not_show_it() {
        const KEY: &str = "c2VjcmV0LXNlY3JldC1zZWNyZXQ=";
        let file = |text: String| {
            let mut table = defaults().unwrap();
            merge(&mut table, parse(&text, Path::new("nudge.toml"))?, "")?;
            Config::from_table(table).map(Box::new)
        };
        let variable = |name: &str, value: String| {
            let mut table = defaults().unwrap();
            merge_environment(&mut table, std::iter::once((name.to_owned(), value)))?;
            Config::from_table(table).map(Box::new)
        };
        let previous = "NUDGE_SECRETS__PREVIOUS_KEYS";
        for wrong in [
            file(format!("[secrets]\npreviousKeys = \"{KEY}\"")),
            file(format!("[secrets]\npreviousKeys = [[\"{KEY}\"]]")),
            file(format!("[secrets]\npreviousKeys = {{a = \"{KEY}\"}}")),
            file(format!("[secrets]\npreviousKeys = [{KEY}]")),
            file(format!("[secrets]\nmasterKey = [\"{KEY}\"]")),
            file(format!("[secrets]\nmasterKey = {KEY}")),
            file(format!("[secrets]\nmasterKey = {{\"{KEY}\" = \"{KEY}\"}}")),
            file(format!("secrets = \"{KEY}\"")),
            file(format!("[plugin]\ntoken = [\"{KEY}\"]")),
            file(format!("plugin = \"{KEY}\"")),
            file(format!("database = \"postgres://nudge:{KEY}@db/nudge\"")),
            file(format!("[telemetry]\notlpHeaders = [\"api-key={KEY}\"]")),
            variable(previous, KEY.to_owned()),
            variable(previous, format!("\"{KEY}\"")),
            variable(previous, format!("[\"{KEY}\"")),
            variable(previous, format!("[[\"{KEY}\"]]")),
            variable(previous, format!("{{\"a\": \"{KEY}\"}}")),
        ] {
            let error = wrong.unwrap_err();
            let text = format!("{error:#} {error:?}");
            assert!(!text.contains("c2VjcmV0"), "{text}");
        }
        let config = variable(previous, format!("[\"{KEY}\"]")).unwrap();
        assert_eq!(*config.secrets.previous_keys, [KEY]);
        assert!(!format!("{config:?}").contains("c2VjcmV0"));
        let mut config = file(format!("[secrets]\nmasterKey = \"{KEY}\"")).unwrap();
        config.database.url = format!("postgres://nudge:{KEY}@db/nudge");
        assert!(!format!("{config:?}").contains("c2VjcmV0"));
    }

    #[test]
    fn issuers_and_rates_come_from_the_environment_as_toml_or_json() {
        let set = |name: &str, value: &str| {
            let mut table = defaults().unwrap();
            let variable = std::iter::once((name.to_owned(), value.to_owned()));
            merge_environment(&mut table, variable)?;
            Config::from_table(table)
        };
        for text in [
            r#"[{issuer = "https://id.example", audience = "nudge"}]"#,
            r#"[{"issuer": "https://id.example", "audience": "nudge"}]"#,
        ] {
            let config = set("NUDGE_AUTH__ISSUERS", text).unwrap();
            assert_eq!(config.auth.issuers[0].issuer, "https://id.example");
            assert_eq!(config.auth.issuers[0].roles_claim, "roles");
        }
        let config = set("NUDGE_RATE_LIMITS__KEY", "{perSecond = 0.5, burst = 7}").unwrap();
        assert_eq!(config.rate_limits.key.burst, 7);
        assert!(set("NUDGE_RATE_LIMITS__KEY", "7").is_err());
    }

    #[test]
    fn a_variable_overrides_a_file_that_has_a_value_of_another_type() {
        let mut table = defaults().unwrap();
        let file = "[rateLimits]\nenabled = true".parse().unwrap();
        merge(&mut table, file, "").unwrap();
        let variable = ("NUDGE_RATE_LIMITS__ENABLED".to_owned(), "auto".to_owned());
        merge_environment(&mut table, std::iter::once(variable)).unwrap();
        let config = Config::from_table(table).unwrap();
        assert_eq!(config.rate_limits.enabled, Switch::Auto);
    }

    #[test]
    fn what_is_set_to_its_default_is_chosen() {
        let file: Table = "[server]\nlisten = \"127.0.0.1:8480\"".parse().unwrap();
        let variables = ["NUDGE_SERVER__OPS_LISTEN", "NUDGE_PUSH__FCM__URL"]
            .map(|name| (name.to_owned(), "127.0.0.1:9464".to_owned()));
        let chosen = chosen_of_server(&file, &variables);
        assert_eq!(Vec::from_iter(chosen), ["listen", "opsListen"]);
        assert!(Config::defaults().unwrap().server.chosen.is_empty());
    }

    #[test]
    fn rate_limits_are_on_in_production_and_off_in_development_unless_they_are_set() {
        let decided = |value: &str| {
            let mut table = defaults().unwrap();
            let name = "NUDGE_RATE_LIMITS__ENABLED".to_owned();
            merge_environment(&mut table, std::iter::once((name, value.to_owned()))).unwrap();
            let config = Config::from_table(table)?;
            let enabled = config.rate_limits.enabled;
            anyhow::Ok((enabled.decide(true), enabled.decide(false)))
        };
        assert_eq!(decided("auto").unwrap(), (true, false));
        assert_eq!(decided("true").unwrap(), (true, true));
        assert_eq!(decided("false").unwrap(), (false, false));
        assert!(decided("maybe").is_err());
    }
}
