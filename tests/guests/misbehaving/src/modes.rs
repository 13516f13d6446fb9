//! The ways to misbehave.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a plugin that breaks down is what this is"
)]

use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::bindings::trigger::exports::nudge::plugin::trigger_plugin::Refusal;
use crate::bindings::trigger::nudge::plugin::log::{Level, write};
use crate::bindings::trigger::nudge::plugin::trigger_host::Batch;

/// All modes. Some take a number: `state:4096` stores 4,096 bytes.
pub(crate) const NAMES: [&str; 42] = [
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
    "breed",
    "calls",
    "count",
    "deep_path",
    "due",
    "explain",
    "far",
    "fire",
    "key",
    "line",
    "lines",
    "control_characters",
    "nul_key",
    "nul_name",
    "outside",
    "payload",
    "read",
    "refuse_at_length",
    "slow_poison",
    "state",
    "states",
    "timers",
];

/// Does what a mode says.
pub(crate) fn run(mode: &str, batch: &Batch, campaign: u32) -> Result<(), Refusal> {
    let (mode, number) = mode.split_once(':').unwrap_or((mode, "0"));
    let size: usize = number.parse().unwrap_or(0);
    match mode {
        "loop" => run_forever(),
        "memory" => eat_memory(),
        "trap" => panic!("on request"),
        "recursion" => {
            black_box(recurse(1));
        }
        "huge_output" => batch.fire(campaign, &vec![0; 100_000]),
        "huge_explanation" => batch.explain(campaign, 0, "size", true, &"x".repeat(1 << 20)),
        "explain" => batch.explain(campaign, 0, "", true, &"x".repeat(size)),
        "fire" => batch.fire(campaign, &vec![0; size]),
        "log_flood" => (0..100).for_each(|_| write(Level::Warn, &"x".repeat(1000))),
        "line" => write(Level::Info, &"x".repeat(size)),
        "lines" => (0..size).for_each(|_| write(Level::Info, "")),
        "control_characters" => {
            write(
                Level::Error,
                "one\r\ntwo\u{1b}[2J\u{7}three\u{0}\u{85}\tfour",
            );
        }
        "host_call_flood" => loop {
            black_box(batch.now());
        },
        // The host has answered two calls before this.
        "calls" => {
            for _ in 0..size {
                black_box(batch.now());
            }
        }
        "count" => count(batch, campaign),
        "read" => drop(batch.campaign_cells(campaign)),
        "bad_index" => drop(batch.campaign_cells(99)),
        "foreign_item" => batch.fire(campaign, &[batch.item_count() - 1]),
        "far" => reach(number, batch, batch.item_count(), batch.campaign_count()),
        "outside" => reach(number, batch, u32::MAX, u32::MAX),
        "many_paths" => {
            drop(batch.recent_events(0, "order", None, 1, &vec!["path".to_owned(); 257]));
        }
        "deep_path" => drop(batch.recent_events(0, "order", None, 1, &[".".repeat(size)])),
        "nul_name" => {
            assert_eq!(batch.count_events(0, "or\0der", None, 1000), 0);
            let history = batch.recent_events(0, "or\0der", None, 200, &[]);
            assert!(history.ids.is_empty());
        }
        "refuse" => return Err(refusal("on_request", "It was asked to refuse.")),
        "refuse_at_length" => return Err(refusal(&"c".repeat(size), &"m\n".repeat(size / 2))),
        "nan" => {
            let nan = black_box(0.0_f64) / black_box(0.0);
            batch.set_state(campaign, 0, &nan.to_bits().to_le_bytes());
        }
        "poison" => trip(batch, campaign, || panic!("an unlucky number")),
        "slow_poison" => trip(batch, campaign, || run_forever()),
        "conditions" => check_conditions(batch, campaign),
        _ if write_state(mode, size, batch, campaign) => {}
        _ if set_timers(mode, number, batch, campaign) => {}
        _ => behave(batch, campaign),
    }
    Ok(())
}

fn refusal(code: &str, message: &str) -> Refusal {
    Refusal {
        code: code.to_owned(),
        message: message.to_owned(),
        more: Vec::new(),
    }
}

