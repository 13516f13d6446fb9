//! Filters: conditions on properties, as campaigns and segments have them.
//!
//! A filter is a tree of `{"all": […], "any": […]}` with at most four levels and fifty leaves. A leaf is
//! `{"property", "type", "operator", "value"}`:
//!
//! | type | operators | value |
//! |---|---|---|
//! | `string` | `equals`, `not_equals`, `contains`, `not_contains`, `starts_with`, `ends_with` | a string |
//! | `string` | `in`, `not_in` | a list of strings |
//! | `string` | `matches` | a regular expression, which may match anywhere in the text |
//! | `number` | `eq`, `neq`, `gt`, `gte`, `lt`, `lte` | a number |
//! | `number` | `between` | `[least, most]`, both included |
//! | `boolean` | `is` | true or false |
//! | `date` | `before`, `after` | an ISO 8601 date or date-time |
//! | `date` | `within_last` | `{"amount": 7, "unit": "days"}`; minutes, hours, days or weeks |
//! | all | `is_set`, `is_not_set` | |
//!
//! A value of another type than the leaf's is no match, whatever the operator. A missing, null or
//! withheld value matches `is_not_set` and nothing else: `not_equals` wants a value that differs.
//! A group without conditions always holds.
//!
//! ```
//! use nudge_guest::config::{Node, Place, Problems};
//! use nudge_guest::filter::Filter;
//! use nudge_guest::{Cell, Instant};
//!
//! let document = Node::parse(r#"{"all": [{"property": "total", "type": "number", "operator": "gte", "value": 50}]}"#).unwrap();
//! let mut paths = Vec::new();
//! let mut problems = Problems::new();
//! let filter = Filter::read(&Place::root(&document), &mut paths, &mut problems).unwrap();
//!
//! assert_eq!(paths, ["total"], "what the plugin must say that it reads");
//! assert!(filter.matches(&Instant::default, &|_column| Cell::Number(80.0)));
//! assert!(!filter.matches(&Instant::default, &|_column| Cell::Text("80")));
//! ```

mod describe;
mod read;
mod test;
#[cfg(test)]
mod tests;

use crate::cell::Cell;
use crate::instant::Instant;

use test::Test;

/// How deep groups may nest, the outermost counted.
pub const MAX_DEPTH: usize = 4;

/// How many leaves a filter may have.
pub const MAX_LEAVES: usize = 50;

/// A condition on properties.
#[derive(Clone, Debug)]
pub struct Filter {
    root: Condition,
}

#[derive(Clone, Debug)]
enum Condition {
    All(Vec<Condition>),
    /// Never empty.
    Any(Vec<Condition>),
    Leaf(Leaf),
}

/// A condition on one property.
#[derive(Clone, Debug)]
pub struct Leaf {
    column: usize,
    operator: &'static str,
    test: Test,
}

impl Leaf {
    /// The number of the property's path, as [`Filter::read`] gave it.
    pub fn column(&self) -> usize {
        self.column
    }

    /// The operator's name.
    pub fn operator(&self) -> &'static str {
        self.operator
    }

    /// Whether the condition holds.
    pub fn matches<'c>(&self, now: &dyn Fn() -> Instant, cell: &dyn Fn(usize) -> Cell<'c>) -> bool {
        self.test.passes(cell(self.column), now)
    }
}

impl Filter {
    /// Whether the condition holds. `cell` is asked for the values of paths by the numbers that
    /// [`Filter::read`] gave them; `now`, only if a `within_last` counts from it.
    pub fn matches<'c>(&self, now: &dyn Fn() -> Instant, cell: &dyn Fn(usize) -> Cell<'c>) -> bool {
        self.root.matches(now, cell)
    }

    /// All leaves, in the order in which they were written.
    pub fn leaves(&self) -> Vec<&Leaf> {
        let mut leaves = Vec::new();
        self.root.collect(&mut leaves);
        leaves
    }
}

impl Condition {
    fn matches<'c>(&self, now: &dyn Fn() -> Instant, cell: &dyn Fn(usize) -> Cell<'c>) -> bool {
        match self {
            Self::All(conditions) => conditions
                .iter()
                .all(|condition| condition.matches(now, cell)),
            Self::Any(conditions) => conditions
                .iter()
                .any(|condition| condition.matches(now, cell)),
            Self::Leaf(leaf) => leaf.matches(now, cell),
        }
    }

    fn collect<'f>(&'f self, leaves: &mut Vec<&'f Leaf>) {
        match self {
            Self::All(conditions) | Self::Any(conditions) => {
                for condition in conditions {
                    condition.collect(leaves);
                }
            }
            Self::Leaf(leaf) => leaves.push(leaf),
        }
    }
}
