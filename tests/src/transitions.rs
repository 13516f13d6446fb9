//! Push deliveries that come into a state, as their sender tells webhooks.
#![expect(
    clippy::expect_used,
    reason = "test support: a test whose database fails fails where it stands"
)]

use nudge_apps::webhooks::Transition;
use nudge_campaigns::webhooks::EventType;
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
        let services = self.services();
        let found = services.apps.get(self.access.app_id).await;
        let app = found.expect("the app is read").expect("the demo app");
        let mut tx = services.db.write().await.expect("the database answers");
        let queued = nudge_apps::webhooks::enqueue(
            &mut tx,
            app.id,
            &app.webhooks,
            transitions,
            self.clock.now(),
        )
        .await
        .expect("messages are written");
        if commit {
            tx.commit().await.expect("the database commits");
            services.push.webhooks.wake(queued);
        } else {
            tx.rollback().await.expect("the database rolls back");
        }
    }
}
