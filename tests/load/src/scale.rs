//! What an event costs where there is a lot else: other campaigns, other apps, a long history.

use std::time::Duration;

use clap::Args;

use crate::child::Server;
use crate::database::{Databases, Kind};
use crate::drive::{self, Load, Outcome};
use crate::report::{Table, median, micros, rate, say, verdict};
use crate::request::{COMMON, Delivery, Person};

const CLIENTS: usize = 16;
const BATCH: usize = 20;
const OTHER_CAMPAIGNS: [usize; 2] = [98, 998];
const OTHER_APPS: u32 = 100;
/// The history of the person who has one.
const HISTORY: usize = 100_000;
/// Noise of a quiet machine.
const CLOSE_TO_ONE: f64 = 1.1;

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[arg(long, value_enum, default_value = "sqlite")]
    database: Kind,
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Requests of 20 events of each side of a comparison in a round.
    #[arg(long, default_value_t = 1_600)]
    requests: usize,
}

/// One side's cost of an event, in microseconds.
#[derive(Clone, Copy, Debug)]
struct Cost {
    wall: f64,
    cpu: f64,
    p50: f64,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let databases = Databases::new(arguments.database)?;
    let plain = Side::new(&databases, 0, 0).await?;
    let [hundred, thousand] = OTHER_CAMPAIGNS;
    let hundred = Side::new(&databases, 0, hundred).await?;
    let thousand = Side::new(&databases, 0, thousand).await?;
    let apps = Side::new(&databases, OTHER_APPS, 0).await?;
    let history = Side::new(&databases, 0, 0).await?;
    history.remember().await?;

    let load = Load {
        name: COMMON,
        clients: CLIENTS,
        requests: arguments.requests,
        events: BATCH,
        delivery: Delivery::None,
        seed: 1,
    };
    let alone = Load {
        clients: 1,
        requests: arguments.requests / 4,
        ..load
    };
    let mut pairs = [const { Vec::new() }; 4];
    for round in 0..arguments.rounds {
        let seed = 10 + 5 * round as u64;
        let with = |load: Load, part: u64| Load {
            seed: seed + part,
            ..load
        };
        let base = plain.cost(with(load, 0)).await?;
        let some = hundred.cost(with(load, 1)).await?;
        let many = thousand.cost(with(load, 2)).await?;
        let crowded = apps.cost(with(load, 3)).await?;
        let (short, long) = history.lives(with(alone, 4), round % 2 == 0).await?;
        say(format_args!(
            "round {round}: plain {base:.1?}, campaigns {some:.1?} {many:.1?}, apps {crowded:.1?}, history {short:.1?} {long:.1?}"
        ))?;
        for (pair, measured) in
            pairs
                .iter_mut()
                .zip([(base, some), (base, many), (base, crowded), (short, long)])
        {
            pair.push(measured);
        }
    }
    print(&pairs)?;
    for side in [plain, hundred, thousand, apps, history] {
        side.server.stop().await?;
    }
    Ok(())
}

/// A server and people in its app.
struct Side {
    server: Server,
    people: Vec<Person>,
}

impl Side {
    async fn new(databases: &Databases, apps: u32, campaigns: usize) -> anyhow::Result<Self> {
        let server = Server::start(databases, apps).await?;
        drive::furnish(&server).await?;
        for number in 0..campaigns {
            drive::survey(&server, &format!("other_{number}")).await?;
        }
        let people = drive::people(&server, 256).await?;
        let side = Self { server, people };
        let warm_up = Load {
            name: COMMON,
            clients: CLIENTS,
            requests: 400,
            events: BATCH,
            delivery: Delivery::None,
            seed: 1,
        };
        side.cost(warm_up).await?;
        Ok(side)
    }

    async fn cost(&self, load: Load) -> anyhow::Result<Cost> {
        let outcome = drive::run(&self.server, &self.people, load).await?;
        Ok(cost(&outcome, load))
    }

    /// Gives the first person a history.
    async fn remember(&self) -> anyhow::Result<()> {
        let events = 500;
        let load = Load {
            name: COMMON,
            clients: 1,
            requests: HISTORY / events,
            events,
            delivery: Delivery::None,
            seed: 2,
        };
        drive::run(&self.server, self.people.get(..1).unwrap_or_default(), load).await?;
        Ok(())
    }

    /// The costs of others, who have few events, and of the person with the history, in either order.
    async fn lives(&self, load: Load, long_first: bool) -> anyhow::Result<(Cost, Cost)> {
        let (first, others) = self.people.split_at(1);
        let again = Load {
            seed: load.seed + 1_000,
            ..load
        };
        let measure = async |people: &[Person], load: Load| {
            anyhow::Ok(cost(&drive::run(&self.server, people, load).await?, load))
        };
        Ok(if long_first {
            let long = measure(first, load).await?;
            (measure(others, again).await?, long)
        } else {
            let short = measure(others, load).await?;
            (short, measure(first, again).await?)
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of a benchmark")]
fn cost(outcome: &Outcome, load: Load) -> Cost {
    let events = load.requests * load.events;
    let each = |time: Duration| time.as_secs_f64() * 1e6 / events as f64;
    Cost {
        wall: 1e6 / rate(events, outcome.processed),
        cpu: each(outcome.cpu),
        p50: micros(&outcome.latencies, 0.5),
    }
}

fn print(pairs: &[Vec<(Cost, Cost)>; 4]) -> std::io::Result<()> {
    let mut ratios = Table::new(&["ratio, for an event", "processor time", "time", "goal", ""]);
    let mut absolutes = Table::new(&[
        "an event costs",
        "processor time",
        "time",
        "p50 of a request",
    ]);
    let names = [
        ("1 other campaign", "99 other campaigns"),
        ("1 other campaign", "999 other campaigns"),
        ("no other app", "100 other apps"),
        ("a person with few events", "a person with 100,000 events"),
    ];
    for ((few, many), pair) in names.iter().zip(pairs) {
        let middle = |value: &dyn Fn(&(Cost, Cost)) -> f64| median(pair.iter().map(value));
        let cpu = middle(&|(few, many)| many.cpu / few.cpu);
        let wall = middle(&|(few, many)| many.wall / few.wall);
        ratios.row(&[
            format!("{many} / {few}"),
            format!("{cpu:.2}"),
            format!("{wall:.2}"),
            format!("<= {CLOSE_TO_ONE}"),
            verdict(cpu <= CLOSE_TO_ONE).to_owned(),
        ]);
        let (fews, manys): (Vec<Cost>, Vec<Cost>) = pair.iter().copied().unzip();
        absolutes.row(&row(few, &fews));
        absolutes.row(&row(many, &manys));
    }
    ratios.print()?;
    absolutes.print()
}

fn row(name: &str, costs: &[Cost]) -> [String; 4] {
    let middle = |value: fn(&Cost) -> f64| median(costs.iter().map(value));
    [
        name.to_owned(),
        format!("{:.1} us", middle(|cost| cost.cpu)),
        format!("{:.1} us", middle(|cost| cost.wall)),
        format!("{:.0} us", middle(|cost| cost.p50)),
    ]
}
