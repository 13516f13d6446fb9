//! Request bodies.

use std::collections::HashSet;

use axum::body::Body;
use axum::extract::{FromRequest as _, Request};
use nudge_campaigns::settings;
use nudge_campaigns::surveys::flow::{self, Answers, Flow, Walker};
use nudge_db::Timestamp;
use nudge_http::{JsonText, body};
use nudge_platform::json::merge;
use nudge_records::events::MOST_EVENTS;
use serde_json::Value;

use crate::halves;

/// 2026-03-01T12:00:00Z.
const NOW: Timestamp = Timestamp(1_772_366_400_000_000);

/// A body as it comes from the network. The first byte chooses how it is compressed.
pub fn bodies(input: &[u8]) {
    let Some((choice, content)) = input.split_first() else {
        return;
    };
    let encoding = match choice % 4 {
        0 => "identity",
        1 => "gzip",
        2 => "zstd",
        _ => "br",
    };
    let request = Request::builder()
        .header("content-type", "application/json")
        .header("content-encoding", encoding)
        .body(Body::from(content.to_vec()))
        .expect("the headers are good");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    if let Ok(JsonText(text)) = runtime.block_on(JsonText::from_request(request, &())) {
        assert!(text.len() <= body::MOST_BODY_BYTES);
        check(&text);
    }
}

/// An ingest request.
pub fn ingest(input: &[u8]) {
    if let Ok(text) = std::str::from_utf8(input) {
        check(text);
    }
}

/// Each event is either taken or refused, once.
fn check(text: &str) {
    let settings = settings::Ingest::default();
    if let Ok(examined) = nudge_ingest::submission::examine(text, &settings, NOW) {
        let (events, rejections) = (examined.events, examined.rejections);
        assert!(events.len() + rejections.len() <= MOST_EVENTS);
        let mut places: Vec<usize> = events.iter().map(|(place, _)| *place).collect();
        places.extend(rejections.iter().map(|rejection| rejection.index));
        places.sort_unstable();
        assert!(places.iter().copied().eq(0..places.len()), "{places:?}");
        for (_, event) in events {
            assert!(serde_json::from_str::<Value>(&event.properties).is_ok());
        }
    }
}

/// A survey's flow.
pub fn flows(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    if let Ok(flow) = body::parse::<Flow>(text) {
        let errors = flow::check(&flow);
        assert!(errors.iter().all(|error| error.pointer.starts_with('/')));
        let again = serde_json::to_value(&flow).expect("a flow is JSON");
        assert_eq!(body::parse_value::<Flow>(again).ok(), Some(flow));
    }
}

/// A flow, and after a blank line answers by question. What is taken is taken once more as it is kept, and every way
/// ends, with each question once.
pub fn answers(input: &[u8]) {
    let Some((flow, given)) = halves(input) else {
        return;
    };
    let (Ok(flow), Ok(given)) = (
        body::parse::<Flow>(flow),
        serde_json::from_str::<Answers>(given),
    ) else {
        return;
    };
    if !flow::check(&flow).is_empty() {
        return;
    }
    let walker = Walker::new(&flow);
    let mut answers = Answers::new();
    for (id, value) in given {
        let Some((question, Some(spec))) = walker.question(&id) else {
            continue;
        };
        if let Ok(kept) = flow::answer::check(question, spec, &value) {
            assert_eq!(flow::answer::check(question, spec, &kept), Ok(kept.clone()));
            answers.insert(id, kept);
        }
        let way = walker.way(&answers);
        let stops: HashSet<&str> = way.stops.iter().map(|stop| &*stop.question.id).collect();
        assert_eq!(stops.len(), way.stops.len());
        if let Some(next) = way.position(None) {
            assert!(stops.contains(&*next.id));
        }
    }
}

/// A document, and a merge patch (RFC 7396). To apply it twice changes nothing.
pub fn patches(input: &[u8]) {
    let Some((document, patch)) = halves(input) else {
        return;
    };
    let (Ok(mut document), Ok(patch)) = (
        serde_json::from_str::<Value>(document),
        serde_json::from_str::<Value>(patch),
    ) else {
        return;
    };
    merge::apply(&mut document, patch.clone());
    let once = document.clone();
    merge::apply(&mut document, patch);
    assert_eq!(document, once);
}
