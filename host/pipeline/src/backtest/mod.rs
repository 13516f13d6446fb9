//! Backtests: recorded events through two versions of a plugin side by side (contract 12).
//!
//! | module | holds |
//! |---|---|
//! | `window` | the recorded events, in order, a few at a time |
//! | `people` | what is known of a subject as of an event |
//! | `side` | one version with the states and timers that it would have |
//! | `triggers`, `validations` | both versions about the same events, compared |
//! | `report` | what came of it |
//!
//! Each version begins at `since` without states and timers, and timers fall due in recorded time. Nothing takes
//! effect: consent, caps and what else stands between a firing and a person is not looked at. What a job
//! simulates is in memory only, so that one that is interrupted begins its window anew.

pub mod http;
mod people;
mod report;
mod side;
mod triggers;
mod validations;
mod window;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nudge_db::{Db, Timestamp};
use nudge_wasm::{Failed, Kind, Plugin};
use report::Report;
pub use report::erase_subject;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use triggers::Triggers;
use uuid::Uuid;
use validations::Validations;
use window::Request;

use crate::services::Services;
use nudge_apps::App;
use nudge_platform::jobs::{Error, RunningJob};
use nudge_plugin_runtime::{Accepted, CheckFailed, Reading, Unloadable};

/// The kind of the job.
pub const KIND: &str = "plugin_backtest";
/// Events that a backtest runs unless told otherwise.
pub const DEFAULT_LIMIT: u64 = 100_000;
/// Events that a backtest may run.
pub const MOST_EVENTS: u64 = 1_000_000;
/// Events that a version may fail on before nobody asks it any more.
const MOST_FAILURES: u64 = 1_000;
/// What both versions' states and timers, and what is known of subjects, may take together, in bytes.
const MOST_BYTES: usize = 128 << 20;
/// How long a backtest keeps a plugin thread at a time.
const SLICE: Duration = Duration::from_millis(100);
/// How long it waits for a plugin that can't be asked.
const UNAVAILABLE: Duration = Duration::from_secs(5);
/// How long it waits at the most before it asks for the thread again.
const LONGEST_PAUSE: Duration = Duration::from_millis(250);

/// What a job is asked to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Input {
    /// The plugin's name.
    pub plugin: String,
    /// The digest of the version that is tried.
    pub digest: String,
    /// Events that arrived at or after this instant.
    pub since: Timestamp,
    /// Events that arrived before this instant.
    pub until: Timestamp,
    /// The only campaign to look at, whichever plugin decides about it.
    pub campaign_id: Option<Uuid>,
    /// How many events to run.
    pub limit: u64,
}

/// A campaign or definition under both versions.
#[derive(Clone, Debug)]
struct Target {
    /// The campaign's id; of a definition none.
    id: Option<Uuid>,
    /// A definition's event name.
    name: Option<String>,
    config: Arc<str>,
    /// What the active version reads.
    active: Arc<Reading>,
    /// What the candidate reads.
    candidate: Arc<Reading>,
}

/// The versions that are compared, and where.
#[derive(Clone, Debug)]
struct Match {
    active: Arc<Plugin>,
    candidate: Arc<Plugin>,
    targets: Vec<Target>,
}

/// What simulations ask the database with.
#[derive(Clone, Debug)]
struct Context {
    app_id: Uuid,
    db: Db,
    runtime: Handle,
    halt: CancellationToken,
}

impl Context {
    /// An error once the server stops. Between two calls of a plugin, of which each may take its whole time.
    fn check(&self) -> nudge_db::Result<()> {
        if self.halt.is_cancelled() {
            let cause = std::io::Error::other("the server stops");
            return Err(nudge_db::Error::unavailable(cause));
        }
        Ok(())
    }
}

/// Calls a plugin, and once more where the machine let it starve: nothing is known of the plugin then. `check` comes before each call.
fn call<T>(
    check: impl Fn() -> nudge_db::Result<()>,
    mut make: impl FnMut() -> Result<T, Failed>,
) -> nudge_db::Result<Result<T, Failed>> {
    check()?;
    let outcome = make();
    if outcome.as_ref().is_err_and(Failed::was_starved) {
        check()?;
        return Ok(make());
    }
    Ok(outcome)
}

/// Either simulation.
enum Simulation {
    Triggers(Box<Triggers>),
    Validations(Box<Validations>),
}

