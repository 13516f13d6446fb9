//! The recorded events, and what the demo creates first. `host/demo/README.md` describes them.

use std::io::{BufRead as _, BufReader};

use anyhow::Context as _;
use flate2::read::GzDecoder;
use serde::Deserialize;
use serde_json::{Map, Value};

const EVENTS: &[u8] = include_bytes!("../../../demo/events.ndjson.gz");
/// An array: the body of a POST for each event definition.
pub(super) const DEFINITIONS: &str = include_str!("../../../demo/definitions.json");
/// An array: the body of a POST for each survey.
pub(super) const SURVEYS: &str = include_str!("../../../demo/surveys.json");
/// How often each of the surveys fires on the recording, counted without the server.
pub(super) const FIRINGS: [usize; 3] = [249, 61, 40];

/// What an SDK sent at once.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Batch {
    pub anonymous_id: String,
    pub context: Map<String, Value>,
    pub events: Vec<Event>,
}

/// An event. Some are wrong on purpose, so that nothing here is parsed further than it must be.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Event {
    #[serde(rename = "eventId")]
    pub id: String,
    pub name: String,
    /// Seconds relative to the start of the replay.
    pub offset_seconds: i64,
    pub properties: Map<String, Value>,
}

/// Reads every batch, in the order in which they were sent.
pub(super) fn read() -> anyhow::Result<Vec<Batch>> {
    BufReader::new(GzDecoder::new(EVENTS))
        .lines()
        .map(|line| Ok(serde_json::from_str(&line?)?))
        .collect::<anyhow::Result<_>>()
        .context("the recorded events")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recording_is_as_its_description_says() {
        let batches = read().unwrap();

        let people: std::collections::HashSet<&str> = batches
            .iter()
            .map(|batch| batch.anonymous_id.as_str())
            .collect();
        assert_eq!(people.len(), 998);
        assert_eq!(
            batches
                .iter()
                .map(|batch| batch.events.len())
                .sum::<usize>(),
            20_570
        );
        assert!(batches.iter().all(|batch| !batch.events.is_empty()));
    }
}
