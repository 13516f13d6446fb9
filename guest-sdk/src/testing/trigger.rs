//! A trigger plugin, one campaign, a clock and subjects.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ops::Range;
use std::time::Duration;

use serde_json::Value as Json;

use super::subject::{Event, Subject};
use super::trigger_host::{Host, Item, SCHEDULED, SESSION_BEGAN};
use crate::declaration::{Problem, Reads};
use crate::instant::Instant;
use crate::trigger::{self, Trigger};

/// One trigger plugin with one campaign.
///
/// It starts at 2026-01-01T00:00:00Z, and time passes only by [`Self::advance`]. Sessions begin as on a server, with
/// the first event and with each after 30 minutes of silence: a campaign that reads `$session_began` gets that event
/// under this name before itself. An event that is called `$scheduled` stands for the campaign's own time, which comes
/// whatever it reads; nobody is active by it, and it is not counted.
pub struct TriggerTest<P> {
    config: String,
    reads: Reads,
    now: Instant,
    events: u32,
    subjects: BTreeMap<String, Subject>,
    /// Whether facts that a server makes of events are known.
    derives_facts: bool,
    explanations: Vec<Explanation>,
    plugin: PhantomData<P>,
}

/// One firing of the campaign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Firing {
    /// Whom it is for.
    pub subject: String,
    /// When.
    pub at: Instant,
}

/// Why an event did or did not fire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// What was checked.
    pub check: String,
    /// Whether it held.
    pub passed: bool,
    /// Details, for a person.
    pub detail: String,
}

impl<P: Trigger> TriggerTest<P> {
    /// A campaign with this configuration, or what is wrong with it.
    pub fn new(config: &Json) -> Result<Self, Vec<Problem>> {
        let config = config.to_string();
        Ok(Self {
            reads: trigger::check::<P>(&config)?,
            config,
            now: Instant::parse("2026-01-01").unwrap_or_default(),
            events: 0,
            subjects: BTreeMap::new(),
            derives_facts: false,
            explanations: Vec::new(),
            plugin: PhantomData,
        })
    }

    /// The same campaign after somebody has given it another configuration, or another plugin: states, timers and earlier
    /// events stay.
    pub fn changed<Q: Trigger>(self, config: &Json) -> Result<TriggerTest<Q>, Vec<Problem>> {
        let changed = TriggerTest::<Q>::new(config)?;
        Ok(TriggerTest {
            now: self.now,
            events: self.events,
            subjects: self.subjects,
            derives_facts: self.derives_facts,
            explanations: self.explanations,
            ..changed
        })
    }

    /// What `check` said that decisions read.
    pub fn reads(&self) -> &Reads {
        &self.reads
    }

    /// The clock.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Sends an event that happens now. Says whether the campaign fired, for the event or for the session that
    /// begins with it.
    pub fn send(&mut self, subject: &str, name: &str, properties: Json) -> bool {
        self.send_all([(subject, name, properties)])
            .first()
            .copied()
            .unwrap_or_default()
    }

