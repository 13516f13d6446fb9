//! The ways to misbehave.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a plugin that breaks down is what this is"
)]

use std::hint::black_box;

use crate::bindings::exports::nudge::plugin::trigger_plugin::Refusal;
use crate::bindings::nudge::plugin::log::{Level, write};
use crate::bindings::nudge::plugin::trigger_host::Batch;

/// All modes.
pub(crate) const NAMES: [&str; 20] = [
    "fine",
    "loop",
    "memory",
    "trap",
    "recursion",
    "huge_output",
    "huge_explanation",
    "log_flood",
    "host_call_flood",
    "state_flood",
    "timer_flood",
    "timer_late",
    "timer_key",
    "bad_index",
    "foreign_item",
    "many_paths",
    "refuse",
    "nan",
    "conditions",
    "poison",
];

/// Does what a mode says.
pub(crate) fn run(mode: &str, batch: &Batch, campaign: u32) -> Result<(), Refusal> {
    match mode {
        "loop" => run_forever(),
        "memory" => eat_memory(),
        "trap" => panic!("on request"),
        "recursion" => {
            black_box(recurse(1));
        }
        "huge_output" => batch.fire(campaign, &vec![0; 100_000]),
        "huge_explanation" => batch.explain(campaign, 0, "size", true, &"x".repeat(1 << 20)),
        "log_flood" => (0..100).for_each(|_| write(Level::Warn, &"x".repeat(1000))),
        "host_call_flood" => loop {
            black_box(batch.now());
        },
        "state_flood" => batch.set_state(campaign, 0, &[0; 5000]),
        "timer_flood" => {
            for number in 0..65 {
                batch.set_timer(campaign, 0, &number.to_string(), batch.now() + 1, &[]);
            }
        }
        "timer_late" => batch.set_timer(campaign, 0, "late", i64::MAX, &[]),
        "timer_key" => batch.set_timer(campaign, 0, &"k".repeat(129), batch.now(), &[]),
        "bad_index" => drop(batch.campaign_cells(99)),
        "foreign_item" => batch.fire(campaign, &[batch.item_count() - 1]),
        "many_paths" => {
            drop(batch.recent_events(0, "order", None, 1, &vec!["path".to_owned(); 257]));
        }
        "refuse" => {
            return Err(Refusal {
                code: "on_request".to_owned(),
                message: "It was asked to refuse.".to_owned(),
                more: Vec::new(),
            });
        }
        "nan" => {
            let nan = black_box(0.0_f64) / black_box(0.0);
            batch.set_state(campaign, 0, &nan.to_bits().to_le_bytes());
        }
        "poison" => trip(batch, campaign),
        "conditions" => check_conditions(batch, campaign),
        _ => behave(batch, campaign),
    }
    Ok(())
}

pub(crate) fn run_forever() -> ! {
    let mut number = 0_u64;
    loop {
        number = black_box(number.wrapping_add(1));
    }
}

fn eat_memory() {
    let mut eaten = Vec::new();
    loop {
        eaten.push(black_box(vec![1_u8; 1 << 20]));
    }
}

fn recurse(depth: u64) -> u64 {
    if black_box(depth) == 0 {
        0
    } else {
        1 + recurse(black_box(depth + 1))
    }
}

/// Breaks down over an `amount` of 13, and behaves otherwise.
fn trip(batch: &Batch, campaign: u32) {
    let cells = batch.campaign_cells(campaign);
    assert!(!cells.numbers.contains(&13.0), "an unlucky number");
    behave(batch, campaign);
}

/// Uses everything that the host offers, as it is meant to be used: fires the items whose `amount` is 10 or
/// more, counts them in a state, sets a timer for each.
fn behave(batch: &Batch, campaign: u32) {
    let items = batch.campaign_items(campaign);
    let cells = batch.campaign_cells(campaign);
    let columns = cells.tags.len() / items.len().max(1);
    let names = batch.names();
    let indexes = batch.name_indexes();
    let mut fired = Vec::new();
    for (row, item) in items.iter().copied().enumerate() {
        let amount = cells.numbers[row * columns];
        let passed = cells.tags[row * columns] == 4 && amount >= 10.0;
        batch.explain(campaign, item, "amount", passed, &amount.to_string());
        if !passed {
            continue;
        }
        fired.push(item);
        let name = &names[indexes[item as usize] as usize];
        let count = batch.count_events(item, name, None, 1000);
        let history = batch.recent_events(item, name, None, 10, &["amount".to_owned()]);
        let before = batch.get_state(campaign, item).map_or(0, |state| state[0]);
        batch.set_state(campaign, item, &[before + 1]);
        let at = batch.now() + 1_000_000;
        batch.set_timer(
            campaign,
            item,
            "again",
            at,
            &batch.random(item, campaign, 0).to_le_bytes(),
        );
        write(
            Level::Info,
            &format!("{name} {count} {:?}", history.properties.numbers),
        );
    }
    batch.fire(campaign, &fired);
}

/// The least that a plugin with three conditions does, for measurements: fires the items with an `amount`
/// of 10 or more, the plan `pro` and one of two countries.
fn check_conditions(batch: &Batch, campaign: u32) {
    let items = batch.campaign_items(campaign);
    let cells = batch.campaign_cells(campaign);
    let text = |cell: usize| {
        let start = if cell == 0 { 0 } else { cells.ends[cell - 1] };
        &cells.text[start as usize..cells.ends[cell] as usize]
    };
    let mut fired = Vec::with_capacity(items.len());
    for (row, item) in items.iter().enumerate() {
        let (amount, plan, country) = (row * 3, row * 3 + 1, row * 3 + 2);
        if cells.tags[amount] == 4
            && cells.numbers[amount] >= 10.0
            && cells.tags[plan] == 5
            && text(plan) == "pro"
            && cells.tags[country] == 5
            && ["DE", "FR"].contains(&text(country))
        {
            fired.push(*item);
        }
    }
    batch.fire(campaign, &fired);
}
