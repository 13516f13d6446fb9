//! Push deliveries that come into a state, as their sender tells webhooks.
#![expect(
    clippy::expect_used,
    reason = "test support: a test whose database fails fails where it stands"
)]

use nudge_apps::webhooks::{Queued, Transition};
use nudge_campaigns::webhooks::EventType;
use nudge_db::Tx;
use serde_json::json;
use uuid::Uuid;

use crate::TestApp;

impl TestApp {
    /// A delivery of a subject comes into states, one after the other, in one transaction.
    pub async fn transit(&self, subject_id: Uuid, delivery_id: Uuid, events: &[EventType]) {
        let transitions: Vec<Transition> = events
            .iter()
            .map(|event| self.transition(subject_id, delivery_id, *event))
            .collect();
        self.enqueue(&transitions, true).await;
    }

    /// What becomes of a delivery.
    pub fn transition(&self, subject_id: Uuid, delivery_id: Uuid, event: EventType) -> Transition {
        let at = self.clock.now();
        Transition {
            subject_id,
            source_id: delivery_id,
            event,
            data: json!({
                "campaignId": Uuid::from_u128(1),
                "variantId": "a",
                "deliveryId": delivery_id,
                "subjectId": subject_id,
                "anonymousId": "ada",
                "platform": "ios",
                "test": false,
                format!("{}At", event.name()): nudge_platform::clock::to_text(at),
            }),
            at,
        }
    }

    /// Tells webhooks of transitions, in a transaction that is committed or not.
    pub async fn enqueue(&self, transitions: &[Transition], commit: bool) {
        let begun = self.services().db.write().await;
        let mut tx = begun.expect("the database answers");
        let queued = self.write_messages(&mut tx, transitions).await;
        if commit {
            tx.commit().await.expect("the database commits");
            self.services().push.webhooks.wake(queued);
        } else {
            tx.rollback().await.expect("the database rolls back");
        }
    }

    /// Writes what webhooks are told of transitions; their sender is told of it after the commit.
    pub async fn write_messages(&self, tx: &mut Tx, transitions: &[Transition]) -> Queued {
        let services = self.services();
        let found = services.apps.get(self.access.app_id).await;
        let app = found.expect("the app is read").expect("the demo app");
        let in_hand = Some(&services.push.webhooks.in_hand);
        let now = self.clock.now();
        nudge_apps::webhooks::enqueue(tx, app.id, &app.webhooks, transitions, in_hand, now)
            .await
            .expect("messages are written")
    }
}
