//! A batch of one campaign, in memory.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::cells;
use super::subject::{Event, Subject, Timer, random};
use super::trigger::Explanation;
use crate::bindings::trigger::nudge::plugin::types::{Cells, History, Value};
use crate::declaration::Reads;
use crate::instant::Instant;
use crate::trigger::TriggerHost;

/// What a campaign names to hear of the beginning of each session.
pub(super) const SESSION_BEGAN: &str = "$session_began";

/// What the host calls the event of a campaign's own time, which comes unasked.
pub(super) const SCHEDULED: &str = "$scheduled";

/// What lies between a timer and one that it sets, at the least.
const TURN: Duration = Duration::from_secs(1);

/// How far ahead a timer may be due.
const AHEAD: Duration = Duration::from_hours(90 * 24);

/// Most timers of a subject.
const TIMERS: usize = 64;

/// Most events that are counted.
const COUNTED: u32 = 1000;

/// Most events that are given.
const RECENT: u32 = 1000;

pub(super) const CAMPAIGN: &str = "00000000-0000-7000-8000-00000000c0de";

/// An event, or a timer that is due.
pub(super) struct Item {
    pub(super) subject: String,
    pub(super) event: Event,
    /// How many events of the subject came earlier.
    pub(super) before: usize,
    pub(super) received: Instant,
    /// Whether it stands for the session that begins with the event.
    pub(super) begins: bool,
    /// Key and payload, if it is a timer.
    pub(super) timer: Option<(String, Vec<u8>)>,
}

impl Item {
    fn name(&self) -> &str {
        if self.begins {
            SESSION_BEGAN
        } else {
            &self.event.name
        }
    }
}

/// What the plugin asked for.
pub(super) struct Effects {
    pub(super) subjects: BTreeMap<String, Subject>,
    pub(super) fired: Vec<usize>,
    pub(super) explanations: Vec<Explanation>,
}

pub(super) struct Host<'t> {
    config: &'t str,
    reads: &'t Reads,
    now: Instant,
    items: &'t [Item],
    names: Vec<String>,
    /// Whether facts that a server makes of events are known.
    derives_facts: bool,
    /// The timers that this call has set: of whom, and their keys.
    set: RefCell<BTreeSet<(String, String)>>,
    effects: RefCell<Effects>,
}

impl<'t> Host<'t> {
    pub(super) fn new(
        config: &'t str,
        reads: &'t Reads,
        now: Instant,
        items: &'t [Item],
        subjects: BTreeMap<String, Subject>,
        derives_facts: bool,
    ) -> Self {
        let mut names: Vec<String> = items.iter().map(|item| item.name().to_owned()).collect();
        names.sort();
        names.dedup();
        let effects = RefCell::new(Effects {
            subjects,
            fired: Vec::new(),
            explanations: Vec::new(),
        });
        Self {
            config,
            reads,
            now,
            items,
            names,
            derives_facts,
            set: RefCell::default(),
            effects,
        }
    }

    pub(super) fn into_effects(self) -> Effects {
        let mut effects = self.effects.into_inner();
        effects.subjects.values_mut().for_each(keep_first_timers);
        effects
    }

    #[expect(clippy::expect_used, reason = "the host numbers the items itself")]
    fn item(&self, item: u32) -> &Item {
        self.items
            .get(item as usize)
            .expect("items are numbered by the host")
    }

    /// Looks at the subject of an item, or changes it.
    fn subject<T>(&self, item: u32, see: impl FnOnce(&mut Subject) -> T) -> T {
        see(self
            .effects
            .borrow_mut()
            .subjects
            .entry(self.item(item).subject.clone())
            .or_default())
    }

    fn column<T>(&self, of: impl Fn(&Item) -> T) -> Vec<T> {
        self.items.iter().map(of).collect()
    }
}

/// Removes the timers that a subject has too many of, those that are due last.
fn keep_first_timers(subject: &mut Subject) {
    let timers = subject.timers.iter();
    let mut due: Vec<(Instant, String)> =
        timers.map(|(key, timer)| (timer.at, key.clone())).collect();
    due.sort_unstable();
    for (_, key) in due.iter().skip(TIMERS) {
        subject.timers.remove(key);
    }
}

fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

