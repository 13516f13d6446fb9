//! `nudge dead-letters list`, `replay`: events that nothing was decided about, on a server (contract 11).

use std::fmt::Write as _;

use anyhow::{anyhow, bail};
use clap::{Args, Subcommand};
use nudge_platform::config::Config;
use reqwest::{Method, StatusCode};
use serde_json::{Map, Value as Json, json};

use super::plugin::client::{Client, Refused, Target};
use super::plugin::observe::finish;
use super::plugin::remote::text;
use super::say;

/// What to do with dead letters.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List dead letters, newest first.
    List(List),
    /// Process events again, once their definition or plugin is mended. The status is 1 where any fails still.
    Replay(Replay),
}

/// Arguments of `list`.
#[derive(Debug, Args)]
pub(super) struct List {
    #[command(flatten)]
    filter: Filter,
    #[command(flatten)]
    target: Target,
}

/// Arguments of `replay`.
#[derive(Debug, Args)]
pub(super) struct Replay {
    /// The letter; without it, those of the flags.
    #[arg(conflicts_with_all = ["event", "reason", "stage", "from", "to", "all"])]
    id: Option<String>,
    #[command(flatten)]
    filter: Filter,
    /// All letters of the app.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    target: Target,
}

/// Which letters.
#[derive(Debug, Args)]
struct Filter {
    /// Events of this name.
    #[arg(long, value_name = "NAME")]
    event: Option<String>,
    /// Letters with this reason, such as `trap`.
    #[arg(long, value_name = "CODE")]
    reason: Option<String>,
    /// Letters of this stage: validation, trigger or personalization.
    #[arg(long, value_name = "STAGE")]
    stage: Option<String>,
    /// Received from then on: an instant in ISO 8601, or a day (UTC).
    #[arg(long, value_name = "INSTANT")]
    from: Option<String>,
    /// Received before.
    #[arg(long, value_name = "INSTANT")]
    to: Option<String>,
}

impl Filter {
    /// The conditions, by their names in the API.
    fn conditions(&self) -> Vec<(&'static str, &str)> {
        let all = [
            ("eventName", &self.event),
            ("reason", &self.reason),
            ("stage", &self.stage),
            ("from", &self.from),
            ("to", &self.to),
        ];
        all.into_iter()
            .filter_map(|(key, value)| Some((key, value.as_deref()?)))
            .collect()
    }
}

pub(super) fn run(config: &Config, command: Command) -> anyhow::Result<()> {
    match command {
        Command::List(arguments) => super::on_runtime(list(config, arguments)),
        Command::Replay(arguments) => super::on_runtime(replay(config, arguments)),
    }
}

async fn list(config: &Config, arguments: List) -> anyhow::Result<()> {
    let client = client(config, &arguments.target)?;
    let conditions = arguments.filter.conditions();
    if arguments.target.json {
        let letters = client.list(&["dead-letters"], &conditions).await?;
        say(Json::Array(letters));
        return Ok(());
    }
    let mut pages = client.pages(&["dead-letters"], &conditions)?;
    let mut any = false;
    while let Some(letters) = pages.next().await? {
        any |= !letters.is_empty();
        for letter in &letters {
            say(line(letter));
        }
    }
    if !any {
        say("no dead letters");
    }
    Ok(())
}

/// A letter in a line, and the plugin's words below it.
fn line(letter: &Json) -> String {
    let mut told = format!(
        "{}  {}  {:<15}  {:<24}  {}",
        text(letter, "receivedAt"),
        text(letter, "id"),
        text(letter, "stage"),
        text(letter, "reason"),
        text(letter, "eventName")
    );
    if let Some(plugin) = letter.get("plugin") {
        let _ = write!(
            told,
            "  {} {}",
            text(plugin, "name"),
            text(plugin, "version")
        );
    }
    if let Some(detail) = letter.get("detail").and_then(Json::as_str) {
        let _ = write!(told, "\n    {detail}");
    }
    told
}

async fn replay(config: &Config, arguments: Replay) -> anyhow::Result<()> {
    let client = client(config, &arguments.target)?;
    let outcome = if let Some(id) = &arguments.id {
        let request = client.request(Method::POST, &["dead-letters", id, "replay"])?;
        let sent = client.send(request.json(&json!({}))).await;
        sent.map_err(|error| unknown_letter(error, id))?.1
    } else {
        replay_some(&client, &arguments).await?
    };
    if arguments.target.json {
        say(&outcome);
    } else if let Json::Object(outcome) = &outcome {
        let parts = outcome.iter().map(|(key, value)| match value {
            Json::String(text) => format!("{key}: {text}"),
            value => format!("{key}: {value}"),
        });
        say(parts.collect::<Vec<_>>().join("\n"));
    }
    if text(&outcome, "status") == "still_failing" {
        bail!("the event fails still");
    }
    match outcome.get("stillFailing").and_then(Json::as_u64) {
        None | Some(0) => Ok(()),
        Some(1) => bail!("1 event fails still"),
        Some(failing) => bail!("{failing} events fail still"),
    }
}

/// What to tell of an answer about a letter: that there is none, or what it says.
fn unknown_letter(error: anyhow::Error, id: &str) -> anyhow::Error {
    let refused = error.downcast_ref::<Refused>();
    // The app may be what there is none of.
    let is_unknown = |refused: &Refused| {
        refused.status == StatusCode::NOT_FOUND && !refused.told.contains("no such app")
    };
    if refused.is_some_and(is_unknown) {
        anyhow!("there is no dead letter `{id}`; `nudge dead-letters list` has them")
    } else {
        error
    }
}

/// Has the letters of the filter replayed, and waits until they are.
async fn replay_some(client: &Client, arguments: &Replay) -> anyhow::Result<Json> {
    let conditions = arguments.filter.conditions();
    if conditions.is_empty() && !arguments.all {
        bail!(
            "which letters? Name one by its id, some with --event, --reason or --stage, or --all of them"
        );
    }
    let filter = conditions
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.into()));
    let filter: Map<String, Json> = filter.collect();
    let request = client.request(Method::POST, &["dead-letters", "replay"])?;
    let (_, queued) = client
        .send(request.json(&json!({"filter": filter})))
        .await?;
    finish(client, &queued).await
}

fn client(config: &Config, target: &Target) -> anyhow::Result<Client> {
    if target.operator {
        bail!("dead letters are an app's: leave --operator out, and name the app with --app");
    }
    Client::new(config, target)
}
