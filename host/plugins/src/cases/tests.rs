//! Cases of the built-in plugins.

use std::time::Duration;

use nudge_wasm::{Compiler, Engine, EngineConfig, Limits, PastEvent, Plugin, Value};
use serde_json::{Value as Json, json};
use uuid::Uuid;

use super::subject::{Described, Subject};
use super::{Bench, Case, CaseReport, Run, bench, run, time, twice};
use crate::configuration::reads_event;

fn plugin(component: &[u8]) -> Plugin {
    let folder = tempfile::tempdir().unwrap();
    let patient = Duration::from_mins(1);
    let config = EngineConfig {
        cache_dir: folder.path().to_owned(),
        cache_key: [0; 32],
        compiler: Compiler::InProcess,
        limits: Limits {
            trigger_deadline: patient,
            validation_deadline: patient,
            personalization_deadline: patient,
            describe_deadline: patient,
            ..Limits::default()
        },
        pool_slots: 1,
        made_ahead: 0,
    };
    Engine::new(config).unwrap().load(component).unwrap()
}

fn case(input: Json, expect: Option<Json>) -> Case {
    Case {
        name: String::new(),
        schema: None,
        input,
        expect,
    }
}

fn report(plugin: &Plugin, input: Json, expect: Json) -> CaseReport {
    run(plugin, &case(input, Some(expect))).unwrap()
}

#[test]
fn a_delayed_trigger_fires_when_time_has_passed() {
    let plugin = plugin(nudge_plugins::DEFAULT_TRIGGER);
    let input = json!({
        "config": {"trigger": {
            "kind": "event", "eventName": "cart_updated", "occurrence": {"mode": "every"},
            "delaySeconds": 1800, "cancelOn": [{"eventName": "purchased"}],
        }},
        "events": [
            {"name": "cart_updated", "subject": "ana"},
            {"name": "cart_updated", "subject": "ben", "at": "+1m"},
            {"name": "purchased", "subject": "ben", "at": "+2m"},
        ],
    });
    let expect = json!({"fired": [{"subject": "ana", "at": "+30m"}], "timers": []});
    let good = report(&plugin, input.clone(), expect);
    assert_eq!(good.differences, []);
    assert!(good.good());
    assert!(good.cost.calls >= 3 && good.cost.memory_bytes > 0);

    let mut early = input;
    early["until"] = json!("+29m");
    let bad = report(&plugin, early, json!({"fired": [{"subject": "ana"}]}));
    assert_eq!(bad.passed, Some(false));
    assert_eq!(bad.differences[0].pointer, "/fired/0");
    assert_eq!(bad.output["timers"][0]["at"], "2026-01-01T00:30:00.000Z");
}

#[test]
fn sessions_begin_as_on_a_server() {
    let plugin = plugin(nudge_plugins::DEFAULT_TRIGGER);
    let input = |delay: u32| {
        json!({
            "config": {"trigger": {"kind": "session_start", "delaySeconds": delay}},
            "events": [
                {"name": "bought"},
                {"name": "session_started"},
                {"name": "bought", "at": "+30m"},
                // Nobody was active: no session begins, and none goes on.
                {"name": "session_ended", "at": "+59m"},
                {"name": "bought", "at": "+61m"},
                {"name": "session_started", "at": "+61m"},
                {"name": "session_started", "subject": "ben", "at": "+62m"},
            ],
        })
    };
    let at_once = json!({"fired": [{"event": 0}, {"event": 4}, {"event": 6, "subject": "ben"}]});
    assert_eq!(report(&plugin, input(0), at_once).differences, []);
    let later = json!({"fired": [{"at": "+1m"}, {"at": "+62m"}, {"at": "+63m"}]});
    assert_eq!(report(&plugin, input(60), later).differences, []);
}

