//! Memory that JSON takes once it is parsed.
//!
//! A short text can become large in memory: `{"":0},` is seven bytes, and more than six hundred once it is a map. So a
//! text is gone through before it is parsed, which finds an upper bound of the memory that its tree takes. That bound
//! takes room among the bodies ([`admission`](crate::admission)), and one that is out of proportion is refused.

use super::MOST_JSON_DEPTH;

/// How many times the memory of its text a tree may take: ten with the text itself.
const MOST_TIMES: usize = 9;
/// The memory that any tree may take which somebody with a key sends, in bytes: a public key suffices.
pub const LEAST_OF_KEYS: usize = 1024 * 1024;
/// The memory that any tree may take which the customer's staff sends, in bytes: surveys are made of small objects.
pub const LEAST: usize = 2 * LEAST_OF_KEYS;

/// What an element of an array takes.
const ELEMENT: usize = size_of::<serde_json::Value>();
/// What a map or a struct takes: a node of a map has places for eleven members, whether or not they are taken.
const OBJECT: usize = 640;
/// The members that one node has places for.
const NODE: usize = 11;
/// What each member of a map with several nodes takes, which may be half empty.
const MEMBER: usize = 160;
/// The places that an array begins with.
const FIRST: usize = 4;
/// What the smallest text on the heap takes beside its letters.
const TEXT: usize = 16;

/// Whether a text may be parsed of which an upper bound says that its tree takes so many bytes. `least` is what any
/// tree may take.
pub fn fits(text: &str, tree_bytes: usize, least: usize) -> bool {
    tree_bytes <= least.max(text.len().saturating_mul(MOST_TIMES))
}

/// An array or object that is not at its end.
#[derive(Clone, Copy, Default)]
struct Open {
    is_object: bool,
    /// Commas so far.
    commas: usize,
}

impl Open {
    /// What it takes, its members' own memory aside.
    fn bytes(self, is_empty: bool) -> usize {
        let count = if is_empty { 0 } else { self.commas + 1 };
        match (self.is_object, count) {
            // A struct takes something too, though nothing of it is said.
            (true, 0..=NODE) => OBJECT,
            (true, _) => OBJECT.saturating_add(count.saturating_mul(MEMBER)),
            (false, 0) => 0,
            // It has grown by doubling, and for a moment its elements were there twice.
            (false, _) => {
                let places = count.max(FIRST).next_power_of_two();
                places.saturating_mul(ELEMENT * 3 / 2)
            }
        }
    }
}

/// An upper bound of the memory that a JSON text takes as a tree, in bytes. The text nests no deeper than
/// [`MOST_JSON_DEPTH`]; of what is no JSON the bound says nothing.
pub fn tree_bytes(text: &str) -> usize {
    let mut open = [Open::default(); MOST_JSON_DEPTH + 1];
    let (mut depth, mut total, mut is_empty) = (0_usize, ELEMENT, false);
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => continue,
            b'"' => total = total.saturating_add(skip_text(&mut bytes)),
            b'[' | b'{' => {
                depth += 1;
                if let Some(entered) = open.get_mut(depth) {
                    *entered = Open {
                        is_object: byte == b'{',
                        commas: 0,
                    };
                }
                is_empty = true;
                continue;
            }
            b']' | b'}' => {
                let left = open.get(depth).copied().unwrap_or_default();
                if depth > 0 {
                    total = total.saturating_add(left.bytes(is_empty));
                    depth -= 1;
                }
            }
            b',' => {
                if let Some(open) = open.get_mut(depth) {
                    open.commas += 1;
                }
            }
            _ => {}
        }
        is_empty = false;
    }
    // What breaks off was parsed until then.
    let unended = open.iter().skip(1).take(depth);
    unended.fold(total, |total, open| total.saturating_add(open.bytes(false)))
}

/// Goes behind the end of a string; answers what it takes on the heap.
fn skip_text(bytes: &mut std::str::Bytes<'_>) -> usize {
    let mut length = 0;
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => break,
            b'\\' => {
                bytes.next();
                length += 2;
            }
            _ => length += 1,
        }
    }
    if length == 0 {
        0
    } else {
        TEXT + length + length / 8
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    /// What a tree takes at the least: the places that are taken, and what Rust's map has beside them.
    fn least(value: &Value) -> usize {
        match value {
            Value::Array(items) => {
                items.capacity() * ELEMENT + items.iter().map(least).sum::<usize>()
            }
            Value::Object(members) if members.is_empty() => 0,
            Value::Object(members) => {
                let node = NODE * (size_of::<String>() + ELEMENT);
                let inner = |(key, value): (&String, &Value)| key.capacity() + least(value);
                members.len().div_ceil(NODE) * node + members.iter().map(inner).sum::<usize>()
            }
            Value::String(text) => text.capacity(),
            _ => 0,
        }
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i64>().prop_map(Value::from),
            ".{0,40}".prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 200, 40, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..40).prop_map(Value::from),
                prop::collection::btree_map(".{0,6}", inner, 0..40)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_tree_takes_more_than_its_text_says(value in any_value(), pretty in any::<bool>()) {
            let text = if pretty { format!("{value:#}") } else { value.to_string() };
            let parsed: Value = serde_json::from_str(&text).unwrap();
            prop_assert!(least(&parsed) <= tree_bytes(&text), "{text}");
        }
    }

    #[test]
    fn short_texts_that_become_large_are_out_of_proportion() {
        let mib = 1024 * 1024;
        for piece in [
            "{\"\":0},",
            "{},",
            "[0],",
            "0,",
            "\"\",",
            "{ \"a\" : { } } ,",
        ] {
            let text = format!("[{}0]", piece.repeat(mib / piece.len()));
            let bytes = tree_bytes(&text);
            assert!(!fits(&text, bytes, LEAST), "{piece}: {bytes}");
        }
        assert!(tree_bytes(&format!("[{}0]", "{\"\":0},".repeat(1000))) > 640 * 1000);
    }

    #[test]
    fn documents_as_people_write_them_fit() {
        let option = r#"{"id": "option-7", "label": "A little more than before"}"#;
        let question = format!(
            r#"{{"id": "q1", "type": "single_choice", "title": "How much do you use it?", "options": [{}]}}"#,
            [option; 20].join(",")
        );
        let survey = format!(
            r#"{{"name": "x", "flow": {{"questions": [{}]}}}}"#,
            vec![question; 100].join(",")
        );
        assert!(
            fits(&survey, tree_bytes(&survey), LEAST),
            "{}",
            survey.len()
        );
        let text = format!("{{\"answers\": [{:?}]}}", "x".repeat(1024 * 1024 - 20));
        assert!(fits(&text, tree_bytes(&text), 0));
    }

    #[test]
    fn brackets_within_strings_are_letters() {
        let text = format!("[{:?}]", "{\"\":0},".repeat(100));
        assert!(tree_bytes(&text) < 3 * text.len());
        assert!(tree_bytes("[[[[") >= 4 * FIRST * ELEMENT);
        assert_eq!(tree_bytes("]]]"), ELEMENT);
    }
}
