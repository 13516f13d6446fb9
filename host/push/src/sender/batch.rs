//! Some deliveries of one app, from their claims to what became of them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use nudge_apps::App;
use nudge_apps::webhooks::Queued;
use nudge_campaigns::campaign::Status as CampaignStatus;
use nudge_campaigns::push::message::Message;
use nudge_campaigns::store::{self as campaigns, Hold};
use nudge_db::{Dialect, Kind, Result, Timestamp, Tx};
use nudge_platform::traces::{KeyValue, NewSpan, Traces};
use nudge_records::dead_letters::{self, Letter};
use nudge_records::deliveries::in_hand::{
    ClaimedDelivery, HANDED_TOGETHER, Places, ReadyDeliveries,
};
use nudge_records::deliveries::{self, Change, Device, DeviceState, Status};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use super::campaign::halted_since;
use super::devices::Outgoing;
use super::plan::{self, Planned, Step, unreadable};
use super::store::{self, HandOver};
use super::write::{Write, change, jitter, json};
use super::{Sender, outcome};
use crate::providers::{PushOutcome, Target};

/// Devices of a delivery that are with providers at a time. Of deliveries it is all that are noted as handed over: they
/// are in doubt if the process ends.
const DEVICES_AT_ONCE: usize = 4;
/// Outcomes that are written together, at the most, and how long they may gather.
const WRITTEN: usize = HANDED_TOGETHER;
const GATHERING: Duration = Duration::from_millis(20);
/// The pause before the database is tried again, at first and at the longest.
const PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// When deliveries come up again that could not be looked at.
const LATER: Duration = Duration::from_secs(5);
/// How often a transaction that met another one is tried.
const TRIES: usize = 5;

/// Some deliveries of one app that this process has claimed.
pub(super) struct Batch {
    sender: Sender,
    app_id: Uuid,
    claimed: Vec<ClaimedDelivery>,
    places: Places,
}

/// A delivery that was noted as handed over.
struct Handed {
    delivery: ClaimedDelivery,
    outgoing: Outgoing,
}

/// How often a device's provider was asked, and how long it wants to be left alone.
type Tried = (i64, Option<Duration>);

/// What became of a delivery: the row and the devices.
struct Attempted {
    delivery: ClaimedDelivery,
    devices: Vec<Device>,
}

impl Batch {
    pub(super) fn new(sender: &Sender, ready: ReadyDeliveries) -> Self {
        Self {
            sender: sender.clone(),
            app_id: ready.app_id,
            claimed: ready.deliveries,
            places: ready.places,
        }
    }

    /// Sends what can be sent, and writes what becomes of it.
    pub(super) async fn run(&self) {
        stream::iter(self.claimed.chunks(HANDED_TOGETHER))
            .for_each_concurrent(None, |some| self.send(some))
            .await;
    }

    /// Sends some of the deliveries, once there is room for them at the providers.
    async fn send(&self, claimed: &[ClaimedDelivery]) {
        let room = u32::try_from(claimed.len()).unwrap_or(u32::MAX);
        let room = tokio::select! {
            room = Arc::clone(&self.places.at_providers).acquire_many_owned(room) => room,
            // Claims end with the process.
            () = self.sender.halt.cancelled() => return,
        };
        // Nobody closes it.
        let Ok(mut room) = room else { return };
        // Only now: campaigns may have been paused while there was no room.
        let found = async {
            match self.sender.services.apps.get(self.app_id).await? {
                Some(app) => Ok(Some((self.hand_over(&app, claimed).await?, app))),
                // Its rows are on their way out.
                None => Ok::<_, nudge_db::Error>(None),
            }
        };
        let (handed, app) = match found.await {
            Ok(Some(found)) => found,
            Ok(None) => return self.give_up_for_now(claimed).await,
            Err(error) => {
                tracing::warn!(error = ?error, "deliveries are looked at again later");
                return self.give_up_for_now(claimed).await;
            }
        };
        let sent: HashSet<Uuid> = handed.iter().map(|handed| handed.delivery.id).collect();
        drop(room.split(claimed.len() - handed.len()));
        let others = claimed.iter().map(|delivery| delivery.id);
        self.places.free(others.filter(|id| !sent.contains(id)));
        let (done, outcomes) = mpsc::unbounded_channel();
        let attempts = async move {
            let (sender, app_id) = (&self.sender, self.app_id);
            stream::iter(handed)
                .for_each_concurrent(None, async |handed| {
                    // Whoever writes them down stays until the last one.
                    drop(done.send(attempt(sender, app_id, handed).await));
                })
                .await;
            drop(done);
        };
        tokio::join!(attempts, self.write_down(&app, outcomes, room));
    }

