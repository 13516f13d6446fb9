//! What plugins ask for and give: at each limit, one past it, and beyond all reason.

use std::collections::BTreeSet;

use nudge_wasm::trigger::TimerChange;
use nudge_wasm::{Failure, Plugin, personalization};
use uuid::Uuid;

use crate::support::{NOW, NoPerson, OneOrder, batch, engine, misbehaving};
use crate::witness::{End, Witness, validation_batch};

const OUTPUT: usize = 256 << 10;

#[test]
fn trigger_plugins_keep_to_every_limit() {
    let (engine, _folder) = engine();
    let plugin = engine.load(test_guests::MISBEHAVING).unwrap();
    let witness = Witness::new(&engine);
    let past_end = NOW + 90 * 24 * 60 * 60 * 1_000_000;
    let cases = [
        ("fire:32768".to_owned(), End::Fine),
        ("fire:32769".to_owned(), End::OutputTooLarge),
        // A MiB of numbers, which is less than the host copies, and then more.
        ("fire:262144".to_owned(), End::OutputTooLarge),
        ("fire:2000000".to_owned(), End::OutputTooLarge),
        // It is cut, unless it is more than the host copies.
        (format!("explain:{OUTPUT}"), End::Fine),
        ("explain:30000000".to_owned(), End::OutputTooLarge),
        ("state:4096".to_owned(), End::Fine),
        (
            "state:4097".to_owned(),
            End::Trap("a state has at most 4096 bytes"),
        ),
        ("states:4096".to_owned(), End::Fine),
        (
            "states:4097".to_owned(),
            End::Trap("a state has at most 4096 bytes"),
        ),
        ("timers:64".to_owned(), End::Fine),
        (
            "timers:65".to_owned(),
            End::Trap("a call sets at most 64 timers"),
        ),
        ("key:0".to_owned(), End::Fine),
        ("key:128".to_owned(), End::Fine),
        (
            "key:129".to_owned(),
            End::Trap("a timer's key has at most 128 bytes"),
        ),
        ("nul_key".to_owned(), End::Trap("a timer's key has no NUL")),
        ("payload:1024".to_owned(), End::Fine),
        (
            "payload:1025".to_owned(),
            End::Trap("a timer's payload has at most 1024 bytes"),
        ),
        (format!("due:{past_end}"), End::Fine),
        (
            format!("due:{}", past_end + 1),
            End::Trap("at most 90 days ahead"),
        ),
        (
            format!("due:{}", i64::MAX),
            End::Trap("at most 90 days ahead"),
        ),
        (format!("due:{}", i64::MIN), End::Fine),
        ("due:0".to_owned(), End::Fine),
        // Two calls lead to the mode; 1,000 are allowed, and 20 for each of four items and a campaign.
        ("calls:1098".to_owned(), End::Fine),
        (
            "calls:1099".to_owned(),
            End::Trap("more than 1100 host calls"),
        ),
        ("lines:1098".to_owned(), End::Fine),
        (
            "lines:1099".to_owned(),
            End::Trap("more than 1100 host calls"),
        ),
        ("line:2000000".to_owned(), End::Fine),
        ("line:20000000".to_owned(), End::OutputTooLarge),
        ("control_characters".to_owned(), End::Fine),
        ("nul_name".to_owned(), End::Fine),
        ("deep_path:1000000".to_owned(), End::Fine),
        (format!("refuse_at_length:{OUTPUT}"), End::OutputTooLarge),
    ];
    for (mode, end) in cases {
        end.assert(&mode, &witness.evaluate(&plugin, &mode));
    }
}

/// A plugin has one handle, of its batch, and numbers within it. Other numbers lead nowhere.
#[test]
fn numbers_lead_nowhere_but_into_the_batch() {
    let (plugin, _folder) = misbehaving();
    let functions = [
        "campaign_id",
        "campaign_config",
        "campaign_items",
        "campaign_cells",
        "event_id",
        "event_json",
        "timer_key",
        "timer_payload",
        "subject_property",
        "subject_fact",
        "count_events",
        "recent_events",
        "random",
        "random_of_campaign",
        "get_state",
        "get_state_of_campaign",
        "set_state",
        "set_state_of_campaign",
        "clear_state",
        "set_timer",
        "cancel_timer",
        "cancel_timers",
        "fire",
        "fire_campaign",
        "explain",
        "explain_campaign",
    ];
    for function in functions {
        let about_campaign = function.contains("campaign");
        for (mode, number) in [
            ("far", if about_campaign { 1 } else { 4 }),
            ("outside", u32::MAX),
        ] {
            let what = format!("{mode}:{function}");
            let failed = plugin
                .evaluate(batch(&what), Box::new(OneOrder))
                .expect_err(&what);
            let thing = if about_campaign { "campaign" } else { "item" };
            let reason = format!("there is no {thing} {number}");
            assert_eq!(failed.failure, Failure::Trap(reason), "{what}");
        }
    }
}

