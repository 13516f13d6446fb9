//! Which surveys fired, for whom and why.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use nudge_db::Timestamp;
use nudge_platform::clock;
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::client::{Client, Instruction};
use super::database::Decided;
use super::recording::{self, Batch, Event};
use super::replay::{Person, happened};

/// How many firings are explained.
const EXAMPLES: usize = 5;
/// People who poll at the same time.
const IN_FLIGHT: usize = 32;

/// An instruction and whom it is for.
#[derive(Debug)]
pub(super) struct Fired {
    pub anonymous_id: String,
    pub instruction: Instruction,
}

/// How often a survey fired.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SurveyCount {
    pub id: String,
    pub name: String,
    pub waits_for: String,
    pub fired: usize,
    /// How often it should have.
    pub expected: usize,
    /// Of these: returned in the answer to the event that fired it.
    pub at_once: usize,
}

/// Why a survey fired.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Example {
    pub survey: String,
    pub campaign_id: Uuid,
    pub campaign_version: i64,
    pub instruction_id: Uuid,
    pub person: String,
    pub event: String,
    pub event_id: Uuid,
    pub happened_at: String,
    pub matched: Vec<String>,
    pub plugin: String,
    pub plugin_version: String,
}

/// What everybody is offered when polling.
pub(super) async fn fetch(client: &Arc<Client>, people: &[Person]) -> anyhow::Result<Vec<Fired>> {
    let mut polls = JoinSet::new();
    let mut fired = Vec::new();
    for person in people {
        if polls.len() == IN_FLIGHT
            && let Some(done) = polls.join_next().await
        {
            fired.extend(done??);
        }
        let (client, session) = (Arc::clone(client), person.session.clone());
        let anonymous_id = person.anonymous_id.clone();
        polls.spawn(async move {
            let found = client.poll(&session).await?;
            let of_person = |instruction| Fired {
                anonymous_id: anonymous_id.clone(),
                instruction,
            };
            anyhow::Ok(found.into_iter().map(of_person).collect::<Vec<_>>())
        });
    }
    while let Some(done) = polls.join_next().await {
        fired.extend(done??);
    }
    Ok(fired)
}

/// How often each survey fired.
pub(super) fn count(
    surveys: &[Value],
    fired: &[Fired],
    at_once: &HashSet<Uuid>,
) -> Vec<SurveyCount> {
    let count = |(survey, expected): (&Value, usize)| {
        let id = text(survey, "/id");
        let of_survey = || {
            fired
                .iter()
                .filter(|fired| fired.instruction.campaign_id.to_string() == id)
        };
        SurveyCount {
            name: text(survey, "/name"),
            waits_for: waits_for(survey),
            fired: of_survey().count(),
            expected,
            at_once: of_survey()
                .filter(|fired| at_once.contains(&fired.instruction.id))
                .count(),
            id,
        }
    };
    surveys.iter().zip(recording::FIRINGS).map(count).collect()
}

/// The first firings of each survey by time, the surveys taking turns.
pub(super) fn explain(
    surveys: &[Value],
    fired: &[Fired],
    decided: &Decided,
    batches: &[Batch],
    start: Timestamp,
) -> Vec<Example> {
    let events: HashMap<Uuid, &Event> = batches
        .iter()
        .flat_map(|batch| &batch.events)
        .filter_map(|event| Some((event.id.parse().ok()?, event)))
        .collect();
    let one = |survey: &Value, fired: &Fired| {
        let instruction = &fired.instruction;
        let event_id = instruction.trigger.as_ref()?.event_id;
        let event = *events.get(&event_id)?;
        let (plugin, plugin_version) = decided.get(&instruction.id)?.clone();
        let example = Example {
            survey: text(survey, "/name"),
            campaign_id: instruction.campaign_id,
            campaign_version: instruction.campaign_version,
            instruction_id: instruction.id,
            person: fired.anonymous_id.clone(),
            event: instruction.trigger.as_ref()?.name.clone(),
            event_id,
            happened_at: clock::to_text(happened(start, event.offset_seconds)),
            matched: matched(survey, event),
            plugin,
            plugin_version,
        };
        Some((event.offset_seconds, example))
    };
    let mut queues: Vec<_> = surveys
        .iter()
        .map(|survey| {
            let id = text(survey, "/id");
            let of_survey = fired
                .iter()
                .filter(|fired| fired.instruction.campaign_id.to_string() == id);
            let mut examples: Vec<_> = of_survey.filter_map(|fired| one(survey, fired)).collect();
            examples.sort_by_key(|(offset, _)| *offset);
            examples.into_iter().map(|(_, example)| example)
        })
        .collect();
    let mut chosen = Vec::new();
    while chosen.len() < EXAMPLES {
        let round: Vec<Example> = queues.iter_mut().filter_map(Iterator::next).collect();
        if round.is_empty() {
            break;
        }
        chosen.extend(round);
    }
    chosen.truncate(EXAMPLES);
    chosen
}

/// What a survey waits for, in a few words.
fn waits_for(survey: &Value) -> String {
    let mut words = vec![text(survey, "/trigger/eventName")];
    let conditions: Vec<String> = conditions(survey).map(condition).collect();
    if !conditions.is_empty() {
        words.push(format!("with {}", conditions.join(" and ")));
    }
    words.push(format!("({})", text(survey, "/trigger/occurrence/mode")));
    words.join(" ")
}

/// What a survey asks of an event, beside what the event has.
fn matched(survey: &Value, event: &Event) -> Vec<String> {
    let leaves = conditions(survey).filter_map(|leaf| {
        let property = leaf.get("property")?.as_str()?;
        let value = event.properties.get(property)?;
        Some(format!("{property} = {value} ({})", condition(leaf)))
    });
    leaves.collect()
}

/// The conditions that must all hold.
fn conditions(survey: &Value) -> impl Iterator<Item = &Map<String, Value>> {
    let all = survey
        .pointer("/trigger/filters/all")
        .and_then(Value::as_array);
    all.into_iter()
        .flatten()
        .filter_map(Value::as_object)
        .filter(|leaf| leaf.contains_key("property"))
}

fn condition(leaf: &Map<String, Value>) -> String {
    let part = |key: &str| match leaf.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => String::new(),
    };
    format!(
        "{} {} {}",
        part("property"),
        part("operator"),
        part("value")
    )
    .trim_end()
    .to_owned()
}

fn text(value: &Value, pointer: &str) -> String {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}
