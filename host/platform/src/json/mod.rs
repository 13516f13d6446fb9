//! Reading JSON of people: types, whole numbers however they are written, pointers to mistakes.

pub mod merge;
pub mod objects;
pub mod whole;

use std::borrow::Cow;
use std::ops::Deref;

use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error as _};

pub use whole::whole;

use crate::field_error::FieldError;
use objects::Objects;

/// What the parser says of a number that is too large for a floating-point number. It is JSON all the same.
pub const NUMBER_OUT_OF_RANGE: &str = "number out of range";

/// Gives a part of a body its type. `place` is the part's JSON pointer.
pub fn shape<T: DeserializeOwned>(value: serde_json::Value, place: &str) -> Result<T, FieldError> {
    serde_path_to_error::deserialize(Objects(value)).map_err(|error| {
        let pointer = format!("{place}{}", pointer(error.path()));
        misshapen(error.inner(), pointer)
    })
}

/// Reads a whole number, however it is written, where serde keeps values to read them twice (`untagged`, `flatten`): it
/// takes them for numbers with a fraction then.
pub fn whole_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    whole(&value).ok_or_else(|| D::Error::custom("a whole number belongs here"))
}

/// What is wrong with a place. A member that is missing is named itself.
pub fn misshapen(error: &serde_json::Error, pointer: String) -> FieldError {
    let text = error.to_string();
    let reason = text.split(" at line ").next().unwrap_or_default();
    let missing = reason.strip_prefix("missing field `");
    if let Some(key) = missing.and_then(|rest| rest.strip_suffix('`')) {
        return FieldError::new(format!("{pointer}/{key}"), "required", reason);
    }
    if reason.starts_with("unknown field") {
        return FieldError::new(pointer, "unknown_key", reason);
    }
    let reason = &without_input(reason);
    // The names of our structs say nothing to anybody else.
    let detail = match reason.split_once(", expected struct ") {
        Some((found, _)) => format!("{found}, expected an object"),
        None if error.is_data() || reason == NUMBER_OUT_OF_RANGE => reason.to_owned(),
        None => "a value of another type belongs here".to_owned(),
    };
    FieldError::new(pointer, "invalid", detail)
}

/// A complaint of the parser without the text that it is about: it may be a secret in the wrong place.
fn without_input(reason: &str) -> String {
    let quoting = [
        "invalid type: string",
        "invalid value: string",
        "unknown variant",
    ];
    let quoting = quoting.into_iter().find(|it| reason.starts_with(it));
    match quoting.zip(reason.rsplit_once(", expected ")) {
        Some((found, (_, expected))) => format!("{found}, expected {expected}"),
        None => reason.to_owned(),
    }
}

/// A path as a JSON pointer.
pub fn pointer(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    let mut pointer = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => pointer.extend(["/", &index.to_string()]),
            Segment::Map { key } => {
                pointer.extend(["/", &escaped(key)]);
            }
            Segment::Enum { .. } | Segment::Unknown => {}
        }
    }
    pointer
}

/// A key as a JSON pointer has it (RFC 6901).
pub fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// A text, borrowed where it has no escapes. (A bare `Cow` in an `Option` is never borrowed.)
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub struct Text<'a>(#[serde(borrow)] pub Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}
