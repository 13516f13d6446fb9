//! Messages: what endpoints are told of a delivery's transition, a dead letter or a plugin.

pub mod in_hand;
mod store;

use in_hand::{ClaimedMessage, MessagesInHand, ReservedMessages};
use nudge_campaigns::webhooks::{EventType, Subscription};
use nudge_db::{Timestamp, Tx};
use nudge_platform::{clock, secrets};
use nudge_plugin_runtime::catalogue::SERVER;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

/// Something that endpoints are told of, such as a push delivery that came into a state.
#[derive(Clone, Debug)]
pub struct Transition {
    /// Whom it is about; nil: nobody.
    pub subject_id: Uuid,
    /// The delivery, dead letter or change of a plugin: of each, endpoints are told a type once, and in order
    /// (a delivery that is replayed can fail again).
    pub source_id: Uuid,
    /// The type.
    pub event: EventType,
    /// What receivers get as `data` (contract 10).
    pub data: Value,
    /// When it happened.
    pub at: Timestamp,
}

/// Messages that wait in a transaction; after its commit they are told to
/// `Webhooks::wake`.
#[derive(Debug, Default)]
#[must_use = "wake the sender after the commit"]
pub struct Queued {
    /// Whether any is to be claimed from the database.
    is_polled: bool,
    reserved: Vec<ReservedMessages>,
}

impl Queued {
    /// Both.
    pub fn and(mut self, other: Self) -> Self {
        self.is_polled |= other.is_polled;
        self.reserved.extend(other.reserved);
        self
    }

    /// Gives the sender those that were written as claimed; answers whether it is to look for others. Call it after the commit.
    pub fn send(self) -> bool {
        for reserved in self.reserved {
            reserved.send();
        }
        self.is_polled
    }
}

/// A message to be stored.
#[derive(Clone, Debug)]
struct Message {
    id: Uuid,
    webhook_id: Uuid,
    subject_id: Uuid,
    source_id: Uuid,
    /// Orders the messages of a source.
    position: Uuid,
    event: EventType,
    /// The bytes that are sent.
    body: String,
    /// The process that is to send it, unless an earlier one of its source has not arrived.
    node: Option<Uuid>,
}

impl Message {
    /// As the process that is to send it has it.
    fn claimed(&self) -> ClaimedMessage {
        ClaimedMessage {
            id: self.id,
            delivery_id: self.source_id,
            event_type: self.event.name().to_owned(),
            body: self.body.clone(),
            attempts: 0,
        }
    }
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

/// The id of what an endpoint is told of a transition: the same one whenever it is asked for, so that each type is sent once
/// for a source. A delivery alone can fail again, at another time, once it was replayed.
fn id_of(webhook_id: Uuid, transition: &Transition) -> Uuid {
    let (source_id, event) = (transition.source_id, transition.event);
    let failed_at = transition.at.0.to_be_bytes();
    let mut parts: Vec<&[u8]> = vec![
        b"webhook message",
        webhook_id.as_bytes(),
        source_id.as_bytes(),
        event.name().as_bytes(),
    ];
    if event == EventType::Failed {
        parts.push(&failed_at);
    }
    let hash = secrets::hash(&parts);
    let at = nudge_platform::id::made_at(source_id).unwrap_or_default();
    nudge_platform::id::derived(at, &hash)
}

/// Whether any endpoint listens for a type.
pub fn listens(subscriptions: &[Subscription], event: EventType) -> bool {
    subscriptions
        .iter()
        .any(|subscription| subscription.event_types.contains(&event))
}

/// Writes a message for each endpoint of an app that listens, in the transaction of the transitions.
/// Costs nothing where none does. The order of the transitions is the order of a source's messages. With `in_hand`, messages
/// that there is room for need not be claimed from the database.
pub async fn enqueue(
    tx: &mut Tx,
    app_id: Uuid,
    subscriptions: &[Subscription],
    transitions: &[Transition],
    in_hand: Option<&MessagesInHand>,
    now: Timestamp,
) -> nudge_db::Result<Queued> {
    let mut messages = Vec::new();
    for transition in transitions {
        let position = nudge_platform::id::new(now);
        let listening = subscriptions
            .iter()
            .filter(|subscription| subscription.event_types.contains(&transition.event));
        for subscription in listening {
            let webhook_id = subscription.webhook_id;
            let id = id_of(webhook_id, transition);
            messages.push(Message {
                id,
                webhook_id,
                subject_id: transition.subject_id,
                source_id: transition.source_id,
                position,
                event: transition.event,
                body: body(
                    id,
                    transition.event.name(),
                    app_id,
                    transition.at,
                    &transition.data,
                ),
                node: None,
            });
        }
    }
    if messages.is_empty() {
        return Ok(Queued::default());
    }
    let mut reserved = in_hand.map(|in_hand| in_hand.reserve(app_id, &mut messages));
    let claimed = store::insert(tx, app_id, &messages, now).await?;
    if let Some(reserved) = &mut reserved {
        reserved.keep(&claimed);
    }
    Ok(Queued {
        is_polled: claimed.len() < messages.len(),
        reserved: reserved.into_iter().collect(),
    })
}

/// Tells endpoints of a plugin, those of its app; of the server's plugins, those of all apps.
pub async fn enqueue_of_plugin(
    tx: &mut Tx,
    owner_id: Uuid,
    transition: &Transition,
    now: Timestamp,
) -> nudge_db::Result<()> {
    let listening = nudge_campaigns::webhooks::listening(tx, transition.event).await?;
    for (app_id, subscription) in listening {
        if owner_id == SERVER || owner_id == app_id {
            let one = std::slice::from_ref(transition);
            let _polled = enqueue(tx, app_id, &[subscription], one, None, now).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_that_of_its_endpoint_delivery_and_type() {
        let [webhook, delivery, other] = [1, 2, 3].map(Uuid::from_u128);
        let id = |webhook, source_id, event, at| {
            let transition = Transition {
                subject_id: Uuid::nil(),
                source_id,
                event,
                data: Value::Null,
                at: Timestamp(at),
            };
            id_of(webhook, &transition)
        };
        let opened = id(webhook, delivery, EventType::Opened, 1);
        assert_eq!(opened, id(webhook, delivery, EventType::Opened, 2));
        for another in [
            id(other, delivery, EventType::Opened, 1),
            id(webhook, other, EventType::Opened, 1),
            id(webhook, delivery, EventType::Clicked, 1),
        ] {
            assert_ne!(opened, another);
        }
        let failed = id(webhook, delivery, EventType::Failed, 1);
        assert_eq!(failed, id(webhook, delivery, EventType::Failed, 1));
        assert_ne!(failed, id(webhook, delivery, EventType::Failed, 2));
    }
}