impl Simulation {
    /// Runs a request's events; answers whether that is done. It is not while timers are left that were due before it.
    fn run(&mut self, request: &Request) -> nudge_db::Result<bool> {
        match self {
            Self::Triggers(simulation) => simulation.run(request),
            Self::Validations(simulation) => simulation.run(request).map(|()| true),
        }
    }

    /// Whether it is about events that the active version refused, too: they are dead letters.
    fn sees_refused(&self) -> bool {
        matches!(self, Self::Validations(_))
    }

    fn report(&mut self) -> &mut Report {
        match self {
            Self::Triggers(simulation) => &mut simulation.report,
            Self::Validations(simulation) => &mut simulation.report,
        }
    }
}

/// What is decided by a plugin, or the one campaign that is named: with the active version.
pub fn decided<'a>(
    app: &'a App,
    kind: Kind,
    plugin: &str,
    campaign_id: Option<Uuid>,
) -> Vec<(Option<Uuid>, Option<String>, &'a Accepted)> {
    let by_plugin = |accepted: &Accepted| accepted.decider.plugin.description().name == plugin;
    match kind {
        Kind::Trigger => app
            .campaigns
            .iter()
            .filter(|campaign| match campaign_id {
                Some(id) => campaign.id == id,
                None => by_plugin(&campaign.accepted),
            })
            .map(|campaign| (Some(campaign.id), None, &campaign.accepted))
            .collect(),
        Kind::Validation => app
            .definitions
            .iter()
            .filter(|(_, enforced)| by_plugin(&enforced.accepted))
            .map(|(name, enforced)| (None, Some(name.clone()), &enforced.accepted))
            .collect(),
        Kind::Personalization => Vec::new(),
    }
}

/// Runs a backtest to its end.
pub async fn run(services: &Arc<Services>, job: &mut RunningJob) -> Result<Value, Error> {
    let input: Input = job.input()?;
    let app = services.apps.newest(job.app_id).await?;
    let app = app.ok_or_else(|| Error::Failed("the app is gone".to_owned()))?;
    let versions = prepare(services, &app, &input).await?;
    let report = Report::new(&versions, &input);
    let context = Context {
        app_id: app.id,
        db: services.db.clone(),
        runtime: Handle::current(),
        halt: job.halt(),
    };
    let mut simulation = match versions.candidate.kind() {
        Kind::Trigger => Simulation::Triggers(Box::new(Triggers::new(context, &versions, report))),
        _ => Simulation::Validations(Box::new(Validations::new(context, &versions, report))),
    };
    // What arrives from now on is not in it.
    let until = input.until.min(services.clock.now());
    let mut window = window::Window::open(&services.db, app.id, input.since, until).await?;
    let mut refused = window::Refused::new(app.id, input.since, until);
    let mut scanned = 0_i64;
    while simulation.report().stopped.is_none() {
        job.check()?;
        let requests = match window.next(&services.db).await? {
            Some(requests) => requests,
            None if simulation.sees_refused() => refused.next(&services.db).await?,
            None => Vec::new(),
        };
        if requests.is_empty() {
            break;
        }
        scanned += requests.iter().map(Request::len).sum::<i64>();
        simulation = run_all(services, job, simulation, requests).await?;
        let now = services.clock.now();
        let mut tx = services.db.write().await?;
        job.advance(&mut tx, &(), scanned, None, now).await?;
        tx.commit().await?;
    }
    simulation = finish(services, job, app.id, simulation, until).await?;
    let result = simulation.report().result();
    Ok(report::without_gone(&services.db, app.id, result).await?)
}

