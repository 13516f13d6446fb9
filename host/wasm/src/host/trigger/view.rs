//! A trigger batch as the plugin sees it.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use super::asked::Requested;
use super::{Stop, at, history};
use crate::bindings::types;
use crate::call::Call;
use crate::limits::SHARED_PATHS;
use crate::projection::Projection;
use crate::shared::SharedCells;
use crate::trigger::{Batch, Campaign, Facts, Item, TriggerOutcome};
use crate::value::PastEvent;

/// A batch, the facts about it, and what the plugin has asked for so far.
pub(crate) struct View {
    pub(super) batch: Batch,
    pub(super) facts: Box<dyn Facts>,
    pub(super) asked: Requested,
    names: Option<Names>,
    shared: Option<SharedCells>,
}

/// The distinct names of a batch, and which of them each item has.
type Names = (Vec<Arc<str>>, Vec<u32>);

impl View {
    /// `unlimited_timers`: of the host's own plugin.
    pub(crate) fn new(batch: Batch, facts: Box<dyn Facts>, unlimited_timers: bool) -> Self {
        Self {
            batch,
            facts,
            asked: Requested::new(unlimited_timers),
            names: None,
            shared: None,
        }
    }

    pub(crate) fn into_outcome(self, call: Call) -> TriggerOutcome {
        self.asked.into_outcome(call)
    }

    pub(super) fn item(&self, item: u32) -> Result<&Item, Stop> {
        at(&self.batch.items, item, "item")
    }

    pub(super) fn campaign(&self, campaign: u32) -> Result<&Campaign, Stop> {
        at(&self.batch.campaigns, campaign, "campaign")
    }

    /// The subject of an item that concerns a campaign.
    pub(super) fn concerned(&self, campaign: u32, item: u32) -> Result<u32, Stop> {
        let subject = self.item(item)?.subject;
        let items = &self.campaign(campaign)?.items;
        // A campaign that all items concern needs no search.
        if items.len() == self.batch.items.len() || items.binary_search(&item).is_ok() {
            Ok(subject)
        } else {
            Err(Stop::Unconcerned { campaign, item })
        }
    }

    pub(super) fn cells(&mut self, campaign: u32) -> Result<types::Cells, Stop> {
        let Batch {
            items, campaigns, ..
        } = &self.batch;
        let Campaign {
            properties,
            items: rows,
            ..
        } = at(campaigns, campaign, "campaign")?;
        let json = |item: u32| items.get(item as usize).map(|item| &*item.properties);
        let paths: usize = campaigns.iter().map(|it| it.properties.len()).sum();
        if campaigns.len() == 1 || paths > SHARED_PATHS {
            return Ok(Projection::new(properties).table(rows.iter().map(|item| json(*item))));
        }
        let shared = self.shared.get_or_insert_with(|| {
            SharedCells::new(
                items.len(),
                campaigns.iter().map(|campaign| &*campaign.properties),
            )
        });
        Ok(shared.table(campaign as usize, rows, json))
    }

    pub(super) fn names(&mut self) -> &Names {
        let items = &self.batch.items;
        self.names.get_or_insert_with(|| {
            let mut names: Vec<Arc<str>> = Vec::new();
            let mut known: HashMap<&str, u32> = HashMap::new();
            let indexes = items
                .iter()
                .map(|item| {
                    *known.entry(&item.name).or_insert_with(|| {
                        names.push(Arc::clone(&item.name));
                        super::length(&names) - 1
                    })
                })
                .collect();
            (names, indexes)
        })
    }

    pub(super) fn count_events(
        &mut self,
        item: u32,
        name: &str,
        since: Option<i64>,
        at_most: u32,
    ) -> Result<u32, Stop> {
        let subject = self.item(item)?.subject;
        if !history::can_be_name(name) {
            return Ok(0);
        }
        let earlier =
            u32::try_from(self.earlier(item, subject, name, since).count()).unwrap_or(u32::MAX);
        let Some(wanted) = at_most.checked_sub(earlier).filter(|wanted| *wanted > 0) else {
            return Ok(at_most);
        };
        let stored = self
            .facts
            .count_events(subject, name, since, wanted)
            .map_err(|_| Stop::Unavailable)?;
        Ok(earlier + stored.min(wanted))
    }

    pub(super) fn recent_events(
        &mut self,
        item: u32,
        name: &str,
        since: Option<i64>,
        limit: u32,
    ) -> Result<Vec<PastEvent>, Stop> {
        let subject = self.item(item)?.subject;
        if !history::can_be_name(name) {
            return Ok(Vec::new());
        }
        let stored = self
            .facts
            .recent_events(subject, name, since, limit)
            .map_err(|_| Stop::Unavailable)?;
        let earlier = self
            .earlier(item, subject, name, since)
            .rev()
            .map(|item| PastEvent {
                id: item.event_id,
                timestamp: item.timestamp,
                properties: Arc::clone(&item.properties),
            });
        // Stable: of events at the same time, those of the batch are the newer ones.
        let mut events: Vec<PastEvent> = earlier.chain(stored).collect();
        events.sort_by_key(|event| Reverse(event.timestamp));
        events.truncate(limit as usize);
        Ok(events)
    }

    /// The subject's events of this batch that stand before `item`.
    fn earlier<'a>(
        &'a self,
        item: u32,
        subject: u32,
        name: &'a str,
        since: Option<i64>,
    ) -> impl DoubleEndedIterator<Item = &'a Item> {
        self.batch
            .items
            .iter()
            .take(item as usize)
            .filter(move |earlier| {
                earlier.subject == subject
                    && earlier.timer.is_none()
                    && since.is_none_or(|since| earlier.timestamp >= since)
                    && *earlier.name == *name
            })
    }
}
