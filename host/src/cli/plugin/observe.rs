//! `nudge plugin status`, `metrics`, `shadow`, `backtest`: how a server's plugin fares.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use nudge_platform::config::Config;
use reqwest::Method;
use serde_json::{Map, Value as Json};

use super::client::Client;
use super::remote::{Named, candidate, newest_version, text};
use crate::cli::say;

/// How often a job is asked how far it is.
const GLANCE: Duration = Duration::from_millis(500);

/// Arguments of `shadow`.
#[derive(Debug, Args)]
pub(crate) struct Shadow {
    #[command(flatten)]
    plugin: Named,
    /// How many differences to show.
    #[arg(long, value_name = "N", default_value_t = 20)]
    samples: usize,
}

/// Arguments of `backtest`.
#[derive(Debug, Args)]
pub(crate) struct Backtest {
    #[command(flatten)]
    plugin: Named,
    /// The version; that of the project, or the newest on the server, unless given.
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,
    /// Events that arrived from then on: an instant in ISO 8601, or a day (UTC).
    #[arg(long, value_name = "INSTANT")]
    since: String,
    /// Events that arrived before; now unless given.
    #[arg(long, value_name = "INSTANT")]
    until: Option<String>,
    /// The only campaign to look at.
    #[arg(long, value_name = "ID")]
    campaign: Option<String>,
    /// How many events to run at the most.
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
}

/// A number or truth value of an answer.
fn shown(object: &Json, key: &str) -> String {
    match object.get(key) {
        None | Some(Json::Null) => "-".to_owned(),
        Some(Json::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    }
}

fn list<'j>(object: &'j Json, key: &str) -> impl Iterator<Item = &'j Json> {
    object
        .get(key)
        .and_then(Json::as_array)
        .into_iter()
        .flatten()
}

async fn ask(client: &Client, segments: &[&str]) -> anyhow::Result<Json> {
    let request = client.request(Method::GET, segments)?;
    Ok(client.send(request).await?.1)
}

pub(super) async fn status(config: &Config, arguments: Named) -> anyhow::Result<()> {
    let client = Client::new(config, &arguments.target)?;
    let name = arguments.resolve(config)?;
    let plugin = ask(&client, &["plugins", &name]).await?;
    if arguments.target.json {
        say(&plugin);
        return Ok(());
    }
    say(status_text(&plugin));
    Ok(())
}

fn status_text(plugin: &Json) -> String {
    let mut told = format!("{} ({})", text(plugin, "name"), text(plugin, "kind"));
    let mut line = |what: &str, said: String| {
        let _ = write!(told, "\n  {what:<14}{said}");
    };
    let active = match text(plugin, "activeVersion") {
        "" => "no version: it decides nothing",
        version => version,
    };
    line("active", active.to_owned());
    if let Some(tried) = plugin.get("rollout").and_then(candidate) {
        line("candidate", tried);
    }
    let slot = plugin.get("slot") == Some(&Json::Bool(true));
    let slot = if slot {
        "yes"
    } else {
        "no: it decides where it is named"
    };
    line("slot", slot.to_owned());
    if let Some(health) = plugin.get("health") {
        let mut said = format!(
            "{}: {} of {} calls failed in the last 15 minutes",
            text(health, "state"),
            shown(health, "failures"),
            shown(health, "calls")
        );
        if health.get("failures").and_then(Json::as_u64) > Some(0) {
            // An event that a validation plugin failed on is rejected, and leaves no dead letter.
            said.push_str(match text(plugin, "kind") {
                "validation" => "; `nudge plugin metrics` shows of which kind",
                _ => "; `nudge dead-letters list` shows why",
            });
        }
        line("health", said);
    }
    // Somebody has activated a version again after its roll-back: that is no news any longer.
    let is_back = |last: &&Json| text(last, "version") == text(plugin, "activeVersion");
    if let Some(last) = plugin.get("lastRollback").filter(|last| !is_back(last)) {
        let said = format!(
            "{} ({}) at {}: {}",
            text(last, "version"),
            text(last, "role"),
            text(last, "at"),
            text(last, "reason")
        );
        line("rolled back", said);
    }
    for version in list(plugin, "versions") {
        let said = format!(
            "{}  {}",
            text(version, "version"),
            text(version, "uploadedAt")
        );
        line("version", said.trim_end().to_owned());
    }
    told
}