#[test]
fn timers_of_the_past_are_due_at_once() {
    let (plugin, _folder) = misbehaving();
    for (at, due) in [
        (i64::MIN, NOW),
        (0, NOW),
        (NOW - 1, NOW),
        (NOW, NOW),
        (NOW + 1, NOW + 1),
    ] {
        let outcome = plugin
            .evaluate(batch(&format!("due:{at}")), Box::new(OneOrder))
            .unwrap();
        let [TimerChange::Set { at: found, .. }] = outcome.timers[..] else {
            panic!("{:?}", outcome.timers)
        };
        assert_eq!(found, due);
    }
}

#[test]
fn a_log_has_lines_and_no_control_characters() {
    let (plugin, _folder) = misbehaving();
    let log = |mode: &str| -> Vec<String> {
        let outcome = plugin.evaluate(batch(mode), Box::new(OneOrder)).unwrap();
        outcome
            .call
            .logs
            .into_iter()
            .map(|line| line.message)
            .collect()
    };
    let lines = ["one", "two\u{fffd}[2J\u{fffd}three\u{fffd}\u{fffd}\tfour"];
    assert_eq!(log("control_characters"), lines);
    let cut = "the rest of this call's log was cut";
    assert_eq!(log("lines:1000"), [""; 1000]);
    assert_eq!(log("line:8191"), ["x".repeat(8191)]);
    assert_eq!(log("line:8192"), ["x".repeat(8191), cut.to_owned()]);
    let cut_line = log("line:2000000");
    assert_eq!(cut_line, ["x".repeat(8191), cut.to_owned()]);
    assert!(cut_line.iter().all(|line| line.capacity() < 20_000));
}

#[test]
fn a_refusal_is_short() {
    let (plugin, _folder) = misbehaving();
    let failed = plugin
        .evaluate(batch("refuse_at_length:65"), Box::new(OneOrder))
        .unwrap_err();
    let code = "c".repeat(64) + "…";
    let message = "m\u{fffd}".repeat(32);
    assert_eq!(failed.failure, Failure::Refused { code, message });
    let failed = plugin
        .evaluate(batch("refuse_at_length:2000"), Box::new(OneOrder))
        .unwrap_err();
    let Failure::Refused { message, .. } = failed.failure else {
        panic!("{failed}")
    };
    assert_eq!(message.chars().count(), 1001);
}

