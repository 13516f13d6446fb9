//! One event: from its JSON to what is committed.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use nudge_campaigns::settings::Ingest;
use nudge_db::Timestamp;
use nudge_platform::event_names::is_reserved;
use nudge_platform::{clock, id, secrets};
use nudge_records::events::canonical::canonical;
use nudge_records::events::{Event, is_name, properties};
use uuid::Uuid;

use super::body::{EventBody, Events, Field};
use crate::rejected::Said;
use crate::submission::Rejection;

/// Clocks that differ by less are taken as right (contract 3).
const TOLERATED_SKEW: Duration = Duration::from_mins(1);

/// Why nothing of somebody who was deleted is stored.
pub(super) const DELETED: &str = "this person's data was deleted on request";

/// What the events of one request are checked against.
#[derive(Debug)]
pub(super) struct Rules<'a> {
    pub app_id: Uuid,
    pub alias: i64,
    /// Why no event of the request can be the caller's, if so.
    pub mismatch: Option<Mismatch>,
    /// The anonymous id that events must repeat; none for the server-side shape.
    pub anonymous_id: Option<&'a str>,
    /// The external id that events may repeat.
    pub external_id: Option<&'a str>,
    /// Events of then or before are of somebody who was deleted.
    pub events_after: Option<Timestamp>,
    pub settings: &'a Ingest,
    pub received_at: Timestamp,
    /// How far the client's clock is behind the server's, in microseconds.
    pub skew: i64,
}

/// An id of the context that is not the token's subject's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mismatch {
    Anonymous,
    External,
}

/// How far timestamps are shifted: the difference of the clocks where it is over a minute.
pub(super) fn skew(sent_at: Option<Timestamp>, received_at: Timestamp) -> i64 {
    let skew = sent_at.map_or(0, |sent_at| received_at.0.saturating_sub(sent_at.0));
    if u128::from(skew.unsigned_abs()) > TOLERATED_SKEW.as_micros() {
        skew
    } else {
        0
    }
}

/// Checks all events of a request. Every event is either checked or rejected; of one id the first alone is checked, whatever becomes
/// of it.
pub(super) fn check_all(
    events: Events<'_>,
    rules: &Rules<'_>,
) -> (Vec<(usize, Event)>, Vec<Rejection>) {
    let mut checked = Vec::with_capacity(events.len());
    let mut rejections = Vec::new();
    let mut ids = HashSet::with_capacity(events.len());
    let mut last_name = None;
    for (index, event) in events.each().enumerate() {
        let refusal = match event {
            Ok(body) => match check(&body, rules, &mut last_name) {
                Ok(event) if ids.insert(event.id) => {
                    checked.push((index, event));
                    continue;
                }
                Ok(event) => {
                    let message = "another event of this request has the same eventId";
                    let code = "duplicate_event_id_in_batch";
                    Rejection::new(index, Some(event.id), code, message).saying(Said::of(&event))
                }
                Err((event_id, code, message)) => {
                    ids.extend(event_id);
                    Rejection::new(index, event_id, code, message).saying(Said::by(&body))
                }
            },
            Err(unread) => {
                let ((event_id, code, message), said) = *unread;
                ids.extend(event_id);
                Rejection::new(index, event_id, code, message).saying(said)
            }
        };
        rejections.push(refusal);
    }
    (checked, rejections)
}

/// When the latest of the events is of that would be accepted.
pub(super) fn latest(events: &Events<'_>, rules: &Rules<'_>) -> Option<Timestamp> {
    let time = |event: &EventBody<'_>| Some(check(event, rules, &mut None).ok()?.timestamp);
    match events {
        Events::Read(events) => events.iter().filter_map(time).max(),
        Events::Apart(events) => {
            let read = events.iter().filter_map(|raw| EventBody::read(raw).ok());
            read.filter_map(|event| time(&event)).max()
        }
    }
}

