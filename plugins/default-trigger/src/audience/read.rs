//! From JSON to a compiled audience.

use std::time::Duration;

use nudge_guest::config::{Place, Problems};
use nudge_guest::filter::{Filter, MAX_DEPTH, MAX_LEAVES};

use super::version::{OPERATORS, Version, VersionTest};
use super::{
    Audience, Condition, Conditions, Count, CountOperator, Events, Interaction, Leaf, Test,
};

const MAX_NAME: usize = 200;
const MAX_TEXT: usize = 200;
const MAX_LIST: usize = 1_000;
const MAX_DAYS: u32 = 90;
/// What the host counts, less one to tell "as many" from "more".
const MAX_COUNT: u32 = 999;
/// Segments within segments.
const MAX_SEGMENTS: usize = 4;
/// What an ISO 8601 instant or a version has at the most, in characters.
const MAX_VERSION: usize = 100;
const MAX_CAMPAIGNS: usize = 100;

#[derive(Clone, Copy)]
enum Kind {
    UserProperty,
    Event,
    Fact(&'static str),
    Locale,
    AppVersion,
    Seen(&'static str),
    Survey,
    Message,
    Segment,
}

const KINDS: [(&str, Kind); 11] = [
    ("user_property", Kind::UserProperty),
    ("event", Kind::Event),
    ("platform", Kind::Fact("platform")),
    ("country", Kind::Fact("country")),
    ("locale", Kind::Locale),
    ("app_version", Kind::AppVersion),
    ("first_seen", Kind::Seen("first_seen_at")),
    ("last_seen", Kind::Seen("last_seen_at")),
    ("survey_interaction", Kind::Survey),
    ("message_interaction", Kind::Message),
    ("segment", Kind::Segment),
];

const COUNT_OPERATORS: [(&str, CountOperator); 6] = [
    ("eq", CountOperator::Equal),
    ("neq", CountOperator::NotEqual),
    ("gt", CountOperator::Greater),
    ("gte", CountOperator::GreaterOrEqual),
    ("lt", CountOperator::Less),
    ("lte", CountOperator::LessOrEqual),
];

/// Interactions by the names that campaigns have for them, and those of the host's fact.
const OF_SURVEYS: [(&str, &str); 6] = [
    ("shown", "displayed"),
    ("displayed", "displayed"),
    ("started", "started"),
    ("answered", "answered"),
    ("completed", "completed"),
    ("dismissed", "dismissed"),
];
const OF_MESSAGES: [(&str, &str); 9] = [
    ("sent", "sent"),
    ("delivered", "delivered"),
    ("displayed", "displayed"),
    ("shown", "displayed"),
    ("opened", "opened"),
    ("clicked", "clicked"),
    ("dismissed", "dismissed"),
    ("bounced", "bounced"),
    ("failed", "failed"),
];

/// Reads an audience, and notes what is wrong with it.
pub(crate) struct AudienceReader<'r> {
    problems: &'r mut Problems,
    keys: Vec<String>,
    leaves: usize,
    /// Those and the leaves that name segments.
    places: usize,
    /// How many segments what is read stands in.
    segments: usize,
}

impl<'r> AudienceReader<'r> {
    pub(crate) fn new(problems: &'r mut Problems) -> Self {
        Self {
            problems,
            keys: Vec::new(),
            leaves: 0,
            places: 0,
            segments: 0,
        }
    }

    /// What could be read; it counts only if there are no problems.
    pub(crate) fn audience(mut self, place: &Place<'_>) -> Audience {
        let mut audience = Audience::default();
        if !place.object(self.problems) {
            return audience;
        }
        place.only(&["include", "exclude", "samplePercent"], self.problems);
        audience.conditions = self.conditions(place);
        if let Some(percent) = place.find("samplePercent") {
            let number = percent.number(self.problems);
            if number.is_some_and(|number| !(0.0..=100.0).contains(&number)) {
                let message = "must be from 0 to 100";
                self.problems.add(&percent, "out_of_range", message);
            }
        }
        audience.keys = self.keys;
        audience
    }

    fn conditions(&mut self, place: &Place<'_>) -> Conditions {
        let mut conditions = Conditions::default();
        if let Some(include) = place.find("include") {
            conditions.include = self.condition(&include, 1).map(Condition::ordered);
        }
        if let Some(exclude) = place.find("exclude") {
            let condition = self.condition(&exclude, 1);
            // Nothing that excludes excludes nobody.
            let condition = condition.filter(|condition| !condition.leaves().is_empty());
            conditions.exclude = condition.map(Condition::ordered);
        }
        conditions
    }

