//! `nudge:plugin/personalization-host`: a batch of recipients and messages.

use wasmtime::component::Resource;

use super::{Batch as Handle, at, history, length, random, within_paths};
use crate::bindings::personalization_host::{self, Host, HostBatch};
use crate::bindings::types;
use crate::call::Call;
use crate::cells::CellsBuilder;
use crate::failure::Stop;
use crate::limits::ELEMENT_BYTES;
use crate::personalization::{Batch, Facts, Item, Message, PersonalizationOutcome, Resolution};
use crate::projection::Projection;
use crate::store::State;
use crate::value::Value;

/// A batch, the facts about it, and what the plugin has resolved so far.
pub(crate) struct View {
    batch: Batch,
    facts: Box<dyn Facts>,
    resolutions: Vec<Resolution>,
}

impl View {
    pub(crate) fn new(batch: Batch, facts: Box<dyn Facts>) -> Self {
        Self {
            batch,
            facts,
            resolutions: Vec::new(),
        }
    }

    pub(crate) fn into_outcome(self, call: Call) -> PersonalizationOutcome {
        PersonalizationOutcome {
            resolutions: self.resolutions,
            call,
        }
    }

    fn item(&self, item: u32) -> Result<&Item, Stop> {
        at(&self.batch.items, item, "item")
    }

    fn message(&self, message: u32) -> Result<&Message, Stop> {
        at(&self.batch.messages, message, "message")
    }

    /// The recipients of a message.
    fn recipients<'a>(
        &'a self,
        message: &'a Message,
    ) -> impl ExactSizeIterator<Item = Option<&'a Item>> {
        message
            .items
            .iter()
            .map(|item| self.batch.items.get(*item as usize))
    }
}

impl Host for State {}

impl HostBatch for State {
    fn now(&mut self, _: Resource<Handle>) -> wasmtime::Result<i64> {
        let (view, _) = self.enter::<View>()?;
        Ok(view.batch.now)
    }

    fn item_count(&mut self, _: Resource<Handle>) -> wasmtime::Result<u32> {
        let (view, _) = self.enter::<View>()?;
        Ok(length(&view.batch.items))
    }

    fn message_count(&mut self, _: Resource<Handle>) -> wasmtime::Result<u32> {
        let (view, _) = self.enter::<View>()?;
        Ok(length(&view.batch.messages))
    }

    fn message_config(&mut self, _: Resource<Handle>, message: u32) -> wasmtime::Result<String> {
        let (view, _) = self.enter::<View>()?;
        Ok(view.message(message)?.config.as_ref().to_owned())
    }

    fn message_items(&mut self, _: Resource<Handle>, message: u32) -> wasmtime::Result<Vec<u32>> {
        let (view, _) = self.enter::<View>()?;
        Ok(view.message(message)?.items.clone())
    }

    fn subject_cells(
        &mut self,
        _: Resource<Handle>,
        message: u32,
    ) -> wasmtime::Result<types::Cells> {
        let (view, _) = self.enter::<View>()?;
        let Message {
            items,
            subject_properties,
            ..
        } = at(&view.batch.messages, message, "message")?;
        let mut cells = CellsBuilder::with_capacity(items.len() * subject_properties.len());
        for item in items {
            for key in subject_properties.iter() {
                cells.push_value(view.facts.subject_property(*item, key));
            }
        }
        Ok(cells.finish())
    }

    fn data_cells(
        &mut self,
        _: Resource<Handle>,
        message: u32,
        keys: Vec<String>,
    ) -> wasmtime::Result<types::Cells> {
        let (view, _) = self.enter::<View>()?;
        within_paths(&keys)?;
        let recipients = view.recipients(view.message(message)?);
        Ok(Projection::new(&keys).table(recipients.map(|item| item.map(|item| &*item.data))))
    }

