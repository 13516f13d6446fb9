//! Reading filters from configurations.

use std::time::Duration;

use regex_lite::Regex;

use super::test::{NumberTest, Test, TextTest, Type};
use super::{Condition, Filter, Leaf, MAX_DEPTH, MAX_LEAVES};
use crate::config::{Place, Problems};
use crate::instant::Instant;

const TYPES: [(&str, Type); 4] = [
    ("string", Type::Text),
    ("number", Type::Number),
    ("boolean", Type::Boolean),
    ("date", Type::Date),
];

const UNITS: [(&str, u32); 8] = [
    ("minutes", 60),
    ("hours", 3_600),
    ("days", 86_400),
    ("weeks", 604_800),
    ("minute", 60),
    ("hour", 3_600),
    ("day", 86_400),
    ("week", 604_800),
];

/// The longest path that an event can have, and the longest text that it is compared with.
const MAX_PATH: usize = 400;
const MAX_TEXT: usize = 8_192;
const MAX_LIST: usize = 1_000;
const MAX_PATTERN: usize = 1_000;

impl Filter {
    /// Reads a filter. New paths are added to `paths`; a leaf asks for its value by the number of its path.
    ///
    /// None, with at least one more problem, if something is wrong with it.
    pub fn read(
        place: &Place<'_>,
        paths: &mut Vec<String>,
        problems: &mut Problems,
    ) -> Option<Self> {
        let mut reader = Reader {
            paths,
            problems,
            leaves: 0,
        };
        reader.condition(place, 1).map(|root| Self { root })
    }
}

impl Filter {
    /// Reads `operator` and `value` of an object as a condition on one date, which is in column 0.
    ///
    /// None, with at least one more problem, if something is wrong with them.
    pub fn read_date(place: &Place<'_>, problems: &mut Problems) -> Option<Self> {
        let mut reader = Reader {
            paths: &mut Vec::new(),
            problems,
            leaves: 1,
        };
        let operator = place.require("operator", reader.problems)?;
        let operator = reader.operator(&operator, Type::Date)?;
        let test = reader.test(place, Type::Date, operator)?;
        let root = Condition::Leaf(Leaf {
            column: 0,
            operator,
            test,
        });
        Some(Self { root })
    }
}

struct Reader<'r> {
    paths: &'r mut Vec<String>,
    problems: &'r mut Problems,
    leaves: usize,
}

