//! What a condition of an audience met, for the person who wants to know why.

use nudge_guest::Cell;
use nudge_guest::filter::Filter;
use nudge_guest::trigger::Subject;

use super::{Events, Interaction, Leaf, Test, known_text};

impl Leaf {
    /// What is known of the subject that the leaf asks about.
    pub(super) fn actual(&self, keys: &[String], subject: &Subject<'_>) -> String {
        match &self.test {
            Test::Property(filter) => properties(filter, keys, subject),
            Test::Events(events) => events.actual(subject),
            Test::OneOf(fact, _) | Test::Seen(fact, _) => known(subject, fact),
            Test::Locale(_) => known(subject, "locale"),
            Test::Version(_) => known(subject, "app_version"),
            Test::Interaction(interaction) => interaction.actual(subject),
            Test::Segment(conditions, _) => {
                let is = if conditions.hold(keys, subject) {
                    "is"
                } else {
                    "is not"
                };
                format!("the subject {is} in the segment")
            }
        }
    }
}

fn known(subject: &Subject<'_>, fact: &str) -> String {
    known_text(subject, fact).map_or_else(|| "not known".to_owned(), |text| format!("it is {text}"))
}

fn properties(filter: &Filter, keys: &[String], subject: &Subject<'_>) -> String {
    let leaves = filter.leaves();
    let each = leaves.iter().map(|leaf| {
        let key = keys.get(leaf.column()).map_or("", String::as_str);
        let value = subject.property(key);
        leaf.describe(key, value.as_ref().map_or(Cell::Missing, Cell::from))
    });
    each.collect::<Vec<_>>().join(", ")
}

impl Events {
    fn actual(&self, subject: &Subject<'_>) -> String {
        let counted = self.counted(subject);
        let more = if counted >= self.count.at_most() {
            " or more"
        } else {
            ""
        };
        format!("counted {counted}{more}")
    }
}

impl Interaction {
    fn actual(&self, subject: &Subject<'_>) -> String {
        self.last(subject)
            .map_or_else(|| "never".to_owned(), |last| format!("last at {last}"))
    }
}
