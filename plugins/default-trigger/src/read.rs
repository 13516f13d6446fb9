//! From JSON to a compiled trigger.

use std::time::Duration;

use nudge_guest::Problem;
use nudge_guest::config::{self, Node, Place, Problems};
use nudge_guest::filter::Filter;

use crate::audience::{Audience, AudienceReader};
use crate::config::{Cancellation, Config, Occurrence};
use crate::listens;
use crate::source::{Change, Scalar, Source};

const MAX_NAME: usize = 200;
const MAX_KEY: usize = 120;
const MAX_SCREEN: usize = 120;
const MAX_CANCELLATIONS: usize = 10;
const MAX_DELAY_SECONDS: f64 = 90.0 * 86_400.0;
const MAX_N: u32 = 1_000_000;
/// State keeps the time of each of the last n events, in 4 KiB.
const MAX_N_WITHIN: u32 = 1_000;
const MAX_DAYS: u32 = 365;

#[derive(Clone, Copy)]
enum Kind {
    Event,
    ScreenView,
    SessionStart,
    PropertyChanged,
    Schedule,
    Manual,
    Segment,
    Plugin,
}

const KINDS: [(&str, Kind); 8] = [
    ("event", Kind::Event),
    ("screen_view", Kind::ScreenView),
    ("session_start", Kind::SessionStart),
    ("property_changed", Kind::PropertyChanged),
    ("schedule", Kind::Schedule),
    ("manual", Kind::Manual),
    ("segment", Kind::Segment),
    ("plugin", Kind::Plugin),
];

/// What of a segment fires; the host tells which it was by the occasions that it makes.
const CHANGES: [(&str, ()); 2] = [("enter", ()), ("exit", ())];

#[derive(Clone, Copy)]
enum Mode {
    Every,
    First,
    Once,
    OncePerSession,
    Nth,
    EveryNth,
    AtLeast,
}

const MODES: [(&str, Mode); 7] = [
    ("every", Mode::Every),
    ("first", Mode::First),
    ("once", Mode::Once),
    ("once_per_session", Mode::OncePerSession),
    ("nth", Mode::Nth),
    ("every_nth", Mode::EveryNth),
    ("at_least", Mode::AtLeast),
];

impl config::Config for Config {
    fn parse(text: &str) -> Result<Self, Vec<Problem>> {
        let document = Node::parse(text)?;
        let root = Place::root(&document);
        let mut reader = Reader {
            problems: Problems::new(),
            paths: Vec::new(),
        };
        let config = reader.config(&root);
        let Reader { problems, paths } = reader;
        problems.unless_any(Self { paths, ..config })
    }
}

struct Reader {
    problems: Problems,
    paths: Vec<String>,
}

impl Reader {
    /// What could be read; it counts only if there are no problems.
    fn config(&mut self, root: &Place<'_>) -> Config {
        let mut config = Config {
            source: Source::occasion(),
            filter: None,
            delay: None,
            occurrence: Occurrence::Every,
            cancellations: Vec::new(),
            listens: 0,
            audience: None,
            paths: Vec::new(),
        };
        if !root.object(&mut self.problems) {
            return config;
        }
        root.only(&["trigger", "audience"], &mut self.problems);
        config.audience = self.audience(root);
        let Some(trigger) = root.find("trigger") else {
            return config;
        };
        if !trigger.object(&mut self.problems) {
            return config;
        }
        let kind = trigger.require("kind", &mut self.problems);
        let Some(kind) =
            kind.and_then(|kind| kind.choice("unknown_kind", &KINDS, &mut self.problems))
        else {
            return config;
        };
        trigger.only(keys(kind), &mut self.problems);
        if let Some(source) = self.source(&trigger, kind) {
            config.source = source;
        }
        config.filter = self.filter(&trigger);
        config.delay = trigger
            .find("delaySeconds")
            .and_then(|place| self.delay(&place));
        if let Some(place) = trigger.find("occurrence") {
            config.occurrence = self.occurrence(&place).unwrap_or(Occurrence::Every);
        }
        if let Some(place) = trigger.find("cancelOn") {
            config.cancellations = self.cancellations(&place);
        }
        if config.occurrence != Occurrence::Every || config.source.is_session() {
            config.listens = listens::number(trigger.node());
        }
        config
    }

    fn audience(&mut self, root: &Place<'_>) -> Option<Audience> {
        let audience = root.find("audience")?;
        Some(AudienceReader::new(&mut self.problems).audience(&audience))
    }

    fn source(&mut self, trigger: &Place<'_>, kind: Kind) -> Option<Source> {
        Some(match kind {
            Kind::Event => Source::event(self.event_name(trigger)?),
            Kind::ScreenView => {
                let screen = trigger.require("screenName", &mut self.problems)?;
                Source::screen(
                    screen.text_of(1..=MAX_SCREEN, &mut self.problems)?,
                    &mut self.paths,
                )
            }
            Kind::SessionStart => Source::session(),
            Kind::PropertyChanged => {
                let key = trigger.require("key", &mut self.problems)?;
                let key = key.text_of(1..=MAX_KEY, &mut self.problems)?.to_owned();
                let from = self.scalar(trigger, "from");
                let to = self.scalar(trigger, "to");
                Source::property(Change { key, from, to }, &mut self.paths)
            }
            Kind::Schedule | Kind::Manual => Source::occasion(),
            Kind::Segment => {
                let id = trigger.require("segmentId", &mut self.problems);
                let id = id.and_then(|id| {
                    id.text_of(1..=MAX_KEY, &mut self.problems)
                        .is_some()
                        .then_some(())
                });
                let on = trigger.require("on", &mut self.problems)?;
                let on = on.choice("unknown_change", &CHANGES, &mut self.problems);
                id.and(on).map(|()| Source::occasion())?
            }
            Kind::Plugin => {
                let place = trigger.find("kind")?;
                self.problems.add(
                    &place,
                    "unsupported",
                    "a trigger of kind `plugin` belongs to the plugin that it names",
                );
                return None;
            }
        })
    }

