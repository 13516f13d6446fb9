//! Webhooks.

use nudge_db::{Error, Result, Timestamp, Tx};
use serde::Deserialize;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

/// What an endpoint can be told of (specification 6.2).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum EventType {
    /// The delivery was handed to the provider path.
    Sent,
    /// The provider accepted the payload.
    Delivered,
    /// A device said that it was displayed.
    Displayed,
    /// The user tapped the notification.
    Opened,
    /// The user tapped a button of it.
    Clicked,
    /// The user dismissed it.
    Dismissed,
    /// The provider reported a permanent problem.
    Bounced,
    /// The delivery failed.
    Failed,
}

impl EventType {
    /// All types.
    pub const ALL: &[Self] = &[
        Self::Sent,
        Self::Delivered,
        Self::Displayed,
        Self::Opened,
        Self::Clicked,
        Self::Dismissed,
        Self::Bounced,
        Self::Failed,
    ];

    /// Its name, as requests and answers have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Delivered => "delivered",
            Self::Displayed => "displayed",
            Self::Opened => "opened",
            Self::Clicked => "clicked",
            Self::Dismissed => "dismissed",
            Self::Bounced => "bounced",
            Self::Failed => "failed",
        }
    }

    /// The type of a name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|event| event.name() == name)
    }
}

/// An active endpoint, as an app's snapshot has it.
#[derive(Clone, Debug)]
pub struct Subscription {
    /// The endpoint.
    pub webhook_id: Uuid,
    /// What it is told of.
    pub event_types: Vec<EventType>,
    /// Whether it was disabled because it only failed: messages are kept and not sent.
    pub disabled: bool,
}

#[derive(sqlx::FromRow)]
struct SubscriptionRow {
    id: Uuid,
    event_types: String,
    disabled_at: Option<Timestamp>,
}

/// The types of events in their column.
pub fn parse(event_types: &str) -> Result<Vec<EventType>> {
    serde_json::from_str(event_types)
        .map_err(|cause| Error::corrupt("webhooks", "event_types", cause))
}

/// The active endpoints of an app.
pub async fn subscriptions(tx: &mut Tx, app_id: Uuid) -> Result<Vec<Subscription>> {
    let rows: Vec<SubscriptionRow> = tx
        .sql("SELECT id, event_types, disabled_at FROM webhooks WHERE app_id = $1 AND active ORDER BY id")
        .bind(app_id)
        .fetch_all()
        .await?;
    let read = |row: SubscriptionRow| {
        Ok(Subscription {
            webhook_id: row.id,
            event_types: parse(&row.event_types)?,
            disabled: row.disabled_at.is_some(),
        })
    };
    rows.into_iter().map(read).collect()
}
