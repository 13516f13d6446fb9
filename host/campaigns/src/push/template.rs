//! Texts and JSON with tokens of the form `{{p.<binding_id>}}` (specification 2.5).
//!
//! A template is parsed once, when it is saved; what is filled in is text and is never parsed again.

use nudge_platform::json::escaped;
use serde_json::{Map, Value};

/// The longest id of a binding, in bytes.
const MOST_ID: usize = 64;
const OPENS: &str = "{{";
const CLOSES: &str = "}}";
const PREFIX: &str = "p.";

/// What a token stands for.
pub trait Values {
    /// The value as it stands inside a text.
    fn text(&self, binding: &str) -> Option<&str>;

    /// The value with its type, for a token that is a whole JSON value.
    fn json(&self, binding: &str) -> Option<Value>;
}

/// A text with tokens.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Text(Vec<Piece>);

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Plain(String),
    Token(String),
}

/// A JSON value with tokens in its texts.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// Nothing to fill in.
    Plain(Value),
    /// A text.
    Text(Text),
    /// A list.
    List(Vec<Json>),
    /// An object. Tokens in keys are refused.
    Object(Vec<(String, Json)>),
}

/// `{{` that begins no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{{{{` begins a token, which has the form `{{{{p.<binding id>}}}}`")]
pub struct UnknownForm;

impl Text {
    /// Reads a text.
    pub fn parse(text: &str) -> Result<Self, UnknownForm> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once(OPENS) {
            let (inside, behind) = after.split_once(CLOSES).ok_or(UnknownForm)?;
            let id = inside.strip_prefix(PREFIX).ok_or(UnknownForm)?;
            if !is_id(id) {
                return Err(UnknownForm);
            }
            if !before.is_empty() {
                pieces.push(Piece::Plain(before.to_owned()));
            }
            pieces.push(Piece::Token(id.to_owned()));
            rest = behind;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Plain(rest.to_owned()));
        }
        Ok(Self(pieces))
    }

    /// The bindings that its tokens name.
    pub fn tokens(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Token(id) => Some(id.as_str()),
            Piece::Plain(_) => None,
        })
    }

    /// What stands before the first token; none: there is no token.
    pub fn beginning(&self) -> Option<&str> {
        match self.0.as_slice() {
            [Piece::Token(_), ..] => Some(""),
            [Piece::Plain(plain), Piece::Token(_), ..] => Some(plain),
            _ => None,
        }
    }

    /// The text with the same in place of each token.
    pub fn with(&self, stand_in: &str) -> String {
        let pieces = self.0.iter().map(|piece| match piece {
            Piece::Plain(plain) => plain,
            Piece::Token(_) => stand_in,
        });
        pieces.collect()
    }

    /// The binding, where a token is all there is.
    fn whole(&self) -> Option<&str> {
        match self.0.as_slice() {
            [Piece::Token(id)] => Some(id),
            _ => None,
        }
    }

    /// The text with its values. A binding without one leaves nothing.
    pub fn fill(&self, values: &impl Values) -> String {
        let mut text = String::new();
        for piece in &self.0 {
            text.push_str(match piece {
                Piece::Plain(plain) => plain,
                Piece::Token(id) => values.text(id).unwrap_or_default(),
            });
        }
        text
    }
}

impl Json {
    /// Reads a JSON value; the error says where.
    pub fn parse(value: &Value) -> Result<Self, String> {
        match value {
            Value::String(text) => match Text::parse(text) {
                Ok(text) if text.tokens().next().is_none() => Ok(Self::Plain(value.clone())),
                Ok(text) => Ok(Self::Text(text)),
                Err(UnknownForm) => Err(String::new()),
            },
            Value::Array(items) => {
                let items = items.iter().enumerate().map(|(index, item)| {
                    Self::parse(item).map_err(|place| format!("/{index}{place}"))
                });
                Ok(Self::List(items.collect::<Result<_, _>>()?))
            }
            Value::Object(members) => {
                let members = members.iter().map(|(key, value)| {
                    let place = || format!("/{}", escaped(key));
                    if key.contains(OPENS) {
                        return Err(place());
                    }
                    let value = Self::parse(value).map_err(|below| place() + &below)?;
                    Ok((key.clone(), value))
                });
                Ok(Self::Object(members.collect::<Result<_, _>>()?))
            }
            plain => Ok(Self::Plain(plain.clone())),
        }
    }