/// As on a server, where somebody is first seen with what they send first, before a plugin is asked about it.
#[test]
fn somebody_new_is_seen_now_for_the_first_time() {
    let plugin = plugin(nudge_plugins::DEFAULT_TRIGGER);
    let input = |kind: &str| {
        let span = json!({"amount": 1, "unit": "days"});
        let leaf = json!({"kind": kind, "operator": "within_last", "value": span});
        json!({
            "config": {
                "trigger": {"kind": "event", "eventName": "bought", "occurrence": {"mode": "every"}},
                "audience": {"include": {"all": [leaf]}},
            },
            "subjects": {"ben": {"history": [{"name": "bought", "at": "-3d"}]}},
            "events": [
                {"name": "bought", "subject": "ana"},
                {"name": "bought", "subject": "ben"},
                {"name": "bought", "subject": "cy", "at": "+2d"},
                {"name": "bought", "subject": "ana", "at": "+2d"},
            ],
        })
    };
    for kind in ["first_seen", "last_seen"] {
        let expect = json!({"fired": [{"event": 0}, {"event": 2}]});
        assert_eq!(
            report(&plugin, input(kind), expect).differences,
            [],
            "{kind}"
        );
    }
}

#[test]
fn a_refused_configuration_is_an_output() {
    let plugin = plugin(nudge_plugins::DEFAULT_TRIGGER);
    let input = json!({"config": {"trigger": {"kind": "nonsense"}}, "events": []});
    let refused = report(
        &plugin,
        input,
        json!({"problems": [{"pointer": "/trigger/kind"}]}),
    );
    assert_eq!(refused.differences, []);
}

#[test]
fn violations_are_compared_in_order() {
    let plugin = plugin(nudge_plugins::DEFAULT_VALIDATION);
    let config = json!({
        "properties": [
            {"name": "total", "type": "number", "required": true},
            {"name": "currency", "type": "string", "required": true},
        ],
        "additionalProperties": "reject",
    });
    let input = |properties: Json| json!({"config": config, "properties": properties});
    let valid = json!({"total": 5, "currency": "EUR"});
    let good = report(
        &plugin,
        input(valid),
        json!({"valid": true, "violations": []}),
    );
    assert_eq!(good.differences, []);
    let broken = report(
        &plugin,
        input(json!({"total": "5"})),
        json!({"violations": [
            {"code": "type_mismatch", "property": "total"},
            {"code": "missing_required_property", "property": "currency"},
        ]}),
    );
    assert_eq!(broken.differences, []);
}

#[test]
fn values_are_found_by_recipient_and_binding() {
    let plugin = plugin(nudge_plugins::DEFAULT_PERSONALIZATION);
    let input = json!({
        "config": {
            "version": 1, "missingData": "skip",
            "sources": [
                {"id": "user", "label": "", "kind": "user_property"},
                {"id": "data", "label": "", "kind": "send_data"},
            ],
            "bindings": [
                {"id": "name", "label": "", "sourceId": "user", "key": "name", "type": "string", "fallback": "you"},
                {"id": "total", "label": "", "sourceId": "data", "key": "total", "type": "number"},
            ],
        },
        "recipients": [
            {"name": "ana", "properties": {"name": "Ana"}, "data": {"total": 12.5}},
            {"name": "ben", "properties": {"name": "Ben"}, "withheld": ["name"]},
        ],
    });
    let expect = json!({"values": {
        "ana": {"name": {"text": "Ana", "usedFallback": false}, "total": {"value": 12.5}},
        "ben": {"name": {"text": "you", "usedFallback": true}, "total": {"value": null, "issue": "missing"}},
    }});
    let report = report(&plugin, input, expect);
    assert_eq!(report.differences, []);
}

#[test]
fn recipients_have_names_of_their_own() {
    let plugin = plugin(nudge_plugins::DEFAULT_PERSONALIZATION);
    let recipients = json!([{"name": "ana"}, {"name": "ben"}, {"name": "ana"}]);
    let input = json!({"config": {"version": 1}, "recipients": recipients});
    let bad = run(&plugin, &case(input, None)).unwrap_err();
    assert_eq!(bad.pointer, "/input/recipients/2/name");
}

