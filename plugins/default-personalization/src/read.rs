//! From JSON to compiled sources and bindings.

use std::time::Duration;

use nudge_guest::config::{self, Node, Place, Problems};
use nudge_guest::filter::Filter;
use nudge_guest::{Instant, Problem, Value};

use crate::config::{Binding, Config, Kind, Source, Type};
use crate::read_format;

const VERSION: f64 = 1.0;
const MAX_SOURCES: usize = 16;
const MAX_BINDINGS: usize = 32;
const MAX_ID: usize = 64;
const MAX_LABEL: usize = 200;
const MAX_KEY: usize = 400;
const MAX_EVENT_NAME: usize = 200;
const MAX_FALLBACK: usize = 8_192;

const TYPES: [(&str, Type); 4] = [
    ("string", Type::Text),
    ("number", Type::Number),
    ("boolean", Type::Boolean),
    ("date", Type::Date),
];

#[derive(Clone, Copy)]
enum SourceKind {
    UserProperty,
    SendData,
    TriggerEvent,
    LatestEvent,
}

const KINDS: [(&str, SourceKind); 4] = [
    ("user_property", SourceKind::UserProperty),
    ("send_data", SourceKind::SendData),
    ("trigger_event", SourceKind::TriggerEvent),
    ("latest_event", SourceKind::LatestEvent),
];

/// What becomes of a delivery without a value is for the host to do; here the name only must be known.
const MISSING_DATA: [(&str, ()); 2] = [("skip", ()), ("fail", ())];

impl config::Config for Config {
    fn parse(text: &str) -> Result<Self, Vec<Problem>> {
        let document = Node::parse(text)?;
        let mut problems = Problems::new();
        let sources = sources(&Place::root(&document), &mut problems);
        problems.unless_any(Self { sources })
    }
}

/// What could be read; it counts only if there are no problems.
fn sources(root: &Place<'_>, problems: &mut Problems) -> Vec<Source> {
    let mut sources: Vec<Source> = Vec::new();
    if !root.object(problems) {
        return sources;
    }
    root.only(
        &["version", "missingData", "sources", "bindings", "plugin"],
        problems,
    );
    version(root, problems);
    if let Some(place) = root.find("missingData") {
        place.choice("unknown_value", &MISSING_DATA, problems);
    }
    if let Some(list) = root.find("sources") {
        for place in list.list(0..=MAX_SOURCES, problems).unwrap_or_default() {
            let Some(source) = source(&place, problems) else {
                continue;
            };
            if sources.iter().any(|known| known.id == source.id) {
                duplicate(&place, &source.id, problems);
            }
            sources.push(source);
        }
    }
    if let Some(list) = root.find("bindings") {
        let mut ids = Vec::new();
        for place in list.list(0..=MAX_BINDINGS, problems).unwrap_or_default() {
            let Some(binding) = binding(&place, problems) else {
                continue;
            };
            if ids.contains(&binding.id) {
                duplicate(&place, &binding.id, problems);
            }
            ids.push(binding.id.clone());
            attach(&place, binding, &mut sources, problems);
        }
    }
    sources
}

fn version(root: &Place<'_>, problems: &mut Problems) {
    let Some(place) = root.require("version", problems) else {
        return;
    };
    if place
        .number(problems)
        .is_some_and(|version| version != VERSION)
    {
        problems.add(&place, "unknown_version", "only version 1 is known");
    }
}

fn duplicate(place: &Place<'_>, id: &str, problems: &mut Problems) {
    if let Some(place) = place.find("id") {
        problems.add(
            &place,
            "duplicate_id",
            format_args!("`{id}` is there twice"),
        );
    }
}

/// Gives a binding to the source that it names.
fn attach(place: &Place<'_>, binding: Binding, sources: &mut [Source], problems: &mut Problems) {
    let Some(source_place) = place.require("sourceId", problems) else {
        return;
    };
    let Some(id) = source_place.text(problems) else {
        return;
    };
    match sources.iter_mut().find(|source| source.id == id) {
        Some(source) => source.bindings.push(binding),
        None => problems.add(
            &source_place,
            "unknown_source",
            format_args!("there is no source `{id}`"),
        ),
    }
}

