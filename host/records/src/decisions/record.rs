//! What is kept of a decision.

use nudge_wasm::trigger::{Firing, StateWrite, TimerChange, TriggerOutcome};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::transcript::Heard;

/// The first byte of every record: which shape the rest has.
const FORMAT: u8 = 3;
/// The shape before: nothing of consent.
const WITHOUT_CONSENT: u8 = 2;
/// The shape before that: without beginnings of sessions either.
const WITHOUT_BEGINNINGS: u8 = 1;
/// Little is gained by more, and it is paid for every batch.
const COMPRESSION: i32 = 1;
/// The largest record, not compressed: a transcript within its limit, and the largest batch and outcome.
const MOST_BYTES: usize = 32 << 20;

/// One call of a trigger plugin: what it was given, what it asked, what it decided. With the events and
/// configurations that it names, the call can be made again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Who decided.
    pub plugin: Decider,
    /// The batch's time, in microseconds since 1970.
    pub now: i64,
    /// The seed of the batch's random numbers.
    pub seed: u64,
    /// The campaigns, as the batch numbered them.
    pub campaigns: Vec<Campaign>,
    /// The subjects by the numbers that the batch had for them.
    pub subjects: Vec<(u32, Uuid)>,
    /// The items, as the batch numbered them.
    pub items: Vec<Item>,
    /// What the plugin asked, with the answers. None: that was too much to be kept.
    pub heard: Option<Heard>,
    /// What it decided.
    pub decided: Decided,
    /// The items that stand for the beginning of a session, ascending. They follow the rest.
    #[serde(skip)]
    pub beginnings: Vec<u32>,
    /// The numbers of the subjects that could not be messaged then. None: a server of before noted nothing of it. They
    /// follow the rest too.
    #[serde(skip)]
    pub not_to_message: Option<Vec<u32>>,
}

/// A version of a plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decider {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The component's SHA-256, in hexadecimal.
    pub digest: String,
}

/// A campaign that was decided about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Campaign {
    /// Its id.
    pub id: Uuid,
    /// Its version.
    pub version: i64,
    /// The digest of its configuration.
    pub config: [u8; 32],
    /// The items that concerned it, ascending.
    pub items: Vec<u32>,
}

/// An item that was decided about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// The number of its event, or of the event that set the timer.
    pub seq: i64,
    /// That event's id.
    pub event_id: Uuid,
    /// Its subject's number.
    pub subject: u32,
    /// Its session's number.
    pub session: u32,
    /// When it arrived or fell due, in microseconds since 1970.
    pub received: i64,
    /// Key and payload, where it is a timer.
    pub timer: Option<(String, Vec<u8>)>,
}

/// What a call decided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// Campaigns and the items that fired them.
    pub fired: Vec<Firing>,
    /// What was to be stored.
    pub states: Vec<StateWrite>,
    /// Changes of timers.
    pub timers: Vec<TimerChange>,
}

