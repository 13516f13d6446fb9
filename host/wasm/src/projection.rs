//! Picks the properties that a configuration reads out of an event's JSON text, in one pass.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::bindings::types;
use crate::cells::{Cell, CellsBuilder};
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
        }
    }

    /// Reads an object into `row`. What is no object has no properties.
    pub(crate) fn read<'j>(&self, json: &'j str, row: &mut Row<'j>) {
        row.cells.fill((Cell::MISSING, false));
        self.root.read(json, row);
    }

    /// Names the keys of an object that no path begins with.
    pub(crate) fn unread(&self, json: &str, each: &mut dyn FnMut(&str)) {
        let mut deserializer = serde_json::Deserializer::from_str(json);
        // An object that breaks off has the keys that stand before that.
        let _: Result<(), _> = deserializer.deserialize_map(Unread {
            node: &self.root,
            each,
        });
    }
}

impl<'j> Row<'j> {
    pub(crate) fn cells(&self) -> impl Iterator<Item = &Cell<'j>> {
        self.cells.iter().map(|(cell, _)| cell)
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

    fn find(&self, key: &str) -> Option<&Self> {
        // Looking at a few in turn is quicker than searching.
        if self.children.len() <= 8 {
            return self
                .children
                .iter()
                .find(|(name, _)| **name == *key)
                .map(|(_, node)| node);
        }
        let position = self
            .children
            .binary_search_by(|(name, _)| (**name).cmp(key))
            .ok()?;
        self.children.get(position).map(|(_, node)| node)
    }

    fn read<'j>(&self, json: &'j str, row: &mut Row<'j>) {
        let mut deserializer = serde_json::Deserializer::from_str(json);
        // An object that breaks off has the properties that stand before that.
        let _: Result<(), _> = deserializer.deserialize_map(Fields { node: self, row });
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

/// Goes through the fields of an object and takes those that a node knows.
struct Fields<'n, 'r, 'j> {
    node: &'n Node,
    row: &'r mut Row<'j>,
}

impl<'j> Visitor<'j> for Fields<'_, '_, 'j> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<M: MapAccess<'j>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(child) = map.next_key_seed(Key(self.node))? {
            if let Some(child) = child {
                child.take(map.next_value::<&RawValue>()?.get(), self.row);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

/// Finds the node that a key leads to.
struct Key<'n>(&'n Node);

impl<'n, 'de> DeserializeSeed<'de> for Key<'n> {
    type Value = Option<&'n Node>;

    fn deserialize<D: serde::Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'n> Visitor<'_> for Key<'n> {
    type Value = Option<&'n Node>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self.0.find(key))
    }
}

/// Goes through the fields of an object and names those that a node does not know.
struct Unread<'n, 'e> {
    node: &'n Node,
    each: &'e mut dyn FnMut(&str),
}

impl<'de> Visitor<'de> for Unread<'_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while map
            .next_key_seed(UnreadKey {
                node: self.node,
                each: self.each,
            })?
            .is_some()
        {
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

struct UnreadKey<'n, 'e> {
    node: &'n Node,
    each: &'e mut dyn FnMut(&str),
}

impl<'de> DeserializeSeed<'de> for UnreadKey<'_, '_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for UnreadKey<'_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<(), E> {
        if self.node.find(key).is_none() {
            (self.each)(key);
        }
        Ok(())
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
    fn unread_keys_are_named() {
        let projection = Projection::new(&["a.b", "c"]);
        let mut names = Vec::new();
        projection.unread(r#"{"a":1,"c":2,"d":3,"e":{}}"#, &mut |name| {
            names.push(name.to_owned());
        });
        assert_eq!(names, ["d", "e"]);
    }
}
