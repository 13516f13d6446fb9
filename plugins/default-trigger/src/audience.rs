//! Whom a campaign is for: what is known of a subject, and what it did.

mod actual;
mod order;
mod read;
mod version;

use std::cell::Cell as Known;
use std::time::Duration;

use nudge_guest::filter::Filter;
use nudge_guest::serde_json::{self, Value as Json};
use nudge_guest::trigger::Subject;
use nudge_guest::{Cell, Instant, PastEvent, Value};

use crate::history;
pub(crate) use read::AudienceReader;
use version::VersionTest;

/// An audience, compiled. Whom a share of it leaves out is the host's.
#[derive(Clone, Debug, Default)]
pub(crate) struct Audience {
    pub(crate) conditions: Conditions,
    /// The saved properties that are asked for.
    pub(crate) keys: Vec<String>,
}

/// Who is included but for those who are excluded; without conditions, everybody.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conditions {
    pub(crate) include: Option<Condition>,
    pub(crate) exclude: Option<Condition>,
}

/// A tree of conditions.
#[derive(Clone, Debug)]
pub(crate) enum Condition {
    All(Vec<Condition>),
    Any(Vec<Condition>),
    Leaf(Leaf),
    /// A condition that all events of a subject that arrive together meet alike, and what the last ones met: whose they
    /// were and when.
    Settled(Box<Condition>, Known<Option<(u32, Instant, bool)>>),
}

/// One condition.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    test: Test,
    /// What it asks, for a person.
    label: String,
    /// Which one it is, as they are written.
    place: usize,
}

