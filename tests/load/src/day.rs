//! The shape of a day: a broadcast to everybody while events come in and surveys are triggered.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use anyhow::ensure;
use clap::Args;
use nudge_platform::clock::Clock;
use tests::providers::Providers;

use crate::broadcast::{campaign, watch};
use crate::child::{Server, borrowed};
use crate::database::{Databases, Kind};
use crate::drive;
use crate::paced::{Paced, beside};
use crate::recipients::{self, Device, Service};
use crate::report::{Latency, Table, rate, say};
use crate::request::{AWAITED, COMMON, Delivery};

/// People who send events.
const SENDERS: usize = 1_000;
/// How long everything is quiet before.
const QUIET: Duration = Duration::from_secs(20);

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[arg(long, value_enum, default_value = "sqlite")]
    database: Kind,
    /// People who get the broadcast.
    #[arg(long, default_value_t = 1_000_000)]
    people: usize,
    /// Requests of 20 events a second.
    #[arg(long, default_value_t = 25)]
    requests: u32,
    /// Requests a second that wait for a survey which their event triggers.
    #[arg(long, default_value_t = 50)]
    surveys: u32,
}

pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let databases = Databases::new(arguments.database)?;
    let providers = Providers::start(&Clock::default()).await;
    let device = Device::of(Service::Fcm, &providers);
    let variables = providers.variables();
    let server = Server::start_with(&databases, 0, &borrowed(&variables)).await?;
    drive::furnish(&server).await?;
    let senders = drive::people(&server, SENDERS).await?;
    let people =
        recipients::people(server.db(), server.process(), &device, arguments.people).await?;
    say(format_args!("{} people have a device each", people.len()))?;
    let credential = device.credential();
    drive::manage_as(&server, "adminToken", "push/credentials", &credential).await?;
    let loads = all_day(&arguments, 1);
    let quiet = async {
        tokio::time::sleep(QUIET).await;
        Ok(())
    };
    let (before, ()) = beside(&server, &senders, &loads, quiet).await?;
    say(format_args!("quiet: {before:.0?}"))?;
    let (idle, began) = (server.resident()?, Instant::now());
    server.reset_peak()?;
    let broadcast = async {
        drive::manage(&server, "campaigns", &campaign()).await?;
        watch(server.db(), began).await
    };
    let loads = all_day(&arguments, 3);
    let (amid, times) = beside(&server, &senders, &loads, broadcast).await?;
    let peak = server.peak()?;
    everybody(&device, people.len())?;
    server.stop().await?;
    let whole = rate(people.len(), times.done);
    let seconds = times.done.as_secs();
    say(format_args!(
        "the broadcast: {whole:.0} messages a second, {seconds} s"
    ))?;
    print(&arguments, &before, &amid)?;
    let mut table = Table::new(&["memory of the server", "MB"]);
    for (name, bytes) in [
        ("before the broadcast", idle),
        ("at the most amid it", peak),
    ] {
        table.row(&[name.to_owned(), (bytes / 1_000_000).to_string()]);
    }
    Ok(table.print()?)
}

/// What comes in all day.
fn all_day(arguments: &Arguments, seed: u64) -> [Paced; 2] {
    let ingest = Paced {
        name: COMMON,
        events: 20,
        delivery: Delivery::None,
        rate: arguments.requests,
        seed,
    };
    let surveys = Paced {
        name: AWAITED,
        events: 1,
        delivery: Delivery::First,
        rate: arguments.surveys,
        seed: seed + 1,
    };
    [ingest, surveys]
}

/// Everybody got the broadcast, once.
fn everybody(device: &Device<'_>, people: usize) -> anyhow::Result<()> {
    let received = device.received();
    let reached: HashSet<String> = received
        .iter()
        .map(|request| device.of_request(request))
        .collect::<anyhow::Result<_>>()?;
    ensure!(
        (received.len(), reached.len()) == (people, people),
        "{} messages to {} of {} people",
        received.len(),
        reached.len(),
        people
    );
    Ok(())
}

fn print(arguments: &Arguments, before: &[Latency], amid: &[Latency]) -> anyhow::Result<()> {
    let mut table = Table::new(&[
        "a request, from when it was to be sent",
        "quiet: p50, p99",
        "amid the broadcast: p50, p99",
    ]);
    let names = [
        format!("{} of 20 events a second", arguments.requests),
        format!("{} a second that trigger a survey", arguments.surveys),
    ];
    let text = |latency: &Latency| format!("{:.1}, {:.1} ms", latency.p50 / 1e3, latency.p99 / 1e3);
    for (name, (before, amid)) in names.into_iter().zip(before.iter().zip(amid)) {
        table.row(&[name, text(before), text(amid)]);
    }
    Ok(table.print()?)
}
