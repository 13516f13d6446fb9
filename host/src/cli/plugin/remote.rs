//! `nudge plugin push`, `activate`, `promote`, `rollback`, `list`, `logs`: a server's plugins (contract 12).

use std::collections::{HashSet, VecDeque};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::{Args, ValueEnum};
use nudge_platform::config::Config;
use nudge_wasm::Description;
use reqwest::{Method, StatusCode, header};
use serde_json::{Value as Json, json};

use super::client::{Client, Refused, Target};
use super::project::Project;
use super::{Component, engine};
use crate::cli::{complain, say};

/// How often `logs --follow` asks.
const GLANCE: Duration = Duration::from_secs(1);

/// How long `logs --follow` leaves a server alone that could not be asked.
const PAUSE: Duration = Duration::from_secs(2);

/// Lines that `logs` shows at the most, the newest. A server has a thousand a minute, for days.
const MOST_LINES: usize = 2_500;

/// Lines that `logs --follow` remembers, so that it shows none twice.
const REMEMBERED: usize = 10_000;

/// Arguments of `push`.
#[derive(Debug, Args)]
pub(crate) struct Push {
    /// The component. Without it, the project is built.
    file: Option<PathBuf>,
    /// The project.
    #[arg(long, value_name = "DIRECTORY", default_value = ".")]
    dir: PathBuf,
    #[command(flatten)]
    target: Target,
}

/// A plugin on the server.
#[derive(Debug, Args)]
pub(crate) struct Named {
    /// The plugin; that of the project unless given.
    name: Option<String>,
    /// The project.
    #[arg(long, value_name = "DIRECTORY", default_value = ".")]
    dir: PathBuf,
    #[command(flatten)]
    pub(super) target: Target,
}

/// Arguments of `activate`.
#[derive(Debug, Args)]
pub(crate) struct Activate {
    #[command(flatten)]
    plugin: Named,
    /// The version; that of the project, or outside of one the newest on the server, unless given.
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,
    /// How it takes over.
    #[arg(long, value_enum)]
    strategy: Option<Strategy>,
    /// How many subjects a canary decides for, in percent.
    #[arg(long, value_name = "N")]
    percent: Option<u8>,
    /// Also put it into the app's slot of its kind: it then decides for every campaign that names no other.
    #[arg(long)]
    slot: bool,
}

/// How a version takes over.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Strategy {
    /// At once.
    Instant,
    /// It sees the same calls, and its answers are only compared.
    Shadow,
    /// It decides for some subjects.
    Canary,
}

/// Arguments of `list`.
#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    target: Target,
}

/// Arguments of `logs`.
#[derive(Debug, Args)]
pub(crate) struct Logs {
    #[command(flatten)]
    plugin: Named,
    /// Go on until Ctrl-C.
    #[arg(long)]
    follow: bool,
}

impl Named {
    /// The plugin's name: as given, or what the project's component says.
    pub(super) fn resolve(&self, config: &Config) -> anyhow::Result<String> {
        match &self.name {
            Some(name) => Ok(name.clone()),
            None => Ok(described(config, self)?.name),
        }
    }
}

fn described(config: &Config, named: &Named) -> anyhow::Result<Description> {
    let component = Component::open(None, &named.dir).context(
        "the name of the project's plugin is not known; give it, and nothing is built: `nudge plugin COMMAND NAME`",
    )?;
    Ok(engine::load(config, &component.bytes)?
        .description()
        .clone())
}

pub(super) async fn push(config: &Config, arguments: Push) -> anyhow::Result<()> {
    let client = Client::new(config, &arguments.target)?;
    let component = Component::open(arguments.file.as_deref(), &arguments.dir)?;
    let request = client
        .request(Method::POST, &["plugins"])?
        .header(header::CONTENT_TYPE, "application/wasm")
        .body(component.bytes);
    let (status, pushed) = client.send(request).await?;
    if arguments.target.json {
        say(&pushed);
        return Ok(());
    }
    let (name, version) = (text(&pushed, "name"), text(&pushed, "version"));
    if status == StatusCode::CREATED {
        say(format_args!("{name} {version} is on the server"));
    } else {
        say(format_args!(
            "{name} {version} was on the server already, with the same bytes"
        ));
    }
    for check in pushed
        .get("checks")
        .and_then(Json::as_array)
        .into_iter()
        .flatten()
    {
        let mark = if check.get("passed") == Some(&Json::Bool(true)) {
            "passed"
        } else {
            "FAILED"
        };
        say(format_args!(
            "  {mark}  {}  {}",
            text(check, "name"),
            text(check, "detail")
        ));
    }
    if status == StatusCode::CREATED {
        say(format_args!(
            "It decides nothing yet: nudge plugin activate {name} --version {version}"
        ));
    }
    Ok(())
}

