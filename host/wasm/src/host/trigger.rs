//! `nudge:plugin/trigger-host`: a batch of items and campaigns.

use wasmtime::component::Resource;

use super::{Batch as Handle, at, cut, history, length, random, within_paths};
use crate::bindings::trigger_host::{Host, HostBatch};
use crate::bindings::types;
use crate::failure::Stop;
use crate::limits::{CHECK_CHARACTERS, COUNTED_EVENTS, DETAIL_CHARACTERS};
use crate::store::State;
use crate::trigger::Explanation;

mod asked;
mod view;

pub(crate) use view::View;

type Batch = Resource<Handle>;
type Result<T> = wasmtime::Result<T>;

/// What a firing of one item counts as output.
const FIRING_BYTES: usize = 8;

/// What a change of state or timers, and an explanation, counts as output apart from its texts.
const CHANGE_BYTES: usize = 16;

impl Host for State {}

impl HostBatch for State {
    fn now(&mut self, _: Batch) -> Result<i64> {
        let (view, _) = self.enter::<View>()?;
        Ok(view.batch.now)
    }

    fn item_count(&mut self, _: Batch) -> Result<u32> {
        let (view, _) = self.enter::<View>()?;
        Ok(length(&view.batch.items))
    }

    fn campaign_count(&mut self, _: Batch) -> Result<u32> {
        let (view, _) = self.enter::<View>()?;
        Ok(length(&view.batch.campaigns))
    }

    fn campaign_id(&mut self, _: Batch, campaign: u32) -> Result<String> {
        let (view, _) = self.enter::<View>()?;
        Ok(view.campaign(campaign)?.id.to_string())
    }

    fn campaign_config(&mut self, _: Batch, campaign: u32) -> Result<String> {
        let (view, _) = self.enter::<View>()?;
        Ok(view.campaign(campaign)?.config.as_ref().to_owned())
    }

    fn campaign_items(&mut self, _: Batch, campaign: u32) -> Result<Vec<u32>> {
        let (view, _) = self.enter::<View>()?;
        Ok(view.campaign(campaign)?.items.clone())
    }

    fn campaign_cells(&mut self, _: Batch, campaign: u32) -> Result<types::Cells> {
        let (view, _) = self.enter::<View>()?;
        Ok(view.cells(campaign)?)
    }

    fn names(&mut self, _: Batch) -> Result<Vec<String>> {
        let (view, _) = self.enter::<View>()?;
        Ok(view
            .names()
            .0
            .iter()
            .map(|name| name.as_ref().to_owned())
            .collect())
    }

    fn name_indexes(&mut self, _: Batch) -> Result<Vec<u32>> {
        let (view, _) = self.enter::<View>()?;
        Ok(view.names().1.clone())
    }

    fn subjects(&mut self, _: Batch) -> Result<Vec<u32>> {
        let (view, _) = self.enter::<View>()?;
        Ok(view.batch.items.iter().map(|item| item.subject).collect())
    }

    fn timestamps(&mut self, _: Batch) -> Result<Vec<i64>> {
        let (view, _) = self.enter::<View>()?;
        Ok(view.batch.items.iter().map(|item| item.timestamp).collect())
    }

    fn received(&mut self, _: Batch) -> Result<Vec<i64>> {
        let (view, _) = self.enter::<View>()?;
        Ok(view.batch.items.iter().map(|item| item.received).collect())
    }

    fn sessions(&mut self, _: Batch) -> Result<Vec<u32>> {
        let (view, _) = self.enter::<View>()?;
        Ok(view.batch.items.iter().map(|item| item.session).collect())
    }

    fn event_id(&mut self, _: Batch, item: u32) -> Result<String> {
        let (view, _) = self.enter::<View>()?;
        Ok(view.item(item)?.event_id.to_string())
    }

    fn event_json(&mut self, _: Batch, item: u32) -> Result<String> {
        let (view, _) = self.enter::<View>()?;
        Ok(view.item(item)?.properties.as_ref().to_owned())
    }

    fn timer_items(&mut self, _: Batch) -> Result<Vec<u32>> {
        let (view, _) = self.enter::<View>()?;
        let items = (0..).zip(&view.batch.items);
        Ok(items
            .filter(|(_, item)| item.timer.is_some())
            .map(|(index, _)| index)
            .collect())
    }

    fn timer_key(&mut self, _: Batch, item: u32) -> Result<Option<String>> {
        let (view, _) = self.enter::<View>()?;
        Ok(view
            .item(item)?
            .timer
            .as_ref()
            .map(|timer| timer.key.clone()))
    }

    fn timer_payload(&mut self, _: Batch, item: u32) -> Result<Option<Vec<u8>>> {
        let (view, _) = self.enter::<View>()?;
        Ok(view
            .item(item)?
            .timer
            .as_ref()
            .map(|timer| timer.payload.clone()))
    }

    fn subject_property(
        &mut self,
        _: Batch,
        item: u32,
        key: String,
    ) -> Result<Option<types::Value>> {
        let (view, _) = self.enter::<View>()?;
        let subject = view.item(item)?.subject;
        let property = view.facts.subject_property(subject, &key);
        let property = property.map_err(|_| Stop::Unavailable)?;
        Ok(property.and_then(crate::Value::into_wit))
    }

