//! One message and the values that all of its recipients' bindings come from.

use std::cell::OnceCell;

use super::{Host, Recipient};
use crate::cell::{Cell, Table};
use crate::declaration::Reads;

/// A message and its recipients. Tables are fetched when they are first asked for.
pub struct Message<'h> {
    pub(super) host: Host<'h>,
    number: u32,
    items: Vec<u32>,
    read: &'h dyn Fn() -> Reads,
    read_data_keys: &'h dyn Fn() -> Vec<String>,
    reads: OnceCell<Reads>,
    data_keys: OnceCell<Vec<String>>,
    subjects: OnceCell<Table>,
    data: OnceCell<Table>,
    triggers: OnceCell<Table>,
}

impl<'h> Message<'h> {
    pub(super) fn new(
        host: Host<'h>,
        number: u32,
        read: &'h dyn Fn() -> Reads,
        read_data_keys: &'h dyn Fn() -> Vec<String>,
    ) -> Self {
        Self {
            host,
            number,
            items: host.message_items(number),
            read,
            read_data_keys,
            reads: OnceCell::new(),
            data_keys: OnceCell::new(),
            subjects: OnceCell::new(),
            data: OnceCell::new(),
            triggers: OnceCell::new(),
        }
    }

    /// The recipients.
    pub fn recipients(&self) -> impl Iterator<Item = Recipient<'_>> {
        self.items
            .iter()
            .enumerate()
            .map(|(row, item)| Recipient::new(self, *item, row))
    }

    fn reads(&self) -> &Reads {
        self.reads.get_or_init(self.read)
    }

    pub(super) fn subject_property(&self, row: usize, key: &str) -> Option<Cell<'_>> {
        let keys = &self.reads().subject_properties;
        let fetch = || Table::new(self.host.subject_cells(self.number), keys.len());
        let column = keys.iter().position(|known| known == key)?;
        Some(self.subjects.get_or_init(fetch).cell(row, column))
    }

    pub(super) fn trigger_property(&self, row: usize, path: &str) -> Option<Cell<'_>> {
        let paths = &self.reads().properties;
        let fetch = || Table::new(self.host.trigger_cells(self.number), paths.len());
        let column = paths.iter().position(|known| known == path)?;
        Some(self.triggers.get_or_init(fetch).cell(row, column))
    }

    pub(super) fn data(&self, row: usize, key: &str) -> Option<Cell<'_>> {
        let keys = self.data_keys.get_or_init(self.read_data_keys);
        let fetch = || Table::new(self.host.data_cells(self.number, keys), keys.len());
        let column = keys.iter().position(|known| known == key)?;
        Some(self.data.get_or_init(fetch).cell(row, column))
    }
}