pub(super) async fn metrics(config: &Config, arguments: Named) -> anyhow::Result<()> {
    let client = Client::new(config, &arguments.target)?;
    let name = arguments.resolve(config)?;
    let metrics = ask(&client, &["plugins", &name, "metrics"]).await?;
    if arguments.target.json {
        say(&metrics);
        return Ok(());
    }
    say(metrics_text(&metrics));
    Ok(())
}

fn metrics_text(metrics: &Json) -> String {
    let mut told = format!(
        "{} from {} to {}",
        text(metrics, "name"),
        text(metrics, "from"),
        text(metrics, "to")
    );
    let _ = write!(
        told,
        "\n  {:<12}  {:>9}  {:>9}  {:>8}  {:>8}  {:>8}  {:>8}  {:>9}  failures",
        "version", "calls", "items", "p50 us", "p95 us", "p99 us", "max us", "memory"
    );
    for version in list(metrics, "versions") {
        let latency = version.get("latencyMicros").unwrap_or(&Json::Null);
        let failures = version.get("failures").and_then(Json::as_object);
        let failures: Vec<String> = failures
            .into_iter()
            .flatten()
            .filter(|(_, count)| count.as_i64() != Some(0))
            .map(|(code, count)| format!("{code} {count}"))
            .collect();
        let _ = write!(
            told,
            "\n  {:<12}  {:>9}  {:>9}  {:>8}  {:>8}  {:>8}  {:>8}  {:>9}  {}",
            text(version, "version"),
            shown(version, "calls"),
            shown(version, "items"),
            shown(latency, "p50"),
            shown(latency, "p95"),
            shown(latency, "p99"),
            shown(latency, "max"),
            shown(version, "memoryPeakBytes"),
            if failures.is_empty() {
                "none".to_owned()
            } else {
                failures.join(", ")
            }
        );
    }
    told
}

pub(super) async fn shadow(config: &Config, arguments: Shadow) -> anyhow::Result<()> {
    let client = Client::new(config, &arguments.plugin.target)?;
    let name = arguments.plugin.resolve(config)?;
    let metrics = ask(&client, &["plugins", &name, "metrics"]).await?;
    let trials = list(&metrics, "versions").filter_map(|version| {
        let mut trial = version.get("shadow")?.clone();
        trial
            .as_object_mut()?
            .insert("version".to_owned(), version.get("version")?.clone());
        Some(trial)
    });
    let trials: Vec<Json> = trials.collect();
    if arguments.plugin.target.json {
        say(Json::Array(trials));
        return Ok(());
    }
    if trials.is_empty() {
        say(format_args!(
            "{name} has no shadow candidate that was shown anything: nudge plugin activate {name} --version VERSION --strategy shadow"
        ));
    }
    for trial in &trials {
        say(trial_text(trial, arguments.samples));
    }
    Ok(())
}

fn trial_text(trial: &Json, samples: usize) -> String {
    let mut told = format!(
        "{} in the shadow since {}: {} batches, {} not shown for want of time",
        text(trial, "version"),
        text(trial, "since"),
        shown(trial, "calls"),
        shown(trial, "skipped")
    );
    for (count, what) in [
        ("same", "the same"),
        (
            "added",
            "only the candidate fires, sets a timer or finds something",
        ),
        ("removed", "only the active version does"),
        ("changed", "both do, otherwise"),
        ("failed", "the candidate failed"),
    ] {
        let _ = write!(told, "\n  {:>9}  {count:<8} {what}", shown(trial, count));
    }
    for sample in list(trial, "samples").take(samples) {
        let _ = write!(
            told,
            "\n  {}  {:<13}  event {}  subject {}",
            text(sample, "at"),
            text(sample, "difference"),
            shown(sample, "eventId"),
            shown(sample, "subjectId")
        );
        if let Some(campaign) = sample.get("campaignId").and_then(Json::as_str) {
            let _ = write!(told, "  campaign {campaign}");
        }
        for key in ["old", "new"] {
            if let Some(value) = sample.get(key) {
                let _ = write!(told, "\n      {key}: {value}");
            }
        }
    }
    told
}

