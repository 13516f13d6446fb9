//! Messages: what endpoints are told of a delivery's transition.

use nudge_apps::registry::App;
use nudge_campaigns::webhooks::EventType;
use nudge_db::{Timestamp, Tx};
use nudge_platform::{clock, secrets};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

/// A push delivery that came into a state.
#[derive(Clone, Debug)]
pub struct Transition {
    /// The app.
    pub app_id: Uuid,
    /// Whom the delivery is for.
    pub subject_id: Uuid,
    /// The delivery.
    pub delivery_id: Uuid,
    /// The state.
    pub event: EventType,
    /// What receivers get as `data` (contract 10).
    pub data: Value,
    /// When it happened.
    pub at: Timestamp,
}

/// Messages that wait in a transaction; after its commit they are told to
/// `Webhooks::wake`.
#[derive(Clone, Copy, Debug, Default)]
#[must_use = "wake the sender after the commit"]
pub struct Queued {
    /// How many.
    pub messages: usize,
}

impl Queued {
    /// Both.
    pub fn and(self, other: Self) -> Self {
        Self {
            messages: self.messages + other.messages,
        }
    }
}

/// A message to be stored.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub id: Uuid,
    pub app_id: Uuid,
    pub webhook_id: Uuid,
    pub subject_id: Uuid,
    pub delivery_id: Uuid,
    /// Orders the messages of a delivery.
    pub position: Uuid,
    pub event: EventType,
    /// The bytes that are sent.
    pub body: String,
    /// Whether it is kept without being sent.
    pub held: bool,
}

/// The body of a request (specification 6.3); `id` is contract 10's.
#[derive(Serialize)]
struct Body<'a> {
    id: Uuid,
    event: &'a str,
    app_id: Uuid,
    fired_at: String,
    data: &'a Value,
}

/// The bytes of a request's body.
pub fn body(id: Uuid, event: &str, app_id: Uuid, at: Timestamp, data: &Value) -> String {
    let body = Body {
        id,
        event,
        app_id,
        fired_at: clock::to_text(at),
        data,
    };
    // A struct of texts and a value can't fail to be written.
    serde_json::to_string(&body).unwrap_or_default()
}

/// The id of what an endpoint is told of a delivery and a type: the same one whenever it is asked for, so that
/// each type is sent once for a delivery.
fn id_of(webhook_id: Uuid, delivery_id: Uuid, event: EventType) -> Uuid {
    let hash = secrets::hash(&[
        b"webhook message",
        webhook_id.as_bytes(),
        delivery_id.as_bytes(),
        event.name().as_bytes(),
    ]);
    let at = nudge_platform::id::made_at(delivery_id).unwrap_or_default();
    nudge_platform::id::derived(at, &hash)
}

/// Writes a message for each active endpoint of the app that listens, in the transaction of the transitions.
/// Costs nothing where none does. The order of the transitions is the order of a delivery's messages.
pub async fn enqueue(
    tx: &mut Tx,
    app: &App,
    transitions: &[Transition],
    now: Timestamp,
) -> nudge_db::Result<Queued> {
    if app.webhooks.is_empty() {
        return Ok(Queued::default());
    }
    let mut messages = Vec::new();
    for transition in transitions {
        let position = nudge_platform::id::new(now);
        let listening = app
            .webhooks
            .iter()
            .filter(|subscription| subscription.event_types.contains(&transition.event));
        for subscription in listening {
            let webhook_id = subscription.webhook_id;
            let id = id_of(webhook_id, transition.delivery_id, transition.event);
            messages.push(Message {
                id,
                app_id: app.id,
                webhook_id,
                subject_id: transition.subject_id,
                delivery_id: transition.delivery_id,
                position,
                event: transition.event,
                body: body(
                    id,
                    transition.event.name(),
                    app.id,
                    transition.at,
                    &transition.data,
                ),
                held: subscription.disabled,
            });
        }
    }
    crate::webhooks::messages::insert_messages(tx, &messages, now).await?;
    Ok(Queued {
        messages: messages.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_that_of_its_endpoint_delivery_and_type() {
        let [webhook, delivery, other] = [1, 2, 3].map(Uuid::from_u128);
        let id = id_of(webhook, delivery, EventType::Opened);
        assert_eq!(id, id_of(webhook, delivery, EventType::Opened));
        for another in [
            id_of(other, delivery, EventType::Opened),
            id_of(webhook, other, EventType::Opened),
            id_of(webhook, delivery, EventType::Clicked),
        ] {
            assert_ne!(id, another);
        }
    }
}
