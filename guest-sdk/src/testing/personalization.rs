//! A personalization plugin, one message and one recipient.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::marker::PhantomData;

use serde_json::{Map, Value as Json};

use super::cells;
use super::subject::{Subject, random};
use crate::bindings::trigger::nudge::plugin::types::{Cells, History, Value};
use crate::declaration::{Problem, Reads};
use crate::instant::Instant;
use crate::personalization::{self, PersonalizationHost, Personalizer, Resolved};

/// One personalization plugin with one message to one recipient.
pub struct PersonalizationTest<P> {
    config: String,
    reads: Reads,
    now: Instant,
    subject: Subject,
    data: Json,
    trigger: Option<Json>,
    /// When the event happened that caused the message. None: now.
    triggered_at: Option<Instant>,
    withheld: Vec<String>,
    history_reads: RefCell<u32>,
    plugin: PhantomData<P>,
}

impl<P: Personalizer> PersonalizationTest<P> {
    /// A message with this configuration, or what is wrong with it. It is sent at 2026-01-01T00:00:00Z.
    pub fn new(config: &Json) -> Result<Self, Vec<Problem>> {
        let config = config.to_string();
        Ok(Self {
            reads: personalization::check::<P>(&config)?,
            config,
            now: Instant::parse("2026-01-01").unwrap_or_default(),
            subject: Subject::default(),
            data: Json::Object(Map::new()),
            trigger: None,
            triggered_at: None,
            withheld: Vec::new(),
            history_reads: RefCell::new(0),
            plugin: PhantomData,
        })
    }

    /// What `check` said that decisions read.
    pub fn reads(&self) -> &Reads {
        &self.reads
    }

    /// Sets the clock: when the message is sent.
    pub fn set_now(&mut self, now: Instant) {
        self.now = now;
    }

    /// Saves a property of the recipient.
    pub fn set_property(&mut self, key: &str, value: Json) {
        self.subject.properties.insert(key.to_owned(), value);
    }

    /// Keeps a property of the recipient from the plugin, as an app's privacy policy does.
    pub fn withhold_property(&mut self, key: &str) {
        self.withheld.push(key.to_owned());
    }

    /// Makes a fact known about the recipient.
    pub fn set_fact(&mut self, name: &str, value: Json) {
        self.subject.facts.insert(name.to_owned(), value);
    }

    /// The data of the request that asks for the send.
    pub fn set_data(&mut self, data: Json) {
        self.data = data;
    }

    /// The properties of the event that caused the message. It happens when the message is sent, unless
    /// [`Self::set_triggered_at`] says otherwise.
    pub fn set_trigger_event(&mut self, properties: Json) {
        self.trigger = Some(properties);
    }

    /// When the event happened that caused the message.
    pub fn set_triggered_at(&mut self, at: Instant) {
        self.triggered_at = Some(at);
    }

    /// Adds an event to the recipient's history.
    pub fn add_event(&mut self, name: &str, at: Instant, properties: Json) {
        let id = format!(
            "00000000-0000-7000-8000-{:012}",
            self.subject.events.len() + 1
        );
        self.subject.take(id, name, at, properties);
        self.subject.events.sort_by_key(|event| event.timestamp);
    }

    /// What the bindings resolve to, by their identifiers.
    #[expect(clippy::panic, reason = "a plugin that refuses has failed the test")]
    pub fn resolve(&self) -> BTreeMap<String, Resolved> {
        let host = Host {
            test: self,
            resolved: RefCell::default(),
        };
        if let Err(refusal) = personalization::resolve::<P>(&host) {
            panic!("the plugin refused the batch: {refusal}");
        }
        host.resolved
            .into_inner()
            .into_iter()
            .map(|resolved| (resolved.binding.clone(), resolved))
            .collect()
    }

    /// How often the plugin asked for past events.
    pub fn history_reads(&self) -> u32 {
        *self.history_reads.borrow()
    }
}

struct Host<'t, P> {
    test: &'t PersonalizationTest<P>,
    resolved: RefCell<Vec<Resolved>>,
}

