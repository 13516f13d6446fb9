//! What the database says: whether a server could work on it, and what waits there.

use std::time::Duration;

use anyhow::Context as _;
use nudge_db::{Db, Dialect, Reason, Schema, Timestamp, Tx};
use nudge_platform::clock::{Clock, to_text};
use nudge_platform::config::Config;
use nudge_platform::schema::migrations;
use nudge_platform::sealed;
use nudge_platform::secrets::{self, Secrets};
use nudge_plugin_runtime::catalogue::SERVER;
use nudge_plugin_runtime::statistics;

use super::NAME_THE_FOLDER;
use super::finding::Finding;
use crate::cli::serve::open_with;
use crate::operations::store::{self, Backlog, MOST_COUNTED, Queue};

/// Work that waits for longer is told.
const PATIENCE: Duration = Duration::from_mins(1);
/// How far back failures of plugins are looked for.
const JUST_NOW: Duration = Duration::from_mins(15);

/// What to do about a database that can't be looked at for a reason that is not known.
const UNKNOWN: &str =
    "See that it runs and that `database.url` is right; `nudge check` tells more.";

/// Looks at the database without changing anything.
pub(super) async fn look(config: &Config) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Err(error) = look_into(config, &mut findings).await {
        let of_database = error.downcast_ref::<nudge_db::Error>();
        let reason = of_database.and_then(nudge_db::Error::reason);
        findings.push(Finding::problem(
            "database",
            format!("{error:#}"),
            reason.map_or(UNKNOWN, Reason::next_step),
        ));
    }
    findings
}

async fn look_into(config: &Config, findings: &mut Vec<Finding>) -> anyhow::Result<()> {
    let url = config.database_url();
    if let Some(path) = nudge_db::sqlite_path(&url)
        && !secrets::is_there(path)?
    {
        let said = format!("there is none at {}", path.display());
        findings.push(Finding::problem("database", said, NAME_THE_FOLDER));
        return Ok(());
    }
    // Two connections show whether a pooler changes what is behind them.
    let db = open_with(config, 2).await?;
    let looked = look_around(config, &db, findings).await;
    db.close().await;
    looked
}

/// Looks for what would keep a server from working on the database.
async fn examine(
    config: &Config,
    db: &Db,
    is_made: bool,
    findings: &mut Vec<Finding>,
) -> anyhow::Result<()> {
    if db.dialect() == Dialect::Sqlite {
        // The file would be read to its end, and a server that runs would wait.
        return Ok(());
    }
    for seen in db.examine(config.database.connections).await? {
        if is_made && seen == nudge_db::Finding::MayNotCreate {
            continue;
        }
        findings.push(if seen.is_fatal() {
            Finding::problem(
                "database",
                seen.to_string(),
                "A server does not work on it.",
            )
        } else {
            Finding::warning("database", seen.to_string(), "Set it, or know why not.")
        });
    }
    Ok(())
}

async fn look_around(config: &Config, db: &Db, findings: &mut Vec<Finding>) -> anyhow::Result<()> {
    let schema = db.schema(&migrations()).await;
    let is_made = matches!(schema, Ok(Schema::Current));
    examine(config, db, is_made, findings).await?;
    match schema.context("can't read the schema")? {
        Schema::Current => findings.push(Finding::good(
            "database",
            "answers, its schema is this version's",
        )),
        Schema::Older => {
            findings.push(Finding::warning(
                "schema",
                "is of an older version",
                "Run `nudge migrate`, or start the new version, which does the same.",
            ));
            return Ok(());
        }
        Schema::Empty => {
            findings.push(Finding::warning(
                "schema",
                "is not there yet",
                "Start the server.",
            ));
            return Ok(());
        }
        Schema::Newer => {
            findings.push(Finding::problem(
                "schema",
                "is of a newer version of Nudge",
                "Run that version, or restore a backup from before the upgrade.",
            ));
            return Ok(());
        }
    }
    findings.push(key(config, db).await);
    let now = Clock::default().now();
    let mut tx = db.read().await?;
    let backlog = store::backlog(&mut tx, now).await?;
    findings.extend(waiting(&backlog, now));
    findings.push(nodes(&mut tx, config, now).await?);
    findings.extend(dead_letters(&mut tx).await?);
    findings.extend(plugins(&mut tx, now).await?);
    Ok(())
}