    fn event_name<'p>(&mut self, of: &'p Place<'p>) -> Option<&'p str> {
        let place = of.require("eventName", &mut self.problems)?;
        let name = place.text_of(1..=MAX_NAME, &mut self.problems)?;
        if name == "*" {
            self.problems
                .add(&place, "invalid_name", "an event must be named");
            return None;
        }
        Some(name)
    }

    fn scalar(&mut self, trigger: &Place<'_>, key: &str) -> Option<Scalar> {
        let place = trigger.member(key)?;
        let scalar = Scalar::of(place.node());
        if scalar.is_none() {
            self.problems.add(
                &place,
                "wrong_type",
                "must be a string, a number, a boolean or null",
            );
        }
        scalar
    }

    fn filter(&mut self, of: &Place<'_>) -> Option<Filter> {
        Filter::read(&of.find("filters")?, &mut self.paths, &mut self.problems)
    }

    fn delay(&mut self, place: &Place<'_>) -> Option<Duration> {
        let seconds = place.number(&mut self.problems)?;
        if !(0.0..=MAX_DELAY_SECONDS).contains(&seconds) {
            self.problems.add(
                place,
                "out_of_range",
                "must be from 0 to 7776000 seconds, which are 90 days",
            );
            return None;
        }
        (seconds > 0.0).then(|| Duration::from_secs_f64(seconds))
    }

    fn occurrence(&mut self, place: &Place<'_>) -> Option<Occurrence> {
        if !place.object(&mut self.problems) {
            return None;
        }
        let mode_place = place.require("mode", &mut self.problems)?;
        let mode = mode_place.choice("unknown_mode", &MODES, &mut self.problems)?;
        let keys: &[&str] = match mode {
            Mode::Every | Mode::First | Mode::Once | Mode::OncePerSession => &["mode"],
            Mode::Nth | Mode::EveryNth => &["mode", "n"],
            Mode::AtLeast => &["mode", "n", "withinDays"],
        };
        place.only(keys, &mut self.problems);
        Some(match mode {
            Mode::Every => Occurrence::Every,
            Mode::First => Occurrence::First,
            Mode::Once => Occurrence::Once,
            Mode::OncePerSession => Occurrence::OncePerSession,
            Mode::Nth => Occurrence::Nth(self.integer(place, "n", MAX_N)?),
            Mode::EveryNth => Occurrence::EveryNth(self.integer(place, "n", MAX_N)?),
            Mode::AtLeast => {
                let n = self.integer(place, "n", MAX_N_WITHIN);
                let days = self.integer(place, "withinDays", MAX_DAYS);
                Occurrence::AtLeast(n?, Duration::from_hours(24 * u64::from(days?)))
            }
        })
    }

    fn integer(&mut self, of: &Place<'_>, key: &str, most: u32) -> Option<u32> {
        of.require(key, &mut self.problems)?
            .integer(1..=most, &mut self.problems)
    }

    fn cancellations(&mut self, place: &Place<'_>) -> Vec<Cancellation> {
        let list = place
            .list(0..=MAX_CANCELLATIONS, &mut self.problems)
            .unwrap_or_default();
        list.iter()
            .filter_map(|element| self.cancellation(element))
            .collect()
    }

    fn cancellation(&mut self, place: &Place<'_>) -> Option<Cancellation> {
        if !place.object(&mut self.problems) {
            return None;
        }
        place.only(&["eventName", "filters"], &mut self.problems);
        let filter = self.filter(place);
        Some(Cancellation {
            event_name: self.event_name(place)?.to_owned(),
            filter,
        })
    }
}

fn keys(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Event => &[
            "kind",
            "eventName",
            "filters",
            "delaySeconds",
            "occurrence",
            "cancelOn",
        ],
        Kind::ScreenView => &[
            "kind",
            "screenName",
            "filters",
            "delaySeconds",
            "occurrence",
            "cancelOn",
        ],
        Kind::SessionStart => &["kind", "filters", "delaySeconds", "occurrence", "cancelOn"],
        Kind::PropertyChanged => &[
            "kind",
            "key",
            "from",
            "to",
            "filters",
            "delaySeconds",
            "occurrence",
            "cancelOn",
        ],
        // When it comes round is the host's to say, and to check.
        Kind::Schedule => &[
            "kind",
            "every",
            "at",
            "dayOfWeek",
            "dayOfMonth",
            "delaySeconds",
            "occurrence",
            "cancelOn",
        ],
        Kind::Manual => &["kind", "delaySeconds", "occurrence", "cancelOn"],
        Kind::Segment => &[
            "kind",
            "segmentId",
            "on",
            "delaySeconds",
            "occurrence",
            "cancelOn",
        ],
        Kind::Plugin => &[
            "kind",
            "plugin",
            "config",
            "eventName",
            "filters",
            "delaySeconds",
            "occurrence",
            "cancelOn",
        ],
    }
}
