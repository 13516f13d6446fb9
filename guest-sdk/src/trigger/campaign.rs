//! One campaign and the items that concern it.

use std::cell::{OnceCell, RefCell};

use super::{Batch, Event};
use crate::cell::Table;

/// A campaign, the items of the batch that concern it, and the properties that it reads of them.
pub struct Campaign<'b> {
    batch: &'b Batch<'b>,
    number: u32,
    items: Vec<u32>,
    table: OnceCell<Table>,
    columns: OnceCell<Vec<String>>,
    read_columns: &'b dyn Fn() -> Vec<String>,
    firings: RefCell<Vec<u32>>,
}

impl<'b> Campaign<'b> {
    /// A campaign of a batch. `columns` names the properties that its configuration reads, in order.
    pub fn new(batch: &'b Batch<'b>, number: u32, columns: &'b dyn Fn() -> Vec<String>) -> Self {
        Self {
            batch,
            number,
            items: batch.host().campaign_items(number),
            table: OnceCell::new(),
            columns: OnceCell::new(),
            read_columns: columns,
            firings: RefCell::default(),
        }
    }

    /// The batch.
    pub fn batch(&self) -> &'b Batch<'b> {
        self.batch
    }

    /// The campaign's number in the batch.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The campaign's identifier, a UUID.
    pub fn id(&self) -> String {
        self.batch.host().campaign_id(self.number)
    }

    /// The items that concern the campaign, in the order in which they happened.
    pub fn items(&self) -> &[u32] {
        &self.items
    }

    /// The same as events.
    pub fn events(&self) -> impl Iterator<Item = Event<'_>> {
        self.items
            .iter()
            .enumerate()
            .map(|(row, item)| Event::new(self, *item, row))
    }

    /// The properties that the configuration reads: a row an item, a column a property.
    pub fn table(&self) -> &Table {
        self.table.get_or_init(|| {
            let cells = self.batch.host().campaign_cells(self.number);
            let columns = cells
                .tags
                .len()
                .checked_div(self.items.len())
                .unwrap_or_default();
            Table::new(cells, columns)
        })
    }

    /// The column of a property. None: the configuration's `check` does not name it.
    pub fn column(&self, path: &str) -> Option<usize> {
        self.columns
            .get_or_init(self.read_columns)
            .iter()
            .position(|column| column == path)
    }

    /// Fires the campaign for an item's subject, when the plugin has decided about the whole batch.
    pub fn fire(&self, item: u32) {
        self.firings.borrow_mut().push(item);
    }

    /// Tells the host what fires.
    pub(super) fn send_firings(&self) {
        let firings = self.firings.take();
        if !firings.is_empty() {
            self.batch.host().fire(self.number, &firings);
        }
    }
}
