//! Load drivers: what a running server costs, against what its database costs alone.
//!
//! Every command starts what it measures (a server in a process of its own, a fresh database), talks to it over
//! loopback, is bounded by counts, and prints a table with ratios first. A measurement and the one that it is
//! compared with take turns, so that whatever else the machine does falls on both; the ratio is the median of the
//! turns' ratios.

mod alone;
mod audience;
mod bare;
mod bodies;
mod broadcast;
mod child;
mod client;
mod crash;
mod database;
mod day;
mod disk;
mod drive;
mod endpoint;
mod failover;
mod feed;
mod fill;
mod growth;
mod immediate;
mod ingest;
mod keys;
mod letters;
mod overload;
mod paced;
mod people;
mod polls;
mod processes;
mod pushes;
mod random;
mod recipients;
mod report;
mod request;
mod rest;
mod scale;
mod segments;
mod soak;
mod surveys;
mod swap;
mod validation;
mod webhooks;

use clap::{Parser, Subcommand};

/// That of the server.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Load drivers of Nudge.
#[derive(Debug, Parser)]
#[command(name = "load")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// What audiences cost: events that campaigns wait for, with five leaves and without.
    Audience(audience::Arguments),
    /// A broadcast to many people, with kills amid it if asked for: how long it takes, who gets it how often.
    Broadcast(broadcast::Arguments),
    /// What bodies take in memory that are small as sent and large as parsed, many at once.
    Bodies(bodies::Arguments),
    /// Messages a second to one endpoint of a webhook, against its receiver alone.
    Endpoint(endpoint::Arguments),
    /// Events a second over HTTP, against bare inserts of the same rows.
    Ingest(ingest::Arguments),
    /// A broadcast to everybody while events come in and surveys are triggered: what each notices of the others.
    Day(day::Arguments),
    /// Kills servers while clients send events, and counts what is there afterwards.
    Crash(crash::Arguments),
    /// What it costs to wait for a decision: ingest with `delivery` against ingest without.
    Immediate(immediate::Arguments),
    /// What it costs to see events: the feed's index and pages, clients that listen, a list as CSV.
    Feed(feed::Arguments),
    /// Events a second, and what an event costs, as the number of stored events grows.
    Growth(growth::Arguments),
    /// What the keys of the events table cost as it grows, for several designs of them.
    Keys(keys::Arguments),
    /// What it costs to replay many dead letters, and how much memory it takes.
    Letters(letters::Arguments),
    /// Four times the clients that find a place: what is shed, how long the rest waits, whether anything is lost.
    Overload(overload::Arguments),
    /// What it costs to find people among many, and to read their timelines.
    People(people::Arguments),
    /// What open polls cost, and how soon they are answered.
    Polls(polls::Arguments),
    /// Events a second of several servers that share one database.
    Processes(processes::Arguments),
    /// How soon a message is with its push service after the event that triggers it.
    Pushes(pushes::Arguments),
    /// A server at rest: how soon it starts and answers, and what memory it has, alone and with many apps.
    Rest(rest::Arguments),
    /// What an event costs with many other campaigns, with many other apps, and for a person with many events.
    Scale(scale::Arguments),
    /// What segments cost: going through all people, previews, events whose campaigns name one.
    Segments(segments::Arguments),
    /// A mixed load for minutes: errors, and what grows that should not.
    Soak(soak::Arguments),
    /// What it costs to read the results of a survey with many attempts.
    Surveys(surveys::Arguments),
    /// What requests with `delivery` notice of the plugin that decides being replaced.
    Swap(swap::Arguments),
    /// What receivers of webhooks notice of one among them that never answers.
    Webhooks(webhooks::Arguments),
    /// What definitions cost: requests of events that match, that break them, and that have none.
    Validation(validation::Arguments),
    /// The server that the other commands measure.
    #[command(hide = true)]
    Server(child::Arguments),
}

fn main() -> anyhow::Result<()> {
    nudge::memory::use_small_pages();
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        match cli.command {
            Command::Audience(arguments) => audience::run(arguments).await,
            Command::Broadcast(arguments) => broadcast::run(arguments).await,
            Command::Bodies(arguments) => bodies::run(arguments).await,
            Command::Endpoint(arguments) => endpoint::run(arguments).await,
            Command::Ingest(arguments) => ingest::run(arguments).await,
            Command::Day(arguments) => day::run(arguments).await,
            Command::Crash(arguments) => crash::run(arguments).await,
            Command::Feed(arguments) => feed::run(arguments).await,
            Command::Growth(arguments) => growth::run(arguments).await,
            Command::Immediate(arguments) => immediate::run(arguments).await,
            Command::Keys(arguments) => keys::run(arguments).await,
            Command::Letters(arguments) => letters::run(arguments).await,
            Command::Overload(arguments) => overload::run(arguments).await,
            Command::People(arguments) => people::run(arguments).await,
            Command::Polls(arguments) => polls::run(arguments).await,
            Command::Processes(arguments) => processes::run(arguments).await,
            Command::Pushes(arguments) => pushes::run(arguments).await,
            Command::Rest(arguments) => rest::run(arguments).await,
            Command::Scale(arguments) => scale::run(arguments).await,
            Command::Segments(arguments) => segments::run(arguments).await,
            Command::Soak(arguments) => soak::run(arguments).await,
            Command::Surveys(arguments) => surveys::run(arguments).await,
            Command::Swap(arguments) => swap::run(arguments).await,
            Command::Webhooks(arguments) => webhooks::run(arguments).await,
            Command::Validation(arguments) => validation::run(arguments).await,
            Command::Server(arguments) => child::run(arguments).await,
        }
    })
}