    /// Sends events that happen now, in one batch. Says for each whether the campaign fired.
    pub fn send_all<'e>(
        &mut self,
        events: impl IntoIterator<Item = (&'e str, &'e str, Json)>,
    ) -> Vec<bool> {
        let mut items = Vec::new();
        let mut heard: Vec<Range<usize>> = Vec::new();
        for (name, event_name, properties) in events {
            self.events += 1;
            let id = format!("00000000-0000-7000-8000-{:012}", self.events);
            let subject = self.subjects.entry(name.to_owned()).or_default();
            let before = subject.events.len();
            let (event, begins) = subject.take(id, event_name, self.now, properties);
            let names = &self.reads.event_names;
            let first = items.len();
            let mut hear = |begins| {
                items.push(Item {
                    subject: name.to_owned(),
                    event: event.clone(),
                    before,
                    received: self.now,
                    begins,
                    timer: None,
                });
            };
            if begins && names.iter().any(|read| read == SESSION_BEGAN) {
                hear(true);
            }
            let is_read = |read: &String| read == event_name || read == "*";
            if event_name == SCHEDULED || names.iter().any(is_read) {
                hear(false);
            }
            heard.push(first..items.len());
        }
        let fired = self.run(&items);
        self.subjects.values_mut().for_each(Subject::settle);
        heard
            .iter()
            .map(|items| fired.iter().any(|item| items.contains(item)))
            .collect()
    }

    /// Lets time pass, and timers fall due in their order. Says what fired.
    pub fn advance(&mut self, time: Duration) -> Vec<Firing> {
        let end = self.now + time;
        let mut firings = Vec::new();
        while let Some((due, subject, key)) = self.next_timer(end) {
            self.now = self.now.max(due);
            let record = self.subjects.entry(subject.clone()).or_default();
            let Some(timer) = record.timers.remove(&key) else {
                continue;
            };
            let before = record.events.len();
            let event: Event = timer.event;
            let item = Item {
                subject: subject.clone(),
                event,
                before,
                received: due,
                begins: false,
                timer: Some((key, timer.payload)),
            };
            if !self.run(&[item]).is_empty() {
                firings.push(Firing { subject, at: due });
            }
        }
        self.now = end;
        firings
    }

    fn next_timer(&self, until: Instant) -> Option<(Instant, String, String)> {
        let timers = self.subjects.iter().flat_map(|(subject, record)| {
            record
                .timers
                .iter()
                .map(move |(key, timer)| (timer.at, subject.clone(), key.clone()))
        });
        timers.filter(|(at, ..)| *at <= until).min()
    }

    /// Saves a property of a subject.
    pub fn set_property(&mut self, subject: &str, key: &str, value: Json) {
        self.subjects
            .entry(subject.to_owned())
            .or_default()
            .properties
            .insert(key.to_owned(), value);
    }

    /// Makes a fact known about a subject.
    pub fn set_fact(&mut self, subject: &str, name: &str, value: Json) {
        self.subjects
            .entry(subject.to_owned())
            .or_default()
            .facts
            .insert(name.to_owned(), value);
    }

    /// Makes known of every subject, unless [`Self::set_fact`] says otherwise, the facts that a server makes of events:
    /// `identified` (whether the fact `external_id` is set), `event_count`, `first_seen_at` and `last_seen_at`. They are
    /// as of before the batch. Without this, only facts that were set are known.
    pub fn derive_facts(&mut self) {
        self.derives_facts = true;
    }

    /// Adds an event to a subject's past, at an instant that is not after now. The plugin is not called. Add the earliest
    /// event first: sessions begin in the order in which events are added.
    pub fn add_event(&mut self, subject: &str, name: &str, at: Instant, properties: Json) {
        self.events += 1;
        let id = format!("00000000-0000-7000-8000-{:012}", self.events);
        let record = self.subjects.entry(subject.to_owned()).or_default();
        record.take_earlier(id, name, at, properties);
    }

    /// The number of the session that a subject is in, or was in last; 0 where there was none.
    pub fn session(&self, subject: &str) -> u32 {
        self.subjects
            .get(subject)
            .map_or(0, |record| record.session)
    }

    /// Ends the session of a subject: another begins with the next event, without 30 minutes of silence.
    pub fn end_session(&mut self, subject: &str) {
        let record = self.subjects.entry(subject.to_owned()).or_default();
        record.end_session();
    }

    /// Lets the host hold back the firing of the subject's newest event, as caps and consent do: from the next event on
    /// the plugin can know.
    pub fn hold_back(&mut self, subject: &str) {
        let record = self.subjects.get(subject);
        if let Some(event_id) = record.and_then(|record| record.newest.clone()) {
            let held_back = serde_json::json!({super::trigger_host::CAMPAIGN: event_id});
            self.set_fact(subject, "held_back", held_back);
        }
    }

    /// Merges a subject into another one, as the host does where both have a state: from the next event on the plugin can
    /// know.
    pub fn merge(&mut self, into: &str, from: &str) {
        let digit = |half: u8| char::from_digit(half.into(), 16).unwrap_or_default();
        let hexadecimal = |bytes: &[u8]| -> String {
            let halves = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
            halves.map(digit).collect()
        };
        let states = [into, from].map(|subject| self.state(subject).map(hexadecimal));
        if let [Some(own), Some(other)] = states {
            let campaign = super::trigger_host::CAMPAIGN;
            let merged = serde_json::json!({campaign: {"own": own, "others": [other]}});
            self.set_fact(into, "merged_states", merged);
        }
    }

    /// The timers of a subject: their keys and when they are due.
    pub fn timers(&self, subject: &str) -> Vec<(String, Instant)> {
        let timers = self
            .subjects
            .get(subject)
            .into_iter()
            .flat_map(|record| &record.timers);
        timers.map(|(key, timer)| (key.clone(), timer.at)).collect()
    }

    /// What the plugin keeps of a subject.
    pub fn state(&self, subject: &str) -> Option<&[u8]> {
        self.subjects.get(subject)?.state.as_deref()
    }

    /// What the plugin explained since this was last asked.
    pub fn explanations(&mut self) -> Vec<Explanation> {
        std::mem::take(&mut self.explanations)
    }

    #[expect(clippy::panic, reason = "a plugin that refuses has failed the test")]
    fn run(&mut self, items: &[Item]) -> Vec<usize> {
        if items.is_empty() {
            return Vec::new();
        }
        let host = Host::new(
            &self.config,
            &self.reads,
            self.now,
            items,
            self.subjects.clone(),
            self.derives_facts,
        );
        if let Err(refusal) = trigger::evaluate::<P>(&host) {
            panic!("the plugin refused the batch: {refusal}");
        }
        let effects = host.into_effects();
        self.subjects = effects.subjects;
        self.explanations.extend(effects.explanations);
        effects.fired
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::declaration::Refusal;
    use crate::trigger::{Decision, Event, Subject};
    use crate::value::Value;

    /// Sets a timer for each number of an event's list, so many minutes ahead.
    struct Alarms;

    impl Trigger for Alarms {
        type Config = Json;

        fn check(_: &Json) -> Result<Reads, Vec<Problem>> {
            Ok(Reads::new().events(["set"]))
        }

        fn on_event(
            _: &Json,
            event: &Event<'_>,
            subject: &Subject<'_>,
        ) -> Result<Decision, Refusal> {
            let properties = event.json()?;
            for minutes in properties["minutes"].as_array().unwrap() {
                let minutes = minutes.as_u64().unwrap();
                let key = minutes.to_string();
                subject.set_timer(&key, Duration::from_mins(minutes), &[]);
            }
            Ok(Decision::Pass)
        }
    }

    fn set(campaign: &mut TriggerTest<Alarms>, subject: &str, minutes: Range<u32>) {
        let minutes: Vec<u32> = minutes.collect();
        campaign.send(subject, "set", json!({"minutes": minutes}));
    }

    #[test]
    fn of_too_many_timers_those_go_that_are_due_last() {
        let mut campaign = TriggerTest::<Alarms>::new(&json!({})).unwrap();
        set(&mut campaign, "ana", 41..81);
        set(&mut campaign, "ben", 1..11);
        set(&mut campaign, "ana", 1..41);
        let start = campaign.now();
        let mut due: Vec<Instant> = campaign.timers("ana").iter().map(|(_, at)| *at).collect();
        due.sort_unstable();
        let first: Vec<Instant> = (1..=64).map(|at| start + Duration::from_mins(at)).collect();
        assert_eq!(due, first);
        assert_eq!(campaign.timers("ben").len(), 10);
    }

    #[test]
    #[should_panic(expected = "a call sets at most 64 timers for a subject")]
    fn a_call_that_sets_too_many_timers_has_failed() {
        let mut campaign = TriggerTest::<Alarms>::new(&json!({})).unwrap();
        set(&mut campaign, "ana", 1..66);
    }

    /// Keeps a text, which it takes for a number where its configuration says so.
    struct Keeper;

    impl Trigger for Keeper {
        type Config = Json;

        fn check(_: &Json) -> Result<Reads, Vec<Problem>> {
            Ok(Reads::new().events(["keep"]))
        }

        fn on_event(
            config: &Json,
            _: &Event<'_>,
            subject: &Subject<'_>,
        ) -> Result<Decision, Refusal> {
            if config["numbers"] == true {
                subject.state::<u32>()?;
            }
            subject.set_state(&"a text")?;
            Ok(Decision::Fire)
        }
    }

    #[test]
    #[should_panic(
        expected = "invalid_state: the state kept of this person has another form: invalid type"
    )]
    fn a_state_of_another_form_is_refused_as_that() {
        let mut campaign = TriggerTest::<Keeper>::new(&json!({})).unwrap();
        assert!(campaign.send("ana", "keep", json!({})));
        let numbers = json!({"numbers": true});
        let mut campaign = campaign.changed::<Keeper>(&numbers).unwrap();
        assert!(campaign.send("ben", "keep", json!({})), "nothing is kept");
        campaign.send("ana", "keep", json!({}));
    }

    /// Explains what the host says of a subject.
    struct Curious;

    impl Trigger for Curious {
        type Config = Json;

        fn check(_: &Json) -> Result<Reads, Vec<Problem>> {
            Ok(Reads::new().events(["seen"]))
        }

        fn on_event(
            _: &Json,
            event: &Event<'_>,
            subject: &Subject<'_>,
        ) -> Result<Decision, Refusal> {
            let fact = |name: &str| match subject.fact(name) {
                Some(Value::Text(text)) => text,
                Some(Value::Number(number)) => number.to_string(),
                Some(Value::Boolean(boolean)) => boolean.to_string(),
                _ => "unknown".to_owned(),
            };
            let facts = ["identified", "event_count", "first_seen_at", "last_seen_at"].map(fact);
            let past = subject.count_events("seen", Duration::from_hours(72));
            subject.explain("known", true, || {
                let facts = facts.join(" ");
                format!("{facts}, session {}, {past} before", event.session())
            });
            Ok(Decision::Pass)
        }
    }

    fn known(campaign: &mut TriggerTest<Curious>, subject: &str) -> String {
        campaign.send(subject, "seen", json!({}));
        campaign.explanations().pop().unwrap().detail
    }

    #[test]
    fn facts_follow_from_events_where_a_test_wants_it() {
        let mut campaign = TriggerTest::<Curious>::new(&json!({})).unwrap();
        let unknown = "unknown unknown unknown unknown, session 1, 0 before";
        assert_eq!(known(&mut campaign, "ana"), unknown);
        campaign.derive_facts();
        campaign.advance(Duration::from_mins(1));
        let once = "false 1 2026-01-01T00:00:00.000Z 2026-01-01T00:00:00.000Z, session 1, 1 before";
        assert_eq!(known(&mut campaign, "ana"), once);
        campaign.send("ana", "$property_changed", json!({}));
        let twice =
            "false 2 2026-01-01T00:00:00.000Z 2026-01-01T00:01:00.000Z, session 1, 2 before";
        assert_eq!(known(&mut campaign, "ana"), twice);
        let new = "false 0 2026-01-01T00:01:00.000Z 2026-01-01T00:01:00.000Z, session 1, 0 before";
        assert_eq!(known(&mut campaign, "somebody new"), new);
    }

    #[test]
    fn a_subject_has_a_past_and_sessions_that_a_test_gives_it() {
        let mut campaign = TriggerTest::<Curious>::new(&json!({})).unwrap();
        campaign.derive_facts();
        let earlier = |day: &str| Instant::parse(day).unwrap();
        campaign.add_event("bob", "seen", earlier("2025-12-28"), json!({}));
        campaign.add_event("bob", "seen", earlier("2025-12-30"), json!({}));
        assert_eq!(campaign.session("bob"), 2);
        campaign.set_fact("bob", "external_id", json!("b-1"));
        let past = "2025-12-28T00:00:00.000Z 2025-12-30T00:00:00.000Z";
        let expected = format!("true 2 {past}, session 3, 1 before");
        assert_eq!(known(&mut campaign, "bob"), expected);
        campaign.end_session("bob");
        campaign.set_fact("bob", "event_count", json!(7));
        let past = "2025-12-28T00:00:00.000Z 2026-01-01T00:00:00.000Z";
        let expected = format!("true 7 {past}, session 4, 2 before");
        assert_eq!(known(&mut campaign, "bob"), expected);
        assert_eq!(campaign.session("nobody"), 0);
    }

    #[test]
    fn a_campaigns_own_time_comes_unasked() {
        let mut campaign = TriggerTest::<Keeper>::new(&json!({})).unwrap();
        assert!(campaign.send("ana", "$scheduled", json!({})));
        assert!(!campaign.send("ana", "bought", json!({})));

        // It is nothing that the person does.
        campaign.advance(Duration::from_mins(25));
        assert!(campaign.send("ana", "$scheduled", json!({})));
        campaign.advance(Duration::from_mins(25));
        campaign.send("ana", "bought", json!({}));
        let ana = &campaign.subjects["ana"];
        let sessions: Vec<u32> = ana.events.iter().map(|event| event.session).collect();
        assert_eq!(sessions, [1, 2]);
        assert_eq!(ana.count(usize::MAX, "$scheduled", None, 9), 0);
    }

    #[test]
    fn a_firing_at_the_campaigns_own_time_can_be_held_back() {
        let mut campaign = TriggerTest::<Keeper>::new(&json!({})).unwrap();
        campaign.send("ana", "bought", json!({}));
        assert!(campaign.send("ana", "$scheduled", json!({})));
        campaign.hold_back("ana");
        let ana = &campaign.subjects["ana"];
        let held_back = &ana.facts["held_back"][super::super::trigger_host::CAMPAIGN];
        assert_eq!(*held_back, json!("00000000-0000-7000-8000-000000000002"));
    }
}
