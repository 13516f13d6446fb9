//! What is written of a batch in one transaction, and what follows from it: webhooks, dead letters. Pure but for the
//! random part of pauses.

use std::collections::HashMap;

use nudge_apps::App;
use nudge_db::{Error, Result, Timestamp};
use nudge_platform::secrets;
use nudge_records::dead_letters::{Letter, Stage};
use nudge_records::deliveries::in_hand::ClaimedDelivery;
use nudge_records::deliveries::{Change, Device, Status};
use uuid::Uuid;

use super::outcome::{self, DeliveryProgress};
use super::plan::Broken;
use super::store::{After, Settled};

/// What is written in one transaction.
#[derive(Default)]
pub(super) struct Write {
    pub settled: Vec<Settled>,
    /// What follows if the delivery is in the status then.
    changes: Vec<Change>,
    pub letters: Vec<(Uuid, Letter)>,
}

impl Write {
    /// A delivery that is over before it was handed over. Of its platform nothing is known but what a device of the person runs.
    /// Where its event can't be read, nothing is noted.
    pub(super) fn end(
        &mut self,
        app: &App,
        delivery: &ClaimedDelivery,
        (status, reason, platform): (Status, String, Option<&'static str>),
        broken: Option<&Broken>,
        now: Timestamp,
    ) -> Result<()> {
        let keep = |broken: &Broken| -> Result<(Uuid, Letter)> {
            let letter = Letter::new(
                app.id,
                broken.alias,
                broken.stored.received_at,
                &broken.stored.event,
                Stage::Personalization,
                Some(delivery.campaign_id),
                broken.code.to_owned(),
                broken.plugin.as_ref(),
            )?;
            Ok((delivery.id, letter.saying(&broken.detail)))
        };
        self.letters.extend(broken.map(keep).transpose()?);
        let platform = platform.map(str::to_owned);
        let platform = delivery.platform.clone().or(platform);
        let mut change = change(delivery, platform, status, now);
        change.more.push(("reason", reason.clone()));
        self.changes.push(change);
        self.settled.push(Settled {
            id: delivery.id,
            attempts: delivery.attempts,
            status: Some(status.name()),
            reason: Some(reason),
            devices: None,
            platform: None,
            due_at: None,
            delivered_at: None,
            ended_at: Some(now),
            keeps_data: broken.is_some(),
        });
        Ok(())
    }

    /// A delivery whose devices are known after so many attempts.
    pub(super) fn known(
        &mut self,
        delivery: &ClaimedDelivery,
        devices: &[Device],
        attempts: i64,
        now: Timestamp,
    ) {
        let DeliveryProgress {
            status,
            reason,
            waits,
            platform,
            provider_message_id,
        } = outcome::delivery_progress(devices);
        let platform = platform.map(|platform| platform.name().to_owned());
        let pause = outcome::pause(attempts, None, jitter());
        let delivered = status == Some(Status::Delivered);
        let news = !delivered || delivery.delivered_at.is_none();
        if let Some(status) = status.filter(|_| news) {
            let platform = platform.clone().or_else(|| delivery.platform.clone());
            let mut change = change(delivery, platform, status, now);
            let more = if delivered {
                ("providerMessageId", provider_message_id)
            } else {
                ("reason", reason.clone())
            };
            change.more.extend(more.1.map(|value| (more.0, value)));
            self.changes.push(change);
        }
        self.settled.push(Settled {
            id: delivery.id,
            attempts,
            status: status.map(Status::name),
            reason,
            devices: json(&devices).ok(),
            platform,
            due_at: waits.then(|| outcome::first_due(devices, now.plus(pause))),
            delivered_at: delivered.then_some(now),
            ended_at: status.filter(|_| !delivered).map(|_| now),
            keeps_data: false,
        });
    }

    /// The changes of the deliveries that were written. One that was further already, by a beacon, did not fail;
    /// that its provider took it is news nevertheless.
    pub(super) fn changes_that_happened(&self, after: &[After]) -> Vec<Change> {
        let after: HashMap<Uuid, &After> = after.iter().map(|row| (row.id, row)).collect();
        let happened = |change: &Change| {
            let row = after.get(&change.delivery_id)?;
            let is = change.status == Status::Delivered || row.status == change.status.name();
            is.then(|| Change {
                subject_id: row.subject_id,
                ..change.clone()
            })
        };
        self.changes.iter().filter_map(happened).collect()
    }
}

/// A delivery that comes into a state.
pub(super) fn change(
    delivery: &ClaimedDelivery,
    platform: Option<String>,
    status: Status,
    at: Timestamp,
) -> Change {
    Change {
        delivery_id: delivery.id,
        campaign_id: delivery.campaign_id,
        variant_id: delivery.variant_id,
        subject_id: delivery.subject_id,
        platform,
        test: delivery.test,
        status,
        at,
        more: Vec::new(),
    }
}

/// A number from 0 to 1.
pub(super) fn jitter() -> f64 {
    f64::from(u16::from_be_bytes(secrets::random())) / f64::from(u16::MAX)
}

/// What is stored as JSON.
pub(super) fn json(value: &impl serde::Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|cause| Error::corrupt("deliveries", "content", cause))
}