    fn trigger_cells(
        &mut self,
        _: Resource<Handle>,
        message: u32,
    ) -> wasmtime::Result<types::Cells> {
        let (view, _) = self.enter::<View>()?;
        let message = view.message(message)?;
        let events = view.recipients(message).map(|item| {
            let event = item.and_then(|item| item.trigger.as_ref());
            event.map(|event| &*event.properties)
        });
        Ok(Projection::new(&message.properties).table(events))
    }

    fn trigger_event(
        &mut self,
        _: Resource<Handle>,
        item: u32,
    ) -> wasmtime::Result<Option<(String, i64)>> {
        let (view, _) = self.enter::<View>()?;
        let event = view.item(item)?.trigger.as_ref();
        Ok(event.map(|event| (event.id.to_string(), event.timestamp)))
    }

    fn recent_events(
        &mut self,
        _: Resource<Handle>,
        item: u32,
        name: String,
        since: Option<i64>,
        limit: u32,
        properties: Vec<String>,
    ) -> wasmtime::Result<types::History> {
        let (view, _) = self.enter::<View>()?;
        view.item(item)?;
        within_paths(&properties)?;
        let limit = history::limit(limit);
        let mut events = if history::can_be_name(&name) {
            let events = view.facts.recent_events(item, &name, since, limit);
            events.map_err(|_| Stop::Unavailable)?
        } else {
            Vec::new()
        };
        events.truncate(limit as usize);
        Ok(history::table(&events, &properties))
    }

    fn subject_fact(
        &mut self,
        _: Resource<Handle>,
        item: u32,
        name: String,
    ) -> wasmtime::Result<Option<types::Value>> {
        let (view, _) = self.enter::<View>()?;
        view.item(item)?;
        Ok(view
            .facts
            .subject_fact(item, &name)
            .and_then(Value::into_wit))
    }

    fn random(&mut self, _: Resource<Handle>, item: u32, n: u32) -> wasmtime::Result<u64> {
        let (view, _) = self.enter::<View>()?;
        let recipient = view.item(item)?.recipient;
        Ok(random::number(view.batch.seed, &[recipient], n))
    }

    fn resolve(
        &mut self,
        _: Resource<Handle>,
        resolutions: Vec<personalization_host::Resolution>,
    ) -> wasmtime::Result<()> {
        let (view, meter) = self.enter::<View>()?;
        for resolution in resolutions {
            view.item(resolution.item)?;
            meter.output(bytes(&resolution))?;
            resolution.value.as_ref().map_or(Ok(()), check)?;
            view.resolutions.push(Resolution {
                item: resolution.item,
                binding: resolution.binding,
                value: resolution.value.map(Value::from),
                text: resolution.text,
                used_fallback: resolution.used_fallback,
                issue: resolution.issue,
                detail: resolution.detail,
                more: resolution.more,
            });
        }
        Ok(())
    }

    fn drop(&mut self, _: Resource<Handle>) -> wasmtime::Result<()> {
        Ok(())
    }
}

/// Checks that a value is one of JSON, which has no number without a value, and arrays and objects of a
/// certain depth.
fn check(value: &types::Value) -> Result<(), Stop> {
    match value {
        types::Value::Number(number) if !number.is_finite() => Err(Stop::NotJson),
        types::Value::Json(text) => serde_json::from_str::<serde_json::Value>(text)
            .map(drop)
            .map_err(|_| Stop::NotJson),
        _ => Ok(()),
    }
}

/// What a resolution counts as output.
fn bytes(resolution: &personalization_host::Resolution) -> usize {
    let value = match &resolution.value {
        Some(types::Value::Text(text) | types::Value::Json(text)) => text.len(),
        _ => 8,
    };
    let texts = [
        &resolution.binding,
        &resolution.text,
        &resolution.issue,
        &resolution.detail,
    ];
    let more = resolution
        .more
        .iter()
        .map(|(name, value)| ELEMENT_BYTES + name.len() + value.len());
    8 + value + texts.iter().map(|text| text.len()).sum::<usize>() + more.sum::<usize>()
}
