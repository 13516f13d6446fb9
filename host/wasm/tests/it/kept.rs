//! Plugins that were compiled once and are kept: they load and decide as they did, whatever becomes of the
//! host.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use nudge_wasm::trigger::{self, TimerChange};
use nudge_wasm::{
    Engine, Kind, PastEvent, Plugin, Reads, Value, digest, personalization, validation,
};
use serde_json::{Map, Value as Json, json};
use uuid::Uuid;

use crate::support::{BINDINGS, NOW, OneOrder, config, item};
use crate::witness::validation_batch;

/// The folders of kept plugins, one a version of the contract.
pub(crate) fn versions() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/guests/kept");
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let versions: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    assert!(!versions.is_empty());
    versions
}

/// Every file below a folder, by its name there.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            let below = self::files(&path).into_iter();
            files.extend(below.map(|(below, bytes)| (format!("{name}/{below}"), bytes)));
        } else {
            files.insert(name, fs::read(path).unwrap());
        }
    }
    files
}

/// The components of a version, by name: those of languages with an interpreter, of which each component has the
/// same one, are compressed together.
fn components(version: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut components = files(version);
    let archive = components.remove("interpreted.zst");
    components.retain(|name, _| Path::new(name).extension().is_some_and(|it| it == "wasm"));
    if let Some(archive) = archive {
        let bytes = zstd::decode_all(&*archive).unwrap();
        let mut rest = &*bytes;
        for line in fs::read_to_string(version.join("interpreted.txt"))
            .unwrap()
            .lines()
        {
            let (size, name) = line.split_once("  ").unwrap();
            let component = rest.split_off(..size.parse().unwrap()).unwrap();
            components.insert(name.to_owned(), component.to_vec());
        }
        assert!(rest.is_empty());
    }
    components
}

#[test]
fn nothing_that_is_kept_has_changed() {
    for version in versions() {
        let sums = fs::read_to_string(version.join("SHA256SUMS")).unwrap();
        let listed: Vec<&str> = sums.lines().collect();
        let mut kept = files(&version);
        kept.retain(|name, _| !["README.md", "SHA256SUMS"].contains(&&**name));
        let found: Vec<String> = kept
            .iter()
            .map(|(name, bytes)| format!("{}  {name}", digest(bytes)))
            .collect();
        assert_eq!(found, listed, "{}", version.display());
        assert!(components(&version).len() >= 7, "{}", version.display());
    }
}

#[test]
fn the_contract_of_a_kept_version_is_written_as_it_was() {
    let now = files(Path::new("../../wit"));
    let types = String::from_utf8(now["types.wit"].clone()).unwrap();
    let (_, version) = types.split_once("\npackage nudge:plugin@").unwrap();
    let (version, _) = version.split_once(';').unwrap();
    let kept = versions()
        .into_iter()
        .find(|folder| folder.ends_with(version));
    // A version that is being made is kept when it is released.
    if let Some(kept) = kept {
        assert_eq!(
            now,
            files(&kept.join("wit")),
            "{version} is released: begin another one"
        );
    }
}

#[test]
fn kept_plugins_decide_as_they_did() {
    for version in versions() {
        let outcomes = fs::read_to_string(version.join("outcomes.json")).unwrap();
        let outcomes: Json = serde_json::from_str(&outcomes).unwrap();
        assert_eq!(decided(&version), outcomes, "{}", version.display());
    }
}

#[test]
#[ignore = "writes the outcomes of a version whose plugins are kept for the first time"]
fn keep_outcomes() {
    for version in versions() {
        let file = version.join("outcomes.json");
        if !file.exists() {
            let text = serde_json::to_string_pretty(&decided(&version)).unwrap();
            fs::write(file, text + "\n").unwrap();
        }
    }
}

