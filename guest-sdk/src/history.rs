//! Events of the past.

use crate::bindings::trigger::nudge::plugin::types::History as Wit;
use crate::cell::{Cell, Table};
use crate::instant::Instant;

/// Events from a subject's history, newest first.
#[derive(Clone, Debug)]
pub struct History {
    ids: Vec<String>,
    timestamps: Vec<i64>,
    table: Table,
    paths: Vec<String>,
}

impl History {
    /// What the host answered to a question for these paths.
    pub(crate) fn new(history: Wit, paths: Vec<String>) -> Self {
        let table = Table::new(history.properties, paths.len());
        Self {
            ids: history.ids,
            timestamps: history.timestamps,
            table,
            paths,
        }
    }

    /// How many events there are.
    pub fn len(&self) -> usize {
        self.timestamps.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.timestamps.is_empty()
    }

    /// The events, newest first.
    pub fn iter(&self) -> impl Iterator<Item = PastEvent<'_>> {
        (0..self.len()).map(|row| PastEvent { history: self, row })
    }
}

/// One event of the past.
#[derive(Clone, Copy, Debug)]
pub struct PastEvent<'h> {
    history: &'h History,
    row: usize,
}

impl<'h> PastEvent<'h> {
    /// The event's identifier, a UUID.
    pub fn id(&self) -> &'h str {
        self.history.ids.get(self.row).map_or("", String::as_str)
    }

    /// When it happened.
    pub fn timestamp(&self) -> Instant {
        Instant::from_micros(
            self.history
                .timestamps
                .get(self.row)
                .copied()
                .unwrap_or_default(),
        )
    }

    /// The property that was asked for in this place.
    pub fn cell(&self, column: usize) -> Cell<'h> {
        self.history.table.cell(self.row, column)
    }

    /// The property at a path that was asked for; any other is missing.
    pub fn property(&self, path: &str) -> Cell<'h> {
        let column = self.history.paths.iter().position(|known| known == path);
        column.map_or(Cell::Missing, |column| self.cell(column))
    }
}