    fn condition(&mut self, place: &Place<'_>, depth: usize) -> Option<Condition> {
        if !place.object(self.problems) {
            return None;
        }
        if place.member("kind").is_some() {
            return self.leaf(place).map(Condition::Leaf);
        }
        if depth > MAX_DEPTH {
            let message = format_args!("groups may nest {MAX_DEPTH} deep");
            self.problems.add(place, "too_deep", message);
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
        let segment = place.member("audience").is_some();
        // The conditions of a segment count, not the leaf that names it.
        self.leaves += usize::from(!segment);
        self.places += 1;
        let number = self.places;
        if self.leaves > MAX_LEAVES {
            if self.leaves == MAX_LEAVES + 1 {
                let message = format_args!("an audience has at most {MAX_LEAVES} conditions");
                self.problems.add(place, "too_many", message);
            }
            return None;
        }
        let kind_place = place.require("kind", self.problems)?;
        let named = KINDS.map(|(name, kind)| (name, (name, kind)));
        let (name, kind) = kind_place.choice("unknown_kind", &named, self.problems)?;
        let (test, what) = match kind {
            Kind::UserProperty => self.property(place)?,
            Kind::Event => self.events(place)?,
            Kind::Fact(fact) => {
                let texts = self.texts(place)?;
                let what = format!("in {}", texts.join(", "));
                (Test::OneOf(fact, texts), what)
            }
            Kind::Locale => {
                let texts = self.texts(place)?;
                let what = format!("in {}", texts.join(", "));
                (Test::Locale(texts), what)
            }
            Kind::AppVersion => self.version(place)?,
            Kind::Seen(fact) => {
                place.only(&["kind", "operator", "value"], self.problems);
                let filter = Filter::read_date(place, self.problems)?;
                let operator = filter.leaves().first().map_or("", |leaf| leaf.operator());
                (Test::Seen(fact, filter), operator.to_owned())
            }
            Kind::Survey => {
                self.interaction(place, "survey_interactions", "surveyIds", &OF_SURVEYS)?
            }
            Kind::Message => {
                self.interaction(place, "message_interactions", "campaignIds", &OF_MESSAGES)?
            }
            Kind::Segment => self.segment(place)?,
        };
        let label = format!("{name} {what}");
        Some(Leaf {
            test,
            label,
            place: number,
        })
    }

    /// A segment with the conditions that it has now, which the host puts beside its id.
    fn segment(&mut self, place: &Place<'_>) -> Option<(Test, String)> {
        place.only(&["kind", "segmentId", "in", "audience"], self.problems);
        let id = place.require("segmentId", self.problems);
        let id = id.and_then(|id| id.text_of(1..=MAX_TEXT, self.problems).map(str::to_owned));
        let wanted = place.require("in", self.problems);
        let wanted = wanted.and_then(|wanted| wanted.boolean(self.problems));
        let audience = place.require("audience", self.problems)?;
        if self.segments == MAX_SEGMENTS {
            let message = format_args!("segments may nest {MAX_SEGMENTS} deep");
            self.problems.add(place, "too_deep", message);
            return None;
        }
        if !audience.object(self.problems) {
            return None;
        }
        audience.only(&["include", "exclude"], self.problems);
        self.segments += 1;
        let conditions = self.conditions(&audience);
        self.segments -= 1;
        let (id, wanted) = (id?, wanted?);
        let what = format!("{} {id}", if wanted { "with" } else { "without" });
        Some((Test::Segment(Box::new(conditions), wanted), what))
    }

    fn property(&mut self, place: &Place<'_>) -> Option<(Test, String)> {
        place.only(&["kind", "filter"], self.problems);
        let filter = place.require("filter", self.problems)?;
        let filter = Filter::read(&filter, &mut self.keys, self.problems)?;
        let asked = filter.leaves().into_iter().map(|leaf| {
            let key = self.keys.get(leaf.column()).map_or("", String::as_str);
            format!("{key} {}", leaf.operator())
        });
        let what = asked.collect::<Vec<_>>().join(", ");
        Some((Test::Property(filter), what))
    }

    fn events(&mut self, place: &Place<'_>) -> Option<(Test, String)> {
        let keys = ["kind", "eventName", "filters", "count", "withinDays"];
        place.only(&keys, self.problems);
        let name = place.require("eventName", self.problems);
        let name =
            name.and_then(|name| name.text_of(1..=MAX_NAME, self.problems).map(str::to_owned));
        let mut paths = Vec::new();
        let mut filter = None;
        if let Some(filters) = place.find("filters") {
            filter = Some(Filter::read(&filters, &mut paths, self.problems)?);
        }
        let count = match place.find("count") {
            None => Some((
                Count {
                    operator: CountOperator::GreaterOrEqual,
                    n: 1,
                },
                "gte",
            )),
            Some(count) => self.count(&count),
        };
        let within = self.days(place, true);
        let (name, (count, operator), within) = (name?, count?, within?);
        let what = format!("{name} {operator} {}", count.n);
        let events = Events {
            name,
            filter,
            paths,
            count,
            within: within?,
        };
        Some((Test::Events(events), what))
    }

    fn count(&mut self, place: &Place<'_>) -> Option<(Count, &'static str)> {
        if !place.object(self.problems) {
            return None;
        }
        place.only(&["operator", "n"], self.problems);
        let named = COUNT_OPERATORS.map(|(name, operator)| (name, (name, operator)));
        let operator = place.require("operator", self.problems);
        let operator =
            operator.and_then(|place| place.choice("unknown_operator", &named, self.problems));
        let n = place.require("n", self.problems);
        let n = n.and_then(|n| n.integer(0..=MAX_COUNT, self.problems));
        let (name, operator) = operator?;
        Some((Count { operator, n: n? }, name))
    }

    /// `withinDays`: some, where it must be there.
    #[expect(clippy::option_option, reason = "outside: read; inside: given")]
    fn days(&mut self, place: &Place<'_>, required: bool) -> Option<Option<Duration>> {
        let days = if required {
            Some(place.require("withinDays", self.problems)?)
        } else {
            place.find("withinDays")
        };
        let Some(days) = days else {
            return Some(None);
        };
        let days = days.integer(1..=MAX_DAYS, self.problems)?;
        Some(Some(Duration::from_hours(24 * u64::from(days))))
    }

    fn texts(&mut self, place: &Place<'_>) -> Option<Vec<String>> {
        place.only(&["kind", "in"], self.problems);
        let list = place.require("in", self.problems)?;
        let elements = list.list(1..=MAX_LIST, self.problems)?;
        let texts: Vec<Option<String>> = elements
            .iter()
            .map(|element| {
                element
                    .text_of(1..=MAX_TEXT, self.problems)
                    .map(str::to_owned)
            })
            .collect();
        texts.into_iter().collect()
    }

    fn version(&mut self, place: &Place<'_>) -> Option<(Test, String)> {
        place.only(&["kind", "operator", "value"], self.problems);
        let named = OPERATORS.map(|(name, operator)| (name, (name, operator)));
        let operator = place.require("operator", self.problems);
        let operator =
            operator.and_then(|place| place.choice("unknown_operator", &named, self.problems));
        let value = place.require("value", self.problems)?;
        let written = value.text_of(1..=MAX_VERSION, self.problems)?;
        let version = Version::parse(written);
        if version.is_none() {
            let message = "must be a version such as 2.10.0";
            self.problems.add(&value, "invalid_version", message);
        }
        let ((name, operator), version) = (operator?, version?);
        let test = VersionTest { operator, version };
        Some((Test::Version(test), format!("{name} {written}")))
    }

    fn interaction(
        &mut self,
        place: &Place<'_>,
        fact: &'static str,
        ids: &str,
        known: &[(&'static str, &'static str)],
    ) -> Option<(Test, String)> {
        place.only(&["kind", ids, "interaction", "withinDays"], self.problems);
        let mut campaigns = Vec::new();
        if let Some(list) = place.find(ids) {
            let elements = list.list(1..=MAX_CAMPAIGNS, self.problems)?;
            for element in &elements {
                campaigns.push(element.text_of(1..=MAX_TEXT, self.problems)?.to_owned());
            }
        }
        let interaction = place.require("interaction", self.problems)?;
        let name = interaction.choice("unknown_interaction", known, self.problems);
        let within = self.days(place, false);
        let (name, within) = (name?, within?);
        let interaction = Interaction {
            fact,
            campaigns,
            name,
            within,
        };
        Some((Test::Interaction(interaction), name.to_owned()))
    }
}
