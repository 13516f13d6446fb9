//! The same trigger under other runtimes.
//!
//! The variants take turns, and each number is the median of its rounds: what disturbs the machine disturbs all of them.
//! All begin with the JSON text of each event's properties and end with the list of the events that fire.

mod events;
mod extism_plugin;
mod native;
mod node;
mod nudge;
mod quickjs;

use std::time::{Duration, Instant};

use anyhow::ensure;
use clap::Args;

use self::events::Events;
use self::node::Mode;
use crate::report::{Table, median, say};

/// What a trigger may take, under every runtime that can hold it to that: as Nudge's defaults.
const DEADLINE: Duration = Duration::from_millis(50);
const MEMORY: usize = 64 << 20;

/// Sizes of batches.
const SIZES: [u32; 2] = [1, 100];

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[arg(long, default_value_t = 41)]
    rounds: usize,
    /// How long a round of one variant takes, about.
    #[arg(long, default_value_t = 100)]
    round_ms: u64,
    /// Node's program.
    #[arg(long, default_value = "node")]
    node: String,
    /// Only the rows in which this text is.
    #[arg(long, default_value = "")]
    only: String,
}

/// Makes so many calls, and tells how long they took; fails where the events that fire are not those that should.
type Round<'a> = Box<dyn FnMut(u32) -> anyhow::Result<Duration> + 'a>;

/// A row of the table.
struct Variant<'a> {
    name: &'static str,
    /// Whether nothing that a call did is seen by the next one. Native code is held to nothing.
    isolated: Option<bool>,
    round: Round<'a>,
    /// Calls of a round.
    calls: u32,
    /// Nanoseconds a call.
    rounds: Vec<f64>,
}

impl<'a> Variant<'a> {
    fn new(name: &'static str, isolated: impl Into<Option<bool>>, round: Round<'a>) -> Self {
        Self {
            name,
            isolated: isolated.into(),
            round,
            calls: 1,
            rounds: Vec::new(),
        }
    }

    /// Finds how many calls a round takes to last that long.
    fn calibrate(&mut self, round: Duration) -> anyhow::Result<()> {
        while (self.round)(self.calls)? < round && self.calls < 1 << 20 {
            self.calls *= 2;
        }
        Ok(())
    }

    fn measure(&mut self) -> anyhow::Result<()> {
        let time = (self.round)(self.calls)?;
        self.rounds
            .push(time.as_secs_f64() * 1e9 / f64::from(self.calls));
        Ok(())
    }
}

/// What all variants of a batch need.
struct Peers {
    nudge: nudge::Plugins,
    extism: extism_plugin::Compiled,
    node: node::Programs,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let peers = Peers {
        nudge: nudge::Plugins::load()?,
        extism: extism_plugin::Compiled::new()?,
        node: node::Programs::start(&arguments.node)?,
    };
    say(format_args!("Node {}", peers.node.version()?))?;
    for mut variant in variants(&peers, &Events::mixed())? {
        (variant.round)(3)?;
    }
    let mut sizes = Vec::with_capacity(SIZES.len());
    for size in SIZES {
        let events = Events::firing(size);
        let mut variants = variants(&peers, &events)?;
        variants.retain(|variant| variant.name.contains(&arguments.only));
        for variant in &mut variants {
            variant.calibrate(Duration::from_millis(arguments.round_ms))?;
        }
        for _ in 0..arguments.rounds {
            for variant in &mut variants {
                variant.measure()?;
            }
        }
        let rows = variants
            .into_iter()
            .map(|variant| (variant.name, variant.isolated, variant.rounds));
        sizes.push(rows.collect());
    }
    table(&sizes).print()?;
    Ok(())
}

fn variants<'a>(peers: &'a Peers, events: &'a Events) -> anyhow::Result<Vec<Variant<'a>>> {
    let Peers {
        nudge,
        extism,
        node,
    } = peers;
    let node = node.with(events)?;
    let [default, in_code] = nudge.batches(events);
    Ok(vec![
        Variant::new("native Rust", None, native::round(events)),
        Variant::new(
            "Nudge, default trigger, reused instance",
            false,
            default.reused(events)?,
        ),
        Variant::new(
            "Nudge, default trigger, fresh instance",
            true,
            default.fresh(events),
        ),
        Variant::new(
            "Nudge, conditions in the plugin's code, reused instance",
            false,
            in_code.reused(events)?,
        ),
        Variant::new(
            "Nudge, conditions in the plugin's code, fresh instance",
            true,
            in_code.fresh(events),
        ),
        Variant::new("Extism, reused plugin", false, extism.reused(events)?),
        Variant::new("Extism, new plugin", true, extism.fresh(events)),
        Variant::new(
            "Extism, new plugin, pooled memory",
            true,
            extism.pooled(events),
        ),
        Variant::new("QuickJS, reused context", false, quickjs::reused(events)?),
        Variant::new(
            "QuickJS, new runtime and context",
            true,
            quickjs::fresh(events),
        ),
        Variant::new("Node `vm`, reused context", false, node.round(Mode::Reused)),
        Variant::new("Node `vm`, new context", true, node.round(Mode::Fresh)),
        Variant::new(
            "Node `vm`, reused context, no deadline",
            false,
            node.round(Mode::ReusedWithoutDeadline),
        ),
        Variant::new(
            "Node `vm`, new context, no deadline",
            true,
            node.round(Mode::FreshWithoutDeadline),
        ),
        Variant::new(
            "Node `vm`, reused context, asked over a pipe",
            false,
            node.asked(),
        ),
    ])
}

/// Makes calls, each with the texts of the events, and compares what they find.
fn timed(
    events: &Events,
    calls: u32,
    mut call: impl FnMut(&[String]) -> anyhow::Result<Vec<u32>>,
) -> anyhow::Result<Duration> {
    let started = Instant::now();
    for _ in 0..calls {
        let fired = call(&events.texts)?;
        ensure!(fired == events.fire, "{fired:?} fire");
    }
    Ok(started.elapsed())
}

/// Rows of one size of batch: name, isolated, nanoseconds a call of each round.
type Rows = Vec<(&'static str, Option<bool>, Vec<f64>)>;

fn table(sizes: &[Rows]) -> Table {
    let mut table = Table::new(&[
        "trigger of three conditions",
        "isolated",
        "1 event, us a call",
        "/ native",
        "100 events, us a call",
        "/ native",
    ]);
    let [single, many] = sizes else { return table };
    let base = |rows: &Rows| {
        let first = rows.first();
        median(first.into_iter().flat_map(|(.., rounds)| rounds.clone()))
    };
    let (base_single, base_many) = (base(single), base(many));
    for ((name, isolated, one), (.., hundred)) in single.iter().zip(many) {
        let (one, hundred) = (median(one.iter().copied()), median(hundred.iter().copied()));
        table.row(&[
            (*name).to_owned(),
            isolated
                .map_or("", |isolated| if isolated { "yes" } else { "no" })
                .to_owned(),
            format!("{:.2}", one / 1e3),
            format!("{:.1}", one / base_single),
            format!("{:.1}", hundred / 1e3),
            format!("{:.2}", hundred / base_many),
        ]);
    }
    table
}