    /// Writes outcomes as they come, those of a short while together; no hand-over waits for it.
    async fn write_down(
        &self,
        app: &App,
        mut outcomes: mpsc::UnboundedReceiver<Attempted>,
        mut room: OwnedSemaphorePermit,
    ) {
        let mut some = Vec::with_capacity(WRITTEN);
        while outcomes.recv_many(&mut some, WRITTEN).await > 0 {
            let until = Instant::now() + GATHERING;
            while some.len() < WRITTEN
                && let Ok(Some(next)) = timeout_at(until, outcomes.recv()).await
            {
                some.push(next);
            }
            let over: Vec<Uuid> = some.iter().map(|one| one.delivery.id).collect();
            self.conclude(app, std::mem::take(&mut some)).await;
            drop(room.split(over.len()));
            self.places.free(over);
        }
    }

    /// Decides about the deliveries and notes it, in one transaction; answers those that are sent now.
    async fn hand_over(&self, app: &App, claimed: &[ClaimedDelivery]) -> Result<Vec<Handed>> {
        let services = &self.sender.services;
        let now = services.clock.now();
        let Planned {
            app_version,
            mut steps,
            platforms,
        } = plan::plan(services, app, claimed, now).await?;
        let mut write = Write::default();
        let (mut send, mut park, mut later) = (Vec::new(), Vec::new(), Vec::new());
        for delivery in claimed {
            match steps.remove(&delivery.id) {
                Some(Step::Send(outgoing)) => send.push(Handed {
                    delivery: delivery.clone(),
                    outgoing: *outgoing,
                }),
                Some(Step::End(status, reason, broken)) => {
                    let platform = platforms.get(&delivery.id).copied();
                    let outcome = (status, reason, platform);
                    if let Err(error) = write.end(app, delivery, outcome, broken.as_ref(), now) {
                        later.push((delivery, unreadable(delivery, &error, now)));
                    }
                }
                Some(Step::Known(devices)) => {
                    write.known(delivery, &devices, delivery.attempts, now);
                }
                Some(Step::Park) => park.push(delivery),
                Some(Step::Later(at)) => later.push((delivery, at)),
                None => later.push((delivery, now.plus(LATER))),
            }
        }
        let mut tries = 1;
        let handed = loop {
            let waiting = (park.as_slice(), later.as_slice());
            match self
                .note(app, app_version, &write, &mut send, waiting, now)
                .await
            {
                Err(error) if error.kind() == Kind::Serialization && tries < TRIES => tries += 1,
                outcome => break outcome?,
            }
        };
        send.retain(|sent| handed.contains(&sent.delivery.id));
        Ok(send)
    }

    /// Notes what is decided; answers the deliveries that may be sent.
    async fn note(
        &self,
        app: &App,
        app_version: i64,
        write: &Write,
        send: &mut [Handed],
        waiting: (&[&ClaimedDelivery], &[(&ClaimedDelivery, Timestamp)]),
        now: Timestamp,
    ) -> Result<HashSet<Uuid>> {
        let (services, node) = (&self.sender.services, self.sender.node);
        let mut rows = rows(send)?;
        let mut tx = self.sender.db.write().await?;
        let halted = self.halted_meanwhile(&mut tx, app_version, send).await?;
        rows.retain(|row| !halted.contains(&(row.id, row.attempts)));
        store::give_up(&mut tx, app.id, node, &halted, Some(now)).await?;
        let handed = store::hand_over(&mut tx, app.id, node, &rows, now).await?;
        let handed: HashMap<Uuid, Uuid> = handed
            .into_iter()
            .map(|row| (row.id, row.subject_id))
            .collect();
        let mut changes = Vec::new();
        for sent in send.iter() {
            let first = sent.delivery.status == Status::Queued.name();
            if first && let Some(subject_id) = handed.get(&sent.delivery.id) {
                let platform = sent.outgoing.devices.first().map(|device| device.platform);
                let platform = platform.map(|platform| platform.name().to_owned());
                changes.push(Change {
                    subject_id: *subject_id,
                    ..change(&sent.delivery, platform, Status::Sent, now)
                });
            }
        }
        let after = store::settle(&mut tx, app.id, node, &write.settled).await?;
        changes.extend(write.changes_that_happened(&after));
        let settled = |id: Uuid| after.iter().any(|row| row.id == id);
        let letters = write.letters.iter().filter(|(id, _)| settled(*id));
        let letters: Vec<&Letter> = letters.map(|(_, letter)| letter).collect();
        dead_letters::store::insert(&mut tx, &letters, now).await?;
        let told = dead_letters::announce(&mut tx, app.id, &app.webhooks, &letters, now).await?;
        self.give_up(&mut tx, waiting, now).await?;
        let queued =
            deliveries::announce(&mut tx, app, &changes, &services.webhooks.in_hand, now).await?;
        tx.commit().await?;
        dead_letters::count(letters.iter().map(|letter| letter.stage));
        services.webhooks.wake(queued.and(told));
        Ok(handed.into_keys().collect())
    }