/// What all plugins of a version say and decide. What they are compiled to stays from run to run: interpreters are
/// large.
fn decided(version: &Path) -> Json {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kept-plugins");
    let engine = Engine::new(config(&folder)).unwrap();
    let mut outcomes = Map::new();
    for (name, bytes) in components(version) {
        let plugin = engine.load(&bytes).unwrap();
        let outcome = match plugin.kind() {
            Kind::Trigger => evaluate(&plugin),
            Kind::Validation => validate(&plugin),
            Kind::Personalization => resolve(&plugin),
        };
        let said = plugin.description();
        let kept = json!({
            "name": said.name,
            "version": said.version,
            "kind": plugin.kind().as_str(),
            "imports": plugin.imports(),
            "outcome": outcome,
        });
        outcomes.insert(name, kept);
    }
    Json::Object(outcomes)
}

/// Whether a plugin is one that `nudge plugin new` makes.
fn is_template(plugin: &Plugin) -> bool {
    plugin.description().name.starts_with("kept-")
}

fn checked(plugin: &Plugin, config: &str) -> Reads {
    let problems = plugin.check_config("{]").unwrap();
    assert!(problems.is_err() || plugin.description().name == "curious");
    plugin.check_config(config).unwrap().unwrap()
}

/// Orders of 10 or more, an hour later, unless something is refunded; only the first of each subject.
const TRIGGER: &str = r#"{"trigger":{
    "kind": "event", "eventName": "order", "delaySeconds": 3600, "occurrence": {"mode": "first"},
    "filters": {"all": [{"property": "amount", "type": "number", "operator": "gte", "value": 10}]},
    "cancelOn": [{"eventName": "refund"}]
}}"#;

/// The same for a template: not twice within an hour.
const TEMPLATE: &str = r#"{"minimum": 10, "quietMinutes": 60}"#;

