//! Deliveries: one message to one person, from the firing or request that asks for it to what the person did
//! with it (contract 9).
//!
//! States only go forward: a beacon that comes late adds its transition and lowers nothing. A delivery to
//! several devices is where the furthest of them is.

pub mod in_hand;
pub mod provider;
pub mod store;

use std::collections::{BTreeMap, HashSet};

use nudge_apps::App;
use nudge_apps::webhooks::{self, Queued, Transition};
use nudge_campaigns::push::rendered::Rendered;
use nudge_campaigns::webhooks::EventType;
use nudge_db::{Timestamp, Tx};
use nudge_platform::clock;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use strum::{EnumString, IntoStaticStr};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::events::EventRef;
use provider::{Platform, Provider};

/// Where a delivery stands.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    ToSchema,
    EnumString,
    IntoStaticStr,
)]
#[strum(serialize_all = "snake_case")]
#[schema(as = DeliveryStatus)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It waits for the sender.
    Queued,
    /// It was handed to the provider path.
    Sent,
    /// It could not be sent.
    Failed,
    /// A provider reported a permanent problem.
    Bounced,
    /// A provider has it.
    Delivered,
    /// A device showed it.
    Displayed,
    /// The person dismissed it.
    Dismissed,
    /// The person opened it.
    Opened,
    /// The person tapped one of its buttons.
    Clicked,
    /// There was nothing to send, or nobody to send it to.
    Skipped,
    /// It was called off.
    Cancelled,
}

impl Status {
    /// All of them; those that can follow each other in that order.
    pub const ALL: [Self; 11] = [
        Self::Queued,
        Self::Sent,
        Self::Failed,
        Self::Bounced,
        Self::Delivered,
        Self::Displayed,
        Self::Dismissed,
        Self::Opened,
        Self::Clicked,
        Self::Skipped,
        Self::Cancelled,
    ];

    /// The name, as the API and the database have it.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The status of a name.
    pub fn of_name(name: &str) -> Option<Self> {
        name.parse().ok()
    }

    /// The statuses that a transition to this one leads on from; from others it lowers nothing.
    pub fn earlier(self) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |other| *other < self)
    }

    /// The webhook event that a transition to it is.
    fn event(self) -> Option<EventType> {
        EventType::of(self.name())
    }

    /// The member of a webhook's `data` that says when.
    fn member(self) -> String {
        format!("{}At", self.name())
    }
}

/// Which deliveries of an app are sent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// Somebody waits for them: transactional ones and tests.
    Urgent,
    /// The others.
    Rest,
}

impl Urgency {
    /// Its number in the database.
    pub fn number(self) -> i64 {
        match self {
            Self::Urgent => 0,
            Self::Rest => 1,
        }
    }
}

/// What became of a delivery at one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Device {
    /// What its SDK calls it.
    pub device_id: String,
    /// What it runs.
    pub platform: Platform,
    /// The service that reaches it.
    pub provider: Provider,
    /// Where it stands.
    pub state: DeviceState,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What the provider calls the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_message_id: Option<String>,
    /// How often its provider was asked. None: as often as the delivery was handed over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<i64>,
    /// When it is sent to again, while it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<Timestamp>,
}

/// Where a delivery stands at one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceState {
    /// It will be sent, again or for the first time.
    Waiting,
    /// It is about to be handed to the provider, or just was.
    Sending,
    /// The provider has it.
    Accepted,
    /// The provider knows the device no longer.
    Bounced,
    /// It will not be sent.
    Failed,
    /// The process ended while it was handed over. It is not sent again: it may be there.
    Unknown,
}

/// A delivery to be made.
#[derive(Clone, Debug)]
pub struct NewDelivery {
    /// Its id.
    pub id: Uuid,
    /// The campaign.
    pub campaign_id: Uuid,
    /// The campaign's version.
    pub campaign_version: i64,
    /// The variant.
    pub variant_id: Uuid,
    /// Whom it is for.
    pub subject_id: Uuid,
    /// The event that caused it, which may be that of the campaign's own occasion.
    pub event: Option<EventRef>,
    /// The data of the request that asked for it, as JSON.
    pub data: Option<String>,
    /// What makes the request one that can be repeated.
    pub idempotency_key: Option<String>,
    /// Whether somebody tries the campaign out.
    pub test: bool,
    /// How many devices it was for when it was asked for.
    pub recipients: i64,
    /// `queued` or, where it ends at once, `skipped` or `failed`.
    pub status: Status,
    /// Why it ended.
    pub reason: Option<String>,
    /// What it says, where that is known already.
    pub content: Option<Rendered>,
    /// How urgent it is.
    pub urgency: Urgency,
    /// The process that has it in hand from the beginning, see [`DeliveriesInHand::reserve`](in_hand::DeliveriesInHand::reserve); none: whichever has room.
    pub node: Option<Uuid>,
}

