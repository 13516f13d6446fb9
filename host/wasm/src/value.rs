//! What the host's facts are made of.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::bindings::types;

/// A JSON value. Its shape is stored with decisions: a change of it takes a new format there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Value {
    /// `null`.
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// A number.
    Number(f64),
    /// A string.
    Text(String),
    /// An array or object, as JSON text.
    Json(String),
    /// There is a value, and the app's privacy policy keeps it from plugins. Only a cell can say so; a
    /// getter of single values answers that there is none.
    Withheld,
}

impl Value {
    pub(crate) fn into_wit(self) -> Option<types::Value> {
        match self {
            Self::Null => Some(types::Value::Null),
            Self::Boolean(value) => Some(types::Value::Boolean(value)),
            Self::Number(value) => Some(types::Value::Number(value)),
            Self::Text(value) => Some(types::Value::Text(value)),
            Self::Json(value) => Some(types::Value::Json(value)),
            Self::Withheld => None,
        }
    }
}

impl From<types::Value> for Value {
    fn from(value: types::Value) -> Self {
        match value {
            types::Value::Null => Self::Null,
            types::Value::Boolean(value) => Self::Boolean(value),
            types::Value::Number(value) => Self::Number(value),
            types::Value::Text(value) => Self::Text(value),
            types::Value::Json(value) => Self::Json(value),
        }
    }
}

/// An event of the past.
#[derive(Debug, Clone, PartialEq)]
pub struct PastEvent {
    /// Its identifier.
    pub id: Uuid,
    /// When it happened, in microseconds since 1970.
    pub timestamp: i64,
    /// Its properties, as the text of a JSON object.
    pub properties: Arc<str>,
}

/// The database cannot answer. The call is abandoned; it is not the plugin's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the facts that the plugin asked for are unavailable")]
pub struct FactsUnavailable;
