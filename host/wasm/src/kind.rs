//! What a plugin decides.

use std::fmt;
use std::str::FromStr;

/// The world that a plugin targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Whether an event triggers a campaign.
    Trigger,
    /// What personalization bindings stand for.
    Personalization,
    /// Whether an event matches its definition.
    Validation,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Trigger, Self::Personalization, Self::Validation];

    /// The kind's name in the API and in the contract.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trigger => "trigger",
            Self::Personalization => "personalization",
            Self::Validation => "validation",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A text that names no kind of plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a kind of plugin: expected trigger, personalization or validation")]
pub struct UnknownKind;

impl FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or(UnknownKind)
    }
}