fn source(place: &Place<'_>, problems: &mut Problems) -> Option<Source> {
    if !place.object(problems) {
        return None;
    }
    let id = id(place, problems);
    let kind = place
        .require("kind", problems)?
        .choice("unknown_kind", &KINDS, problems)?;
    let kind = match kind {
        SourceKind::UserProperty => Kind::UserProperty,
        SourceKind::SendData => Kind::SendData,
        SourceKind::TriggerEvent => Kind::TriggerEvent,
        SourceKind::LatestEvent => latest_event(place, problems)?,
    };
    let keys: &[&str] = match kind {
        Kind::LatestEvent { .. } => &[
            "id",
            "label",
            "kind",
            "eventName",
            "lookbackDays",
            "filters",
        ],
        _ => &["id", "label", "kind"],
    };
    place.only(keys, problems);
    Some(Source {
        id: id?,
        kind,
        bindings: Vec::new(),
    })
}

fn latest_event(place: &Place<'_>, problems: &mut Problems) -> Option<Kind> {
    let name = place
        .require("eventName", problems)
        .and_then(|name| name.text_of(1..=MAX_EVENT_NAME, problems));
    let days = place
        .require("lookbackDays", problems)
        .and_then(|days| days.integer(1..=90, problems));
    let mut paths = Vec::new();
    let filter = place
        .find("filters")
        .and_then(|filter| Filter::read(&filter, &mut paths, problems));
    Some(Kind::LatestEvent {
        event_name: name?.to_owned(),
        lookback: Duration::from_hours(24 * u64::from(days?)),
        filter,
        paths,
    })
}

fn binding(place: &Place<'_>, problems: &mut Problems) -> Option<Binding> {
    if !place.object(problems) {
        return None;
    }
    place.only(
        &[
            "id", "label", "sourceId", "key", "type", "fallback", "format",
        ],
        problems,
    );
    let id = id(place, problems);
    let key = place
        .require("key", problems)
        .and_then(|key| key.text_of(1..=MAX_KEY, problems));
    let kind = place
        .require("type", problems)?
        .choice("unknown_type", &TYPES, problems)?;
    let fallback = place
        .find("fallback")
        .and_then(|fallback| fallback_of(&fallback, kind, problems));
    let format = place
        .find("format")
        .and_then(|format| read_format::format(&format, kind, problems));
    Some(Binding {
        id: id?,
        key: key?.to_owned(),
        kind,
        fallback,
        format,
    })
}

/// The identifier, which stands in tokens: `{{p.<id>}}`. Checks the label beside it too.
fn id(place: &Place<'_>, problems: &mut Problems) -> Option<String> {
    if let Some(label) = place.find("label") {
        label.text_of(0..=MAX_LABEL, problems);
    }
    let place = place.require("id", problems)?;
    let id = place.text_of(1..=MAX_ID, problems)?;
    if !id
        .chars()
        .all(|character| character.is_ascii_alphanumeric() || matches!(character, '_' | '-'))
    {
        problems.add(
            &place,
            "invalid_id",
            "must have letters, digits, `_` and `-` only",
        );
        return None;
    }
    Some(id.to_owned())
}

fn fallback_of(place: &Place<'_>, kind: Type, problems: &mut Problems) -> Option<Value> {
    match kind {
        Type::Text => place
            .text_of(0..=MAX_FALLBACK, problems)
            .map(|text| Value::Text(text.to_owned())),
        Type::Number => place.number(problems).map(Value::Number),
        Type::Boolean => place.boolean(problems).map(Value::Boolean),
        Type::Date => {
            let text = place.text(problems)?;
            if Instant::parse(text).is_none() {
                problems.add(
                    place,
                    "invalid_date",
                    "must be an ISO 8601 date or date-time",
                );
                return None;
            }
            Some(Value::Text(text.to_owned()))
        }
    }
}
