//! A part of a batch as the plugin gets it, and its outcome with the numbers of the whole batch.

use std::collections::HashMap;
use std::sync::Arc;

use nudge_platform::event_names::SESSION_BEGAN;
use nudge_wasm::Call;
use nudge_wasm::trigger::{self, TimerChange};

use super::{CampaignItem, Evaluation, Item, Routes, Timer};

impl Evaluation {
    pub(super) fn batch(&self, items: &[usize], routes: &Routes) -> trigger::Batch {
        let numbers: HashMap<usize, u32> = items.iter().copied().zip(0..).collect();
        let campaigns = routes.iter().filter_map(|(campaign, items)| {
            let running = self.app.campaigns.get(*campaign)?;
            Some(trigger::Campaign {
                id: running.id,
                config: Arc::clone(&running.accepted.config),
                properties: Arc::clone(&running.accepted.reading_of(&self.plugin).properties),
                items: items
                    .iter()
                    .filter_map(|item| numbers.get(item).copied())
                    .collect(),
            })
        });
        let items: Vec<trigger::Item> = self.trigger_items(items).collect();
        trigger::Batch {
            now: trigger::Batch::time(&items),
            campaigns: campaigns.collect(),
            items,
            explaining: false,
            seed: self.seed,
        }
    }

    /// Items as the plugin gets them.
    pub(crate) fn trigger_items(&self, items: &[usize]) -> impl Iterator<Item = trigger::Item> {
        let items = items.iter().filter_map(|item| self.items.get(*item));
        items.map(trigger_item)
    }

    /// Takes an outcome over, its numbers turned into those of the whole batch; answers the call.
    pub(super) fn accept(
        &mut self,
        outcome: trigger::TriggerOutcome,
        items: &[usize],
        campaigns: &[usize],
    ) -> Call {
        let item = |number: u32| items.get(number as usize).copied();
        let campaign = |number: u32| campaigns.get(number as usize).copied();
        for fired in outcome.fired {
            let fired = campaign(fired.campaign).zip(item(fired.item));
            let fired = fired.map(|(campaign, item)| CampaignItem { campaign, item });
            self.decisions.fired.extend(fired);
        }
        let mut ledger = self.ledger.lock();
        for write in outcome.states {
            let Some(campaign) = campaign(write.campaign) else {
                continue;
            };
            let key = (campaign, write.subject);
            match &write.state {
                Some(state) => drop(ledger.states.insert(key, state.clone())),
                None => drop(ledger.states.remove(&key)),
            }
            self.decisions.states.insert(key, write.state);
        }
        drop(ledger);
        let mut cancelled_at = outcome.cancelled_at.into_iter();
        for change in outcome.timers {
            let change = timer_change(change, campaign, item, &mut cancelled_at);
            self.decisions.timers.extend(change);
        }
        outcome.call
    }
}

/// A change of a timer with the numbers of the whole batch. `cancelled_at` has the items of the cancellations to come.
fn timer_change(
    change: TimerChange,
    campaign: impl Fn(u32) -> Option<usize>,
    item: impl Fn(u32) -> Option<usize>,
    cancelled_at: &mut impl Iterator<Item = u32>,
) -> Option<Timer> {
    Some(match change {
        TimerChange::Set {
            campaign: number,
            item: at_item,
            key,
            at,
            payload,
        } => Timer::Set {
            campaign: campaign(number)?,
            item: item(at_item)?,
            key,
            at,
            payload,
        },
        TimerChange::Cancel {
            campaign: number,
            subject,
            key,
        } => {
            let at_item = cancelled_at.next()?;
            Timer::Cancel {
                campaign: campaign(number)?,
                subject,
                item: item(at_item)?,
                key,
            }
        }
        TimerChange::CancelAll {
            campaign: number,
            subject,
        } => {
            let at_item = cancelled_at.next()?;
            Timer::CancelAll {
                campaign: campaign(number)?,
                subject,
                item: item(at_item)?,
            }
        }
    })
}

fn trigger_item(item: &Item) -> trigger::Item {
    let event = &item.stored.event;
    trigger::Item {
        subject: u32::try_from(item.subject).unwrap_or(u32::MAX),
        event_id: event.id,
        name: if item.begins {
            SESSION_BEGAN.into()
        } else {
            Arc::clone(&event.name)
        },
        timestamp: event.timestamp.0,
        received: item.at().0,
        session: u32::try_from(item.session).unwrap_or(u32::MAX),
        properties: Arc::clone(&event.properties),
        timer: item.timer.as_ref().map(|timer| trigger::Timer {
            key: timer.key.clone(),
            payload: timer.payload.clone(),
        }),
    }
}