pub(super) async fn backtest(config: &Config, arguments: Backtest) -> anyhow::Result<()> {
    let target = &arguments.plugin.target;
    if target.operator {
        bail!("a backtest is one app's: leave --operator out, and name the app with --app");
    }
    let client = Client::new(config, target)?;
    let (name, version) = match arguments.version {
        Some(version) => (arguments.plugin.resolve(config)?, version),
        None => newest_version(&client, config, &arguments.plugin).await?,
    };
    let mut body = Map::from_iter([("since".to_owned(), Json::from(arguments.since))]);
    body.extend(
        arguments
            .until
            .map(|until| ("until".to_owned(), until.into())),
    );
    body.extend(
        arguments
            .campaign
            .map(|id| ("campaignId".to_owned(), id.into())),
    );
    body.extend(
        arguments
            .limit
            .map(|limit| ("limit".to_owned(), limit.into())),
    );
    let segments = ["plugins", &name, "versions", &version, "backtest"];
    let request = client.request(Method::POST, &segments)?.json(&body);
    let (_, queued) = client.send(request).await?;
    let result = finish(&client, &queued).await?;
    if target.json {
        say(&result);
        return Ok(());
    }
    say(backtest_text(&name, &version, &result));
    Ok(())
}

/// Waits for a job, and gives its result.
pub(in crate::cli) async fn finish(client: &Client, queued: &Json) -> anyhow::Result<Json> {
    let id = queued.get("jobId").and_then(Json::as_str);
    let id = id.context("the server named no job")?;
    loop {
        let job = ask(client, &["jobs", id]).await?;
        match text(&job, "status") {
            "completed" => return Ok(job.get("result").cloned().unwrap_or_default()),
            "failed" => bail!("job {id} failed: {}", text(&job, "error")),
            _ => tokio::time::sleep(GLANCE).await,
        }
    }
}

fn backtest_text(name: &str, version: &str, result: &Json) -> String {
    let mut told = format!("{name} {version}: {} events", shown(result, "events"));
    for (count, what) in [
        ("same", "both versions decided the same"),
        ("onlyActive", "only the active version fires"),
        ("onlyCandidate", "only this version fires"),
        ("failed", "this version failed"),
        ("activeFailed", "the active version failed"),
        (
            "approximate",
            "approximately: what was known of the person then is not recorded",
        ),
    ] {
        let _ = write!(told, "\n  {:>9}  {what}", shown(result, count));
    }
    if let Some(why) = result.get("stopped").and_then(Json::as_str) {
        let said = stopped_because(why);
        let _ = write!(
            told,
            "\n  it ended before the time that was asked for: {said}"
        );
    }
    for sample in list(result, "samples").take(20) {
        let _ = write!(
            told,
            "\n  {}  {:<13}  event {}",
            text(sample, "timestamp"),
            if text(sample, "only") == "active" {
                "only active"
            } else {
                "only this"
            },
            shown(sample, "eventId")
        );
        for (key, what) in [
            ("subjectId", "subject"),
            ("campaignId", "campaign"),
            ("timer", "timer"),
        ] {
            if let Some(id) = sample.get(key).and_then(Json::as_str) {
                let _ = write!(told, "  {what} {id}");
            }
        }
    }
    told
}

