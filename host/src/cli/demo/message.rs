//! An in-app message, from the event that fires it to the button that is pressed.

use anyhow::Context as _;
use nudge_db::Timestamp;
use nudge_platform::{clock, id};
use serde::Serialize;
use serde_json::{Value, json};

use super::client::Client;

/// Who meets the message.
const PERSON: &str = "shopper-in-app";
/// What fires it. None of the recording's surveys waits for it.
const EVENT: &str = "wishlist_shared";
/// The button that is pressed.
const PRESSED: &str = "open";

/// What was shown to somebody, and what came of it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Shown {
    pub campaign_id: String,
    pub person: &'static str,
    pub event: &'static str,
    /// The headline with the event's value in it.
    pub title: String,
    pub layout: String,
    pub pressed: &'static str,
    /// What the campaign's analytics say afterwards.
    pub totals: Value,
    /// Whether the person was shown it once, and what was pressed is counted.
    pub adds_up: bool,
}

/// Makes a campaign, fires it, presses a button of what it shows, and reads what is counted.
pub(super) async fn show(client: &Client, now: Timestamp) -> anyhow::Result<Shown> {
    let personalization = json!({"version": 1, "missingData": "skip",
        "sources": [{"id": "event", "label": "The event", "kind": "trigger_event"}],
        "bindings": [{"id": "items", "label": "Items", "sourceId": "event", "key": "items", "type": "number"}]});
    let campaign = json!([{"type": "in_app", "name": "Wishlist shared", "mode": "triggered", "status": "active",
        "trigger": {"kind": "event", "eventName": EVENT},
        "variants": [{"layout": "card", "title": "{{p.items}} wishes shared", "body": "Your friends can see them now.",
            "buttons": [{"id": PRESSED, "label": "Open", "openAction": {"action": "deep_link", "url": "shop://wishlist"}}],
            "personalization": personalization}]}]);
    let made = client.create("campaigns", &campaign.to_string()).await?;
    let campaign_id = made
        .first()
        .and_then(|made| made.get("id"))
        .and_then(Value::as_str);
    let campaign_id = campaign_id.context("the campaign has no id")?.to_owned();

    let session = client.start_session(PERSON, None).await?;
    let event_id = id::new(now);
    let body = json!({"context": {"anonymousId": PERSON}, "delivery": {"eventIds": [event_id]},
        "events": [{"eventId": event_id, "name": EVENT, "timestamp": clock::to_text(now),
            "anonymousId": PERSON, "properties": {"items": 3}}]});
    let ingested = client.ingest(&session, &body).await?;
    let instruction = ingested.instructions.first();
    let instruction = instruction.context("the event fired no in-app message")?;
    let message = |name: &str| {
        let message = instruction.payload.get("message");
        let part = message
            .and_then(|message| message.get(name))
            .and_then(Value::as_str);
        part.unwrap_or_default().to_owned()
    };
    let (title, layout) = (message("title"), message("layout"));
    for (status, action) in [("displayed", None), ("clicked", Some(PRESSED))] {
        client
            .acknowledge(&session, PERSON, instruction.id, status, action)
            .await?;
    }
    let report = client.analytics(&campaign_id).await?;
    let totals = report.get("totals").cloned().unwrap_or_default();
    let is = |name: &str, number: i64| totals.get(name).and_then(Value::as_i64) == Some(number);
    let pressed = report
        .pointer("/perAction/0/actionId")
        .and_then(Value::as_str);
    Ok(Shown {
        adds_up: is("recipients", 1)
            && is("displayed", 1)
            && is("clicked", 1)
            && pressed == Some(PRESSED),
        campaign_id,
        person: PERSON,
        event: EVENT,
        title,
        layout,
        pressed: PRESSED,
        totals,
    })
}
