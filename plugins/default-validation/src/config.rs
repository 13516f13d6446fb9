//! A definition, compiled.

use regex_lite::Regex;

/// What events of a definition must have.
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) properties: Vec<Property>,
    /// Whether events may have others.
    pub(crate) additional_properties: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Property {
    pub(crate) name: String,
    pub(crate) required: bool,
    pub(crate) rule: Rule,
}

/// What a value must be.
#[derive(Clone, Debug)]
pub(crate) enum Rule {
    Text(TextRule),
    Number {
        minimum: Option<f64>,
        maximum: Option<f64>,
    },
    Boolean,
    Date,
    OneOf(Vec<Scalar>),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct TextRule {
    pub(crate) min_length: Option<u32>,
    pub(crate) max_length: Option<u32>,
    pub(crate) pattern: Option<Regex>,
    /// Empty: any.
    pub(crate) values: Vec<Scalar>,
}

/// A value of a list.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scalar {
    Boolean(bool),
    Number(f64),
    Text(String),
}
