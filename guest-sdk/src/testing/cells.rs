//! From JSON to cells and values, as the server makes them.

use serde_json::Value as Json;

use crate::bindings::trigger::nudge::plugin::types::Cells;
use crate::value::Value;

/// A table with a row for each object and a column for each path.
pub(super) fn table<'j>(rows: impl IntoIterator<Item = &'j Json>, paths: &[String]) -> Cells {
    let mut cells = Cells {
        tags: Vec::new(),
        numbers: Vec::new(),
        ends: Vec::new(),
        text: String::new(),
    };
    for row in rows {
        for path in paths {
            push(&mut cells, find(row, path));
        }
    }
    cells
}

fn push(cells: &mut Cells, value: Option<&Json>) {
    let (tag, number) = match value {
        None => (0, 0.0),
        Some(Json::Null) => (1, 0.0),
        Some(Json::Bool(boolean)) => (2 + u8::from(*boolean), 0.0),
        Some(Json::Number(number)) => (4, number.as_f64().unwrap_or_default()),
        Some(Json::String(text)) => {
            cells.text.push_str(text);
            (5, 0.0)
        }
        Some(json) => {
            cells.text.push_str(&json.to_string());
            (6, 0.0)
        }
    };
    cells.tags.push(tag);
    cells.numbers.push(number);
    cells
        .ends
        .push(u32::try_from(cells.text.len()).unwrap_or(u32::MAX));
}

/// The value at a dotted path. A key that has the dots itself comes first.
pub(super) fn find<'j>(object: &'j Json, path: &str) -> Option<&'j Json> {
    object.get(path).or_else(|| {
        let (first, rest) = path.split_once('.')?;
        find(object.get(first)?, rest)
    })
}

/// The paths of an object's properties that are at none of these paths.
pub(super) fn unread(object: &Json, paths: &[String]) -> Vec<String> {
    let read = |key: &str| {
        paths
            .iter()
            .any(|path| path == key || path.split('.').next() == Some(key))
    };
    let keys = object
        .as_object()
        .into_iter()
        .flat_map(|members| members.keys());
    keys.filter(|key| !read(key)).cloned().collect()
}

pub(super) fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(boolean) => Value::Boolean(*boolean),
        Json::Number(number) => Value::Number(number.as_f64().unwrap_or_default()),
        Json::String(text) => Value::Text(text.clone()),
        json => Value::Json(json.to_string()),
    }
}