impl Reader<'_> {
    fn condition(&mut self, place: &Place<'_>, depth: usize) -> Option<Condition> {
        if !place.object(self.problems) {
            return None;
        }
        if place.member("property").is_some() || place.member("operator").is_some() {
            return self.leaf(place).map(Condition::Leaf);
        }
        if depth > MAX_DEPTH {
            self.problems.add(
                place,
                "too_deep",
                format_args!("groups may nest {MAX_DEPTH} deep"),
            );
            return None;
        }
        place.only(&["all", "any"], self.problems);
        let all = self.group(place, "all", depth);
        let any = self.group(place, "any", depth);
        let (mut all, any) = (all?, any?);
        if all.is_empty() && !any.is_empty() {
            return Some(Condition::Any(any));
        }
        if !any.is_empty() {
            all.push(Condition::Any(any));
        }
        Some(Condition::All(all))
    }

    /// The conditions under a key. None: something is wrong with one.
    fn group(&mut self, place: &Place<'_>, key: &str, depth: usize) -> Option<Vec<Condition>> {
        let Some(list) = place.find(key) else {
            return Some(Vec::new());
        };
        let elements = list.list(0..=MAX_LEAVES, self.problems)?;
        // All are read before one that is wrong ends it: every problem is to be named.
        let conditions: Vec<Option<Condition>> = elements
            .iter()
            .map(|element| self.condition(element, depth + 1))
            .collect();
        conditions.into_iter().collect()
    }

    fn leaf(&mut self, place: &Place<'_>) -> Option<Leaf> {
        self.leaves += 1;
        if self.leaves > MAX_LEAVES {
            if self.leaves == MAX_LEAVES + 1 {
                self.problems.add(
                    place,
                    "too_many",
                    format_args!("a filter has at most {MAX_LEAVES} conditions"),
                );
            }
            return None;
        }
        place.only(&["property", "type", "operator", "value"], self.problems);
        let property = place
            .require("property", self.problems)?
            .text_of(1..=MAX_PATH, self.problems);
        let kind =
            place
                .require("type", self.problems)?
                .choice("unknown_type", &TYPES, self.problems);
        let operator = place.require("operator", self.problems)?;
        let (property, kind) = (property?, kind?);
        let operator = self.operator(&operator, kind)?;
        let test = self.test(place, kind, operator)?;
        Some(Leaf {
            column: self.column(property),
            operator,
            test,
        })
    }

    fn operator(&mut self, place: &Place<'_>, kind: Type) -> Option<&'static str> {
        let operator = place.text(self.problems)?;
        let known = operators(kind).iter().chain(&OPERATORS_OF_ALL);
        let found = known.clone().copied().find(|name| *name == operator);
        if found.is_none() {
            let known: Vec<&str> = known.copied().collect();
            let message = format_args!("`{operator}` is not one of {}", known.join(", "));
            self.problems.add(place, "unknown_operator", message);
        }
        found
    }

    fn column(&mut self, path: &str) -> usize {
        self.paths
            .iter()
            .position(|known| known == path)
            .unwrap_or_else(|| {
                self.paths.push(path.to_owned());
                self.paths.len() - 1
            })
    }

    fn test(&mut self, leaf: &Place<'_>, kind: Type, operator: &str) -> Option<Test> {
        match operator {
            "is_set" => return Some(Test::Set(kind)),
            "is_not_set" => return Some(Test::NotSet),
            _ => {}
        }
        let value = leaf.require("value", self.problems)?;
        match kind {
            Type::Text => self.text_test(&value, operator).map(Test::Text),
            Type::Number => self.number_test(&value, operator).map(Test::Number),
            Type::Boolean => value.boolean(self.problems).map(Test::Boolean),
            Type::Date if operator == "within_last" => self.span(&value).map(Test::WithinLast),
            Type::Date => self.date(&value).map(if operator == "before" {
                Test::Before
            } else {
                Test::After
            }),
        }
    }

    fn text_test(&mut self, value: &Place<'_>, operator: &str) -> Option<TextTest> {
        match operator {
            "in" => return self.texts(value).map(TextTest::In),
            "not_in" => return self.texts(value).map(TextTest::NotIn),
            "matches" => return self.pattern(value).map(TextTest::Matches),
            _ => {}
        }
        let text = value.text_of(0..=MAX_TEXT, self.problems)?.to_owned();
        Some(match operator {
            "equals" => TextTest::Equals(text),
            "not_equals" => TextTest::NotEquals(text),
            "contains" => TextTest::Contains(text),
            "not_contains" => TextTest::NotContains(text),
            "starts_with" => TextTest::StartsWith(text),
            _ => TextTest::EndsWith(text),
        })
    }

    fn texts(&mut self, value: &Place<'_>) -> Option<Vec<String>> {
        let elements = value.list(1..=MAX_LIST, self.problems)?;
        elements
            .iter()
            .map(|element| {
                element
                    .text_of(0..=MAX_TEXT, self.problems)
                    .map(str::to_owned)
            })
            .collect()
    }

    fn pattern(&mut self, value: &Place<'_>) -> Option<Regex> {
        let pattern = value.text_of(1..=MAX_PATTERN, self.problems)?;
        Regex::new(pattern)
            .inspect_err(|error| self.problems.add(value, "invalid_pattern", error))
            .ok()
    }

    fn number_test(&mut self, value: &Place<'_>, operator: &str) -> Option<NumberTest> {
        if operator == "between" {
            let elements = value.list(2..=2, self.problems)?;
            let [least, most] = elements.as_slice() else {
                return None;
            };
            let (least, most) = (least.number(self.problems)?, most.number(self.problems)?);
            if least > most {
                self.problems.add(
                    value,
                    "out_of_range",
                    "the first number must not be above the second",
                );
                return None;
            }
            return Some(NumberTest::Between(least, most));
        }
        let number = value.number(self.problems)?;
        Some(match operator {
            "eq" => NumberTest::Equal(number),
            "neq" => NumberTest::NotEqual(number),
            "gt" => NumberTest::Greater(number),
            "gte" => NumberTest::GreaterOrEqual(number),
            "lt" => NumberTest::Less(number),
            _ => NumberTest::LessOrEqual(number),
        })
    }

    fn date(&mut self, value: &Place<'_>) -> Option<Instant> {
        let date = Instant::parse(value.text(self.problems)?);
        if date.is_none() {
            self.problems.add(
                value,
                "invalid_date",
                "must be an ISO 8601 date or date-time",
            );
        }
        date
    }

    fn span(&mut self, value: &Place<'_>) -> Option<Duration> {
        if !value.object(self.problems) {
            return None;
        }
        value.only(&["amount", "unit"], self.problems);
        let amount = value
            .require("amount", self.problems)?
            .integer(1..=1_000_000, self.problems);
        let unit =
            value
                .require("unit", self.problems)?
                .choice("unknown_unit", &UNITS, self.problems);
        Some(Duration::from_secs(u64::from(amount?) * u64::from(unit?)))
    }
}

/// What can be asked of values of any type.
const OPERATORS_OF_ALL: [&str; 2] = ["is_set", "is_not_set"];

fn operators(kind: Type) -> &'static [&'static str] {
    match kind {
        Type::Text => &[
            "equals",
            "not_equals",
            "in",
            "not_in",
            "contains",
            "not_contains",
            "starts_with",
            "ends_with",
            "matches",
        ],
        Type::Number => &["eq", "neq", "gt", "gte", "lt", "lte", "between"],
        Type::Boolean => &["is"],
        Type::Date => &["before", "after", "within_last"],
    }
}
