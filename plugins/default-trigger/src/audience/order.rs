//! The order in which conditions are asked: first, and once for all events of a subject that arrive together, what does
//! not depend on the event, and then what takes the host to look into the past.

use std::cell::Cell as Known;

use super::{Condition, Conditions, Leaf, Test};

/// What it takes to know whether a condition holds, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Effort {
    /// A fact, which the host has at hand.
    Fact,
    /// What became of everything that the subject was shown.
    Interactions,
    /// Earlier events, counted. Each event of a batch is earlier for the next one.
    Counting,
    /// Earlier events and their properties.
    Reading,
}

impl Condition {
    /// The same condition, to be asked in that order.
    pub(super) fn ordered(self) -> Self {
        if self.effort() < Effort::Counting {
            return Self::Settled(Box::new(self.sorted()), Known::default());
        }
        match self {
            Self::All(conditions) => Self::All(arranged(conditions, Self::All)),
            Self::Any(conditions) => Self::Any(arranged(conditions, Self::Any)),
            other => other,
        }
    }

    fn sorted(self) -> Self {
        let sorted = |conditions: Vec<Self>| {
            let mut conditions: Vec<Self> = conditions.into_iter().map(Self::sorted).collect();
            conditions.sort_by_key(Self::effort);
            conditions
        };
        match self {
            Self::All(conditions) => Self::All(sorted(conditions)),
            Self::Any(conditions) => Self::Any(sorted(conditions)),
            other => other,
        }
    }

    fn effort(&self) -> Effort {
        match self {
            Self::All(conditions) | Self::Any(conditions) => most(conditions.iter()),
            Self::Leaf(leaf) => leaf.effort(),
            Self::Settled(condition, _) => condition.effort(),
        }
    }
}

impl Leaf {
    fn effort(&self) -> Effort {
        match &self.test {
            Test::Property(_)
            | Test::OneOf(..)
            | Test::Locale(_)
            | Test::Version(_)
            | Test::Seen(..) => Effort::Fact,
            Test::Interaction(_) => Effort::Interactions,
            Test::Events(events) if events.filter.is_none() => Effort::Counting,
            Test::Events(_) => Effort::Reading,
            Test::Segment(conditions, _) => {
                let Conditions { include, exclude } = conditions.as_ref();
                most(include.iter().chain(exclude))
            }
        }
    }
}

fn most<'c>(conditions: impl Iterator<Item = &'c Condition>) -> Effort {
    let efforts = conditions.map(Condition::effort);
    efforts.max().unwrap_or(Effort::Fact)
}

/// The conditions of a group: those that are settled together are one.
fn arranged(
    conditions: Vec<Condition>,
    group: impl Fn(Vec<Condition>) -> Condition,
) -> Vec<Condition> {
    let is_settled = |condition: &Condition| condition.effort() < Effort::Counting;
    let (settled, mut others): (Vec<_>, Vec<_>) = conditions.into_iter().partition(is_settled);
    others.sort_by_key(Condition::effort);
    let mut arranged = Vec::new();
    if !settled.is_empty() {
        arranged.push(group(settled).ordered());
    }
    arranged.extend(others.into_iter().map(Condition::ordered));
    arranged
}
