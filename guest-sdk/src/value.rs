//! Owned property values.

pub use crate::bindings::trigger::nudge::plugin::types::Value;

impl Value {
    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self {
            Some(text)
        } else {
            None
        }
    }

    /// The number, if it is one.
    pub fn number(&self) -> Option<f64> {
        if let Self::Number(number) = self {
            Some(*number)
        } else {
            None
        }
    }

    /// The boolean, if it is one.
    pub fn boolean(&self) -> Option<bool> {
        if let Self::Boolean(boolean) = self {
            Some(*boolean)
        } else {
            None
        }
    }
}