pub(super) async fn activate(config: &Config, arguments: Activate) -> anyhow::Result<()> {
    let Activate {
        plugin,
        version,
        strategy,
        percent,
        slot,
    } = arguments;
    let client = Client::new(config, &plugin.target)?;
    let (name, version) = match (&plugin.name, version) {
        (Some(name), Some(version)) => (name.clone(), version),
        (None, Some(version)) => (plugin.resolve(config)?, version),
        (_, None) => newest_version(&client, config, &plugin).await?,
    };
    let mut body = json!({"version": version});
    if let Json::Object(body) = &mut body {
        if let Some(strategy) = strategy {
            let strategy = match strategy {
                Strategy::Instant => "instant",
                Strategy::Shadow => "shadow",
                Strategy::Canary => "canary",
            };
            body.insert("strategy".to_owned(), strategy.into());
        }
        if let Some(percent) = percent {
            body.insert("percent".to_owned(), percent.into());
        }
        if slot {
            body.insert("slot".to_owned(), true.into());
        }
    }
    roll(&client, &plugin.target, &name, "activate", &body).await
}

/// A plugin and the version that is meant where none is named: that of the project if the project is that plugin's, else
/// the version that was uploaded last.
pub(super) async fn newest_version(
    client: &Client,
    config: &Config,
    named: &Named,
) -> anyhow::Result<(String, String)> {
    let name = match &named.name {
        // Any crate would do for a project.
        Some(name) if !Project::is_declared(&named.dir) => name,
        given => {
            let Description { name, version, .. } = described(config, named)?;
            match given {
                Some(given) if *given != name => given,
                _ => return Ok((name, version)),
            }
        }
    };
    let request = client.request(Method::GET, &["plugins", name])?;
    let (_, plugin) = client.send(request).await?;
    let versions = plugin.get("versions").and_then(Json::as_array);
    let newest = versions
        .into_iter()
        .flatten()
        .max_by_key(|version| text(version, "uploadedAt"));
    let newest = newest.with_context(|| format!("{name} has no versions; push one first"))?;
    Ok((name.clone(), text(newest, "version").to_owned()))
}

pub(super) async fn promote(config: &Config, arguments: Named) -> anyhow::Result<()> {
    let client = Client::new(config, &arguments.target)?;
    let name = arguments.resolve(config)?;
    roll(&client, &arguments.target, &name, "promote", &json!({})).await
}

pub(super) async fn rollback(config: &Config, arguments: Named) -> anyhow::Result<()> {
    let client = Client::new(config, &arguments.target)?;
    let name = arguments.resolve(config)?;
    roll(&client, &arguments.target, &name, "rollback", &json!({})).await
}

/// Changes which version decides, and says which one does now.
async fn roll(
    client: &Client,
    target: &Target,
    name: &str,
    verb: &str,
    body: &Json,
) -> anyhow::Result<()> {
    let request = client
        .request(Method::POST, &["plugins", name, verb])?
        .json(body);
    let (_, now) = client.send(request).await?;
    if target.json {
        say(&now);
        return Ok(());
    }
    let active = match text(&now, "activeVersion") {
        "" => "no version",
        version => version,
    };
    say(format_args!("{name}: {active} is active"));
    if let Some(tried) = now.get("rollout").and_then(candidate) {
        say(format_args!("  {tried}"));
    }
    Ok(())
}

pub(super) async fn list(config: &Config, arguments: List) -> anyhow::Result<()> {
    let client = Client::new(config, &arguments.target)?;
    let plugins = client.list(&["plugins"], &[]).await?;
    if arguments.target.json {
        say(Json::Array(plugins));
        return Ok(());
    }
    if plugins.is_empty() {
        say("no plugins: the built-in ones decide");
        return Ok(());
    }
    say(format_args!(
        "{:<32}  {:<15}  {:<12}  {:<7}  {:<4}  candidate",
        "name", "kind", "active", "scope", "slot"
    ));
    for plugin in &plugins {
        let or = |key, other| match text(plugin, key) {
            "" => other,
            known => known,
        };
        let slot = plugin.get("slot") == Some(&Json::Bool(true));
        let line = format!(
            "{:<32}  {:<15}  {:<12}  {:<7}  {:<4}  {}",
            text(plugin, "name"),
            text(plugin, "kind"),
            or("activeVersion", "-"),
            or("scope", "app"),
            if slot { "yes" } else { "" },
            plugin
                .get("rollout")
                .and_then(candidate)
                .unwrap_or_default(),
        );
        say(line.trim_end());
    }
    Ok(())
}