fn evaluate(plugin: &Plugin) -> Json {
    let (config, event, total) = if is_template(plugin) {
        (TEMPLATE, "purchase_completed", "total")
    } else {
        (TRIGGER, "order", "amount")
    };
    let reads = checked(plugin, config);
    let item = |subject, name: &str, properties: &str| {
        let name = if name == "order" { event } else { name };
        item(subject, name, &properties.replace("amount", total))
    };
    // What templates keep of a subject is JSON, as what they keep with a timer.
    let facts: Box<dyn trigger::Facts> = if is_template(plugin) {
        Box::new(trigger::Nobody)
    } else {
        Box::new(OneOrder)
    };
    let due = trigger::Item {
        timer: Some(trigger::Timer {
            key: "unknown".to_owned(),
            payload: if is_template(plugin) {
                b"[1]".to_vec()
            } else {
                vec![1, 2, 3]
            },
        }),
        ..item(2, "order", r#"{"amount":30}"#)
    };
    let batch = trigger::Batch {
        now: NOW,
        items: vec![
            item(0, "order", r#"{"amount":10,"note":"a\"é"}"#),
            item(1, "order", r#"{"amount":9.5}"#),
            item(1, "order", r#"{"amount":"12"}"#),
            item(3, "order", r#"{"amount":1e3}"#),
            item(3, "refund", "{}"),
            due,
        ],
        campaigns: vec![trigger::Campaign {
            id: Uuid::from_u128(9),
            config: config.into(),
            properties: reads.properties.clone().into(),
            items: vec![0, 1, 2, 3, 4, 5],
        }],
        explaining: true,
        seed: 5,
    };
    let trigger::TriggerOutcome {
        fired,
        states,
        timers,
        cancelled_at: _,
        explanations,
        call,
    } = plugin.evaluate(batch, facts).unwrap();
    let fired: Vec<_> = fired
        .iter()
        .map(|it| json!([it.campaign, it.item]))
        .collect();
    let states: Vec<_> = states
        .iter()
        .map(|it| json!([it.campaign, it.subject, it.state]))
        .collect();
    let explanations: Vec<_> = explanations
        .iter()
        .map(|it| json!([it.campaign, it.item, it.check, it.passed, it.detail]))
        .collect();
    let logs: Vec<_> = call
        .logs
        .iter()
        .map(|it| json!([it.level.as_str(), it.message]))
        .collect();
    json!({
        "reads": reads_json(&reads),
        "fired": fired,
        "states": states,
        "timers": timers.iter().map(timer).collect::<Vec<_>>(),
        "explanations": explanations,
        "logs": logs,
    })
}

fn timer(change: &TimerChange) -> Json {
    match change {
        TimerChange::Set {
            campaign,
            item,
            key,
            at,
            payload,
        } => json!(["set", campaign, item, key, at, payload]),
        TimerChange::Cancel {
            campaign,
            subject,
            key,
        } => json!(["cancel", campaign, subject, key]),
        TimerChange::CancelAll { campaign, subject } => json!(["cancel all", campaign, subject]),
    }
}

fn reads_json(reads: &Reads) -> Json {
    json!([
        reads.event_names,
        reads.properties,
        reads.subject_properties
    ])
}

fn validate(plugin: &Plugin) -> Json {
    let of_template = r#"{"smaller": "amount", "larger": "limit"}"#;
    let config = r#"{
        "properties": [
            {"name": "amount", "type": "number", "required": true, "minimum": 1},
            {"name": "plan", "type": "string", "enumValues": ["free", "pro"]}
        ],
        "additionalProperties": "reject"
    }"#;
    let config = if is_template(plugin) {
        of_template
    } else {
        config
    };
    let reads = checked(plugin, config);
    let properties: Vec<&str> = reads.properties.iter().map(String::as_str).collect();
    let mut events = vec![
        r#"{"amount":1,"plan":"pro"}"#,
        r#"{"amount":"1","plan":"gold","extra":[1]}"#,
        r#"{"amount":0.5}"#,
        "{}",
    ];
    if is_template(plugin) {
        events.push(r#"{"amount":2,"limit":1.5}"#);
    }
    let outcome = plugin
        .validate(validation_batch(config, &properties, &events))
        .unwrap();
    let violation =
        |it: &validation::Violation| json!([it.item, it.code, it.property, it.expected, it.actual]);
    json!({
        "reads": reads_json(&reads),
        "violations": outcome.violations.iter().map(violation).collect::<Vec<_>>(),
    })
}

fn resolve(plugin: &Plugin) -> Json {
    let of_template = r#"{"bindings": [{"id": "hi", "fallback": "Hello"}, {"id": "title"}]}"#;
    let config = if is_template(plugin) {
        of_template
    } else {
        BINDINGS
    };
    let reads = checked(plugin, config);
    let recipient = |number, data: &str, trigger| personalization::Item {
        recipient: Uuid::from_u128(number),
        data: data.into(),
        trigger,
    };
    let batch = personalization::Batch {
        now: NOW,
        seed: 1,
        items: vec![
            recipient(1, r#"{"code":"X\"Y"}"#, Some(past(r#"{"total":7}"#))),
            recipient(2, "{}", None),
        ],
        messages: vec![personalization::Message {
            config: config.into(),
            properties: reads.properties.clone().into(),
            subject_properties: reads.subject_properties.clone().into(),
            items: vec![0, 1],
        }],
    };
    let outcome = plugin.resolve(batch, Box::new(Acquainted)).unwrap();
    let resolution = |it: &personalization::Resolution| {
        let value = it.value.as_ref().map(|value| format!("{value:?}"));
        json!([
            it.item,
            it.binding,
            value,
            it.text,
            it.used_fallback,
            it.issue,
            it.detail,
            it.more
        ])
    };
    json!({
        "reads": reads_json(&reads),
        "resolutions": outcome.resolutions.iter().map(resolution).collect::<Vec<_>>(),
    })
}

fn past(properties: &str) -> PastEvent {
    PastEvent {
        id: Uuid::from_u128(3),
        timestamp: NOW - 1,
        properties: properties.into(),
    }
}

/// Facts with a name for the first recipient, and one event of the past.
struct Acquainted;

impl personalization::Facts for Acquainted {
    fn subject_property(&mut self, item: u32, key: &str) -> Option<Value> {
        (item == 0 && key == "name").then(|| Value::Text("Ada".to_owned()))
    }

    fn subject_fact(&mut self, _: u32, _: &str) -> Option<Value> {
        None
    }

    fn recent_events(
        &mut self,
        item: u32,
        _: &str,
        _: Option<i64>,
        _: u32,
    ) -> Result<Vec<PastEvent>, nudge_wasm::FactsUnavailable> {
        Ok(if item == 0 {
            vec![past(r#"{"amount":2.5}"#)]
        } else {
            Vec::new()
        })
    }
}
