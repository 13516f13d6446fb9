//! A campaign's trigger, compiled.

use std::fmt;
use std::time::Duration;

use nudge_guest::filter::Filter;
use nudge_guest::trigger::Subject;
use nudge_guest::{Cell, Instant, Reads};

use crate::audience::Audience;
use crate::source::Source;

/// What fires a campaign.
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) source: Source,
    pub(crate) filter: Option<Filter>,
    pub(crate) delay: Option<Duration>,
    pub(crate) occurrence: Occurrence,
    pub(crate) cancellations: Vec<Cancellation>,
    /// A number of what matches, in states; 0 where nothing is kept.
    pub(crate) listens: u16,
    /// Whom it is for; without, everybody.
    pub(crate) audience: Option<Audience>,
    /// The properties that are read; filters and sources name them by their number here.
    pub(crate) paths: Vec<String>,
}

/// An event that cancels what waits.
#[derive(Clone, Debug)]
pub(crate) struct Cancellation {
    pub(crate) event_name: String,
    pub(crate) filter: Option<Filter>,
}

/// Which of the matching events fire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occurrence {
    /// All.
    Every,
    /// The subject's first ever.
    First,
    /// One.
    Once,
    /// One a session.
    OncePerSession,
    /// The n-th.
    Nth(u32),
    /// The n-th, the 2n-th and so on.
    EveryNth(u32),
    /// Those that are at least the n-th within a span.
    AtLeast(u32, Duration),
}

impl Occurrence {
    /// Whether events count, and not firings.
    pub(crate) fn counts(self) -> bool {
        !matches!(self, Self::Every | Self::Once | Self::OncePerSession)
    }
}

impl fmt::Display for Occurrence {
    /// In the words of the contract (section 8).
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Every => formatter.write_str("every"),
            Self::First => formatter.write_str("first"),
            Self::Once => formatter.write_str("once"),
            Self::OncePerSession => formatter.write_str("once_per_session"),
            Self::Nth(n) => write!(formatter, "nth, n {n}"),
            Self::EveryNth(n) => write!(formatter, "every_nth, n {n}"),
            Self::AtLeast(n, within) => {
                let days = within.as_secs() / 86_400;
                write!(formatter, "at_least, n {n}, withinDays {days}")
            }
        }
    }
}

impl Config {
    /// What decisions read.
    pub(crate) fn reads(&self) -> Reads {
        Reads::new()
            .events(self.source.event_names())
            .events(
                self.cancellations
                    .iter()
                    .map(|cancellation| cancellation.event_name.as_str()),
            )
            .properties(self.paths.iter().map(String::as_str))
            .history(self.audience.iter().flat_map(Audience::event_names))
            .subject_properties(
                self.audience
                    .iter()
                    .flat_map(|audience| audience.keys.iter().map(String::as_str)),
            )
    }

    /// The name that every event of the campaign has, if there is only one.
    pub(crate) fn only_event_name(&self) -> Option<&str> {
        match self.source.event_names() {
            [name]
                if self
                    .cancellations
                    .iter()
                    .all(|cancellation| cancellation.event_name == *name) =>
            {
                Some(name)
            }
            _ => None,
        }
    }

    /// Whether an event fires the campaign, but for delay and occurrence.
    pub(crate) fn matches<'c>(
        &self,
        name: &str,
        now: &dyn Fn() -> Instant,
        cell: &dyn Fn(usize) -> Cell<'c>,
    ) -> bool {
        self.source.matches(name, cell)
            && self
                .filter
                .as_ref()
                .is_none_or(|filter| filter.matches(now, cell))
    }

    /// Whether an event cancels what waits.
    pub(crate) fn cancels<'c>(
        &self,
        name: &str,
        now: &dyn Fn() -> Instant,
        cell: &dyn Fn(usize) -> Cell<'c>,
    ) -> bool {
        self.cancellations.iter().any(|cancellation| {
            cancellation.event_name == name
                && cancellation
                    .filter
                    .as_ref()
                    .is_none_or(|filter| filter.matches(now, cell))
        })
    }

    /// Whether the campaign is for a subject.
    pub(crate) fn is_for(&self, subject: &Subject<'_>) -> bool {
        self.audience
            .as_ref()
            .is_none_or(|audience| audience.includes(subject))
    }

    /// How long firings wait.
    pub(crate) fn delay(&self) -> Option<Duration> {
        self.delay
    }
}