    fn subject_fact(&mut self, _: Batch, item: u32, name: String) -> Result<Option<types::Value>> {
        let (view, _) = self.enter::<View>()?;
        let subject = view.item(item)?.subject;
        let fact = view.facts.subject_fact(subject, &name);
        let fact = fact.map_err(|_| Stop::Unavailable)?;
        Ok(fact.and_then(crate::Value::into_wit))
    }

    fn count_events(
        &mut self,
        _: Batch,
        item: u32,
        name: String,
        since: Option<i64>,
        at_most: u32,
    ) -> Result<u32> {
        let (view, _) = self.enter::<View>()?;
        Ok(view.count_events(item, &name, since, at_most.min(COUNTED_EVENTS))?)
    }

    fn recent_events(
        &mut self,
        _: Batch,
        item: u32,
        name: String,
        since: Option<i64>,
        limit: u32,
        properties: Vec<String>,
    ) -> Result<types::History> {
        let (view, _) = self.enter::<View>()?;
        within_paths(&properties)?;
        let events = view.recent_events(item, &name, since, history::limit(limit))?;
        Ok(history::table(&events, &properties))
    }

    fn random(&mut self, _: Batch, item: u32, campaign: u32, n: u32) -> Result<u64> {
        let (view, _) = self.enter::<View>()?;
        let (event, campaign) = (view.item(item)?.event_id, view.campaign(campaign)?.id);
        Ok(random::number(view.batch.seed, &[event, campaign], n))
    }

    fn get_state(&mut self, _: Batch, campaign: u32, item: u32) -> Result<Option<Vec<u8>>> {
        let (view, _) = self.enter::<View>()?;
        let subject = view.concerned(campaign, item)?;
        Ok(match view.asked.state(campaign, subject) {
            Some(state) => state.clone(),
            None => view.facts.state(campaign, subject),
        })
    }

    fn set_state(&mut self, _: Batch, campaign: u32, item: u32, state: Vec<u8>) -> Result<()> {
        let (view, meter) = self.enter::<View>()?;
        let subject = view.concerned(campaign, item)?;
        meter.output(CHANGE_BYTES + state.len())?;
        Ok(view.asked.set_state(campaign, subject, Some(state))?)
    }

    fn clear_state(&mut self, _: Batch, campaign: u32, item: u32) -> Result<()> {
        let (view, meter) = self.enter::<View>()?;
        let subject = view.concerned(campaign, item)?;
        meter.output(CHANGE_BYTES)?;
        Ok(view.asked.set_state(campaign, subject, None)?)
    }

    fn set_timer(
        &mut self,
        _: Batch,
        campaign: u32,
        item: u32,
        key: String,
        at: i64,
        payload: Vec<u8>,
    ) -> Result<()> {
        let (view, meter) = self.enter::<View>()?;
        let subject = view.concerned(campaign, item)?;
        meter.output(CHANGE_BYTES + key.len() + payload.len())?;
        let (received, now) = (view.item(item)?.received, view.batch.now);
        Ok(view
            .asked
            .set_timer((campaign, subject), item, key, (at, received, now), payload)?)
    }

    fn cancel_timer(&mut self, _: Batch, campaign: u32, item: u32, key: String) -> Result<()> {
        let (view, meter) = self.enter::<View>()?;
        let subject = view.concerned(campaign, item)?;
        meter.output(CHANGE_BYTES + key.len())?;
        view.asked.cancel_timer((campaign, subject), item, key);
        Ok(())
    }

    fn cancel_timers(&mut self, _: Batch, campaign: u32, item: u32) -> Result<()> {
        let (view, meter) = self.enter::<View>()?;
        let subject = view.concerned(campaign, item)?;
        meter.output(CHANGE_BYTES)?;
        view.asked.cancel_timers((campaign, subject), item);
        Ok(())
    }

    fn fire(&mut self, _: Batch, campaign: u32, items: Vec<u32>) -> Result<()> {
        let (view, meter) = self.enter::<View>()?;
        meter.output(FIRING_BYTES * items.len())?;
        view.campaign(campaign)?;
        for item in items {
            view.concerned(campaign, item)?;
            view.asked.fire(campaign, item);
        }
        Ok(())
    }

    fn explain(
        &mut self,
        _: Batch,
        campaign: u32,
        item: u32,
        mut check: String,
        passed: bool,
        mut detail: String,
    ) -> Result<()> {
        let (view, meter) = self.enter::<View>()?;
        view.concerned(campaign, item)?;
        if view.batch.explaining {
            // A decision that is fine does not fail because somebody asks why.
            cut(&mut check, CHECK_CHARACTERS);
            cut(&mut detail, DETAIL_CHARACTERS);
            meter.output(CHANGE_BYTES + check.len() + detail.len())?;
            view.asked.explain(Explanation {
                campaign,
                item,
                check,
                passed,
                detail,
            });
        }
        Ok(())
    }

    fn explaining(&mut self, _: Batch) -> Result<bool> {
        let (view, _) = self.enter::<View>()?;
        Ok(view.batch.explaining)
    }

    fn drop(&mut self, _: Batch) -> Result<()> {
        Ok(())
    }
}