#[derive(Clone, Debug)]
enum Test {
    /// Of saved properties, by their number in `keys`.
    Property(Filter),
    Events(Events),
    /// A fact that is one of some texts.
    OneOf(&'static str, Vec<String>),
    /// A locale that is one of some, or of one of some languages.
    Locale(Vec<String>),
    Version(VersionTest),
    /// A fact that is an instant.
    Seen(&'static str, Filter),
    Interaction(Interaction),
    /// Whether the subject is in a segment, and whether it has to be.
    Segment(Box<Conditions>, bool),
}

/// So many events of a name within a span.
#[derive(Clone, Debug)]
struct Events {
    name: String,
    filter: Option<Filter>,
    paths: Vec<String>,
    count: Count,
    within: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Count {
    operator: CountOperator,
    n: u32,
}

#[derive(Clone, Copy, Debug)]
enum CountOperator {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

impl Count {
    /// How many have to be counted to know.
    fn at_most(self) -> u32 {
        match self.operator {
            CountOperator::GreaterOrEqual | CountOperator::Less => self.n,
            _ => self.n + 1,
        }
    }

    fn holds(self, count: u32) -> bool {
        match self.operator {
            CountOperator::Equal => count == self.n,
            CountOperator::NotEqual => count != self.n,
            CountOperator::Greater => count > self.n,
            CountOperator::GreaterOrEqual => count >= self.n,
            CountOperator::Less => count < self.n,
            CountOperator::LessOrEqual => count <= self.n,
        }
    }
}

/// What became of something that a campaign showed or sent.
#[derive(Clone, Debug)]
struct Interaction {
    /// The fact that knows.
    fact: &'static str,
    /// The campaigns; none: any.
    campaigns: Vec<String>,
    name: &'static str,
    within: Option<Duration>,
}

impl Audience {
    /// Whether a subject is in the audience.
    pub(crate) fn includes(&self, subject: &Subject<'_>) -> bool {
        self.conditions.hold(&self.keys, subject)
    }

    /// The names of the events that are counted.
    pub(crate) fn event_names(&self) -> impl Iterator<Item = &str> {
        let mut names = Vec::new();
        self.conditions.event_names(&mut names);
        names.into_iter()
    }

    /// Says of every leaf what it met and whether it holds, and of the audience whether the subject is in it.
    pub(crate) fn explain(&self, subject: &Subject<'_>) {
        let Conditions { include, exclude } = &self.conditions;
        for (part, condition) in [("include", include), ("exclude", exclude)] {
            let mut leaves: Vec<&Leaf> = condition.iter().flat_map(Condition::leaves).collect();
            leaves.sort_by_key(|leaf| leaf.place);
            for leaf in leaves {
                let holds = leaf.holds(&self.keys, subject);
                subject.explain("audience_leaf", holds == (part == "include"), || {
                    let holds = if holds { "holds" } else { "does not hold" };
                    let actual = leaf.actual(&self.keys, subject);
                    format!("{part}: {} {holds}: {actual}", leaf.label)
                });
            }
        }
        let included = self.includes(subject);
        subject.explain("audience", included, || {
            let is = if included { "is" } else { "is not" };
            format!("the subject {is} in the audience")
        });
    }
}

impl Conditions {
    fn hold(&self, keys: &[String], subject: &Subject<'_>) -> bool {
        let holds = |condition: &Condition| condition.holds(keys, subject);
        self.include.as_ref().is_none_or(holds) && !self.exclude.as_ref().is_some_and(holds)
    }

    fn event_names<'c>(&'c self, names: &mut Vec<&'c str>) {
        let trees = self.include.iter().chain(&self.exclude);
        for leaf in trees.flat_map(Condition::leaves) {
            match &leaf.test {
                Test::Events(events) => names.push(&events.name),
                Test::Segment(conditions, _) => conditions.event_names(names),
                _ => {}
            }
        }
    }
}

impl Condition {
    fn holds(&self, keys: &[String], subject: &Subject<'_>) -> bool {
        match self {
            Self::All(conditions) => conditions
                .iter()
                .all(|condition| condition.holds(keys, subject)),
            Self::Any(conditions) => conditions
                .iter()
                .any(|condition| condition.holds(keys, subject)),
            Self::Leaf(leaf) => leaf.holds(keys, subject),
            Self::Settled(condition, known) => {
                let (number, now) = (subject.number(), subject.now());
                if let Some((whose, at, holds)) = known.get()
                    && (whose, at) == (number, now)
                {
                    return holds;
                }
                let holds = condition.holds(keys, subject);
                known.set(Some((number, now, holds)));
                holds
            }
        }
    }

    fn leaves(&self) -> Vec<&Leaf> {
        match self {
            Self::All(conditions) | Self::Any(conditions) => {
                conditions.iter().flat_map(Self::leaves).collect()
            }
            Self::Leaf(leaf) => vec![leaf],
            Self::Settled(condition, _) => condition.leaves(),
        }
    }
}

impl Leaf {
    fn holds(&self, keys: &[String], subject: &Subject<'_>) -> bool {
        let known_text = |fact: &str| known_text(subject, fact);
        match &self.test {
            Test::Property(filter) => of_properties(filter, keys, subject),
            Test::Events(events) => events.hold(subject),
            Test::OneOf(fact, texts) => known_text(fact)
                .is_some_and(|known| texts.iter().any(|text| text.eq_ignore_ascii_case(&known))),
            Test::Locale(ranges) => known_text("locale")
                .is_some_and(|locale| ranges.iter().any(|range| covers(range, &locale))),
            Test::Version(test) => {
                known_text("app_version").is_some_and(|known| test.holds(&known))
            }
            Test::Seen(fact, filter) => {
                let known = known_text(fact);
                let cell = |_| known.as_deref().map_or(Cell::Missing, Cell::Text);
                filter.matches(&|| subject.now(), &cell)
            }
            Test::Interaction(interaction) => interaction.happened(subject),
            Test::Segment(conditions, wanted) => conditions.hold(keys, subject) == *wanted,
        }
    }
}

fn known_text(subject: &Subject<'_>, fact: &str) -> Option<String> {
    match subject.fact(fact) {
        Some(Value::Text(text)) => Some(text),
        _ => None,
    }
}

fn of_properties(filter: &Filter, keys: &[String], subject: &Subject<'_>) -> bool {
    let columns: Vec<usize> = filter.leaves().iter().map(|leaf| leaf.column()).collect();
    let value = |column: &usize| subject.property(keys.get(*column)?);
    let values: Vec<Option<Value>> = columns.iter().map(value).collect();
    let cell = |column: usize| {
        let place = columns.iter().position(|known| *known == column);
        let value = place.and_then(|place| values.get(place)?.as_ref());
        value.map_or(Cell::Missing, Cell::from)
    };
    filter.matches(&|| subject.now(), &cell)
}

impl Events {
    fn hold(&self, subject: &Subject<'_>) -> bool {
        self.count.holds(self.counted(subject))
    }

    /// How many there were, as far as it takes to know.
    fn counted(&self, subject: &Subject<'_>) -> u32 {
        let at_most = self.count.at_most();
        let Some(filter) = &self.filter else {
            return subject.count_events_up_to(&self.name, self.within, at_most);
        };
        let matches =
            |event: &PastEvent<'_>| filter.matches(&|| subject.now(), &|column| event.cell(column));
        let named = (self.name.as_str(), Some(self.within));
        history::count(subject, named, &self.paths, at_most, matches)
    }
}

impl Interaction {
    fn happened(&self, subject: &Subject<'_>) -> bool {
        let since = self.within.map(|within| subject.now() - within);
        let last = self.last(subject);
        last.is_some_and(|last| since.is_none_or(|since| last >= since))
    }

    /// When it last did, with any of the campaigns.
    fn last(&self, subject: &Subject<'_>) -> Option<Instant> {
        let Some(Value::Json(known)) = subject.fact(self.fact) else {
            return None;
        };
        let known: Json = serde_json::from_str(&known).unwrap_or_default();
        let campaigns = known.as_object().into_iter().flatten();
        let asked = campaigns.filter(|(campaign, _)| {
            let is_it = |id: &String| id.eq_ignore_ascii_case(campaign);
            self.campaigns.is_empty() || self.campaigns.iter().any(is_it)
        });
        let at = |done: &Json| Instant::parse(done.get(self.name)?.as_str()?);
        asked.filter_map(|(_, done)| at(done)).max()
    }
}

/// Whether a locale is a range's own or one of its language (RFC 4647, basic filtering): `de` covers `de-AT`.
fn covers(range: &str, locale: &str) -> bool {
    let mut subtags = locale.split(['-', '_']);
    range.split(['-', '_']).all(|wanted| {
        subtags
            .next()
            .is_some_and(|subtag| subtag.eq_ignore_ascii_case(wanted))
    })
}
