//! From sources to values.

use nudge_guest::personalization::{Recipient, Resolution};
use nudge_guest::{Cell, Instant, PastEvent, Value};

use crate::config::{Binding, Config, Kind, Source, Type};
use crate::format::{self, Local, Locale, Zone};

/// Events that are looked at first for the latest that passes a filter: mostly that is enough.
const FEW_EVENTS: u32 = 200;
/// Events that are looked at, at the most: what the host gives.
const MOST_EVENTS: u32 = 1_000;

/// Resolves every binding. Each source is read once, however many bindings it has.
pub(crate) fn bindings(
    config: &Config,
    recipient: &Recipient<'_>,
    resolutions: &mut Vec<Resolution>,
) {
    let local = if config.has_open_formats() {
        local(recipient)
    } else {
        Local::default()
    };
    for source in config
        .sources
        .iter()
        .filter(|source| !source.bindings.is_empty())
    {
        match &source.kind {
            Kind::UserProperty => plain(source, &local, resolutions, |key| recipient.property(key)),
            Kind::SendData => plain(source, &local, resolutions, |key| recipient.data(key)),
            Kind::TriggerEvent => {
                let event = recipient.trigger_event();
                of_event(source, event.as_ref(), &local, resolutions, |binding| {
                    recipient.trigger_property(&binding.key)
                });
            }
            Kind::LatestEvent { .. } => {
                latest_event(source, recipient, &local, resolutions);
            }
        }
    }
}

/// How numbers and dates are written where the recipient is. What an SDK says may be nothing that is known.
fn local(recipient: &Recipient<'_>) -> Local {
    let fact = |name| match recipient.fact(name) {
        Some(Value::Text(text)) => Some(text),
        _ => None,
    };
    Local {
        locale: fact("locale").map_or_else(Locale::default, |tag| Locale::named(&tag)),
        zone: fact("timezone")
            .and_then(|name| Zone::named(&name))
            .unwrap_or_default(),
    }
}

fn plain<'c>(
    source: &Source,
    local: &Local,
    resolutions: &mut Vec<Resolution>,
    cell: impl Fn(&str) -> Cell<'c>,
) {
    resolutions.extend(
        source
            .bindings
            .iter()
            .map(|binding| resolution(binding, local, cell(&binding.key))),
    );
}

/// Resolves the bindings of an event, if there is one.
fn of_event<'c>(
    source: &Source,
    event: Option<&(String, Instant)>,
    local: &Local,
    resolutions: &mut Vec<Resolution>,
    cell: impl Fn(&Binding) -> Cell<'c>,
) {
    for binding in &source.bindings {
        resolutions.push(match event {
            Some(event) => Resolution {
                event: Some(event.clone()),
                ..resolution(binding, local, cell(binding))
            },
            None => without_value(binding, local, "event_not_found", "no such event"),
        });
    }
}

fn latest_event(
    source: &Source,
    recipient: &Recipient<'_>,
    local: &Local,
    resolutions: &mut Vec<Resolution>,
) {
    let Kind::LatestEvent {
        event_name,
        lookback,
        filter,
        paths,
    } = &source.kind
    else {
        return;
    };
    // The filter's paths come first: it asks for them by number.
    let mut asked = paths.clone();
    asked.extend(source.bindings.iter().map(|binding| binding.key.clone()));
    let now = recipient.now();
    let passes = |event: &PastEvent<'_>| {
        filter
            .as_ref()
            .is_none_or(|filter| filter.matches(&|| now, &|column| event.cell(column)))
    };
    let look = |limit: u32| {
        let events = recipient.recent_events(event_name, *lookback, limit, &asked);
        let knows = events.len() < limit as usize || events.iter().any(|event| passes(&event));
        (events, knows)
    };
    let (mut history, knows) = look(if filter.is_some() { FEW_EVENTS } else { 1 });
    if !knows {
        (history, _) = look(MOST_EVENTS);
    }
    let latest = history.iter().find(passes);
    let event = latest.map(|event| (event.id().to_owned(), event.timestamp()));
    of_event(source, event.as_ref(), local, resolutions, |binding| {
        latest.map_or(Cell::Missing, |event| event.property(&binding.key))
    });
}

fn resolution(binding: &Binding, local: &Local, cell: Cell<'_>) -> Resolution {
    match cell {
        Cell::Missing | Cell::Null => without_value(binding, local, "missing", cell.type_name()),
        Cell::Withheld => without_value(
            binding,
            local,
            "filtered_by_privacy",
            "withheld by the privacy policy",
        ),
        _ => match typed(binding.kind, cell) {
            Some(value) => with_value(binding, local, value),
            None => Resolution {
                binding: binding.id.clone(),
                issue: "type_mismatch".to_owned(),
                detail: format!(
                    "expected {}, found {}",
                    binding.kind.name(),
                    cell.type_name()
                ),
                ..Resolution::default()
            },
        },
    }
}

fn without_value(binding: &Binding, local: &Local, issue: &str, detail: &str) -> Resolution {
    let resolution = match &binding.fallback {
        Some(fallback) => Resolution {
            used_fallback: true,
            ..with_value(binding, local, fallback.clone())
        },
        None => Resolution {
            binding: binding.id.clone(),
            ..Resolution::default()
        },
    };
    Resolution {
        issue: issue.to_owned(),
        detail: detail.to_owned(),
        ..resolution
    }
}

fn with_value(binding: &Binding, local: &Local, value: Value) -> Resolution {
    let text = text(binding, local, &value);
    Resolution {
        binding: binding.id.clone(),
        text,
        value: Some(value),
        ..Resolution::default()
    }
}

/// The value, if it is of this type.
fn typed(kind: Type, cell: Cell<'_>) -> Option<Value> {
    let fits = match kind {
        Type::Text => cell.text().is_some(),
        Type::Number => cell.number().is_some(),
        Type::Boolean => cell.boolean().is_some(),
        Type::Date => cell.date().is_some(),
    };
    if fits { cell.value() } else { None }
}

/// Whether an instant was written as a day, which is the same one in every time zone.
fn is_day(text: &str) -> bool {
    text.len() == "2026-01-31".len()
}

fn text(binding: &Binding, local: &Local, value: &Value) -> String {
    match value {
        Value::Number(number) => match &binding.format {
            Some(format) => format.of(local).number(*number),
            None => format::plain_number(*number),
        },
        Value::Text(text) if binding.kind == Type::Date => {
            let formatted = binding.format.as_ref().zip(Instant::parse(text)).map(
                |(format, date)| match format.of(local) {
                    format if is_day(text) => format.day(date),
                    format => format.date(date),
                },
            );
            formatted.unwrap_or_else(|| text.clone())
        }
        Value::Text(text) => text.clone(),
        Value::Boolean(boolean) => boolean.to_string(),
        Value::Null => String::new(),
        Value::Json(json) => json.clone(),
    }
}
