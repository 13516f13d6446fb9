//! Picks the properties that a configuration reads out of an event's JSON text, in one pass.

use std::borrow::Cow;

use crate::bindings::types;
use crate::cells::{Cell, CellsBuilder};
use crate::fields::Fields;
use crate::limits::PATH_KEYS;

/// Dotted paths, ready to be found. A path matches a top-level key that is written exactly so, dots
/// included, before it matches nested keys. Of a key that stands there twice, the last counts.
#[derive(Debug, Default)]
pub(crate) struct Projection {
    root: Node,
    columns: usize,
}

#[derive(Debug, Default)]
struct Node {
    columns: Vec<Column>,
    children: Vec<(Box<str>, Self)>,
}

#[derive(Debug, Clone, Copy)]
struct Column {
    index: usize,
    /// The whole path is one key.
    literal: bool,
}

/// A row under construction. `pinned`: a literal key has given the cell, nested ones must not.
#[derive(Debug)]
pub(crate) struct Row<'j> {
    cells: Vec<(Cell<'j>, bool)>,
    /// The keys of an object before, in their order, each with the position of its child of the root: events of a name mostly
    /// have the same keys.
    keys: Vec<(&'j str, Option<usize>)>,
}

impl Projection {
    pub(crate) fn new<P: AsRef<str>>(paths: &[P]) -> Self {
        let mut root = Node::default();
        for (index, path) in paths.iter().enumerate() {
            let path = path.as_ref();
            root.child(path).columns.push(Column {
                index,
                literal: true,
            });
            // A tree that is as deep as a plugin likes would use up the host's stack.
            if (2..=PATH_KEYS).contains(&path.split('.').take(PATH_KEYS + 1).count()) {
                let node = path.split('.').fold(&mut root, |node, key| node.child(key));
                node.columns.push(Column {
                    index,
                    literal: false,
                });
            }
        }
        Self {
            root,
            columns: paths.len(),
        }
    }

    /// A table with a row for each object.
    pub(crate) fn table<'j>(
        &self,
        objects: impl ExactSizeIterator<Item = Option<&'j str>>,
    ) -> types::Cells {
        let mut cells = CellsBuilder::with_capacity(objects.len() * self.columns);
        let mut row = self.row();
        for object in objects {
            self.read(object.unwrap_or("{}"), &mut row);
            for cell in row.cells() {
                cells.push(cell);
            }
        }
        cells.finish()
    }

    /// An empty row, to be filled again and again.
    pub(crate) fn row<'j>(&self) -> Row<'j> {
        Row {
            cells: vec![(Cell::MISSING, false); self.columns],
            keys: Vec::new(),
        }
    }

    /// Reads an object into `row`. What is no object has no properties.
    pub(crate) fn read<'j>(&self, json: &'j str, row: &mut Row<'j>) {
        row.cells.fill((Cell::MISSING, false));
        let mut fields = Fields::of(json);
        let learns = row.keys.is_empty();
        let (mut place, mut missed) = (0, 0);
        loop {
            let expected = row.expected(&mut fields, &mut place);
            let (position, value) = if let Some(expected) = expected {
                expected
            } else {
                let Some((key, value)) = fields.next() else {
                    break;
                };
                let position = self.root.position(&key);
                match key {
                    Cow::Borrowed(key) if learns => {
                        row.keys.push((key, position));
                        place = row.keys.len();
                    }
                    _ => missed += 1,
                }
                (position, value)
            };
            if let Some(child) = self.root.child_at(position) {
                child.take(value, row);
            }
        }
        if missed > place {
            row.keys.clear();
        }
    }

    /// Names the keys of an object that no path begins with.
    pub(crate) fn unread(&self, json: &str, each: &mut dyn FnMut(&str)) {
        for (key, _) in Fields::of(json) {
            if self.root.position(&key).is_none() {
                each(&key);
            }
        }
    }
}

impl<'j> Row<'j> {
    pub(crate) fn cells(&self) -> impl Iterator<Item = &Cell<'j>> {
        self.cells.iter().map(|(cell, _)| cell)
    }

    /// The child and the value of the next field, if its key is the one that is expected at a place, or the one after that.
    fn expected(
        &self,
        fields: &mut Fields<'j>,
        place: &mut usize,
    ) -> Option<(Option<usize>, &'j str)> {
        let next_two = self.keys.get(*place..)?.iter().take(2);
        for (skipped, (key, child)) in next_two.enumerate() {
            if let Some(value) = fields.value_of(key) {
                *place += skipped + 1;
                return Some((*child, value));
            }
        }
        None
    }

    fn set(&mut self, column: Column, cell: Cell<'j>) {
        if let Some((place, pinned)) = self.cells.get_mut(column.index)
            && (column.literal || !*pinned)
        {
            *place = cell;
            *pinned = column.literal;
        }
    }
}

