//! Reading a document and naming what is wrong with it.

use std::fmt;
use std::ops::RangeInclusive;

use super::Node;
use super::pointer::escaped;
use crate::declaration::Problem;

/// The problems found so far.
#[derive(Debug, Default)]
pub struct Problems(Vec<Problem>);

impl Problems {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one.
    pub fn add(&mut self, place: &Place<'_>, code: &str, message: impl fmt::Display) {
        self.0
            .push(Problem::new(code, place.pointer(), message.to_string()));
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value, if no problem was found.
    pub fn unless_any<T>(self, value: T) -> Result<T, Vec<Problem>> {
        if self.0.is_empty() {
            Ok(value)
        } else {
            Err(self.0)
        }
    }
}

/// A node and where it stands in its document.
///
/// The functions that read a node as something report a problem, and return none, where it is something
/// else: `wrong_type`, `required`, `out_of_range` or `unknown_key`. The pointer is made only then.
///
/// ```
/// use nudge_guest::config::{Node, Place, Problems};
///
/// let document = Node::parse(r#"{"limit": 12, "colour": "red"}"#).unwrap();
/// let root = Place::root(&document);
/// let mut problems = Problems::new();
/// root.only(&["limit"], &mut problems);
/// let limit = root.require("limit", &mut problems).and_then(|place| place.integer(1..=10, &mut problems));
///
/// assert_eq!(limit, None);
/// let problems = problems.unless_any(()).unwrap_err();
/// assert_eq!(problems[0].to_string(), "unknown_key at `/colour`: `colour` is not known here");
/// assert_eq!(problems[1].to_string(), "out_of_range at `/limit`: must be a whole number from 1 to 10");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Place<'p> {
    node: &'p Node<'p>,
    above: Option<(&'p Place<'p>, Step<'p>)>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'p> {
    Member(&'p str),
    Element(usize),
}

impl<'p> Place<'p> {
    /// The whole document.
    pub fn root(node: &'p Node<'p>) -> Self {
        Self { node, above: None }
    }

    /// What stands here.
    pub fn node(&self) -> &'p Node<'p> {
        self.node
    }

    /// Where this is, as a JSON pointer.
    pub fn pointer(&self) -> String {
        let Some((above, step)) = self.above else {
            return String::new();
        };
        match step {
            Step::Member(key) => format!("{}/{}", above.pointer(), escaped(key)),
            Step::Element(number) => format!("{}/{number}", above.pointer()),
        }
    }

    /// A member, even if it is null.
    pub fn member(&'p self, key: &'p str) -> Option<Place<'p>> {
        self.node.member(key).map(|node| Place {
            node,
            above: Some((self, Step::Member(key))),
        })
    }

    /// A member that is not null.
    pub fn find(&'p self, key: &'p str) -> Option<Place<'p>> {
        self.member(key).filter(|place| *place.node != Node::Null)
    }

    /// A member that must be there.
    pub fn require(&'p self, key: &'p str, problems: &mut Problems) -> Option<Place<'p>> {
        let found = self.find(key);
        if found.is_none() && self.object(problems) {
            let missing = Place {
                node: self.node,
                above: Some((self, Step::Member(key))),
            };
            problems.add(&missing, "required", format_args!("`{key}` is missing"));
        }
        found
    }

    /// Whether this is an object; reports a problem if not.
    pub fn object(&self, problems: &mut Problems) -> bool {
        let object = matches!(self.node, Node::Object(_));
        if !object {
            problems.add(self, "wrong_type", "must be an object");
        }
        object
    }

    /// Reports every member with another key than these.
    pub fn only(&self, keys: &[&str], problems: &mut Problems) {
        let Node::Object(members) = self.node else {
            return;
        };
        for (key, node) in members
            .iter()
            .filter(|(key, _)| !keys.contains(&key.as_ref()))
        {
            let member = Place {
                node,
                above: Some((self, Step::Member(key))),
            };
            problems.add(
                &member,
                "unknown_key",
                format_args!("`{key}` is not known here"),
            );
        }
    }

    /// The elements of an array that has so many.
    pub fn list(
        &'p self,
        length: RangeInclusive<usize>,
        problems: &mut Problems,
    ) -> Option<Vec<Place<'p>>> {
        let Node::Array(elements) = self.node else {
            problems.add(self, "wrong_type", "must be an array");
            return None;
        };
        if !length.contains(&elements.len()) {
            let (least, most) = length.into_inner();
            problems.add(
                self,
                "out_of_range",
                format_args!("must have {least} to {most} elements"),
            );
            return None;
        }
        let place = |(number, node)| Place {
            node,
            above: Some((self, Step::Element(number))),
        };
        Some(elements.iter().enumerate().map(place).collect())
    }

    /// A text.
    pub fn text(&self, problems: &mut Problems) -> Option<&'p str> {
        let Node::Text(text) = self.node else {
            problems.add(self, "wrong_type", "must be a string");
            return None;
        };
        Some(text)
    }

    /// A text of so many characters.
    pub fn text_of(
        &self,
        characters: RangeInclusive<usize>,
        problems: &mut Problems,
    ) -> Option<&'p str> {
        let text = self.text(problems)?;
        if characters.contains(&text.chars().count()) {
            return Some(text);
        }
        let (least, most) = characters.into_inner();
        problems.add(
            self,
            "out_of_range",
            format_args!("must have {least} to {most} characters"),
        );
        None
    }

    /// A finite number.
    pub fn number(&self, problems: &mut Problems) -> Option<f64> {
        let Node::Number(number) = self.node else {
            problems.add(self, "wrong_type", "must be a number");
            return None;
        };
        Some(*number)
    }

    /// A whole number in a range.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "compared with what it was before"
    )]
    pub fn integer(&self, range: RangeInclusive<u32>, problems: &mut Problems) -> Option<u32> {
        let number = self.number(problems)?;
        let integer = number as u32;
        if (f64::from(integer) - number).abs() < f64::EPSILON && range.contains(&integer) {
            return Some(integer);
        }
        let (least, most) = range.into_inner();
        problems.add(
            self,
            "out_of_range",
            format_args!("must be a whole number from {least} to {most}"),
        );
        None
    }

    /// A boolean.
    pub fn boolean(&self, problems: &mut Problems) -> Option<bool> {
        let Node::Boolean(boolean) = self.node else {
            problems.add(self, "wrong_type", "must be true or false");
            return None;
        };
        Some(*boolean)
    }

    /// What one of these texts stands for; reports a problem with this code if it is none of them.
    pub fn choice<T: Copy>(
        &self,
        code: &str,
        choices: &[(&str, T)],
        problems: &mut Problems,
    ) -> Option<T> {
        let text = self.text(problems)?;
        let found = choices
            .iter()
            .find(|(name, _)| *name == text)
            .map(|(_, choice)| *choice);
        if found.is_none() {
            let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
            problems.add(
                self,
                code,
                format_args!("`{text}` is not one of {}", names.join(", ")),
            );
        }
        found
    }
}
