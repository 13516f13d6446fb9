//! Ingest requests, made once and renewed in place before each use.

use std::fmt::Write as _;

use nudge_db::Timestamp;
use nudge_platform::clock;

use crate::client;
use crate::random::Random;

/// The event that most requests are made of. No campaign waits for it.
pub(crate) const COMMON: &str = "product_viewed";
/// The event that a campaign waits for.
pub(crate) const AWAITED: &str = "order_completed";
/// Ten properties: an event is about 300 bytes of JSON.
pub(crate) const PROPERTIES: &str = r#"{"sku":"A-1029-XL","price":19.99,"currency":"EUR","count":3,"member":true,"category":"shoes","color":"black","rank":12,"source":"search","page":4}"#;
/// An id that no request has an event with.
const NOBODY: &str = "00000000-0000-4000-8000-000000000000";
const ID_LENGTH: usize = 36;
const INSTANT_LENGTH: usize = 24;

/// Somebody with a session.
#[derive(Clone, Debug)]
pub(crate) struct Person {
    pub(crate) anonymous_id: String,
    pub(crate) token: String,
}

/// What a request asks for besides storing its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// Nothing.
    None,
    /// The decision about its first event.
    First,
    /// The decision about an event that it does not have: the server reads the request, checks every event and refuses it whole.
    Refused,
    /// The decision about no event at all: the server reads the request, HTTP, credentials and JSON, and refuses it then.
    Malformed,
}

/// A request as bytes, and where in them the ids and instants are.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    bytes: Vec<u8>,
    ids: Vec<usize>,
    instants: Vec<usize>,
    delivered: Option<usize>,
}

impl Request {
    pub(crate) fn new(
        write_key: &str,
        person: &Person,
        name: &str,
        events: usize,
        delivery: Delivery,
    ) -> Self {
        Self::with_properties(write_key, person, name, events, delivery, PROPERTIES)
    }

    /// The same with other properties: the text of an object.
    pub(crate) fn with_properties(
        write_key: &str,
        person: &Person,
        name: &str,
        events: usize,
        delivery: Delivery,
        properties: &str,
    ) -> Self {
        let nobody = &person.anonymous_id;
        let mut body = format!(
            r#"{{"context":{{"anonymousId":"{nobody}","platform":"ios","appVersion":"4.2.0","locale":"de-AT","timezone":"Europe/Vienna"}},"events":["#
        );
        let (mut ids, mut instants) = (Vec::new(), Vec::new());
        for number in 0..events {
            body.push_str(if number == 0 {
                r#"{"eventId":""#
            } else {
                r#",{"eventId":""#
            });
            ids.push(body.len());
            // Writing to a String can't fail.
            let _ = write!(body, r#"{NOBODY}","name":"{name}","timestamp":""#);
            instants.push(body.len());
            let epoch = clock::to_text(Timestamp(0));
            let _ = write!(
                body,
                r#"{epoch}","anonymousId":"{nobody}","properties":{properties}}}"#
            );
        }
        body.push(']');
        let mut delivered = None;
        if delivery == Delivery::Malformed {
            body.push_str(r#","delivery":{"eventIds":[]}"#);
        } else if delivery != Delivery::None {
            body.push_str(r#","delivery":{"eventIds":[""#);
            delivered = (delivery == Delivery::First).then_some(body.len());
            let _ = write!(body, r#"{NOBODY}"]}}"#);
        }
        body.push('}');
        let authorization = format!("Bearer {write_key}");
        let headers = [
            ("Authorization", authorization.as_str()),
            ("X-Service-Subject-Token", person.token.as_str()),
        ];
        let bytes = client::request("POST", "/v1/sdk/ingest", &headers, &body);
        let head = bytes.len() - body.len();
        for place in ids.iter_mut().chain(&mut instants).chain(&mut delivered) {
            *place += head;
        }
        Self {
            bytes,
            ids,
            instants,
            delivered,
        }
    }

    /// The request with new ids and instants.
    pub(crate) fn renew(&mut self, random: &mut Random, now: Timestamp) -> &[u8] {
        let mut first = None;
        let mut at = now;
        for (id, instant) in self.ids.iter().zip(&self.instants) {
            let mut text = [0; ID_LENGTH];
            random.uuid().hyphenated().encode_lower(&mut text);
            put(&mut self.bytes, *id, &text);
            first.get_or_insert(text);
            let text = clock::to_text(at);
            debug_assert_eq!(text.len(), INSTANT_LENGTH);
            put(&mut self.bytes, *instant, text.as_bytes());
            at.0 += 1_000;
        }
        if let (Some(place), Some(first)) = (self.delivered, first) {
            put(&mut self.bytes, place, &first);
        }
        &self.bytes
    }
}

fn put(bytes: &mut [u8], place: usize, text: &[u8]) {
    if let Some(slot) = bytes.get_mut(place..place + text.len()) {
        slot.copy_from_slice(text);
    }
}
