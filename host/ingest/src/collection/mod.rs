//! Collection from existing SDKs (contract 24): the HTTP tracking protocol that Segment's and `RudderStack`'s clients speak.
//!
//! A message becomes an event or an update of properties, which are taken as those of Nudge's own routes are: the same
//! checks, definitions, dead letters, consent and commit, and the same ids for what is sent again. One message spoils no
//! other. Messages of one person are taken in their order, those of several people side by side.

pub mod http;
mod message;
mod name;
mod people;
mod traits;

use serde::Deserialize;

pub(crate) use message::ORIGINAL_NAME;

/// What a message says, as the last part of its path, in short too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageKind {
    /// Something happened.
    #[serde(alias = "t")]
    Track,
    /// Who somebody is.
    #[serde(alias = "i")]
    Identify,
    /// A page was viewed.
    #[serde(alias = "p")]
    Page,
    /// A screen was viewed.
    #[serde(alias = "s")]
    Screen,
    /// Somebody has another id.
    #[serde(alias = "a")]
    Alias,
    /// Somebody belongs to a group.
    #[serde(alias = "g")]
    Group,
    /// Several of these, with their kinds. Segment's clients for .NET, Java, Android and Ruby call it `import`.
    #[serde(alias = "b", alias = "import")]
    Batch,
}

impl MessageKind {
    /// The kind of a name, in full or in short.
    pub fn parse(name: &str) -> Option<Self> {
        let text = serde::de::value::StrDeserializer::<serde::de::value::Error>::new(name);
        Self::deserialize(text).ok()
    }
}
