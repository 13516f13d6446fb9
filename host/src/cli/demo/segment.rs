//! A segment of the recording's people, and somebody who enters it.

use std::time::Duration;

use anyhow::Context as _;
use nudge_db::Timestamp;
use nudge_platform::{clock, id};
use serde::Serialize;
use serde_json::{Value, json};

use super::client::Client;

/// Who enters the segment.
const PERSON: &str = "shopper-regular";
/// What makes a regular: so many of these within 30 days.
const EVENT: &str = "purchase_completed";
const PURCHASES: u32 = 2;
/// How often, and how many times, it is asked what the change has fired.
const LOOK: Duration = Duration::from_millis(50);
const LOOKS: u32 = 200;

/// A segment, and what came of somebody's entering it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Entered {
    pub segment_id: String,
    pub name: String,
    /// How many of the recording's people are in it.
    pub size: i64,
    pub person: &'static str,
    pub event: &'static str,
    pub purchases: u32,
    /// What is on offer for the person after each of the purchases.
    pub offered: Vec<usize>,
    /// The person's timeline, the newest event first.
    pub timeline: Vec<String>,
}

impl Entered {
    /// Whether the change fired once, and with the purchase that made it.
    pub(super) fn adds_up(&self) -> bool {
        self.offered == [0, 1] && self.size > 0
    }
}

/// Makes a segment and a survey for those who enter it, and lets somebody enter.
pub(super) async fn enter(client: &Client, now: Timestamp) -> anyhow::Result<Entered> {
    let name = format!("{PURCHASES} purchases in 30 days");
    let leaf = json!({"kind": "event", "eventName": EVENT, "withinDays": 30,
        "count": {"operator": "gte", "n": PURCHASES}});
    let segment = json!([{"name": name, "audience": {"include": {"all": [leaf]}}}]);
    let made = client.create("segments", &segment.to_string()).await?;
    let segment = made.first().context("no segment was made")?;
    let segment_id = segment
        .get("id")
        .and_then(Value::as_str)
        .context("a segment without an id")?;
    let size = segment
        .get("size")
        .and_then(Value::as_i64)
        .unwrap_or_default();
    let trigger = json!({"kind": "segment", "segmentId": segment_id, "on": "enter"});
    let question = json!({"id": "why", "type": "long_text", "title": "What brings you back?", "required": false});
    let survey = json!([{"name": "Welcome, regular", "mode": "triggered", "status": "active", "trigger": trigger,
        "flow": {"questions": [question]}}]);
    client.create("surveys", &survey.to_string()).await?;

    let session = client.start_session(PERSON, None).await?;
    let mut offered = Vec::new();
    for number in 1..=PURCHASES {
        let event_id = id::new(now);
        let purchase = json!({"order_id": format!("ord_{number:010}"), "total": 20, "currency": "EUR", "items": 1,
            "payment_method": "card", "shipping_method": "pickup", "first_purchase": number == 1});
        let body = json!({"context": {"anonymousId": PERSON}, "delivery": {"eventIds": [event_id]},
            "events": [{"eventId": event_id, "name": EVENT, "timestamp": clock::to_text(now),
                "anonymousId": PERSON, "properties": purchase}]});
        client.ingest(&session, &body).await?;
        let mut found = client.poll(&session).await?.len();
        // A change is told by and by; the first purchase changes nothing.
        for _ in 0..LOOKS {
            if found > 0 || number < PURCHASES {
                break;
            }
            tokio::time::sleep(LOOK).await;
            found = client.poll(&session).await?.len();
        }
        offered.push(found);
    }
    Ok(Entered {
        segment_id: segment_id.to_owned(),
        name,
        size,
        person: PERSON,
        event: EVENT,
        purchases: PURCHASES,
        offered,
        timeline: client.timeline(PERSON).await?,
    })
}