/// What there is to do wrong with states; false where the mode is about something else.
fn write_state(mode: &str, size: usize, batch: &Batch, campaign: u32) -> bool {
    match mode {
        "state_flood" => batch.set_state(campaign, 0, &[0; 5000]),
        "state" => batch.set_state(campaign, 0, &vec![7; size]),
        "states" => {
            for item in batch.campaign_items(campaign) {
                batch.set_state(campaign, item, &vec![7; size]);
            }
        }
        _ => return false,
    }
    true
}

/// What there is to do wrong with timers; false where the mode is about something else.
fn set_timers(mode: &str, number: &str, batch: &Batch, campaign: u32) -> bool {
    let size: usize = number.parse().unwrap_or(0);
    let now = batch.now();
    let set = |key: &str, at, payload: &[u8]| batch.set_timer(campaign, 0, key, at, payload);
    match mode {
        "timer_flood" => (0..65).for_each(|number| set(&number.to_string(), now + 1, &[])),
        "timers" => (0..size).for_each(|number| set(&number.to_string(), now + 1, &[])),
        "breed" => {
            let before = batch.get_state(campaign, 0).map_or(0, |state| state.len());
            for number in before..before + size {
                set(&number.to_string(), now + 3_600_000_000, &[]);
            }
            batch.set_state(campaign, 0, &vec![0; before + size]);
        }
        "timer_late" => set("late", i64::MAX, &[]),
        "due" => set("due", number.parse().unwrap_or(now), &[]),
        "timer_key" => set(&"k".repeat(129), now, &[]),
        "key" => set(&"k".repeat(size), now + 1, &[]),
        "nul_key" => set("k\0", now + 1, &[]),
        "payload" => set("payload", now + 1, &vec![0; size]),
        _ => return false,
    }
    true
}

/// Asks for an item or campaign that the batch does not have.
fn reach(function: &str, batch: &Batch, item: u32, campaign: u32) {
    match function {
        "campaign_id" => drop(batch.campaign_id(campaign)),
        "campaign_config" => drop(batch.campaign_config(campaign)),
        "campaign_items" => drop(batch.campaign_items(campaign)),
        "campaign_cells" => drop(batch.campaign_cells(campaign)),
        "event_id" => drop(batch.event_id(item)),
        "event_json" => drop(batch.event_json(item)),
        "timer_key" => drop(batch.timer_key(item)),
        "timer_payload" => drop(batch.timer_payload(item)),
        "subject_property" => drop(batch.subject_property(item, "name")),
        "subject_fact" => drop(batch.subject_fact(item, "country")),
        "count_events" => {
            black_box(batch.count_events(item, "order", None, 1));
        }
        "recent_events" => drop(batch.recent_events(item, "order", None, 1, &[])),
        "random" => {
            black_box(batch.random(item, 0, 0));
        }
        "random_of_campaign" => {
            black_box(batch.random(0, campaign, 0));
        }
        "get_state" => drop(batch.get_state(0, item)),
        "get_state_of_campaign" => drop(batch.get_state(campaign, 0)),
        "set_state" => batch.set_state(0, item, &[]),
        "set_state_of_campaign" => batch.set_state(campaign, 0, &[]),
        "clear_state" => batch.clear_state(0, item),
        "set_timer" => batch.set_timer(0, item, "key", 0, &[]),
        "cancel_timer" => batch.cancel_timer(0, item, "key"),
        "cancel_timers" => batch.cancel_timers(0, item),
        "fire" => batch.fire(0, &[0, item]),
        "fire_campaign" => batch.fire(campaign, &[]),
        "explain" => batch.explain(0, item, "", true, ""),
        "explain_campaign" => batch.explain(campaign, 0, "", true, ""),
        _ => {}
    }
}

/// Counts the calls of this instance, of which there must be no second one.
fn count(batch: &Batch, campaign: u32) {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let before = CALLS.fetch_add(1, Ordering::Relaxed);
    assert_eq!(before, 0, "somebody was here");
    batch.set_state(campaign, 0, &before.to_le_bytes());
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

/// Stumbles over an `amount` of 13, and behaves otherwise.
fn trip(batch: &Batch, campaign: u32, stumble: impl FnOnce()) {
    let cells = batch.campaign_cells(campaign);
    if cells.numbers.contains(&13.0) {
        stumble();
    }
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