/// Why a backtest ended early, in words.
fn stopped_because(why: &str) -> &str {
    match why {
        "limit" => "it ran as many events as it may (--limit)",
        "memory" => "it would take too much memory",
        "failures" => "a version failed too often",
        "timers" => "more timers fell due than events may run (--limit)",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_status_says_why_a_version_was_rolled_back() {
        let told = status_text(&json!({
            "name": "cart", "kind": "trigger", "activeVersion": "1.0.0", "slot": false,
            "rollout": {"strategy": "instant", "since": "x"},
            "health": {"state": "healthy", "calls": 7, "failures": 0, "failureRate": 0.0},
            "lastRollback": {"version": "1.1.0", "role": "candidate", "at": "2026-01-31T09:30:00.000Z",
                "reason": "9 of 20 calls failed, a share of 0.450; 0.05 may"},
            "versions": [{"version": "1.0.0", "uploadedAt": "2026-01-30T09:30:00.000Z"}],
        }));
        assert_eq!(
            told,
            "cart (trigger)\n  active        1.0.0\n  slot          no: it decides where it is named\n  \
             health        healthy: 0 of 7 calls failed in the last 15 minutes\n  \
             rolled back   1.1.0 (candidate) at 2026-01-31T09:30:00.000Z: 9 of 20 calls failed, a share of 0.450; 0.05 may\n  \
             version       1.0.0  2026-01-30T09:30:00.000Z"
        );
    }

    #[test]
    fn a_status_says_where_to_read_why_calls_failed() {
        let status = |kind: &str, failures: u32| {
            status_text(&json!({
                "name": "cart", "kind": kind, "activeVersion": "1.0.0", "slot": true,
                "health": {"state": "failing", "calls": 3, "failures": failures},
            }))
        };
        let of_trigger = status("trigger", 3);
        assert!(of_trigger.ends_with("15 minutes; `nudge dead-letters list` shows why"));
        let of_validation = status("validation", 1);
        assert!(of_validation.ends_with("; `nudge plugin metrics` shows of which kind"));
        assert!(status("trigger", 0).ends_with("15 minutes"));
    }

    #[test]
    fn a_status_says_nothing_of_the_roll_back_of_a_version_that_is_active_again() {
        let status = |active: &str| {
            status_text(&json!({
                "name": "cart", "kind": "trigger", "activeVersion": active, "slot": true,
                "lastRollback": {"version": "1.1.0", "role": "active", "at": "t", "reason": "r"},
            }))
        };
        assert!(status("1.0.0").contains("rolled back   1.1.0 (active)"));
        assert!(!status("1.1.0").contains("rolled back"));
    }

    #[test]
    fn a_trial_shows_its_samples_with_both_values() {
        let told = trial_text(
            &json!({
                "version": "1.1.0", "since": "s", "calls": 2, "same": 1, "added": 1, "removed": 0, "changed": 0,
                "failed": 0, "skipped": 0,
                "samples": [
                    {"at": "t", "difference": "timer_added", "eventId": "e", "subjectId": "u", "new": {"key": "k"}},
                    {"at": "t", "difference": "state", "eventId": "e", "subjectId": "u"},
                ],
            }),
            1,
        );
        assert!(
            told.contains("event e  subject u\n      new: {\"key\":\"k\"}"),
            "{told}"
        );
        assert!(!told.contains("state"), "{told}");
    }

    #[test]
    fn a_backtest_that_ended_early_says_why() {
        let mut result = json!({
            "events": 9, "same": 2, "onlyActive": 1, "onlyCandidate": 0, "failed": 4, "activeFailed": 5, "approximate": 6,
        });
        let told = backtest_text("cart", "1.1.0", &result);
        assert!(
            told.contains("\n          5  the active version failed\n"),
            "{told}"
        );
        assert!(told.contains("\n          6  approximately: "), "{told}");
        assert!(!told.contains("it ended before"), "{told}");
        for (why, said) in [
            ("limit", "it ran as many events as it may (--limit)"),
            ("memory", "it would take too much memory"),
            ("failures", "a version failed too often"),
            (
                "timers",
                "more timers fell due than events may run (--limit)",
            ),
            ("a_newer_servers", "a_newer_servers"),
        ] {
            result["stopped"] = json!(why);
            let told = backtest_text("cart", "1.1.0", &result);
            let line = format!("\n  it ended before the time that was asked for: {said}");
            assert!(told.ends_with(&line), "{told}");
        }
    }

    #[test]
    fn a_backtest_shows_whose_decision_each_sample_is() {
        let told = backtest_text(
            "cart",
            "1.1.0",
            &json!({
                "events": 2, "same": 0, "onlyActive": 1, "onlyCandidate": 1, "failed": 0,
                "samples": [
                    {"eventId": "e", "name": "bought", "timestamp": "t", "only": "active", "subjectId": "u", "campaignId": "c"},
                    {"eventId": "e", "name": "bought", "timestamp": "t", "only": "candidate", "timer": "k"},
                ],
            }),
        );
        assert!(
            told.ends_with(
                "\n  t  only active    event e  subject u  campaign c\n  t  only this      event e  timer k"
            ),
            "{told}"
        );
    }
}