impl<P> PersonalizationHost for Host<'_, P> {
    fn now(&self) -> i64 {
        self.test.now.micros()
    }

    fn item_count(&self) -> u32 {
        1
    }

    fn message_count(&self) -> u32 {
        1
    }

    fn message_config(&self, _message: u32) -> String {
        self.test.config.clone()
    }

    fn message_items(&self, _message: u32) -> Vec<u32> {
        vec![0]
    }

    fn subject_cells(&self, _message: u32) -> Cells {
        let properties = &self.test.subject.properties;
        let row: Map<String, Json> = properties
            .iter()
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let keys = &self.test.reads.subject_properties;
        let mut cells = cells::table([&Json::Object(row)], keys);
        for (tag, _) in cells
            .tags
            .iter_mut()
            .zip(keys)
            .filter(|(_, key)| self.test.withheld.contains(key))
        {
            *tag = 7;
        }
        cells
    }

    fn data_cells(&self, _message: u32, keys: &[String]) -> Cells {
        cells::table([&self.test.data], keys)
    }

    fn trigger_cells(&self, _message: u32) -> Cells {
        cells::table(
            [self.test.trigger.as_ref().unwrap_or(&Json::Null)],
            &self.test.reads.properties,
        )
    }

    fn trigger_event(&self, _item: u32) -> Option<(String, i64)> {
        self.test.trigger.as_ref()?;
        let id = "00000000-0000-7000-8000-00000000feed".to_owned();
        let at = self.test.triggered_at.unwrap_or(self.test.now);
        Some((id, at.micros()))
    }

    fn recent_events(
        &self,
        _item: u32,
        name: &str,
        since: Option<i64>,
        limit: u32,
        properties: &[String],
    ) -> History {
        *self.test.history_reads.borrow_mut() += 1;
        self.test
            .subject
            .recent(usize::MAX, name, since, limit, properties)
    }

    fn subject_fact(&self, _item: u32, name: &str) -> Option<Value> {
        self.test.subject.fact(name)
    }

    fn random(&self, _item: u32, n: u32) -> u64 {
        random("recipient", n)
    }

    fn resolve(&self, resolutions: &[Resolved]) {
        self.resolved.borrow_mut().extend_from_slice(resolutions);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::declaration::Refusal;
    use crate::personalization::{Recipient, Resolution};

    /// Resolves to the time of the event that caused the message.
    struct Cause;

    impl Personalizer for Cause {
        type Config = Json;

        fn check(_: &Json) -> Result<Reads, Vec<Problem>> {
            Ok(Reads::new())
        }

        fn resolve(
            _: &Json,
            recipient: &Recipient<'_>,
            resolutions: &mut Vec<Resolution>,
        ) -> Result<(), Refusal> {
            let event = recipient.trigger_event();
            resolutions.push(Resolution {
                binding: "cause".to_owned(),
                text: recipient.now().to_string(),
                event,
                ..Resolution::default()
            });
            Ok(())
        }
    }

    #[test]
    fn a_message_is_sent_and_caused_when_a_test_says() {
        let mut message = PersonalizationTest::<Cause>::new(&json!({})).unwrap();
        let resolved = message.resolve()["cause"].clone();
        assert_eq!(resolved.text, "2026-01-01T00:00:00.000Z");
        assert!(resolved.more.is_empty());

        message.set_trigger_event(json!({}));
        message.set_now(Instant::parse("2026-02-01").unwrap());
        let resolved = message.resolve()["cause"].clone();
        assert_eq!(resolved.text, "2026-02-01T00:00:00.000Z");
        let at = |text: &str| ("timestamp".to_owned(), text.to_owned());
        assert_eq!(resolved.more[1], at("2026-02-01T00:00:00.000Z"));
        message.set_triggered_at(Instant::parse("2026-01-31").unwrap());
        let resolved = message.resolve()["cause"].clone();
        assert_eq!(resolved.more[1], at("2026-01-31T00:00:00.000Z"));
    }
}
