//! One event that is to be validated, and what is wrong with it.

use std::cell::OnceCell;

use super::Host;
use crate::bindings::validation::nudge::plugin::validation_host::Violation as Wit;
use crate::cell::{Cell, Table};
use crate::declaration::Refusal;
use crate::instant::Instant;

/// A definition and the events of the batch that it is for.
pub struct Definition<'h> {
    host: Host<'h>,
    number: u32,
    items: Vec<u32>,
    table: OnceCell<Table>,
    unread_counts: OnceCell<Vec<u32>>,
    timestamps: OnceCell<Vec<i64>>,
    columns: OnceCell<Vec<String>>,
    read_columns: &'h dyn Fn() -> Vec<String>,
}

impl<'h> Definition<'h> {
    pub(super) fn new(host: Host<'h>, number: u32, columns: &'h dyn Fn() -> Vec<String>) -> Self {
        Self {
            host,
            number,
            items: host.definition_items(number),
            table: OnceCell::new(),
            unread_counts: OnceCell::new(),
            timestamps: OnceCell::new(),
            columns: OnceCell::new(),
            read_columns: columns,
        }
    }

    /// The events that the definition is for.
    pub fn events(&self) -> impl Iterator<Item = Event<'_>> {
        self.items.iter().enumerate().map(|(row, item)| Event {
            definition: self,
            item: *item,
            row,
        })
    }

    fn table(&self) -> &Table {
        self.table.get_or_init(|| {
            let cells = self.host.definition_cells(self.number);
            let columns = cells
                .tags
                .len()
                .checked_div(self.items.len())
                .unwrap_or_default();
            Table::new(cells, columns)
        })
    }
}

/// An event, as its definition sees it.
#[derive(Clone, Copy)]
pub struct Event<'d> {
    definition: &'d Definition<'d>,
    item: u32,
    row: usize,
}

impl<'d> Event<'d> {
    /// The event's number in the batch.
    pub fn item(&self) -> u32 {
        self.item
    }

    /// The property in a column of `Reads::properties`.
    pub fn cell(&self, column: usize) -> Cell<'d> {
        self.definition.table().cell(self.row, column)
    }

    /// The properties of `Reads::properties`, in their order.
    pub fn cells(&self) -> impl Iterator<Item = Cell<'d>> + use<'d> {
        self.definition.table().row(self.row)
    }

    /// The property at a dotted path, which `check` must have named among those that it reads.
    ///
    /// # Panics
    ///
    /// Panics on a path that `check` did not name: the host did not send it.
    #[expect(
        clippy::panic,
        reason = "a mistake in the plugin that its first test shows"
    )]
    pub fn property(&self, path: &str) -> Cell<'d> {
        let columns = self
            .definition
            .columns
            .get_or_init(self.definition.read_columns);
        match columns.iter().position(|column| column == path) {
            Some(column) => self.cell(column),
            None => panic!("`{path}` is not among the properties that `check` says are read"),
        }
    }

    /// Names of properties that the event has and the configuration does not read.
    pub fn unread(&self) -> Vec<String> {
        let counts = self
            .definition
            .unread_counts
            .get_or_init(|| self.definition.host.unread_counts(self.definition.number));
        match counts.get(self.row) {
            Some(0) | None => Vec::new(),
            Some(_) => self.definition.host.unread(self.item),
        }
    }

    /// All properties. Slower than those that `check` names.
    pub fn json(&self) -> Result<serde_json::Value, Refusal> {
        Ok(serde_json::from_str(
            &self.definition.host.event_json(self.item),
        )?)
    }

    /// When it happened, by the client's corrected clock.
    pub fn timestamp(&self) -> Instant {
        let timestamps = self
            .definition
            .timestamps
            .get_or_init(|| self.definition.host.timestamps());
        let timestamp = timestamps.get(self.item as usize);
        Instant::from_micros(timestamp.copied().unwrap_or_default())
    }

    /// When the batch's latest event reached the server.
    pub fn now(&self) -> Instant {
        Instant::from_micros(self.definition.host.now())
    }
}

/// One way in which an event breaks its definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// `missing_required_property`, `type_mismatch`, `enum_mismatch`, `out_of_range`, `pattern_mismatch`,
    /// `additional_property`, or a code of the plugin's own.
    pub code: String,
    /// The property, as a dotted path; empty when it is the event as a whole.
    pub property: String,
    /// What the definition asks for, for a person.
    pub expected: String,
    /// What the event has, for a person.
    pub actual: String,
}

impl Violation {
    pub(super) fn of_item(self, item: u32) -> Wit {
        Wit {
            item,
            code: self.code,
            property: self.property,
            expected: self.expected,
            actual: self.actual,
            more: Vec::new(),
        }
    }
}
