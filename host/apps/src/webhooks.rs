//! Messages: what endpoints are told of a delivery's transition, a dead letter or a plugin.

use nudge_campaigns::webhooks::{EventType, Subscription};
use nudge_db::{Rows, Timestamp, Tx};
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
    /// The delivery, dead letter or change of a plugin: of each, endpoints are told a type once, and in order.
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
    /// Whether it is kept without being sent.
    held: bool,
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

/// The id of what an endpoint is told of a source and a type: the same one whenever it is asked for, so that
/// each type is sent once for a source.
fn id_of(webhook_id: Uuid, source_id: Uuid, event: EventType) -> Uuid {
    let hash = secrets::hash(&[
        b"webhook message",
        webhook_id.as_bytes(),
        source_id.as_bytes(),
        event.name().as_bytes(),
    ]);
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
/// Costs nothing where none does. The order of the transitions is the order of a source's messages.
pub async fn enqueue(
    tx: &mut Tx,
    app_id: Uuid,
    subscriptions: &[Subscription],
    transitions: &[Transition],
    now: Timestamp,
) -> nudge_db::Result<Queued> {
    if subscriptions.is_empty() {
        return Ok(Queued::default());
    }
    let mut messages = Vec::new();
    for transition in transitions {
        let position = nudge_platform::id::new(now);
        let listening = subscriptions
            .iter()
            .filter(|subscription| subscription.event_types.contains(&transition.event));
        for subscription in listening {
            let webhook_id = subscription.webhook_id;
            let id = id_of(webhook_id, transition.source_id, transition.event);
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
                held: subscription.disabled,
            });
        }
    }
    insert_messages(tx, app_id, &messages, now).await?;
    Ok(Queued {
        messages: messages.len(),
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
            let _polled = enqueue(tx, app_id, &[subscription], one, now).await?;
        }
    }
    Ok(())
}

/// Adds messages. One that is there already stays as it is: each type is sent once for a source.
async fn insert_messages(
    tx: &mut Tx,
    app_id: Uuid,
    messages: &[Message],
    now: Timestamp,
) -> nudge_db::Result<()> {
    for chunk in messages.chunks(Rows::MOST) {
        let rows = Rows::new()
            .uuids(chunk.iter().map(|message| message.id))
            .uuids(chunk.iter().map(|_| app_id))
            .uuids(chunk.iter().map(|message| message.webhook_id))
            .uuids(chunk.iter().map(|message| message.subject_id))
            .uuids(chunk.iter().map(|message| message.source_id))
            .uuids(chunk.iter().map(|message| message.position))
            .texts(chunk.iter().map(|message| message.event.name().to_owned()))
            .texts(chunk.iter().map(|message| message.body.clone()))
            .texts(chunk.iter().map(|message| {
                let state = if message.held { "held" } else { "pending" };
                state.to_owned()
            }))
            .timestamps(chunk.iter().map(|message| (!message.held).then_some(now)));
        tx.with_rows(
            "v(id, app_id, webhook_id, subject_id, delivery_id, position, event_type, body, state, due_at)",
            rows,
        )
        .push(
            " INSERT INTO webhook_messages (id, app_id, webhook_id, subject_id, delivery_id, position, event_type,
                                            body, state, attempts, created_at, due_at)
              SELECT id, app_id, webhook_id, subject_id, delivery_id, position, event_type, body, state, 0, ",
        )
        .push_bind(now)
        .push(", due_at FROM v WHERE true ON CONFLICT (id) DO NOTHING")
        .execute()
        .await?;
    }
    Ok(())
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
