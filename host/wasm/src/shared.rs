//! One reading of each event for all the campaigns of a batch, however different their properties.

use std::collections::HashMap;

use crate::bindings::types;
use crate::cells::CellsBuilder;
use crate::cells::tag;
use crate::projection::Projection;

/// The properties that any campaign reads, of each event that a campaign has asked for so far.
#[derive(Debug)]
pub(crate) struct SharedCells {
    projection: Projection,
    /// For each campaign, which columns of the projection it reads.
    columns: Vec<Vec<usize>>,
    width: usize,
    /// For each item where its row begins in `cells`.
    rows: Vec<Option<usize>>,
    cells: Vec<Stored>,
    text: String,
}

#[derive(Debug, Clone, Copy)]
struct Stored {
    tag: u8,
    number: f64,
    start: usize,
    end: usize,
}

impl SharedCells {
    /// `properties`: the paths that each campaign reads.
    pub(crate) fn new<'a>(items: usize, properties: impl Iterator<Item = &'a [String]>) -> Self {
        let mut paths: Vec<&'a str> = Vec::new();
        let mut known: HashMap<&'a str, usize> = HashMap::new();
        let columns = properties
            .map(|properties| {
                let column = |path: &'a String| {
                    *known.entry(path).or_insert_with(|| {
                        paths.push(path);
                        paths.len() - 1
                    })
                };
                properties.iter().map(column).collect()
            })
            .collect();
        Self {
            projection: Projection::new(&paths),
            columns,
            width: paths.len(),
            rows: vec![None; items],
            cells: Vec::new(),
            text: String::new(),
        }
    }

    /// A campaign's table. `json` gives an item's properties.
    pub(crate) fn table<'j>(
        &mut self,
        campaign: usize,
        items: &[u32],
        json: impl Fn(u32) -> Option<&'j str>,
    ) -> types::Cells {
        for item in items {
            self.read(*item, json(*item).unwrap_or("{}"));
        }
        let columns = self.columns.get(campaign).map_or(&[][..], Vec::as_slice);
        let mut cells = CellsBuilder::with_capacity(items.len() * columns.len());
        for item in items {
            let row = self.rows.get(*item as usize).copied().flatten();
            for column in columns {
                match row.and_then(|start| self.cells.get(start + column)) {
                    Some(cell) => {
                        let text = self.text.get(cell.start..cell.end).unwrap_or_default();
                        cells.push_parts(cell.tag, cell.number, text);
                    }
                    None => cells.push_parts(tag::MISSING, 0.0, ""),
                }
            }
        }
        cells.finish()
    }

    fn read(&mut self, item: u32, json: &str) {
        let Some(place @ None) = self.rows.get_mut(item as usize) else {
            return;
        };
        *place = Some(self.cells.len());
        self.cells.reserve(self.width);
        let mut row = self.projection.row();
        self.projection.read(json, &mut row);
        for cell in row.cells() {
            let start = self.text.len();
            self.text.push_str(&cell.text);
            let end = self.text.len();
            self.cells.push(Stored {
                tag: cell.tag,
                number: cell.number,
                start,
                end,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn campaigns_get_the_same_cells_as_from_a_projection_of_their_own() {
        let objects = [r#"{"a":1,"b":{"c":"x"}}"#, r#"{"a":"é","d":[1]}"#, "{}"];
        let first = ["a".to_owned(), "d".to_owned()];
        let second = ["b.c".to_owned(), "a".to_owned(), "a".to_owned()];
        let mut shared = SharedCells::new(objects.len(), [&first[..], &second[..]].into_iter());
        let mut check = |campaign: usize, paths: &[String], items: &[u32]| {
            let json = |item: u32| objects.get(item as usize).copied();
            let shared = shared.table(campaign, items, json);
            let own = Projection::new(paths).table(items.iter().map(|item| json(*item)));
            assert_eq!(shared.tags, own.tags);
            assert_eq!(shared.numbers, own.numbers);
            assert_eq!(shared.ends, own.ends);
            assert_eq!(shared.text, own.text);
        };

        check(0, &first, &[0, 2]);
        check(1, &second, &[0, 1, 2]);
        check(0, &first, &[1]);
    }
}
