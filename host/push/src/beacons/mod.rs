//! What devices say of messages: displayed, opened, clicked, dismissed (contract 9).
//!
//! A beacon counts once for each type and delivery, and only where it comes from the person whom the delivery is
//! for. One that comes late adds its transition and lowers no state. A request's beacons are one transaction.

pub mod http;
mod store;

use nudge_apps::App;
use nudge_apps::subject_token::SubjectToken;
use nudge_db::{Kind, Timestamp};
use nudge_records::deliveries::{self, Change, Status};
use nudge_records::subjects::current::{self, TokenRefusal};
use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::services::Services;

/// How often beacons are tried that meet other writes.
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
    /// When, by the device's clock.
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

/// Takes the beacons of a subject, all of them in one transaction, in their order; answers of each whether it is about
/// a delivery to that subject. Where none of them is news, nothing is written and the writer is not asked for.
pub async fn take(
    services: &Services,
    app: &App,
    token: &SubjectToken,
    beacons: &[Beacon],
) -> Result<Vec<bool>, TokenRefusal> {
    let mut tx = services.db.read().await?;
    let subject_id = current::read(&mut tx, token).await?.subject_id;
    let mut known = store::known(&mut tx, app.id, subject_id, beacons).await?;
    drop(tx);
    let news: Vec<Beacon> = beacons
        .iter()
        .filter_map(|beacon| known.get(&beacon.delivery_id)?.news(beacon))
        .collect();
    let mut tries = 1;
    while !news.is_empty() {
        match attempt(services, app, token, &news).await {
            Err(TokenRefusal::Storage(error))
                if error.kind() == Kind::Serialization && tries < TRIES =>
            {
                tries += 1;
            }
            lost => {
                for delivery_id in lost? {
                    known.remove(&delivery_id);
                }
                break;
            }
        }
    }
    let is_known = |beacon: &Beacon| known.contains_key(&beacon.delivery_id);
    Ok(beacons.iter().map(is_known).collect())
}

/// Notes what is new; answers the deliveries that are the subject's no longer.
async fn attempt(
    services: &Services,
    app: &App,
    token: &SubjectToken,
    news: &[Beacon],
) -> Result<Vec<Uuid>, TokenRefusal> {
    let now = services.clock.now();
    let mut tx = services.db.write().await?;
    let subject_id = current::lock(&mut tx, token).await?.subject_id;
    let (mut changes, mut lost) = (Vec::new(), Vec::new());
    for beacon in news {
        let (id, kind) = (beacon.delivery_id, beacon.kind);
        let Some(found) = store::note(&mut tx, app.id, subject_id, beacon).await? else {
            // It came twice, or another request brought it meanwhile; or the delivery is gone.
            if !store::exists(&mut tx, app.id, subject_id, id).await? {
                lost.push(id);
            }
            continue;
        };
        let action = beacon.action_id.clone().filter(|_| kind == Type::Clicked);
        changes.push(Change {
            delivery_id: id,
            campaign_id: found.campaign_id,
            variant_id: found.variant_id,
            subject_id,
            platform: found.platform,
            test: found.test,
            status: kind.status(),
            at: beacon.at,
            more: action
                .map(|action| ("actionId", action))
                .into_iter()
                .collect(),
        });
    }
    let queued =
        deliveries::announce(&mut tx, app, &changes, &services.webhooks.in_hand, now).await?;
    tx.commit().await?;
    services.webhooks.wake(queued);
    Ok(lost)
}
