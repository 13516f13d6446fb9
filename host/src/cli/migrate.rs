//! `nudge migrate`: the schema, and the tables that a PostgreSQL with Citus has on several machines.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressStyle};
use nudge_db::{Db, Distributable, Distribution, Share};
use nudge_platform::clock::Clock;
use nudge_platform::config::Config;
use nudge_platform::schema::migrations;

use super::{ServerArguments, say, serve};
use crate::server::require_known;
use crate::{data_dir, opening};

/// A server that gave a sign of life within this time runs.
const ALIVE: Duration = Duration::from_secs(10);
/// How often is looked how far the workers are.
const GLANCE: Duration = Duration::from_secs(1);

const NO_CITUS: &str = "only a PostgreSQL with Citus can be distributed, and this database has none: on the coordinator and each worker \
    `CREATE EXTENSION citus`, then on the coordinator `SELECT citus_set_coordinator_host('…')` and for each worker \
    `SELECT citus_add_node('…', 5432)`; see docs/scaling.md";

/// What to bring up to date.
#[derive(Debug, Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    server: ServerArguments,
    /// Then spread events and waiting requests over the workers of a PostgreSQL with Citus. Stop all servers before.
    #[arg(long)]
    distribute: bool,
    /// Do not ask before.
    #[arg(long, requires = "distribute")]
    yes: bool,
}

/// Brings the schema up to date, and distributes tables where that is wished.
pub(super) async fn run(mut config: Config, arguments: Arguments) -> anyhow::Result<()> {
    arguments.server.apply(&mut config);
    data_dir::require_owner(&config)?;
    data_dir::make(&config)?;
    // One that works, and one that sees how far it is.
    let db = serve::open_with(&config, 2).await?;
    let outcome = async {
        require_known(opening::schema(&config, &db).await?)?;
        db.migrate(&migrations())
            .await
            .context("can't bring the database's schema up to date")?;
        say("the schema is up to date");
        if arguments.distribute {
            distribute(&db, arguments.yes).await?;
        }
        Ok(())
    };
    let outcome = outcome.await;
    db.close().await;
    outcome
}

async fn distribute(db: &Db, is_agreed: bool) -> anyhow::Result<()> {
    let Distribution::Possible {
        is_coordinator,
        workers,
        silent,
        tables,
    } = db.distribution().await?
    else {
        bail!(NO_CITUS);
    };
    if !is_coordinator {
        bail!("this database is a worker's: `database.url` has to name the coordinator");
    }
    if workers == 0 {
        bail!(
            "no worker takes shards: `SELECT citus_add_node('…', 5432)` on the coordinator for each one"
        );
    }
    if silent > 0 {
        bail!(
            "{silent} of the workers do not answer: see that all run, and that the coordinator may connect to them"
        );
    }
    if tables.iter().any(|share| !share.is_distributed) {
        refuse_beside_servers(db).await?;
        explain(workers, &tables);
        if !is_agreed && !agrees()? {
            bail!("nothing was distributed");
        }
    }
    let rest = tables.iter().filter(|share| !share.is_distributed);
    let mut rest: u64 = rest.map(|share| share.bytes.unsigned_abs()).sum();
    for share in tables {
        copy(db, share, rest).await?;
        rest = rest.saturating_sub(share.bytes.unsigned_abs());
    }
    let shards = db.shards().context("the shards can't be found")?;
    say(format_args!(
        "events and pending are in {} shards on {} workers; start the servers",
        shards.count(),
        shards.workers()
    ));
    Ok(())
}

/// A table is locked while it is copied, and a server that runs knows of no shards.
async fn refuse_beside_servers(db: &Db) -> anyhow::Result<()> {
    let since = Clock::default().now().minus(ALIVE);
    let mut tx = db.read().await?;
    let running: i64 = tx
        .sql("SELECT count(*) FROM nodes WHERE heartbeat_at > $1")
        .bind(since)
        .fetch_scalar()
        .await?;
    if running > 0 {
        bail!(
            "{running} servers run: stop all of them first, and wait {} s after one that was killed",
            ALIVE.as_secs()
        );
    }
    Ok(())
}

fn explain(workers: i64, tables: &[Share]) {
    say(format_args!(
        "Two tables go to {workers} workers, all rows of an alias together; the others stay here:"
    ));
    for share in tables.iter().filter(|share| !share.is_distributed) {
        say(format_args!(
            "  {:8} about {} rows, {}",
            share.table.name(),
            HumanCount(share.rows.unsigned_abs()),
            HumanBytes(share.bytes.unsigned_abs())
        ));
    }
    say(
        "Each is copied in one transaction: if that is interrupted, nothing has happened to the table, and this command goes on there.\n\
         The coordinator's space is free afterwards. The way back: `SELECT undistribute_table('events')`, the same with 'pending'.",
    );
}

/// Asks whether to go on.
fn agrees() -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        bail!("add --yes to distribute the tables where nobody can be asked");
    }
    let mut output = std::io::stdout();
    write!(output, "Type yes to go on: ")?;
    output.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(answer.trim() == "yes")
}

/// Copies a table to the workers where it is not there, and shows how far that is. `rest`: the bytes of all that is to be copied.
async fn copy(db: &Db, share: Share, rest: u64) -> anyhow::Result<()> {
    let name = share.table.name();
    if share.is_distributed {
        db.distribute(share.table).await?;
        return Ok(());
    }
    let before = db.stored_by_workers().await?;
    let style = ProgressStyle::with_template("{spinner} {msg} {bytes}/{total_bytes} {elapsed}")?;
    let progress = ProgressBar::new(rest).with_style(style);
    progress.set_message(name);
    let mut work = std::pin::pin!(db.distribute(share.table));
    let outcome = loop {
        tokio::select! {
            outcome = &mut work => break outcome,
            () = tokio::time::sleep(GLANCE) => {
                let stored = db.stored_by_workers().await.unwrap_or(before);
                progress.set_position(stored.saturating_sub(before).unsigned_abs());
            }
        }
    };
    progress.finish_and_clear();
    outcome.with_context(|| format!("{name} was not distributed: run this command again"))?;
    say(format_args!("{name}: distributed"));
    Ok(())
}

/// What an administrator should know of a database that can be distributed; nothing of one that can't.
pub(super) async fn look(db: &Db) -> anyhow::Result<Option<String>> {
    let Distribution::Possible { silent, tables, .. } = db.distribution().await? else {
        return Ok(None);
    };
    let distributed: Vec<&Share> = tables.iter().filter(|it| it.is_distributed).collect();
    if distributed.is_empty() {
        return Ok(None);
    }
    if distributed.len() < Distributable::ALL.len() {
        bail!(
            "only a part of the tables is distributed: stop all servers and run `nudge migrate --distribute` again"
        );
    }
    if silent > 0 {
        bail!(
            "{silent} of the database's workers do not answer: what they have can be neither read nor written"
        );
    }
    Ok(db.shards().map(|shards| {
        format!(
            "events and pending are distributed: {} shards on {} workers",
            shards.count(),
            shards.workers()
        )
    }))
}