    /// Calls back with each binding that a token names, and where the token stands.
    pub fn tokens(&self, place: &str, found: &mut impl FnMut(&str, &str)) {
        match self {
            Self::Plain(_) => {}
            Self::Text(text) => text.tokens().for_each(|id| found(id, place)),
            Self::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    item.tokens(&format!("{place}/{index}"), found);
                }
            }
            Self::Object(members) => {
                for (key, member) in members {
                    member.tokens(&format!("{place}/{}", escaped(key)), found);
                }
            }
        }
    }

    /// The value with what its tokens stand for. A token that is the whole value keeps its type.
    pub fn fill(&self, values: &impl Values) -> Value {
        match self {
            Self::Plain(value) => value.clone(),
            Self::Text(text) => match text.whole() {
                Some(id) => values.json(id).unwrap_or_default(),
                None => Value::String(text.fill(values)),
            },
            Self::List(items) => items.iter().map(|item| item.fill(values)).collect(),
            Self::Object(members) => {
                let members = members
                    .iter()
                    .map(|(key, value)| (key.clone(), value.fill(values)));
                Value::Object(members.collect::<Map<_, _>>())
            }
        }
    }
}

/// Whether this can be the id of a binding, as tokens name it.
pub fn is_id(id: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=MOST_ID).contains(&id.len()) && id.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    struct BindingValues(HashMap<&'static str, (String, Value)>);

    impl Values for BindingValues {
        fn text(&self, binding: &str) -> Option<&str> {
            self.0.get(binding).map(|(text, _)| text.as_str())
        }

        fn json(&self, binding: &str) -> Option<Value> {
            self.0.get(binding).map(|(_, value)| value.clone())
        }
    }

    fn values() -> BindingValues {
        BindingValues(HashMap::from([
            ("name", ("Ana".to_owned(), json!("Ana"))),
            ("total", ("1.234,50 €".to_owned(), json!(1234.5))),
            ("evil", ("{{p.name}}".to_owned(), json!("{{p.name}}"))),
        ]))
    }

    #[test]
    fn tokens_are_filled_in_and_never_parsed_again() {
        for (text, filled) in [
            ("Hello {{p.name}}!", "Hello Ana!"),
            ("{{p.name}}{{p.total}}", "Ana1.234,50 €"),
            ("{{p.evil}}", "{{p.name}}"),
            ("{p.name} }} { {", "{p.name} }} { {"),
            ("", ""),
        ] {
            assert_eq!(Text::parse(text).unwrap().fill(&values()), filled, "{text}");
        }
    }

    #[test]
    fn other_forms_are_unknown() {
        for text in [
            "{{name}}",
            "{{ p.name }}",
            "{{p.}}",
            "{{p.a b}}",
            "{{p.name}",
            "{{",
            "{{{p.name}}}",
            "{{P.name}}",
            "{{p.näme}}",
            "{{u.name}}",
            "{{p.name }}",
            "{{#if}}",
        ] {
            assert_eq!(Text::parse(text), Err(UnknownForm), "{text}");
        }
        let long = "i".repeat(MOST_ID);
        assert!(Text::parse(&format!("{{{{p.{long}}}}}")).is_ok());
        assert!(Text::parse(&format!("{{{{p.{long}i}}}}")).is_err());
    }

    #[test]
    fn a_token_that_is_the_whole_value_keeps_its_type() {
        let template = json!({"a": "{{p.total}}", "b": ["{{p.name}}", " {{p.total}}"], "c": {"d": 1, "e": null}});
        let template = Json::parse(&template).unwrap();
        assert_eq!(
            template.fill(&values()),
            json!({"a": 1234.5, "b": ["Ana", " 1.234,50 €"], "c": {"d": 1, "e": null}})
        );
        let mut places = Vec::new();
        template.tokens("", &mut |id, place| places.push(format!("{id} {place}")));
        assert_eq!(places, ["total /a", "name /b/0", "total /b/1"]);
    }

    #[test]
    fn a_mistake_is_named_by_its_place() {
        for (value, place) in [
            (json!({"a": [1, "{{x}}"]}), "/a/1"),
            (json!({"{{p.name}}": 1}), "/{{p.name}}"),
            (json!({"a/b": {"c~": "{{"}}), "/a~1b/c~0"),
        ] {
            assert_eq!(Json::parse(&value), Err(place.to_owned()));
        }
    }

    proptest! {
        #[test]
        fn text_without_tokens_comes_back(text in "[^{]*(\\{[^{]+)*") {
            let parsed = Text::parse(&text).unwrap();
            prop_assert_eq!(parsed.fill(&values()), text);
        }

        #[test]
        fn a_value_stands_in_the_text_as_it_is(before in "[^{]*", value: String) {
            let values = BindingValues(HashMap::from([("v", (value.clone(), json!(value)))]));
            let parsed = Text::parse(&format!("{before}{{{{p.v}}}}")).unwrap();
            prop_assert_eq!(parsed.fill(&values), before + &value);
        }
    }
}
