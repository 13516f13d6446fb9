//! Timers that plugins set and cancel in a batch.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use nudge_apps::App;
use nudge_db::Timestamp;
use nudge_platform::id;
use nudge_records::scheduled_work::NewOccasion;
use nudge_wasm::Plugin;
use uuid::Uuid;

use super::Effects;
use crate::evaluate::{Item, Timer};

/// What lies between a timer and one that it sets, at the least.
pub(crate) const TURN: Duration = Duration::from_secs(1);

/// Which timer it is: setting one under a key that is taken replaces that one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TimerKey {
    pub campaign_id: Uuid,
    pub subject_id: Uuid,
    /// The plugin's key.
    pub key: String,
}

/// A timer to be set.
#[derive(Clone, Debug)]
pub(crate) struct NewTimer {
    pub id: Uuid,
    pub timer_key: TimerKey,
    /// The plugin that sets it.
    pub plugin: Arc<Plugin>,
    pub due_at: Timestamp,
    pub payload: Vec<u8>,
    pub event_seq: i64,
}

impl Effects {
    /// Of all changes of one timer only the last is left. What was due before an event arrived is not cancelled by it.
    pub(super) fn change_timers(&mut self, app: &App, items: &[Item], changes: Vec<Timer>) {
        let mut set: HashMap<TimerKey, NewTimer> = HashMap::new();
        for change in changes {
            match change {
                Timer::Set {
                    campaign,
                    item,
                    key,
                    at,
                    payload,
                } => {
                    self.led_on.push(item);
                    let timer = items
                        .get(item)
                        .and_then(|item| self.timer(app, campaign, item, (key, at, payload)));
                    if let Some(timer) = timer {
                        set.insert(timer.timer_key.clone(), timer);
                    }
                }
                Timer::Cancel {
                    campaign,
                    subject,
                    item,
                    key,
                } => {
                    let pair = self.pair(app, campaign, subject);
                    if let (Some((campaign_id, subject_id)), Some(item)) = (pair, items.get(item)) {
                        let timer_key = TimerKey {
                            campaign_id,
                            subject_id,
                            key,
                        };
                        let at = item.at();
                        if set.get(&timer_key).is_some_and(|timer| timer.due_at >= at) {
                            set.remove(&timer_key);
                        }
                        self.cancelled.push((timer_key, at));
                    }
                }
                Timer::CancelAll {
                    campaign,
                    subject,
                    item: number,
                } => {
                    let pair = self.pair(app, campaign, subject);
                    if let (Some(pair), Some(item)) = (pair, items.get(number)) {
                        let at = item.at();
                        set.retain(|key, timer| {
                            (key.campaign_id, key.subject_id) != pair || timer.due_at < at
                        });
                        self.cancelled_all.push((pair.0, pair.1, at));
                        self.cancel_deferred(items, pair, (number, at));
                    }
                }
            }
        }
        self.timers.extend(set.into_values());
    }

    /// Cancels what earlier items of the batch have led to and the host lets wait: it has not fired. `cancel`: the item at
    /// which it is cancelled, and when that was.
    fn cancel_deferred(&mut self, items: &[Item], pair: (Uuid, Uuid), cancel: (usize, Timestamp)) {
        let is_cancelled = |(item, occasion): &mut (usize, NewOccasion)| {
            let of = (occasion.campaign_id, occasion.subject_id);
            of == pair && *item < cancel.0 && occasion.due_at >= cancel.1
        };
        let cancelled = self.occasions.extract_if(.., is_cancelled);
        let last = cancelled.last().and_then(|(item, _)| items.get(item));
        if let Some(item) = last {
            let event_id = item.stored.event.id;
            self.held_back.entry(pair).or_insert(event_id);
        }
    }

    /// A timer that a campaign's plugin sets at an item.
    fn timer(
        &self,
        app: &App,
        campaign: usize,
        item: &Item,
        (key, at, payload): (String, i64, Vec<u8>),
    ) -> Option<NewTimer> {
        let running = app.campaigns.get(campaign)?;
        let subject_id = self.subjects.get(item.subject)?.id;
        let (plugin, _) = running.accepted.for_subject(subject_id);
        let at = Timestamp(at);
        Some(NewTimer {
            id: id::new(self.now),
            timer_key: TimerKey {
                campaign_id: running.id,
                subject_id,
                key,
            },
            plugin: Arc::clone(plugin),
            due_at: self.earliest(item).map_or(at, |earliest| earliest.max(at)),
            payload,
            event_seq: item.stored.seq,
        })
    }

    /// The earliest time at which a timer that is set at an item is due. One that a timer sets is due after [`TURN`] at the earliest:
    /// due at once, the recovery loop would claim it again and never do anything else.
    fn earliest(&self, item: &Item) -> Option<Timestamp> {
        let timer = item.timer.as_ref();
        timer.map(|_| self.now.plus(TURN))
    }

    fn pair(&self, app: &App, campaign: usize, subject: u32) -> Option<(Uuid, Uuid)> {
        Some((
            app.campaigns.get(campaign)?.id,
            self.subjects.get(subject as usize)?.id,
        ))
    }
}
