//! `nudge:plugin/validation-host`: a batch of events and definitions.

use wasmtime::component::Resource;

use super::{Batch as Handle, at, cut, length};
use crate::bindings::types;
use crate::bindings::validation_host::{self, Host, HostBatch};
use crate::call::Call;
use crate::failure::Stop;
use crate::limits::{ACTUAL_CHARACTERS, CODE_CHARACTERS};
use crate::projection::Projection;
use crate::store::State;
use crate::validation::{Batch, Definition, Item, ValidationOutcome, Violation};

/// A batch, and the violations that the plugin has reported so far.
pub(crate) struct View {
    batch: Batch,
    violations: Vec<Violation>,
}

impl View {
    pub(crate) fn new(batch: Batch) -> Self {
        Self {
            batch,
            violations: Vec::new(),
        }
    }

    pub(crate) fn into_outcome(mut self, call: Call) -> ValidationOutcome {
        self.violations.sort_by_key(|violation| violation.item);
        ValidationOutcome {
            violations: self.violations,
            call,
        }
    }

    fn item(&self, item: u32) -> Result<&Item, Stop> {
        at(&self.batch.items, item, "item")
    }

    fn definition(&self, definition: u32) -> Result<&Definition, Stop> {
        at(&self.batch.definitions, definition, "definition")
    }

    /// The properties of a definition's events.
    fn objects<'a>(
        &'a self,
        definition: &'a Definition,
    ) -> impl ExactSizeIterator<Item = Option<&'a str>> {
        let items = &self.batch.items;
        definition
            .items
            .iter()
            .map(|item| items.get(*item as usize).map(|item| &*item.properties))
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

    fn definition_count(&mut self, _: Resource<Handle>) -> wasmtime::Result<u32> {
        let (view, _) = self.enter::<View>()?;
        Ok(length(&view.batch.definitions))
    }

    fn definition_config(
        &mut self,
        _: Resource<Handle>,
        definition: u32,
    ) -> wasmtime::Result<String> {
        let (view, _) = self.enter::<View>()?;
        Ok(view.definition(definition)?.config.as_ref().to_owned())
    }

    fn definition_items(
        &mut self,
        _: Resource<Handle>,
        definition: u32,
    ) -> wasmtime::Result<Vec<u32>> {
        let (view, _) = self.enter::<View>()?;
        Ok(view.definition(definition)?.items.clone())
    }

    fn definition_cells(
        &mut self,
        _: Resource<Handle>,
        definition: u32,
    ) -> wasmtime::Result<types::Cells> {
        let (view, _) = self.enter::<View>()?;
        let definition = view.definition(definition)?;
        Ok(Projection::new(&definition.properties).table(view.objects(definition)))
    }

    fn unread_counts(
        &mut self,
        _: Resource<Handle>,
        definition: u32,
    ) -> wasmtime::Result<Vec<u32>> {
        let (view, _) = self.enter::<View>()?;
        let definition = view.definition(definition)?;
        let projection = Projection::new(&definition.properties);
        let count = |object: Option<_>| {
            let mut count = 0;
            projection.unread(object.unwrap_or("{}"), &mut |_| count += 1);
            count
        };
        Ok(view.objects(definition).map(count).collect())
    }

    fn unread(&mut self, _: Resource<Handle>, item: u32) -> wasmtime::Result<Vec<String>> {
        let (view, _) = self.enter::<View>()?;
        let properties = &view.item(item)?.properties;
        let definition = view
            .batch
            .definitions
            .iter()
            .find(|it| it.items.binary_search(&item).is_ok());
        let paths = definition.map_or(&[][..], |definition| &definition.properties);
        let mut names = Vec::new();
        Projection::new(paths).unread(properties, &mut |name| names.push(name.to_owned()));
        Ok(names)
    }

    fn event_json(&mut self, _: Resource<Handle>, item: u32) -> wasmtime::Result<String> {
        let (view, _) = self.enter::<View>()?;
        Ok(view.item(item)?.properties.as_ref().to_owned())
    }

    fn timestamps(&mut self, _: Resource<Handle>) -> wasmtime::Result<Vec<i64>> {
        let (view, _) = self.enter::<View>()?;
        Ok(view.batch.items.iter().map(|item| item.timestamp).collect())
    }

    fn report(
        &mut self,
        _: Resource<Handle>,
        violations: Vec<validation_host::Violation>,
    ) -> wasmtime::Result<()> {
        let (view, meter) = self.enter::<View>()?;
        for violation in violations {
            let validation_host::Violation {
                item,
                mut code,
                mut property,
                mut expected,
                mut actual,
                more: _,
            } = violation;
            view.item(item)?;
            meter.output(4 + code.len() + property.len() + expected.len() + actual.len())?;
            if code.contains('\0') {
                // A text column of the database takes none.
                code = code.replace('\0', "\u{fffd}");
            }
            cut(&mut code, CODE_CHARACTERS);
            // One more: where a plugin has cut, it may have said so.
            cut(&mut property, ACTUAL_CHARACTERS + 1);
            cut(&mut expected, ACTUAL_CHARACTERS + 1);
            cut(&mut actual, ACTUAL_CHARACTERS);
            view.violations.push(Violation {
                item,
                code,
                property,
                expected,
                actual,
            });
        }
        Ok(())
    }

    fn drop(&mut self, _: Resource<Handle>) -> wasmtime::Result<()> {
        Ok(())
    }
}