    /// The deliveries whose campaign was halted after a version of the app, as they were claimed. On SQLite there is no other process,
    /// and this one has made every change that it has answered: memory says whether there was one.
    async fn halted_meanwhile(
        &self,
        tx: &mut Tx,
        app_version: i64,
        send: &[Handed],
    ) -> Result<Vec<(Uuid, i64)>> {
        let app = self.sender.services.apps.get(self.app_id).await?;
        let is_known =
            tx.dialect() == Dialect::Sqlite && app.is_some_and(|app| app.version <= app_version);
        if send.is_empty() || is_known {
            return Ok(Vec::new());
        }
        let campaigns = send.iter().map(|sent| sent.delivery.campaign_id);
        let statuses = store::campaign_statuses(tx, self.app_id, &campaigns.collect()).await?;
        let halted = send
            .iter()
            .filter(|sent| halted_since(&statuses, &sent.delivery).is_some());
        Ok(halted.map(|sent| as_claimed(&sent.delivery)).collect())
    }

    /// Gives up what is not for now: what waits for its campaign, and what is looked at again.
    async fn give_up(
        &self,
        tx: &mut Tx,
        (park, later): (&[&ClaimedDelivery], &[(&ClaimedDelivery, Timestamp)]),
        now: Timestamp,
    ) -> Result<()> {
        let (app_id, node) = (self.app_id, self.sender.node);
        let mut parked: BTreeMap<Uuid, Vec<(Uuid, i64)>> = BTreeMap::new();
        for delivery in park {
            let of_campaign = parked.entry(delivery.campaign_id).or_default();
            of_campaign.push(as_claimed(delivery));
        }
        for (campaign_id, claimed) in parked {
            // The row is locked: whoever has the campaign run again comes before this, or wakes it up after.
            let status = campaigns::status(tx, app_id, campaign_id, Hold::Alone).await?;
            let until = (status != Some(CampaignStatus::Paused)).then_some(now);
            store::give_up(tx, app_id, node, &claimed, until).await?;
        }
        let mut put_off: BTreeMap<Timestamp, Vec<(Uuid, i64)>> = BTreeMap::new();
        for (delivery, at) in later {
            put_off.entry(*at).or_default().push(as_claimed(delivery));
        }
        for (at, claimed) in put_off {
            store::give_up(tx, app_id, node, &claimed, Some(at)).await?;
        }
        Ok(())
    }

    /// Writes what became of deliveries, however long the database takes.
    async fn conclude(&self, app: &App, attempted: Vec<Attempted>) {
        let mut write = Write::default();
        let now = self.sender.services.clock.now();
        for attempted in attempted {
            let attempts = attempted.delivery.attempts + 1;
            write.known(&attempted.delivery, &attempted.devices, attempts, now);
        }
        let mut pause = PAUSE;
        loop {
            // Endpoints may have been added since the hand-over, or be off.
            let newest = self.sender.services.apps.get(self.app_id).await;
            let newest = newest.ok().flatten();
            let app = newest.as_deref().unwrap_or(app);
            match self.settle(app, &write, now).await {
                Ok(queued) => return self.sender.services.webhooks.wake(queued),
                Err(error) if error.kind() == Kind::Serialization => {}
                Err(error) => {
                    tracing::warn!(error = ?error, "what became of deliveries can't be written yet");
                }
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
                // They are not sent again: that they were handed over is written.
                () = self.sender.halt.cancelled() => return,
            }
        }
    }

