//! What webhooks can be told of, and which endpoints want it.

use nudge_db::{Error, Result, Tx};
use serde::Deserialize;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

/// What an endpoint can be told of: the transitions of deliveries (specification 6.2), and what plugins' authors have to
/// look at.
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
    /// A version of a plugin was rolled back.
    #[serde(rename = "plugin.rolled_back")]
    PluginRolledBack,
    /// The active version of a plugin fails too often, and is active for too long to be rolled back.
    #[serde(rename = "plugin.degraded")]
    PluginDegraded,
    /// An event became a dead letter.
    #[serde(rename = "dead_letter.created")]
    DeadLetterCreated,
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
        Self::PluginRolledBack,
        Self::PluginDegraded,
        Self::DeadLetterCreated,
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
            Self::PluginRolledBack => "plugin.rolled_back",
            Self::PluginDegraded => "plugin.degraded",
            Self::DeadLetterCreated => "dead_letter.created",
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
}

#[derive(nudge_db::FromRow)]
struct SubscriptionRow {
    id: Uuid,
    event_types: String,
}

impl SubscriptionRow {
    fn read(self) -> Result<Subscription> {
        Ok(Subscription {
            webhook_id: self.id,
            event_types: parse(&self.event_types)?,
        })
    }
}

/// The active endpoints of all apps that listen for a type, each with its app.
pub async fn listening(tx: &mut Tx, event: EventType) -> Result<Vec<(Uuid, Subscription)>> {
    #[derive(nudge_db::FromRow)]
    struct Row {
        app_id: Uuid,
        #[sqlx(flatten)]
        subscription: SubscriptionRow,
    }
    let rows: Vec<Row> = tx
        .sql("SELECT app_id, id, event_types FROM webhooks WHERE active AND event_types LIKE $1 ORDER BY id")
        .bind(format!("%\"{}\"%", event.name()))
        .fetch_all()
        .await?;
    let read = |row: Row| Ok((row.app_id, row.subscription.read()?));
    rows.into_iter().map(read).collect()
}

/// The types of events in their column.
pub fn parse(event_types: &str) -> Result<Vec<EventType>> {
    serde_json::from_str(event_types)
        .map_err(|cause| Error::corrupt("webhooks", "event_types", cause))
}

/// The active endpoints of an app.
pub async fn subscriptions(tx: &mut Tx, app_id: Uuid) -> Result<Vec<Subscription>> {
    let rows: Vec<SubscriptionRow> = tx
        .sql("SELECT id, event_types FROM webhooks WHERE app_id = $1 AND active ORDER BY id")
        .bind(app_id)
        .fetch_all()
        .await?;
    rows.into_iter().map(SubscriptionRow::read).collect()
}