/// Loads the version and asks it about everything that it is compared on.
async fn prepare(services: &Services, app: &App, input: &Input) -> Result<Match, Error> {
    let failed = |detail: &str| Error::Failed(detail.to_owned());
    let loaded = services.plugins.by_digest(&services.db, &input.digest);
    let candidate = match loaded.await {
        // Under what limits the active version decides.
        Ok(plugin) => Arc::new(plugin.within(&app.settings.plugins.lowered())),
        Err(Unloadable::Storage(error)) => return Err(error.into()),
        Err(error) => return Err(Error::Failed(format!("the version: {error}"))),
    };
    let decided = decided(app, candidate.kind(), &input.plugin, input.campaign_id);
    let Some((_, _, first)) = decided.first() else {
        return Err(failed("nothing that the plugin decides is active any more"));
    };
    // Another than the one that stands where the active version refuses a configuration.
    let mut deciders = decided
        .iter()
        .map(|(_, _, accepted)| &accepted.decider.plugin);
    let deciding = deciders.find(|plugin| !plugin.is_withdrawn());
    let active = Arc::clone(deciding.unwrap_or(&first.decider.plugin));
    let mut targets = Vec::with_capacity(decided.len());
    for (id, name, accepted) in decided {
        let asked = services
            .plugins
            .check_config(&candidate, accepted.config.to_string())
            .await;
        let reads = match asked {
            Ok(Ok(reads)) => reads,
            Ok(Err(_)) => return Err(failed("the version refuses a configuration")),
            Err(error @ CheckFailed::Failed(_)) if error.of_plugin().is_none() => {
                return Err(Error::Wait(UNAVAILABLE));
            }
            Err(error) => return Err(Error::Failed(error.to_string())),
        };
        targets.push(Target {
            id,
            name,
            config: Arc::clone(&accepted.config),
            active: Arc::clone(&accepted.reading),
            candidate: Arc::new(reads.into()),
        });
    }
    Ok(Match {
        active,
        candidate,
        targets,
    })
}

/// Runs requests in slices, between which the plugin threads are others'.
async fn run_all(
    services: &Services,
    job: &RunningJob,
    mut simulation: Simulation,
    requests: Vec<Request>,
) -> Result<Simulation, Error> {
    let mut left = VecDeque::from(requests);
    while !left.is_empty() {
        job.check()?;
        let started = Instant::now();
        let slice = services.plugins.aside(job.app_id, move || {
            let started = Instant::now();
            while let Some(request) = left.front() {
                if simulation.run(request)? {
                    left.pop_front();
                }
                if simulation.report().stopped.is_some() {
                    left.clear();
                }
                if started.elapsed() >= SLICE {
                    break;
                }
            }
            Ok::<_, nudge_db::Error>((simulation, left))
        });
        let slice = slice.await;
        job.check()?;
        (simulation, left) = slice??;
        tokio::time::sleep(started.elapsed().min(LONGEST_PAUSE)).await;
    }
    Ok(simulation)
}

/// Lets the timers fall due that are left.
async fn finish(
    services: &Services,
    job: &RunningJob,
    app_id: Uuid,
    simulation: Simulation,
    until: Timestamp,
) -> Result<Simulation, Error> {
    let Simulation::Triggers(mut triggers) = simulation else {
        return Ok(simulation);
    };
    loop {
        job.check()?;
        let slice = services.plugins.aside(app_id, move || {
            let ended = triggers.pass_time(until, SLICE)?;
            Ok::<_, nudge_db::Error>((triggers, ended))
        });
        let slice = slice.await;
        job.check()?;
        let ended;
        (triggers, ended) = slice??;
        if ended {
            return Ok(Simulation::Triggers(triggers));
        }
        tokio::time::sleep(SLICE).await;
    }
}

#[cfg(test)]
mod tests {
    use nudge_wasm::{Call, Failure};

    use super::*;

    fn failed(failure: Failure, hardly_ran: bool) -> Failed {
        let call = Call {
            hardly_ran,
            ..Call::default()
        };
        Failed {
            failure,
            call: Box::new(call),
        }
    }

    /// What comes of calls that end so, one after another, and how many are made.
    fn made(ends: Vec<Result<u32, Failed>>) -> (Option<u32>, usize) {
        let mut left = VecDeque::from(ends);
        let before = left.len();
        let outcome = call(|| Ok(()), || left.pop_front().unwrap()).unwrap();
        (outcome.ok(), before - left.len())
    }

    #[test]
    fn a_call_that_starved_is_made_once_more() {
        let starved = || Err(failed(Failure::Deadline, true));
        assert_eq!(made(vec![Ok(1), Ok(2)]), (Some(1), 1));
        assert_eq!(made(vec![starved(), Ok(2)]), (Some(2), 2));
        assert_eq!(made(vec![starved(), starved(), Ok(3)]), (None, 2));
        // What it had the time for, it would do again.
        let slow = Err(failed(Failure::Deadline, false));
        assert_eq!(made(vec![slow, Ok(2)]), (None, 1));
        let broken = Err(failed(Failure::Trap(String::new()), true));
        assert_eq!(made(vec![broken, Ok(2)]), (None, 1));
    }
}
