//! Ingest requests, made once and renewed in place before each use: those of `load ingest`.

use std::fmt::Write as _;

use jiff::{SignedDuration, Timestamp};

use super::client;
use super::random::Random;

/// The event that requests are made of. No campaign waits for it.
pub(super) const NAME: &str = "product_viewed";
/// Ten properties: an event is about 300 bytes of JSON.
const PROPERTIES: &str = r#"{"sku":"A-1029-XL","price":19.99,"currency":"EUR","count":3,"member":true,"category":"shoes","color":"black","rank":12,"source":"search","page":4}"#;
const ID: &str = "00000000-0000-4000-8000-000000000000";

/// Whose requests they are.
#[derive(Clone, Debug)]
pub(super) struct Person {
    pub(super) anonymous_id: String,
    /// Of a session with Nudge. The plain server has no sessions, and is sent an empty one.
    pub(super) token: String,
}

/// The name of a person in a load.
pub(super) fn anonymous_id(number: usize) -> String {
    format!("person-{number:08}")
}

/// A request as bytes, and where in them the ids and instants are.
#[derive(Debug)]
pub(super) struct Request {
    bytes: Vec<u8>,
    ids: Vec<usize>,
    instants: Vec<usize>,
}

impl Request {
    pub(super) fn new(write_key: &str, person: &Person, events: usize) -> Self {
        let name = &person.anonymous_id;
        let mut body = format!(
            r#"{{"context":{{"anonymousId":"{name}","platform":"ios","appVersion":"4.2.0","locale":"de-AT","timezone":"Europe/Vienna"}},"events":["#
        );
        let (mut ids, mut instants) = (Vec::new(), Vec::new());
        let epoch = text(Timestamp::UNIX_EPOCH);
        for number in 0..events {
            body.push_str(if number == 0 {
                r#"{"eventId":""#
            } else {
                r#",{"eventId":""#
            });
            ids.push(body.len());
            // Writing to a String can't fail.
            let _ = write!(body, r#"{ID}","name":"{NAME}","timestamp":""#);
            instants.push(body.len());
            let _ = write!(
                body,
                r#"{epoch}","anonymousId":"{name}","properties":{PROPERTIES}}}"#
            );
        }
        body.push_str("]}");
        let authorization = format!("Bearer {write_key}");
        let headers = [
            ("Authorization", authorization.as_str()),
            ("X-Service-Subject-Token", person.token.as_str()),
        ];
        let bytes = client::request("POST", "/v1/sdk/ingest", &headers, &body);
        let head = bytes.len() - body.len();
        for place in ids.iter_mut().chain(&mut instants) {
            *place += head;
        }
        Self {
            bytes,
            ids,
            instants,
        }
    }

    /// The request with new ids and instants.
    pub(super) fn renew(&mut self, random: &mut Random) -> &[u8] {
        let mut at = Timestamp::now();
        for (id, instant) in self.ids.iter().zip(&self.instants) {
            let mut hyphenated = [0; ID.len()];
            random.uuid().hyphenated().encode_lower(&mut hyphenated);
            put(&mut self.bytes, *id, &hyphenated);
            put(&mut self.bytes, *instant, text(at).as_bytes());
            at += SignedDuration::from_millis(1);
        }
        &self.bytes
    }
}

/// To the millisecond, always as long.
fn text(at: Timestamp) -> String {
    format!("{at:.3}")
}

fn put(bytes: &mut [u8], place: usize, text: &[u8]) {
    if let Some(slot) = bytes.get_mut(place..place + text.len()) {
        slot.copy_from_slice(text);
    }
}