impl Node {
    fn child(&mut self, key: &str) -> &mut Self {
        let position = match self
            .children
            .binary_search_by(|(name, _)| (**name).cmp(key))
        {
            Ok(position) => position,
            Err(position) => {
                self.children
                    .insert(position, (key.into(), Self::default()));
                position
            }
        };
        #[expect(
            clippy::indexing_slicing,
            reason = "the position was found or filled just now"
        )]
        &mut self.children[position].1
    }

    /// The position of a key's child.
    fn position(&self, key: &str) -> Option<usize> {
        let by_name = |(name, _): &(Box<str>, Self)| (**name).cmp(key);
        self.children.binary_search_by(by_name).ok()
    }

    /// The child at a position, if there is one.
    fn child_at(&self, position: Option<usize>) -> Option<&Self> {
        let (_, child) = self.children.get(position?)?;
        Some(child)
    }

    /// Reads an object's fields; one that breaks off has the properties that stand before that.
    fn read<'j>(&self, json: &'j str, row: &mut Row<'j>) {
        for (key, value) in Fields::of(json) {
            if let Some(child) = self.child_at(self.position(&key)) {
                child.take(value, row);
            }
        }
    }

    fn take<'j>(&self, json: &'j str, row: &mut Row<'j>) {
        if let [first, rest @ ..] = self.columns.as_slice() {
            let cell = Cell::read(json);
            for column in rest {
                row.set(*column, cell.clone());
            }
            row.set(*first, cell);
        }
        if !self.children.is_empty() && json.starts_with('{') {
            self.read(json, row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::tag;

    fn read(paths: &[&str], json: &str) -> Vec<(u8, f64, String)> {
        let projection = Projection::new(paths);
        let mut row = projection.row();
        projection.read(json, &mut row);
        row.cells()
            .map(|cell| (cell.tag, cell.number, cell.text.to_string()))
            .collect()
    }

    fn text(text: &str) -> (u8, f64, String) {
        (tag::TEXT, 0.0, text.to_owned())
    }

    fn number(number: f64) -> (u8, f64, String) {
        (tag::NUMBER, number, String::new())
    }

    const MISSING: (u8, f64, String) = (tag::MISSING, 0.0, String::new());

    #[test]
    fn nested_values_are_found_by_their_path() {
        let json = r#"{"cart":{"total": 12.5,"items":[{"id":1}]},"plan":"pro","cart2":1}"#;
        let cells = read(
            &["cart.total", "plan", "cart.items", "cart.absent", "plan.x"],
            json,
        );
        let items = (tag::JSON, 0.0, r#"[{"id":1}]"#.to_owned());
        assert_eq!(cells, [number(12.5), text("pro"), items, MISSING, MISSING]);
    }

    #[test]
    fn a_literal_key_with_dots_comes_before_nested_keys() {
        let before = r#"{"a.b":"literal","a":{"b":"nested"}}"#;
        let after = r#"{"a":{"b":"nested"},"a.b":"literal"}"#;
        assert_eq!(read(&["a.b"], before), [text("literal")]);
        assert_eq!(read(&["a.b"], after), [text("literal")]);
        assert_eq!(read(&["a.b"], r#"{"a":{"b":"nested"}}"#), [text("nested")]);
    }

    #[test]
    fn an_object_and_a_value_inside_it_can_both_be_read() {
        let cells = read(&["a", "a.b", "a"], r#"{"a":{"b":1}}"#);
        let object = (tag::JSON, 0.0, r#"{"b":1}"#.to_owned());
        assert_eq!(cells, [object.clone(), number(1.0), object]);
    }

    #[test]
    fn the_last_of_equal_keys_counts() {
        assert_eq!(read(&["a"], r#"{"a":1,"a":2}"#), [number(2.0)]);
    }

    #[test]
    fn keys_with_escapes_are_found() {
        assert_eq!(read(&["é"], r#"{"\u00e9":1}"#), [number(1.0)]);
    }

    #[test]
    fn many_paths_are_found_too() {
        let paths: Vec<String> = (0..40).map(|number| format!("p{number}")).collect();
        let json = format!(
            "{{{}}}",
            (0..40)
                .rev()
                .map(|n| format!("\"p{n}\":{n}"))
                .collect::<Vec<_>>()
                .join(",")
        );
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let expected: Vec<_> = (0..40).map(|value| number(f64::from(value))).collect();
        assert_eq!(read(&paths, &json), expected);
    }

    #[test]
    fn what_is_no_object_has_no_properties() {
        for json in ["", "[]", "1", "{\"b\":1,"] {
            assert_eq!(read(&["a"], json), [MISSING], "{json}");
        }
    }

    #[test]
    fn objects_after_one_another_are_read_as_by_themselves() {
        let projection = Projection::new(&["a", "b", "c.d", "e.f"]);
        let objects = [
            r#"{"a":1,"x":2,"b":3,"c":{"d":4},"e.f":5}"#,
            r#"{"a":1,"x":2,"b":3,"c":{"d":4},"e.f":5}"#,
            r#"{"a":1,"b":3,"e.f":5}"#,
            r#"{"new":0,"a":1,"x":2,"more":0,"b":3,"c":{"d":4}}"#,
            r#"{"b":1,"a":2,"a":3}"#,
            r#"{"\u0061":1,"ab":2,"a\"":3,"b":4}"#,
            r#"{"z":1,"y":2,"b":3}"#,
            r#"{"z":1,"y":2,"b":3}"#,
            r#"{"a" :1, "x": 2 , "b":3}"#,
            r#"{"a"}"#,
            "{}",
            r#"{"a":1,"x":2,"b":3,"c":{"d":4},"e.f":5}"#,
        ];
        let mut together = projection.row();
        for object in objects {
            projection.read(object, &mut together);
            let mut alone = projection.row();
            projection.read(object, &mut alone);
            assert!(together.cells().eq(alone.cells()), "{object}");
        }
    }

    #[test]
    fn unread_keys_are_named() {
        let projection = Projection::new(&["a.b", "c"]);
        let mut names = Vec::new();
        projection.unread(r#"{"a":1,"c":2,"d":3,"e":{}}"#, &mut |name| {
            names.push(name.to_owned());
        });
        assert_eq!(names, ["d", "e"]);
    }
}
