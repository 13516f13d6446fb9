//! What calls of trigger plugins cost, next to native code that does the same.
//!
//! `cargo bench -p nudge-wasm` prints a table in Markdown. The variants take turns, and each number is the
//! median of its rounds: what disturbs the machine disturbs all of them. All variants begin with the events'
//! JSON text, so the host's projection lies inside the measured time.
//!
//! Texts after `--` choose rows: `cargo bench -p nudge-wasm -- "fresh instance, 1 a call"`.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a measurement that somebody reads"
)]

use std::env;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nudge_wasm::trigger::{Batch, Campaign, Item, Nobody};
use nudge_wasm::{Compiler, Engine, EngineConfig, Limits, Plugin, Session, between_calls};
use serde::Deserialize;
use uuid::Uuid;

/// The server's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROUNDS: usize = 41;
const EVENTS: u32 = 100;

/// A plugin, and the configuration under which it does what [`native`] does.
struct Subject {
    name: &'static str,
    component: &'static [u8],
    config: &'static str,
}

const SUBJECTS: [Subject; 2] = [
    Subject {
        name: "least guest",
        component: test_guests::MISBEHAVING,
        config: r#"{"mode":"conditions"}"#,
    },
    Subject {
        name: "default trigger",
        component: nudge_plugins::DEFAULT_TRIGGER,
        config: r#"{"trigger":{"kind":"event","eventName":"order_completed","filters":{"all":[
            {"property":"amount","type":"number","operator":"gte","value":10},
            {"property":"plan","type":"string","operator":"equals","value":"pro"},
            {"property":"country","type":"string","operator":"in","value":["DE","FR"]}
        ]}}}"#,
    },
];

fn main() {
    println!("| what | events a call | ns a call | ns an event | × native |");
    println!("|---|---|---|---|---|");
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::new(EngineConfig {
        cache_dir: folder.path().to_owned(),
        cache_key: [0; 32],
        compiler: Compiler::InProcess,
        limits: Limits::default(),
        pool_slots: 8,
        made_ahead: 2,
    });
    let engine = engine.unwrap();
    for subject in &SUBJECTS {
        let plugin = engine.load(subject.component).unwrap();
        for events in [EVENTS, 1] {
            measure(subject, &plugin, &batch(subject.config, events));
        }
    }
}

/// A name, the nanoseconds a call of each round, and what to measure: it gives the number of firings.
type Variant<'a> = (&'static str, Vec<f64>, Box<dyn FnMut(Batch) -> usize + 'a>);

/// The variant whose calls have a pause between them, which is not measured.
const PAUSING: &str = "instance made ahead";

/// Prints the rows of a plugin and a size of batch.
fn measure(subject: &Subject, plugin: &Plugin, batch: &Batch) {
    let events = u32::try_from(batch.items.len()).unwrap();
    let mut session = Session::new(plugin).unwrap();
    let fresh = |batch| {
        let outcome = plugin.evaluate(batch, Box::new(Nobody)).unwrap();
        outcome.fired.len()
    };
    let mut variants: [Variant<'_>; 4] = [
        ("native", Vec::new(), Box::new(|batch| native(&batch))),
        (
            "reused instance",
            Vec::new(),
            Box::new(move |batch| {
                session
                    .evaluate(batch, Box::new(Nobody))
                    .unwrap()
                    .fired
                    .len()
            }),
        ),
        ("fresh instance", Vec::new(), Box::new(fresh)),
        (PAUSING, Vec::new(), Box::new(fresh)),
    ];
    let calls = 20_000 / (events + 20);
    let chosen: Vec<String> = env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    let is_chosen = |name: &str| {
        let row = format!("{}, {name}, {events} a call", subject.name);
        chosen.iter().all(|part| row.contains(part.as_str()))
    };
    for _ in 0..ROUNDS {
        for (name, rounds, run) in variants.iter_mut().filter(|(name, ..)| is_chosen(name)) {
            let batches = vec![batch.clone(); calls as usize];
            let took = time(batches, *name == PAUSING, |batch| {
                assert_eq!(black_box(run(black_box(batch))), events as usize);
            });
            rounds.push(took.as_secs_f64() * 1e9 / f64::from(calls));
        }
    }
    let mut base = None;
    for (name, rounds, _) in variants {
        if rounds.is_empty() {
            continue;
        }
        let median = median(rounds);
        let base = *base.get_or_insert(median);
        let (name, each, times) = (
            format!("{}, {name}", subject.name),
            median / f64::from(events),
            median / base,
        );
        println!("| {name} | {events} | {median:.0} | {each:.0} | {times:.2} |");
    }
}

/// What calls take together, without the pauses between them.
fn time(batches: Vec<Batch>, pausing: bool, mut run: impl FnMut(Batch)) -> Duration {
    let start = Instant::now();
    let mut pauses = Duration::ZERO;
    for batch in batches {
        if pausing {
            let pause = Instant::now();
            between_calls();
            pauses += pause.elapsed();
        }
        run(batch);
    }
    start.elapsed().saturating_sub(pauses)
}

fn median(mut rounds: Vec<f64>) -> f64 {
    rounds.sort_by(f64::total_cmp);
    rounds.get(rounds.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The three conditions in Rust, on the same text.
fn native(batch: &Batch) -> usize {
    #[derive(Deserialize)]
    struct Properties<'a> {
        amount: Option<f64>,
        plan: Option<&'a str>,
        country: Option<&'a str>,
    }

    let mut fired = Vec::with_capacity(batch.items.len());
    for (number, item) in batch.items.iter().enumerate() {
        let properties: Properties<'_> = serde_json::from_str(&item.properties).unwrap();
        if properties.amount.is_some_and(|amount| amount >= 10.0)
            && properties.plan == Some("pro")
            && properties
                .country
                .is_some_and(|country| ["DE", "FR"].contains(&country))
        {
            fired.push(number);
        }
    }
    black_box(fired).len()
}

/// Events of 8 properties that all fire: the worst case.
fn batch(config: &str, events: u32) -> Batch {
    let item = |number: u32| {
        Item {
        subject: number % 10,
        event_id: Uuid::from_u128(u128::from(number)),
        name: "order_completed".into(),
        timestamp: 1_769_851_800_000_000 + i64::from(number),
        received: 1_769_851_800_000_000,
        session: 1,
        properties: format!(
            r#"{{"order_id":"ord_{number:08}","amount":{}.5,"currency":"EUR","plan":"pro","country":"DE","items":{},"coupon":null,"source":"newsletter-2026-01-autumn-sale-second-mailing"}}"#,
            10 + number % 90,
            number % 7
        )
        .into(),
        timer: None,
    }
    };
    let campaign = Campaign {
        id: Uuid::from_u128(1),
        config: config.into(),
        properties: Arc::from(["amount".to_owned(), "plan".to_owned(), "country".to_owned()]),
        items: (0..events).collect(),
    };
    Batch {
        now: 1_769_851_900_000_000,
        items: (0..events).map(item).collect(),
        campaigns: vec![campaign],
        explaining: false,
        seed: 1,
    }
}