#[test]
fn what_a_configuration_comes_to_is_limited() {
    let (engine, _folder) = engine();
    let plugin = engine.load(test_guests::MISBEHAVING).unwrap();
    let witness = Witness::new(&engine);
    let check = |mode: &str| {
        let config = format!(r#"{{"mode":"{mode}"}}"#);
        witness.watch(mode, || {
            plugin
                .check_config(&config)
                .map_err(|failed| failed.failure)
        })
    };
    End::Fine.assert("a list", &check("many_problems:16384"));
    End::OutputTooLarge.assert("a longer list", &check("many_problems:16385"));
    End::OutputTooLarge.assert("a long path", &check("deep_reads:300000"));

    // A path that was accepted is read with every batch.
    let reads = check("deep_reads:262143").unwrap().unwrap();
    let mut deep = batch("fine");
    deep.campaigns[0].properties = reads.properties.clone().into();
    plugin.evaluate(deep, Box::new(OneOrder)).unwrap();
    let mut two = batch("fine");
    two.campaigns[0].properties = reads.properties.into();
    two.campaigns.push(two.campaigns[0].clone());
    let outcome = witness.watch("two deep", || plugin.evaluate(two, Box::new(OneOrder)));
    assert_eq!(outcome.unwrap().fired, []);
}

/// As many campaigns as an app may have, each of which reads other names: what the host prepares for them is
/// out of the deadline's reach.
#[test]
fn thousands_of_names_are_read_within_the_deadline() {
    let (plugin, _folder) = misbehaving();
    let mut wide = batch("read");
    let campaign = wide.campaigns.remove(0);
    for number in 0..1000 {
        let names = (0..256).map(|name| format!("p{}", name * 1000 + number));
        wide.campaigns.push(nudge_wasm::trigger::Campaign {
            id: Uuid::from_u128(number),
            properties: names.collect(),
            ..campaign.clone()
        });
    }
    let outcome = plugin.evaluate(wide, Box::new(OneOrder)).unwrap();
    assert_eq!(outcome.fired, []);
}

#[test]
fn validation_plugins_keep_to_every_limit() {
    let (engine, _folder) = engine();
    let plugin = engine.load(test_guests::MISBEHAVING_VALIDATION).unwrap();
    let witness = Witness::new(&engine);
    let cases = [
        ("", End::Fine),
        ("report:65536", End::OutputTooLarge),
        ("report:200000", End::OutputTooLarge),
        ("report:13000", End::Fine),
        ("flood", End::Trap("more than 1060 host calls")),
        ("long:131070", End::Fine),
        ("long:131071", End::OutputTooLarge),
        ("far_item", End::Trap("there is no item 2")),
        ("outside_item", End::Trap("there is no item 4294967295")),
        ("far_definition", End::Trap("there is no definition 1")),
        (
            "outside_definition",
            End::Trap("there is no definition 4294967295"),
        ),
        ("nul", End::Fine),
    ];
    for (mode, end) in cases {
        let event = format!(r#"{{"mode":"{mode}"}}"#);
        let batch = validation_batch("{}", &[], &["{}", &event]);
        let result = witness.watch(mode, || {
            plugin.validate(batch).map_err(|failed| failed.failure)
        });
        end.assert(mode, &result);
        if let Ok(outcome) = result {
            let lengths: BTreeSet<usize> = outcome
                .violations
                .iter()
                .map(|it| it.actual.chars().count())
                .collect();
            assert!(
                lengths.iter().all(|length| *length <= 200),
                "{mode}: {lengths:?}"
            );
            assert!(
                outcome
                    .violations
                    .iter()
                    .all(|violation| violation.item == 1),
                "{mode}"
            );
        }
    }
}

#[test]
fn personalization_plugins_keep_to_every_limit() {
    let (engine, _folder) = engine();
    let plugin = engine
        .load(test_guests::MISBEHAVING_PERSONALIZATION)
        .unwrap();
    let witness = Witness::new(&engine);
    let no_json = End::Trap("a value is no JSON");
    let cases = [
        ("", End::Fine),
        ("number:1.5", End::Fine),
        ("number:NaN", no_json),
        ("number:inf", no_json),
        ("number:-inf", no_json),
        (r"json:[1,{}]", End::Fine),
        ("json:", no_json),
        ("json:[", no_json),
        (r"json:}{", no_json),
        (r"json:[1],[2]", no_json),
        ("deep_json:127", End::Fine),
        ("deep_json:128", no_json),
        ("deep_json:100000", no_json),
        ("resolutions:10000", End::Fine),
        ("resolutions:20000", End::OutputTooLarge),
        ("more:16383", End::Fine),
        ("more:16384", End::OutputTooLarge),
        ("more_and_more:1000", End::OutputTooLarge),
        ("more_and_more:0", End::Trap("more than 1040 host calls")),
        ("far_item", End::Trap("there is no item 1")),
        ("outside_item", End::Trap("there is no item 4294967295")),
        ("far_message", End::Trap("there is no message 1")),
        (
            "outside_message",
            End::Trap("there is no message 4294967295"),
        ),
        ("many_paths", End::Trap("at most 256 properties")),
        ("deep_path:1000000", End::Fine),
        ("nul_name", End::Fine),
    ];
    for (mode, end) in cases {
        let result = witness.watch(mode, || resolve(&plugin, mode));
        end.assert(mode, &result);
    }
}

fn resolve(
    plugin: &Plugin,
    mode: &str,
) -> Result<personalization::PersonalizationOutcome, Failure> {
    let batch = personalization::Batch {
        now: NOW,
        seed: 1,
        items: vec![personalization::Item {
            recipient: Uuid::from_u128(1),
            data: "{}".into(),
            trigger: None,
        }],
        messages: vec![personalization::Message {
            config: mode.into(),
            properties: [].into(),
            subject_properties: [].into(),
            items: vec![0],
        }],
    };
    let resolved = plugin.resolve(batch, Box::new(NoPerson));
    resolved.map_err(|failed| failed.failure)
}