    async fn settle(&self, app: &App, write: &Write, now: Timestamp) -> Result<Queued> {
        let in_hand = &self.sender.services.webhooks.in_hand;
        let mut tx = self.sender.db.write().await?;
        let after = store::settle(&mut tx, app.id, self.sender.node, &write.settled).await?;
        let changes = write.changes_that_happened(&after);
        let queued = deliveries::announce(&mut tx, app, &changes, in_hand, now).await?;
        tx.commit().await?;
        Ok(queued)
    }

    /// Gives deliveries up for a while.
    async fn give_up_for_now(&self, claimed: &[ClaimedDelivery]) {
        let claimed: Vec<(Uuid, i64)> = claimed.iter().map(as_claimed).collect();
        let mut pause = PAUSE;
        loop {
            let now = self.sender.services.clock.now();
            let outcome = async {
                let mut tx = self.sender.db.write().await?;
                let until = Some(now.plus(LATER));
                store::give_up(&mut tx, self.app_id, self.sender.node, &claimed, until).await?;
                tx.commit().await
            };
            let Err(error) = outcome.await else { return };
            tracing::warn!(error = ?error, "deliveries can't be given up yet");
            tokio::select! {
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
                () = self.sender.halt.cancelled() => return,
            }
        }
    }
}

/// The id of a delivery, and how often it had been handed over when it was claimed.
fn as_claimed(delivery: &ClaimedDelivery) -> (Uuid, i64) {
    (delivery.id, delivery.attempts)
}

/// What is noted of deliveries that are handed over to those of their devices that are due.
fn rows(send: &mut [Handed]) -> Result<Vec<HandOver>> {
    let mut rows = Vec::with_capacity(send.len());
    for sent in send {
        let Outgoing {
            devices, targets, ..
        } = &mut sent.outgoing;
        for device in devices {
            let is_due = targets.contains_key(&device.device_id);
            if device.state == DeviceState::Waiting && is_due {
                device.state = DeviceState::Sending;
                device.due_at = None;
            }
        }
        let first = sent.outgoing.devices.first();
        rows.push(HandOver {
            id: sent.delivery.id,
            attempts: sent.delivery.attempts,
            content: json(&sent.outgoing.rendered)?,
            devices: json(&sent.outgoing.devices)?,
            platform: first.map(|device| device.platform.name().to_owned()),
        });
    }
    Ok(rows)
}

/// Hands a delivery to the services of its devices.
async fn attempt(sender: &Sender, app_id: Uuid, handed: Handed) -> Attempted {
    let Handed { delivery, outgoing } = handed;
    let message = outgoing
        .rendered
        .message(delivery.id, delivery.created_at, delivery.test);
    let message = &message;
    let targets = &outgoing.targets;
    let sent = stream::iter(outgoing.devices).map(|device| async move {
        match targets.get(&device.device_id) {
            Some(target) if device.state == DeviceState::Sending => {
                let outcome = send(sender, app_id, target, message).await;
                let outcome = outcome::in_time(outcome, message);
                let attempts = device.attempts.unwrap_or(delivery.attempts) + 1;
                let (device, asked) = outcome::after(device, outcome, attempts);
                (device, Some((attempts, asked)))
            }
            _ => (device, None),
        }
    });
    let sent: Vec<(Device, Option<Tried>)> = sent.buffered(DEVICES_AT_ONCE).collect().await;
    let (now, jitter) = (sender.services.clock.now(), jitter());
    let put_off = |(device, tried): (Device, Option<Tried>)| match tried {
        Some((attempts, asked)) if device.state == DeviceState::Waiting => {
            let asked = asked.map(|asked| outcome::heeded(asked, message, now));
            let due_at = now.plus(outcome::pause(attempts, asked, jitter));
            Device {
                due_at: Some(due_at),
                ..device
            }
        }
        _ => device,
    };
    Attempted {
        devices: sent.into_iter().map(put_off).collect(),
        delivery,
    }
}

async fn send(sender: &Sender, app_id: Uuid, target: &Target, message: &Message) -> PushOutcome {
    let services = &sender.services;
    let span = || {
        let provider = KeyValue::new("nudge.push.provider", target.provider.name());
        NewSpan::client("push", vec![provider])
    };
    let sent = services.providers.send(app_id, target, message);
    match Traces::root(services.traces.as_ref(), span, sent).await {
        Ok(outcome) => outcome,
        Err(error) => {
            tracing::warn!(error = ?error, "a message could not be handed over and is tried again");
            PushOutcome::Retry {
                after: None,
                reason: "unavailable".to_owned(),
            }
        }
    }
}