/// Whether the master key is the database's. None is made.
async fn key(config: &Config, db: &Db) -> Finding {
    let data_dir = &config.server.data_dir;
    let checked = async {
        anyhow::ensure!(
            Secrets::are_there(&config.secrets, data_dir)?,
            "{} has no master.key, and none is configured",
            data_dir.display()
        );
        let secrets = Secrets::load(&config.secrets, data_dir)?;
        sealed::check(db, &secrets).await
    };
    match checked.await {
        Ok(()) => Finding::good("master key", "is the database's"),
        Err(error) => Finding::problem(
            "master key",
            format!("{error:#}"),
            "Name the key that the servers have with NUDGE_SECRETS__MASTER_KEY or --data-dir.",
        ),
    }
}

fn waiting(backlog: &Backlog, now: Timestamp) -> Vec<Finding> {
    let queues = [
        (
            "events",
            &backlog.requests,
            "See NudgeEventsWait in the runbook.",
        ),
        (
            "push messages",
            &backlog.pushes,
            "See NudgePushBacklog in the runbook.",
        ),
        (
            "webhook messages",
            &backlog.webhooks,
            "See NudgeWebhookBacklog in the runbook.",
        ),
        (
            "timers",
            &backlog.timers,
            "See NudgeTimersLate in the runbook.",
        ),
        ("jobs", &backlog.jobs, "See NudgeJobsLate in the runbook."),
    ];
    let queues = queues.into_iter().map(|(subject, queue, next)| {
        let said = said_of(queue, now);
        if queue.waited(now) < PATIENCE {
            Finding::good(subject, said)
        } else {
            Finding::warning(subject, said, next)
        }
    });
    queues.collect()
}

fn said_of(queue: &Queue, now: Timestamp) -> String {
    let number = queue.number;
    let many = if number >= MOST_COUNTED {
        " or more"
    } else {
        ""
    };
    let seconds = queue.waited(now).as_secs();
    match number {
        0 => "none wait".to_owned(),
        _ => format!("{number}{many} wait, the oldest for {seconds} s"),
    }
}

async fn nodes(tx: &mut Tx, config: &Config, now: Timestamp) -> nudge_db::Result<Finding> {
    let nodes = store::nodes(tx).await?;
    let patience = Duration::from_secs(config.pipeline.node_timeout_seconds);
    // The one process on SQLite gives no signs of life while nothing happens.
    let quiet = tx.dialect() == Dialect::Sqlite;
    let silent: Vec<String> = nodes
        .iter()
        .filter(|node| !quiet && now.since(node.heartbeat_at) >= patience)
        .map(|node| {
            format!(
                "{} for {} s",
                node.id,
                now.since(node.heartbeat_at).as_secs()
            )
        })
        .collect();
    Ok(if nodes.is_empty() {
        Finding::problem("processes", "none has signed in", "Start the server.")
    } else if silent.is_empty() {
        Finding::good("processes", format!("{} signed in", nodes.len()))
    } else {
        Finding::warning(
            "processes",
            format!(
                "{} of {} are silent: {}",
                silent.len(),
                nodes.len(),
                silent.join(", ")
            ),
            "If no server runs, start one; a running one takes the work of silent ones over.",
        )
    })
}

async fn dead_letters(tx: &mut Tx) -> nudge_db::Result<Vec<Finding>> {
    let groups = store::dead_letters(tx).await?;
    if groups.is_empty() {
        return Ok(vec![Finding::good("dead letters", "none")]);
    }
    let findings = groups.into_iter().map(|group| {
        let said = format!(
            "{} of stage {} in app {}, the newest of {}",
            group.number,
            group.stage,
            group.app_id,
            to_text(group.newest)
        );
        Finding::warning("dead letters", said, "See NudgeDeadLetters in the runbook.")
    });
    Ok(findings.collect())
}

async fn plugins(tx: &mut Tx, now: Timestamp) -> nudge_db::Result<Vec<Finding>> {
    let failing = statistics::store::failing(tx, now.minus(JUST_NOW)).await?;
    if failing.is_empty() {
        return Ok(vec![Finding::good(
            "plugins",
            "none failed in the last quarter of an hour",
        )]);
    }
    let findings = failing.into_iter().map(|plugin| {
        let owner = match plugin.owner_id {
            SERVER => "the server's".to_owned(),
            app => format!("of app {app}"),
        };
        let said = format!(
            "{} {} ({owner}) failed {} of {} calls in the last quarter of an hour",
            plugin.name, plugin.version, plugin.failures, plugin.calls
        );
        Finding::warning("plugins", said, "See NudgePluginFails in the runbook.")
    });
    Ok(findings.collect())
}
