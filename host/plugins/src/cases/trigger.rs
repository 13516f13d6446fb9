//! Cases of trigger plugins: one campaign, subjects, and events while time passes.
//!
//! Input: `config`, `events` (each with a `name`, and `at`, `subject`, `properties` as far as they matter),
//! and `now`, `until`, `subject`, `subjects` where they matter. Consecutive events of one instant are one
//! batch. Sessions begin with the first event and with each after 30 minutes of silence; campaigns that read
//! `$session_began` get it. Timers fire as time passes; after the last event until `until`, or until none is left.
//! Output: `{"fired": [{"event" or "timer", "subject", "at"}], "states", "timers", "explanations"}`.

mod simulation;

use std::collections::BTreeMap;
use std::sync::Arc;

use nudge_db::Timestamp;
use nudge_platform::clock;
use nudge_wasm::Plugin;
use serde::Deserialize;
use serde_json::{Map, Value as Json};

use super::subject::{Described, Subject};
use super::validation::now;
use super::{BadCase, Run, check, object, time};
pub(super) use simulation::{Answers, Simulation};

/// Most events of a case.
const EVENTS: usize = 1000;

/// Most subjects of a case.
const SUBJECTS: usize = 100;

/// Whom events are of that name nobody.
const ANYBODY: &str = "subject";

/// What the plugin is given.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Input {
    /// The campaign's configuration.
    #[serde(default)]
    config: Json,
    /// The start; offsets count from here.
    #[serde(default)]
    now: Option<String>,
    /// How long time passes after the last event.
    #[serde(default)]
    until: Option<String>,
    /// The subject of events that name none.
    #[serde(default)]
    subject: Option<Described>,
    /// Others, by name.
    #[serde(default)]
    subjects: BTreeMap<String, Described>,
    /// What happens, in order.
    events: Vec<InputEvent>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct InputEvent {
    name: String,
    #[serde(default)]
    at: Option<String>,
    #[serde(default)]
    subject: Option<String>,
    #[serde(default)]
    properties: Map<String, Json>,
}

/// An input whose times and names are resolved.
#[derive(Clone, Debug)]
pub(super) struct Prepared {
    pub config: Json,
    pub start: Timestamp,
    until: Option<Timestamp>,
    pub names: Vec<String>,
    pub subjects: Vec<Subject>,
    pub events: Vec<Event>,
}

/// An event of a case.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub at: Timestamp,
    pub subject: u32,
    pub name: Arc<str>,
    pub properties: Arc<str>,
}

impl Prepared {
    pub(super) fn new(input: Input) -> Result<Self, BadCase> {
        let start = now(input.now.as_deref())?;
        if input.events.len() > EVENTS {
            let message = format!("must have at most {EVENTS} events");
            return Err(BadCase::new("/input/events", message));
        }
        let mut prepared = Self {
            config: input.config,
            start,
            until: None,
            names: Vec::new(),
            subjects: Vec::new(),
            events: Vec::new(),
        };
        if let Some(described) = &input.subject {
            prepared.add(ANYBODY, Subject::new(described, start, "/input/subject")?)?;
        }
        for (name, described) in &input.subjects {
            let pointer = format!("/input/subjects/{name}");
            prepared.add(name, Subject::new(described, start, &pointer)?)?;
        }
        let mut at = start;
        for (index, event) in input.events.into_iter().enumerate() {
            let pointer = format!("/input/events/{index}/at");
            if let Some(text) = &event.at {
                at = instant(text, start, at, &pointer)?;
            }
            let subject = prepared.number(event.subject.as_deref().unwrap_or(ANYBODY), start)?;
            if let Some(whose) = prepared.subjects.get_mut(subject as usize) {
                whose.meet(at);
            }
            prepared.events.push(Event {
                at,
                subject,
                name: event.name.into(),
                properties: object(&event.properties),
            });
        }
        if let Some(text) = &input.until {
            prepared.until = Some(instant(text, start, at, "/input/until")?);
        }
        Ok(prepared)
    }

    fn add(&mut self, name: &str, subject: Subject) -> Result<(), BadCase> {
        if self.names.iter().any(|known| known == name) {
            let message = format!("`{name}` is the `subject`; name it in one place");
            return Err(BadCase::new("/input/subjects", message));
        }
        if self.names.len() >= SUBJECTS {
            let message = format!("must have at most {SUBJECTS} subjects");
            return Err(BadCase::new("/input/subjects", message));
        }
        self.names.push(name.to_owned());
        self.subjects.push(subject);
        Ok(())
    }

