//! A JSON document that is read once and costs little.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::declaration::Problem;

/// A JSON value that borrows its texts, keeps the order of members, and has each key once.
#[derive(Clone, Debug, PartialEq)]
pub enum Node<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// A number.
    Number(f64),
    /// A text.
    Text(Cow<'a, str>),
    /// An array.
    Array(Vec<Node<'a>>),
    /// An object.
    Object(Vec<(Cow<'a, str>, Node<'a>)>),
}

impl<'a> Node<'a> {
    /// Reads JSON text. A key that an object has twice is an error.
    pub fn parse(text: &'a str) -> Result<Self, Vec<Problem>> {
        if let Some(node) = super::quick::parse(text) {
            return Ok(node);
        }
        serde_json::from_str(text).map_err(|error| vec![super::problem(text, &error)])
    }

    /// The member with this key, if it is an object that has one.
    pub fn member(&self, key: &str) -> Option<&Node<'a>> {
        let Self::Object(members) = self else {
            return None;
        };
        members
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Node<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(NodeVisitor)
    }
}

/// A key or text, borrowed where it has no escapes.
struct Text<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_str(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a string")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(text.to_owned())))
    }
}

struct NodeVisitor;

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Node<'de>, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E: Error>(self, boolean: bool) -> Result<Node<'de>, E> {
        Ok(Node::Boolean(boolean))
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "JSON numbers are doubles to most of its readers"
    )]
    fn visit_i64<E: Error>(self, number: i64) -> Result<Node<'de>, E> {
        Ok(Node::Number(number as f64))
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "JSON numbers are doubles to most of its readers"
    )]
    fn visit_u64<E: Error>(self, number: u64) -> Result<Node<'de>, E> {
        Ok(Node::Number(number as f64))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Node<'de>, E> {
        Ok(Node::Number(number))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Node<'de>, E> {
        Ok(Node::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Node<'de>, E> {
        Ok(Node::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Node<'de>, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = elements.next_element()? {
            list.push(element);
        }
        Ok(Node::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Node<'de>, A::Error> {
        let mut list: Vec<(Cow<'de, str>, Node<'de>)> = Vec::new();
        while let Some(Text(key)) = members.next_key()? {
            if list.iter().any(|(known, _)| *known == key) {
                return Err(A::Error::custom(format_args!(
                    "the key `{key}` is there twice"
                )));
            }
            list.push((key, members.next_value()?));
        }
        Ok(Node::Object(list))
    }
}