#[test]
fn without_an_expectation_a_case_shows_what_comes_out() {
    let plugin = plugin(nudge_plugins::DEFAULT_VALIDATION);
    let input = json!({"config": {"properties": []}, "properties": {}});
    let shown = run(&plugin, &case(input, None)).unwrap();
    assert_eq!(shown.passed, None);
    assert!(shown.good());
    assert_eq!(shown.output["valid"], true);
    let bad = run(&plugin, &case(json!({"propertys": {}}), None)).unwrap_err();
    assert_eq!(bad.pointer, "/input/propertys");
}

#[test]
fn calls_are_measured_with_batches_of_any_size() {
    let plugin = plugin(nudge_plugins::DEFAULT_VALIDATION);
    let case = case(
        json!({"config": {"properties": []}, "properties": {}}),
        None,
    );
    for items in [1, 100] {
        let Bench::Measured(measured) = bench(&plugin, &case, items, Duration::ZERO).unwrap()
        else {
            panic!("nothing was measured");
        };
        assert_eq!(measured.items, items);
        assert_eq!(measured.calls.len(), 10);
        assert!(measured.calls.iter().all(|call| call.host_calls > 0));
    }
}

/// Runs that end so, one after another: None ran through.
fn runs(failures: &[Option<&'static str>]) -> [Run; 2] {
    let left = std::cell::RefCell::new(failures.iter());
    let (first, second) = twice(|| {
        let failure = *left.borrow_mut().next().unwrap();
        Ok(Run {
            output: json!({"failure": failure}),
            failure,
            ..Run::default()
        })
    })
    .unwrap();
    assert_eq!(left.borrow().len(), 0, "all of them run");
    [first, second]
}

#[test]
fn a_second_run_that_is_late_is_made_once_more() {
    let late = Some("deadline");
    let [first, second] = runs(&[None, late, None]);
    assert_eq!((first.output, first.failure), (second.output, None));

    let [first, second] = runs(&[None, late, late]);
    assert_eq!(
        first.output["detail"],
        "the second run passed its time limit"
    );
    assert_eq!((first.output, first.failure), (second.output, late));

    // Whatever else comes out is another output.
    for failures in [[None, Some("trap")], [late, late], [late, None]] {
        let found = runs(&failures).map(|run| run.failure);
        assert_eq!(found, failures);
    }
}

#[test]
fn a_campaigns_own_time_comes_unasked() {
    let named = |name: &str| [name.to_owned()];
    for name in ["bought", "*", "$scheduled"] {
        assert!(reads_event(&named(name), "$scheduled"), "{name}");
    }
    let bought = ["bought", "*", "$scheduled"].map(|name| reads_event(&named(name), "bought"));
    assert_eq!(bought, [true, true, false]);

    // It is nothing that the person does.
    let mut ana = Subject::new(&Described::default(), time::START, "").unwrap();
    let happens = |ana: &mut Subject, name: &str, minutes: i64| {
        let event = PastEvent {
            id: Uuid::nil(),
            timestamp: time::START.0 + minutes * 60_000_000,
            properties: "{}".into(),
        };
        ana.take(&name.into(), event)
    };
    assert_eq!(happens(&mut ana, "$scheduled", 0), (0, false));
    assert_eq!(happens(&mut ana, "bought", 5), (1, true));
    assert_eq!(happens(&mut ana, "$scheduled", 25), (1, false));
    assert_eq!(ana.count("$scheduled", None, 9), 0);
    assert_eq!(ana.fact("event_count"), Some(Value::Number(1.0)));
    let seen = Value::Text("2026-01-01T00:05:00.000Z".to_owned());
    assert_eq!(ana.fact("last_seen_at"), Some(seen));
    assert_eq!(happens(&mut ana, "bought", 45), (2, true));
}
