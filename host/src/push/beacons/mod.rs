//! What devices say of messages: displayed, opened, clicked, dismissed (contract 9).
//!
//! A beacon counts once for each type and delivery, and only where it comes from the person whom the delivery is
//! for. One that comes late adds its transition and lowers no state.

pub mod http;
mod store;

use nudge_db::{Kind, Timestamp};
use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::apps::App;
use crate::push::deliveries::{self, Change, Status};
use crate::services::Services;

/// How often a beacon is tried that meets other writes.
const TRIES: usize = 8;

/// What a person did with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[schema(as = BeaconType)]
#[serde(rename_all = "snake_case")]
pub enum Type {
    /// It was shown.
    Displayed,
    /// It was opened.
    Opened,
    /// One of its buttons was tapped.
    Clicked,
    /// It was dismissed.
    Dismissed,
}

/// What a device says of a message.
#[derive(Clone, Debug)]
pub struct Beacon {
    /// The delivery.
    pub delivery_id: Uuid,
    /// What the person did.
    pub kind: Type,
    /// Which button.
    pub action_id: Option<String>,
    /// When.
    pub at: Timestamp,
}

impl Type {
    fn status(self) -> Status {
        match self {
            Self::Displayed => Status::Displayed,
            Self::Opened => Status::Opened,
            Self::Clicked => Status::Clicked,
            Self::Dismissed => Status::Dismissed,
        }
    }
}

/// Takes a beacon of a subject; answers whether it is about a delivery to that subject.
pub async fn take(
    services: &Services,
    app: &App,
    subject_id: Uuid,
    beacon: &Beacon,
) -> nudge_db::Result<bool> {
    let mut tries = 1;
    loop {
        match attempt(services, app, subject_id, beacon).await {
            Err(error) if error.kind() == Kind::Serialization && tries < TRIES => tries += 1,
            outcome => return outcome,
        }
    }
}

async fn attempt(
    services: &Services,
    app: &App,
    subject_id: Uuid,
    beacon: &Beacon,
) -> nudge_db::Result<bool> {
    let now = services.clock.now();
    let mut tx = services.db.write().await?;
    let Some(found) = store::note(&mut tx, app.id, subject_id, beacon).await? else {
        // It is there already, or never was.
        return store::exists(&mut tx, app.id, subject_id, beacon.delivery_id).await;
    };
    let action = beacon
        .action_id
        .clone()
        .filter(|_| beacon.kind == Type::Clicked);
    let change = Change {
        delivery_id: beacon.delivery_id,
        campaign_id: found.campaign_id,
        variant_id: found.variant_id,
        subject_id,
        platform: found.platform,
        test: found.test,
        status: beacon.kind.status(),
        at: beacon.at,
        more: action
            .map(|action| ("actionId", action))
            .into_iter()
            .collect(),
    };
    let queued = deliveries::announce(&mut tx, app, &[change], now).await?;
    tx.commit().await?;
    services.webhooks.wake(queued);
    Ok(true)
}