/// The version of a roll-out that has to prove itself, and how it does.
pub(super) fn candidate(rollout: &Json) -> Option<String> {
    let version = rollout.get("candidateVersion")?.as_str()?;
    let strategy = text(rollout, "strategy");
    Some(match rollout.get("percent").and_then(Json::as_u64) {
        Some(percent) => format!("{version}: {strategy}, {percent} %"),
        None => format!("{version}: {strategy}"),
    })
}

pub(super) async fn logs(config: &Config, arguments: Logs) -> anyhow::Result<()> {
    let client = Client::new(config, &arguments.plugin.target)?;
    let name = arguments.plugin.resolve(config)?;
    let json = arguments.plugin.target.json;
    let mut shown = Shown::default();
    let mut told = false;
    let (mut looked, mut is_away) = (false, false);
    loop {
        let (lines, are_all) = match newest_lines(&client, &name).await {
            Ok(found) => found,
            Err(error) if looked && passes(&error) => {
                if !is_away {
                    complain(&error.context("trying again until the server answers"));
                }
                is_away = true;
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            Err(error) => return Err(error),
        };
        (looked, is_away) = (true, false);
        if !told && !are_all {
            complain(&anyhow!(
                "there are older lines too; these are the newest {MOST_LINES}"
            ));
            told = true;
        }
        if json && !arguments.follow {
            say(Json::Array(lines));
            return Ok(());
        }
        for line in &lines {
            if !shown.add(line) {
                continue;
            }
            if json {
                say(line);
            } else {
                say(format_args!(
                    "{}  {:<8}  {:<5}  {}{}",
                    text(line, "at"),
                    text(line, "version"),
                    text(line, "level"),
                    text(line, "message"),
                    about(line)
                ));
            }
        }
        if !arguments.follow {
            if lines.is_empty() {
                complain(&anyhow!(
                    "{name} logged nothing; `nudge plugin status {name}` says how it fares"
                ));
            }
            return Ok(());
        }
        tokio::time::sleep(GLANCE).await;
    }
}

/// A plugin's newest lines in the order of time, and whether there are no others.
async fn newest_lines(client: &Client, name: &str) -> anyhow::Result<(Vec<Json>, bool)> {
    let mut lines = Vec::new();
    let mut pages = client.pages(&["plugins", name, "logs"], &[])?;
    while lines.len() < MOST_LINES
        && let Some(page) = pages.next().await?
    {
        lines.extend(page);
    }
    let are_all = lines.len() <= MOST_LINES && pages.is_at_end();
    lines.truncate(MOST_LINES);
    // The server lists the newest first; lines of one instant stay in the order in which they were written.
    lines.reverse();
    lines.sort_by(|one, other| text(one, "at").cmp(text(other, "at")));
    Ok((lines, are_all))
}

/// Whether the same request may succeed later: the server was not reached, or has no time.
fn passes(error: &anyhow::Error) -> bool {
    match error.downcast_ref::<Refused>() {
        Some(Refused { status, .. }) => {
            status.is_server_error() || *status == StatusCode::TOO_MANY_REQUESTS
        }
        None => error
            .chain()
            .any(<dyn std::error::Error>::is::<reqwest::Error>),
    }
}

/// What the call of a line was about.
fn about(line: &Json) -> String {
    let named = [
        ("campaign", "campaignIds"),
        ("event", "eventIds"),
        ("subject", "subjectIds"),
    ];
    let parts =
        named
            .into_iter()
            .filter_map(|(what, key)| match line.get(key)?.as_array()?.as_slice() {
                [] => None,
                [one] => Some(format!("{what} {}", one.as_str()?)),
                several => Some(format!("{} {what}s", several.len())),
            });
    match parts.collect::<Vec<_>>().join(", ") {
        parts if parts.is_empty() => parts,
        parts => format!("  [{parts}]"),
    }
}

/// The lines that were shown last.
#[derive(Default)]
struct Shown {
    known: HashSet<String>,
    order: VecDeque<String>,
}

impl Shown {
    /// Whether a line is new.
    fn add(&mut self, line: &Json) -> bool {
        let key = match line.get("id") {
            Some(id) => id.to_string(),
            None => line.to_string(),
        };
        if !self.known.insert(key.clone()) {
            return false;
        }
        self.order.push_back(key);
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }
}

pub(in crate::cli) fn text<'j>(object: &'j Json, key: &str) -> &'j str {
    object.get(key).and_then(Json::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_shown_twice() {
        let mut shown = Shown::default();
        assert!(shown.add(&json!({"id": 1, "message": "a"})));
        assert!(!shown.add(&json!({"id": 1, "message": "b"})));
        assert!(shown.add(&json!({"message": "a", "at": "1"})));
        assert!(shown.add(&json!({"message": "a", "at": "2"})));
        assert!(!shown.add(&json!({"message": "a", "at": "1"})));
    }
}