/// A record that can't be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// It has a shape that this server does not know.
    #[error("a record of an unknown format")]
    Format,
    /// It can't be compressed or decompressed.
    #[error("a record that can't be decompressed")]
    Compression(#[from] std::io::Error),
    /// It is damaged.
    #[error("a damaged record")]
    Encoding(#[from] postcard::Error),
}

impl Decided {
    /// What a call decided, but for what it cost.
    pub fn of(outcome: &TriggerOutcome) -> Self {
        Self {
            fired: outcome.fired.clone(),
            states: outcome.states.clone(),
            timers: outcome.timers.clone(),
        }
    }
}

impl Record {
    /// The record as it is stored.
    pub fn encode(&self) -> Result<Vec<u8>, Unreadable> {
        let plain = postcard::to_stdvec(&(self, &self.beginnings, &self.not_to_message))?;
        let mut encoded = vec![FORMAT];
        encoded.extend(zstd::bulk::compress(&plain, COMPRESSION)?);
        Ok(encoded)
    }

    /// Reads a record that [`encode`](Self::encode) made.
    pub fn decode(encoded: &[u8]) -> Result<Self, Unreadable> {
        let Some((format, compressed)) = encoded.split_first() else {
            return Err(Unreadable::Format);
        };
        if ![FORMAT, WITHOUT_CONSENT, WITHOUT_BEGINNINGS].contains(format) {
            return Err(Unreadable::Format);
        }
        let plain = zstd::bulk::decompress(compressed, MOST_BYTES)?;
        let (record, rest): (Self, &[u8]) = postcard::take_from_bytes(&plain)?;
        let (beginnings, rest) = match *format {
            WITHOUT_BEGINNINGS => (Vec::new(), rest),
            _ => postcard::take_from_bytes(rest)?,
        };
        let not_to_message = match *format {
            FORMAT => postcard::from_bytes(rest)?,
            _ => None,
        };
        Ok(Self {
            beginnings,
            not_to_message,
            ..record
        })
    }

    /// The subject of an item.
    pub fn subject(&self, number: u32) -> Option<Uuid> {
        let mut subjects = self.subjects.iter();
        subjects
            .find(|(other, _)| *other == number)
            .map(|(_, id)| *id)
    }
}

#[cfg(test)]
mod tests {
    use nudge_wasm::Value;
    use proptest::prelude::*;

    use super::*;
    use crate::decisions::transcript::HistoryQuestion;

    fn record(now: i64, number: f64, text: &str, state: Vec<u8>) -> Record {
        let mut heard = Heard::default();
        heard
            .properties
            .insert((7, text.to_owned()), Some(Value::Number(number)));
        heard
            .counts
            .insert(HistoryQuestion::new(7, text, Some(now), 1000), 3);
        heard
            .histories
            .insert(HistoryQuestion::new(7, text, None, 200), vec![now, 1]);
        heard.states.insert((0, 7), Some(state.clone()));
        Record {
            plugin: Decider {
                name: text.to_owned(),
                version: "1.0.0".to_owned(),
                digest: "00".repeat(32),
            },
            now,
            seed: u64::MAX,
            campaigns: vec![Campaign {
                id: Uuid::from_u128(1),
                version: 3,
                config: [9; 32],
                items: vec![0],
            }],
            subjects: vec![(7, Uuid::from_u128(2))],
            items: vec![Item {
                seq: now,
                event_id: Uuid::from_u128(3),
                subject: 7,
                session: 1,
                received: now,
                timer: Some((text.to_owned(), state.clone())),
            }],
            heard: Some(heard),
            decided: Decided {
                fired: vec![Firing {
                    campaign: 0,
                    item: 0,
                }],
                states: vec![StateWrite {
                    campaign: 0,
                    subject: 7,
                    state: Some(state),
                }],
                timers: vec![TimerChange::CancelAll {
                    campaign: 0,
                    subject: 7,
                }],
            },
            beginnings: vec![0],
            not_to_message: Some(vec![7]),
        }
    }

    #[test]
    fn records_of_the_formats_before_are_read() {
        let decoded = |format: u8, plain: Vec<u8>| {
            let mut encoded = vec![format];
            encoded.extend(zstd::bulk::compress(&plain, COMPRESSION).unwrap());
            Record::decode(&encoded).unwrap()
        };
        let second = Record {
            not_to_message: None,
            ..record(1, 0.5, "a", vec![1])
        };
        let plain = postcard::to_stdvec(&(&second, &second.beginnings)).unwrap();
        assert_eq!(decoded(2, plain), second);
        let first = Record {
            beginnings: Vec::new(),
            ..second
        };
        assert_eq!(decoded(1, postcard::to_stdvec(&first).unwrap()), first);
    }

    proptest! {
        #[test]
        fn a_record_comes_back_as_it_was(now: i64, number in -1e300..1e300, text: String, state: Vec<u8>) {
            let record = record(now, number, &text, state);
            let encoded = record.encode().unwrap();
            prop_assert_eq!(Record::decode(&encoded).unwrap(), record);
        }

        #[test]
        fn a_damaged_record_is_no_panic(bytes: Vec<u8>, at: prop::sample::Index) {
            let mut encoded = record(1, 0.1, "a", bytes.clone()).encode().unwrap();
            let at = at.index(encoded.len());
            encoded.truncate(at);
            prop_assert!(Record::decode(&encoded).is_err());
            drop(Record::decode(&bytes));
        }
    }
}