/// A delivery that came into a state.
#[derive(Clone, Debug)]
pub struct Change {
    /// The delivery.
    pub delivery_id: Uuid,
    /// Its campaign.
    pub campaign_id: Uuid,
    /// Its variant.
    pub variant_id: Uuid,
    /// Whom it is for.
    pub subject_id: Uuid,
    /// What the device runs.
    pub platform: Option<String>,
    /// Whether somebody tries the campaign out.
    pub test: bool,
    /// The state.
    pub status: Status,
    /// When it came into it.
    pub at: Timestamp,
    /// What is said of it besides: `reason`, `actionId`, `providerMessageId`.
    pub more: Vec<(&'static str, String)>,
}

/// Adds deliveries that are not there yet, and counts them; answers the ids of those that are new. [Reserve](in_hand::DeliveriesInHand::reserve)
/// places for them before; after the commit, [send](in_hand::ReservedDeliveries::send) them.
pub async fn queue(
    tx: &mut Tx,
    app_id: Uuid,
    deliveries: &[NewDelivery],
    now: Timestamp,
) -> nudge_db::Result<HashSet<Uuid>> {
    if deliveries.is_empty() {
        return Ok(HashSet::new());
    }
    let inserted = store::insert(tx, app_id, deliveries, now).await?;
    let mut counts: BTreeMap<(Uuid, &'static str), i64> = BTreeMap::new();
    for delivery in deliveries {
        if delivery.test || !inserted.contains(&delivery.id) {
            continue;
        }
        *counts
            .entry((delivery.campaign_id, Status::Queued.name()))
            .or_default() += 1;
        if delivery.status != Status::Queued {
            *counts
                .entry((delivery.campaign_id, delivery.status.name()))
                .or_default() += 1;
        }
    }
    store::count(tx, app_id, &counts, now).await?;
    Ok(inserted)
}

/// Counts transitions and tells webhooks of them, in the transaction that they are made in. The last thing that a
/// transaction does: counts are rows that many have in common. Wake the webhooks' sender, which has `in_hand`, after the commit.
pub async fn announce(
    tx: &mut Tx,
    app: &App,
    changes: &[Change],
    in_hand: &webhooks::in_hand::MessagesInHand,
    now: Timestamp,
) -> nudge_db::Result<Queued> {
    let mut queued = Queued::default();
    if !app.webhooks.is_empty() {
        let transitions = transitions(tx, app.id, changes).await?;
        let listening = &app.webhooks;
        queued = webhooks::enqueue(tx, app.id, listening, &transitions, Some(in_hand), now).await?;
    }
    let mut counts: BTreeMap<(Uuid, &'static str), i64> = BTreeMap::new();
    for change in changes.iter().filter(|change| !change.test) {
        *counts
            .entry((change.campaign_id, change.status.name()))
            .or_default() += 1;
    }
    store::count(tx, app.id, &counts, now).await?;
    Ok(queued)
}

/// What webhooks are told (contract 10).
async fn transitions(
    tx: &mut Tx,
    app_id: Uuid,
    changes: &[Change],
) -> nudge_db::Result<Vec<Transition>> {
    let told: Vec<(&Change, EventType)> = changes
        .iter()
        .filter_map(|change| Some((change, change.status.event()?)))
        .collect();
    let subjects: Vec<Uuid> = told.iter().map(|(change, _)| change.subject_id).collect();
    let names = store::names(tx, app_id, &subjects).await?;
    let transitions = told.into_iter().map(|(change, event)| {
        let name = names.get(&change.subject_id);
        let mut data = Map::new();
        let mut set = |key: &str, value: Value| drop(data.insert(key.to_owned(), value));
        set("campaignId", json!(change.campaign_id));
        set("variantId", json!(change.variant_id));
        set("deliveryId", json!(change.delivery_id));
        set("subjectId", json!(change.subject_id));
        if let Some(id) = name.and_then(|name| name.external_id.as_ref()) {
            set("externalId", json!(id));
        }
        set(
            "anonymousId",
            json!(name.and_then(|name| name.anonymous_id.as_ref())),
        );
        set("platform", json!(change.platform));
        set("test", json!(change.test));
        set(&change.status.member(), json!(clock::to_text(change.at)));
        for (key, value) in &change.more {
            set(key, json!(value));
        }
        Transition {
            subject_id: change.subject_id,
            source_id: change.delivery_id,
            event,
            data: Value::Object(data),
            at: change.at,
        }
    });
    Ok(transitions.collect())
}

/// The numbers of deliveries that came into each state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[expect(missing_docs, reason = "Status describes them")]
pub struct Stats {
    pub queued: i64,
    pub sent: i64,
    pub delivered: i64,
    pub displayed: i64,
    pub opened: i64,
    pub clicked: i64,
    pub dismissed: i64,
    pub bounced: i64,
    pub failed: i64,
    pub skipped: i64,
    pub cancelled: i64,
}

impl Stats {
    /// Adds to the number of a state.
    pub fn add(&mut self, state: &str, count: i64) {
        let Some(status) = Status::of_name(state) else {
            return;
        };
        *match status {
            Status::Queued => &mut self.queued,
            Status::Sent => &mut self.sent,
            Status::Delivered => &mut self.delivered,
            Status::Displayed => &mut self.displayed,
            Status::Opened => &mut self.opened,
            Status::Clicked => &mut self.clicked,
            Status::Dismissed => &mut self.dismissed,
            Status::Bounced => &mut self.bounced,
            Status::Failed => &mut self.failed,
            Status::Skipped => &mut self.skipped,
            Status::Cancelled => &mut self.cancelled,
        } += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_beacon_lowers_nothing() {
        use Status::{Clicked, Delivered, Dismissed, Displayed, Failed, Opened, Queued, Sent};
        let mut way = [Queued, Sent, Delivered, Displayed, Opened, Clicked];
        assert!(way.is_sorted());
        way.reverse();
        for (place, later) in way.iter().enumerate() {
            assert_eq!(
                later.earlier().filter(|it| way.contains(it)).count(),
                5 - place
            );
        }
        assert!(Displayed < Dismissed && Dismissed < Opened && Failed < Delivered);
        assert_eq!(
            Status::ALL.map(Status::name).map(Status::of_name),
            Status::ALL.map(Some)
        );
    }

    #[test]
    fn webhooks_hear_of_what_the_contract_names() {
        let told: Vec<&str> = Status::ALL
            .into_iter()
            .filter(|status| status.event().is_some())
            .map(Status::name)
            .collect();
        assert_eq!(told.len(), 8, "each type of a delivery");
        assert_eq!(Status::Displayed.member(), "displayedAt");
    }
}