/// The id of an event that is rejected, as far as it is known, a code, and a sentence.
pub(super) type EventRejection = (Option<Uuid>, &'static str, String);

fn check(
    body: &EventBody<'_>,
    rules: &Rules<'_>,
    last_name: &mut Option<Arc<str>>,
) -> Result<Event, EventRejection> {
    let event_id = body.id();
    if event_id.is_none() && !matches!(body.event_id, Field::Missing) {
        let message = "eventId must be a UUID".to_owned();
        return Err((None, "invalid_event_id", message));
    }
    let refuse = |code, message: &str| (event_id, code, message.to_owned());

    check_owner(body, rules).map_err(|(code, message)| refuse(code, message))?;
    let name = body
        .name
        .text()
        .filter(|name| is_name(name))
        .ok_or_else(|| {
            refuse(
                "invalid_name",
                "name must be a text of 1 to 200 characters and no control characters",
            )
        })?;
    if is_reserved(name) {
        let message = "the server names its own events so, and nobody else sends them";
        return Err(refuse("invalid_name", message));
    }
    let sent = body
        .timestamp
        .text()
        .and_then(clock::from_text)
        .ok_or_else(|| {
            refuse(
                "invalid_timestamp",
                "timestamp must be an ISO 8601 instant with an offset",
            )
        })?;
    let timestamp = Timestamp(sent.0.saturating_add(rules.skew));
    let age = rules.received_at.0.saturating_sub(timestamp.0);
    let (past, future) = (
        rules.settings.past_window_seconds,
        rules.settings.future_window_seconds,
    );
    if age > past.saturating_mul(1_000_000) || -age > future.saturating_mul(1_000_000) {
        let message = format!(
            "timestamp must be within {past} s before and {future} s after the server's time"
        );
        let id = event_id.or_else(|| derived_of(body, rules, name, sent));
        return Err((id, "timestamp_out_of_window", message));
    }
    if rules.events_after.is_some_and(|after| timestamp <= after) {
        return Err(refuse("suppressed_subject", DELETED));
    }
    let properties = body.properties.map_or("{}", |raw| raw.get());
    properties::check(properties).map_err(|message| (event_id, "invalid_properties", message))?;

    // Events of one name often come one after another.
    let known = last_name.take().filter(|last| **last == *name);
    let shared = known.unwrap_or_else(|| name.into());
    *last_name = Some(Arc::clone(&shared));

    Ok(Event {
        id: event_id.unwrap_or_else(|| derived_id(rules, name, sent, properties)),
        name: shared,
        timestamp,
        client_timestamp: (rules.skew != 0).then_some(sent),
        properties: properties.into(),
    })
}

fn check_owner(
    body: &EventBody<'_>,
    rules: &Rules<'_>,
) -> Result<(), (&'static str, &'static str)> {
    let repeats = |expected| body.anonymous_id.text() == Some(expected);
    let contradicts = match &body.external_id {
        Field::Missing => false,
        Field::Text(given) => Some(&**given) != rules.external_id,
        Field::Other => true,
    };
    if rules.anonymous_id.is_some() && matches!(body.anonymous_id, Field::Missing) {
        return Err((
            "subject_mismatch",
            "anonymousId is missing: each event repeats that of the context",
        ));
    }
    if rules.mismatch == Some(Mismatch::Anonymous) || !rules.anonymous_id.is_none_or(repeats) {
        return Err((
            "subject_mismatch",
            "anonymousId must be that of the context and of the subject token",
        ));
    }
    if rules.mismatch == Some(Mismatch::External) || contradicts {
        return Err((
            "external_id_mismatch",
            "externalId must be that of the identified subject",
        ));
    }
    Ok(())
}

/// The id by which an event is known that came in time, without one, and is sent again. None: it could be no event.
fn derived_of(
    body: &EventBody<'_>,
    rules: &Rules<'_>,
    name: &str,
    sent: Timestamp,
) -> Option<Uuid> {
    let said = body.properties.map_or("{}", |raw| raw.get());
    let is_event = properties::check(said).is_ok();
    is_event.then(|| derived_id(rules, name, sent, said))
}

/// The id of an event that came without: it depends on the content alone, so that a retry has the same.
fn derived_id(rules: &Rules<'_>, name: &str, timestamp: Timestamp, properties: &str) -> Uuid {
    // With the keys sorted: their order does not matter.
    let canonical = canonical(properties).unwrap_or_else(|| properties.to_owned());
    let hash = secrets::hash(&[
        rules.app_id.as_bytes(),
        &rules.alias.to_be_bytes(),
        name.as_bytes(),
        &timestamp.0.to_be_bytes(),
        canonical.as_bytes(),
    ]);
    id::derived(timestamp, &hash)
}

#[cfg(test)]
mod tests {
    use nudge_records::events::MOST_BYTES;
    use serde_json::value::RawValue;

    use super::*;

    fn rules(settings: &Ingest) -> Rules<'_> {
        Rules {
            app_id: Uuid::nil(),
            alias: 1,
            mismatch: None,
            anonymous_id: Some("a"),
            external_id: None,
            events_after: None,
            settings,
            received_at: clock::from_text("2026-03-01T12:00:00Z").unwrap(),
            skew: 0,
        }
    }

    fn code(event: &str) -> &'static str {
        let settings = Ingest::default();
        let raw = RawValue::from_string(event.to_owned()).unwrap();
        let (checked, rejections) = check_all(Events::Apart(vec![&raw]), &rules(&settings));
        if let Ok(read) = serde_json::from_str(event)
            && event.len() <= MOST_BYTES
        {
            // Read with its request, it fares as it does alone.
            let outcome = check_all(Events::Read(vec![read]), &rules(&settings));
            assert_eq!(outcome.0, checked, "{event}");
            let code = |list: &[Rejection]| list.first().map(|it| (it.code, it.event_id));
            assert_eq!(code(&outcome.1), code(&rejections), "{event}");
        }
        if let Some(rejection) = rejections.first() {
            rejection.code
        } else {
            assert_eq!(checked.len(), 1);
            "accepted"
        }
    }

    #[test]
    fn each_field_has_its_own_code() {
        let good = r#"{"name": "x", "timestamp": "2026-03-01T12:00:00Z", "anonymousId": "a"}"#;
        assert_eq!(code(good), "accepted");
        for (from, to, expected) in [
            (r#""x""#, r#""""#, "invalid_name"),
            (r#""x""#, "7", "invalid_name"),
            (r#""x""#, r#""a\u0000b""#, "invalid_name"),
            ("2026-03-01T12:00:00Z", "yesterday", "invalid_timestamp"),
            ("2026-03-01T12", "2026-01-30T11", "timestamp_out_of_window"),
            ("2026-03-01T12", "2026-03-02T13", "timestamp_out_of_window"),
            (r#""a"}"#, r#""b"}"#, "subject_mismatch"),
            (
                r#""a"}"#,
                r#""a", "externalId": "e"}"#,
                "external_id_mismatch",
            ),
            (r#""a"}"#, r#""a", "eventId": "no"}"#, "invalid_event_id"),
            (r#""a"}"#, r#""a", "eventId": 7}"#, "invalid_event_id"),
            (r#""a"}"#, r#""a", "properties": []}"#, "invalid_properties"),
            (
                r#""a"}"#,
                r#""a", "properties": {"n": 1e400}}"#,
                "invalid_properties",
            ),
        ] {
            assert_eq!(code(&good.replace(from, to)), expected, "{to}");
        }
    }

    #[test]
    fn an_event_fares_alike_read_with_its_request_and_by_itself() {
        let id = "01890a5d-ac96-774b-bcce-b302099a8057";
        let with = |more: &str| {
            format!(r#"{{"name":"x","timestamp":"2026-03-01T12:00:00Z","anonymousId":"a",{more}}}"#)
        };
        for (more, expected) in [
            (format!(r#""eventId":"{id}""#), "accepted"),
            (
                r#""eventId":null,"externalId":null,"properties":null"#.to_owned(),
                "accepted",
            ),
            (format!(r#""\u0065ventId":"{id}""#), "accepted"),
            (format!(r#""eventId":"\u0030{}""#, &id[1..]), "accepted"),
            (
                r#""more":[1,{"eventId":7}],"less":{"name":[]}"#.to_owned(),
                "accepted",
            ),
            (r#""more":1e400"#.to_owned(), "accepted"),
            (r#""name":"y""#.to_owned(), "invalid_properties"),
            (r#""eventId":1e400"#.to_owned(), "invalid_event_id"),
            (r#""eventId":"\ud800""#.to_owned(), "invalid_event_id"),
            (r#""externalId":{}"#.to_owned(), "external_id_mismatch"),
            (r#""externalId":7"#.to_owned(), "external_id_mismatch"),
            (r#""externalId":"""#.to_owned(), "external_id_mismatch"),
            (r#""properties":7"#.to_owned(), "invalid_properties"),
        ] {
            assert_eq!(code(&with(&more)), expected, "{more}");
        }
        let list =
            r#"["01890a5d-ac96-774b-bcce-b302099a8057","x","2026-03-01T12:00:00Z","a",null,{}]"#;
        assert!(serde_json::from_str::<EventBody<'_>>(list).is_err());
    }

    #[test]
    fn the_window_and_the_size_are_inclusive() {
        let event = |timestamp: &str, padding: usize| {
            format!(
                r#"{{"name":"x","timestamp":"{timestamp}","anonymousId":"a","properties":{{"p":"{}"}}}}"#,
                "p".repeat(padding)
            )
        };
        assert_eq!(code(&event("2026-01-30T12:00:00Z", 0)), "accepted");
        assert_eq!(
            code(&event("2026-01-30T11:59:59Z", 0)),
            "timestamp_out_of_window"
        );
        assert_eq!(code(&event("2026-03-02T12:00:00Z", 0)), "accepted");
        let base = event("2026-03-01T12:00:00Z", 0).len();
        assert_eq!(
            code(&event("2026-03-01T12:00:00Z", MOST_BYTES - base)),
            "accepted"
        );
        assert_eq!(
            code(&event("2026-03-01T12:00:00Z", MOST_BYTES - base + 1)),
            "event_too_large"
        );
    }

    #[test]
    fn an_event_without_an_id_gets_the_same_one_each_time() {
        let settings = Ingest::default();
        let of = |properties: &str| {
            let text = format!(
                r#"{{"name": "x", "timestamp": "2026-03-01T12:00:00Z", "anonymousId": "a", "properties": {properties}}}"#
            );
            let raw = RawValue::from_string(text).unwrap();
            check_all(Events::Apart(vec![&raw]), &rules(&settings)).0[0]
                .1
                .id
        };
        assert_eq!(of(r#"{"a": 1, "b": 2}"#), of(r#"{"b": 2, "a": 1}"#));
        assert_ne!(of(r#"{"a": 1}"#), of(r#"{"a": 2}"#));
    }

    #[test]
    fn of_one_id_the_first_event_alone_counts_also_where_it_is_rejected() {
        let settings = Ingest::default();
        let id = "01890a5d-ac96-774b-bcce-b302099a8057";
        let event = |name: &str, padding: usize| {
            let text = format!(
                r#"{{"eventId":"{id}","name":"{name}","timestamp":"2026-03-01T12:00:00Z","anonymousId":"a","properties":{{"p":"{}"}}}}"#,
                "p".repeat(padding)
            );
            RawValue::from_string(text).unwrap()
        };
        let good = event("x", 0);
        for (first, code) in [
            (event("", 0), "invalid_name"),
            (event("x", MOST_BYTES), "event_too_large"),
        ] {
            let events = Events::Apart(vec![&first, &good]);
            let (checked, rejections) = check_all(events, &rules(&settings));
            let codes: Vec<&str> = rejections.iter().map(|it| it.code).collect();
            assert!(checked.is_empty());
            assert_eq!(codes, [code, "duplicate_event_id_in_batch"]);
        }
    }

    #[test]
    fn small_skews_are_ignored() {
        let now = Timestamp::from_seconds(1_000_000);
        assert_eq!(skew(None, now), 0);
        assert_eq!(skew(Some(Timestamp::from_seconds(999_940)), now), 0);
        assert_eq!(
            skew(Some(Timestamp::from_seconds(999_939)), now),
            61_000_000
        );
        assert_eq!(
            skew(Some(Timestamp::from_seconds(1_000_100)), now),
            -100_000_000
        );
    }
}