    /// The number of a subject; one that the case does not describe has nothing.
    fn number(&mut self, name: &str, start: Timestamp) -> Result<u32, BadCase> {
        let known = self.names.iter().position(|known| known == name);
        let number = if let Some(number) = known {
            number
        } else {
            self.add(name, Subject::new(&Described::default(), start, "")?)?;
            self.names.len() - 1
        };
        Ok(u32::try_from(number).unwrap_or(u32::MAX))
    }

    /// Writes the times (`+30m`) of expected firings and timers as instants, as the output has them. States and payloads are the
    /// plugin's own, and stay as they are.
    pub(super) fn resolve_times(&self, expect: &mut Json) {
        for list in ["fired", "timers"] {
            let entries = expect.get_mut(list).and_then(Json::as_array_mut);
            for entry in entries.into_iter().flatten() {
                if let Some(Json::String(text)) = entry.get_mut("at")
                    && let Some(at) = time::read(text, self.start)
                {
                    *text = clock::to_text(at);
                }
            }
        }
    }

    pub(super) fn run(&self, plugin: &Plugin) -> Result<Run, BadCase> {
        let (reads, run) = match check(plugin, &self.config, Run::default()) {
            Ok(checked) => checked,
            Err(run) => return Ok(run),
        };
        Simulation::new(self, plugin, &reads, run).run(self.until)
    }
}

/// Reads an instant that is not before another one.
fn instant(
    text: &str,
    start: Timestamp,
    earliest: Timestamp,
    pointer: &str,
) -> Result<Timestamp, BadCase> {
    let at = time::read(text, start).ok_or_else(|| {
        BadCase::new(
            pointer,
            "must be like +30m, or an instant like 2026-01-31T09:30:00Z",
        )
    })?;
    if at < earliest {
        return Err(BadCase::new(
            pointer,
            "must not be before the event above it, nor before the start",
        ));
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn prepare(input: &Json) -> Result<Prepared, BadCase> {
        Prepared::new(super::super::read(input)?)
    }

    #[test]
    fn times_ascend_and_subjects_have_numbers() {
        let prepared = prepare(&json!({
            "events": [
                {"name": "a"},
                {"name": "b", "at": "+1m", "subject": "ben"},
                {"name": "c"},
            ],
            "subjects": {"ben": {}},
        }))
        .unwrap();
        assert_eq!(prepared.names, ["ben", "subject"]);
        let events: Vec<(i64, u32)> = prepared
            .events
            .iter()
            .map(|event| (event.at.0 - prepared.start.0, event.subject))
            .collect();
        assert_eq!(events, [(0, 1), (60_000_000, 0), (60_000_000, 1)]);
    }

    #[test]
    fn what_is_wrong_is_named_by_its_place() {
        for (input, pointer) in [
            (json!({}), "/input"),
            (json!({"events": [{"nam": "a"}]}), "/input/events/0/nam"),
            (json!({"events": [{"name": 1}]}), "/input/events/0/name"),
            (
                json!({"events": [{"name": "a", "at": "+1m"}, {"name": "a", "at": "+30s"}]}),
                "/input/events/1/at",
            ),
            (json!({"events": [], "until": "soon"}), "/input/until"),
            (json!({"events": [], "now": "+1m"}), "/input/now"),
            (
                json!({"events": [], "subject": {}, "subjects": {"subject": {}}}),
                "/input/subjects",
            ),
        ] {
            assert_eq!(prepare(&input).unwrap_err().pointer, pointer, "{input}");
        }
    }

    #[test]
    fn expected_times_may_be_offsets() {
        let prepared = prepare(&json!({"events": []})).unwrap();
        let own = json!({"at": "2026-01-01T00:00:00Z", "next": [{"at": "+1h"}]});
        let mut expect = json!({
            "fired": [{"at": "+30m", "timer": "+30m"}],
            "timers": [{"at": "+31m", "payload": own}],
            "states": {"subject": own, "at": "+1m"},
        });
        prepared.resolve_times(&mut expect);
        assert_eq!(
            expect,
            json!({
                "fired": [{"at": "2026-01-01T00:30:00.000Z", "timer": "+30m"}],
                "timers": [{"at": "2026-01-01T00:31:00.000Z", "payload": own}],
                "states": {"subject": own, "at": "+1m"},
            })
        );
    }
}