impl TriggerHost for Host<'_> {
    fn now(&self) -> i64 {
        self.now.micros()
    }

    fn item_count(&self) -> u32 {
        number(self.items.len())
    }

    fn campaign_count(&self) -> u32 {
        1
    }

    fn campaign_id(&self, _campaign: u32) -> String {
        CAMPAIGN.to_owned()
    }

    fn campaign_config(&self, _campaign: u32) -> String {
        self.config.to_owned()
    }

    fn campaign_items(&self, _campaign: u32) -> Vec<u32> {
        (0..self.item_count()).collect()
    }

    fn campaign_cells(&self, _campaign: u32) -> Cells {
        cells::table(
            self.items.iter().map(|item| &item.event.properties),
            &self.reads.properties,
        )
    }

    fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    fn name_indexes(&self) -> Vec<u32> {
        self.column(|item| {
            self.names
                .binary_search_by(|name| name.as_str().cmp(item.name()))
                .map_or(u32::MAX, number)
        })
    }

    fn subjects(&self) -> Vec<u32> {
        let effects = self.effects.borrow();
        self.column(|item| {
            effects
                .subjects
                .keys()
                .position(|name| *name == item.subject)
                .map_or(u32::MAX, number)
        })
    }

    fn timestamps(&self) -> Vec<i64> {
        self.column(|item| item.event.timestamp.micros())
    }

    fn received(&self) -> Vec<i64> {
        self.column(|item| item.received.micros())
    }

    fn sessions(&self) -> Vec<u32> {
        self.column(|item| item.event.session)
    }

    fn event_id(&self, item: u32) -> String {
        self.item(item).event.id.clone()
    }

    fn event_json(&self, item: u32) -> String {
        self.item(item).event.properties.to_string()
    }

    fn timer_items(&self) -> Vec<u32> {
        (0..self.item_count())
            .filter(|item| self.item(*item).timer.is_some())
            .collect()
    }

    fn timer_key(&self, item: u32) -> Option<String> {
        self.item(item).timer.as_ref().map(|(key, _)| key.clone())
    }

    fn timer_payload(&self, item: u32) -> Option<Vec<u8>> {
        self.item(item)
            .timer
            .as_ref()
            .map(|(_, payload)| payload.clone())
    }

    fn subject_property(&self, item: u32, key: &str) -> Option<Value> {
        self.subject(item, |subject| {
            subject.properties.get(key).map(cells::value)
        })
    }

    fn subject_fact(&self, item: u32, name: &str) -> Option<Value> {
        self.subject(item, |subject| match subject.fact(name) {
            None if self.derives_facts => subject.fact_of_events(name),
            given => given,
        })
    }

    fn count_events(&self, item: u32, name: &str, since: Option<i64>, at_most: u32) -> u32 {
        self.subject(item, |subject| {
            subject.count(self.item(item).before, name, since, at_most.min(COUNTED))
        })
    }

    fn recent_events(
        &self,
        item: u32,
        name: &str,
        since: Option<i64>,
        limit: u32,
        properties: &[String],
    ) -> History {
        self.subject(item, |subject| {
            let before = self.item(item).before;
            subject.recent(before, name, since, limit.min(RECENT), properties)
        })
    }

    fn random(&self, item: u32, _campaign: u32, n: u32) -> u64 {
        random(&self.item(item).event.id, n)
    }

    fn get_state(&self, _campaign: u32, item: u32) -> Option<Vec<u8>> {
        self.subject(item, |subject| subject.state.clone())
    }

    fn set_state(&self, _campaign: u32, item: u32, state: &[u8]) {
        assert!(
            state.len() <= 4096,
            "a state has at most 4 KiB, this one has {} bytes",
            state.len()
        );
        self.subject(item, |subject| subject.state = Some(state.to_vec()));
    }

    fn clear_state(&self, _campaign: u32, item: u32) {
        self.subject(item, |subject| subject.state = None);
    }

    fn set_timer(&self, _campaign: u32, item: u32, key: &str, at: i64, payload: &[u8]) {
        assert!(key.len() <= 128, "a timer's key has at most 128 bytes");
        assert!(!key.contains('\0'), "a timer's key has no NUL character");
        assert!(payload.len() <= 1024, "a timer's payload has at most 1 KiB");
        assert!(
            at <= (self.now + AHEAD).micros(),
            "a timer is due at most 90 days ahead"
        );
        let Item {
            event,
            received,
            timer: set_by,
            ..
        } = self.item(item);
        // The past is now, and what a timer sets waits for its turn.
        let earliest = match set_by {
            Some(_) => *received + TURN,
            None => *received,
        };
        let event = event.clone();
        let timer = Timer {
            at: Instant::from_micros(at).max(earliest),
            payload: payload.to_vec(),
            event,
        };
        let whose = &self.item(item).subject;
        let mut set = self.set.borrow_mut();
        set.insert((whose.clone(), key.to_owned()));
        assert!(
            set.iter().filter(|(other, _)| other == whose).count() <= TIMERS,
            "a call sets at most {TIMERS} timers for a subject"
        );
        self.subject(item, |subject| subject.timers.insert(key.to_owned(), timer));
    }

    fn cancel_timer(&self, _campaign: u32, item: u32, key: &str) {
        let whose = &self.item(item).subject;
        let mut set = self.set.borrow_mut();
        set.retain(|(other, set)| (other, set.as_str()) != (whose, key));
        self.subject(item, |subject| subject.timers.remove(key));
    }

    fn cancel_timers(&self, _campaign: u32, item: u32) {
        let whose = &self.item(item).subject;
        self.set.borrow_mut().retain(|(other, _)| other != whose);
        self.subject(item, |subject| subject.timers.clear());
    }

    fn fire(&self, _campaign: u32, items: &[u32]) {
        self.effects
            .borrow_mut()
            .fired
            .extend(items.iter().map(|item| *item as usize));
    }

    fn explain(&self, _campaign: u32, _item: u32, check: &str, passed: bool, detail: &str) {
        let explanation = Explanation {
            check: check.to_owned(),
            passed,
            detail: detail.to_owned(),
        };
        self.effects.borrow_mut().explanations.push(explanation);
    }

    fn explaining(&self) -> bool {
        true
    }
}
