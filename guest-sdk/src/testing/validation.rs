//! A validation plugin and one definition.

use std::cell::RefCell;
use std::marker::PhantomData;

use serde_json::Value as Json;

use super::cells;
use crate::bindings::trigger::nudge::plugin::types::Cells;
use crate::bindings::validation::nudge::plugin::validation_host::Violation as Reported;
use crate::declaration::{Problem, Reads};
use crate::instant::Instant;
use crate::validation::{self, ValidationHost, Validator, Violation};

/// One validation plugin with one definition.
pub struct ValidationTest<P> {
    config: String,
    reads: Reads,
    now: Instant,
    /// When events happen. None: now.
    timestamp: Option<Instant>,
    plugin: PhantomData<P>,
}

impl<P: Validator> ValidationTest<P> {
    /// A definition with this configuration, or what is wrong with it. Events happen at 2026-01-01T00:00:00Z.
    pub fn new(config: &Json) -> Result<Self, Vec<Problem>> {
        let config = config.to_string();
        Ok(Self {
            reads: validation::check::<P>(&config)?,
            config,
            now: Instant::parse("2026-01-01").unwrap_or_default(),
            timestamp: None,
            plugin: PhantomData,
        })
    }

    /// What `check` said that decisions read.
    pub fn reads(&self) -> &Reads {
        &self.reads
    }

    /// Sets the clock: when events reach the server and, without [`Self::set_timestamp`], when they happen.
    pub fn set_now(&mut self, now: Instant) {
        self.now = now;
    }

    /// Sets when events happen, by the client's corrected clock.
    pub fn set_timestamp(&mut self, timestamp: Instant) {
        self.timestamp = Some(timestamp);
    }

    /// The violations of an event with these properties.
    #[expect(clippy::panic, reason = "a plugin that refuses has failed the test")]
    pub fn violations(&self, properties: &Json) -> Vec<Violation> {
        let host = Host {
            config: &self.config,
            reads: &self.reads,
            now: self.now,
            timestamp: self.timestamp.unwrap_or(self.now),
            properties,
            reported: RefCell::default(),
        };
        if let Err(refusal) = validation::validate::<P>(&host) {
            panic!("the plugin refused the batch: {refusal}");
        }
        host.reported
            .into_inner()
            .into_iter()
            .map(Violation::from)
            .collect()
    }
}

impl From<Reported> for Violation {
    fn from(reported: Reported) -> Self {
        Self {
            code: reported.code,
            property: reported.property,
            expected: reported.expected,
            actual: reported.actual,
        }
    }
}

struct Host<'t> {
    config: &'t str,
    reads: &'t Reads,
    now: Instant,
    timestamp: Instant,
    properties: &'t Json,
    reported: RefCell<Vec<Reported>>,
}

impl ValidationHost for Host<'_> {
    fn now(&self) -> i64 {
        self.now.micros()
    }

    fn item_count(&self) -> u32 {
        1
    }

    fn definition_count(&self) -> u32 {
        1
    }

    fn definition_config(&self, _definition: u32) -> String {
        self.config.to_owned()
    }

    fn definition_items(&self, _definition: u32) -> Vec<u32> {
        vec![0]
    }

    fn definition_cells(&self, _definition: u32) -> Cells {
        cells::table([self.properties], &self.reads.properties)
    }

    fn unread_counts(&self, _definition: u32) -> Vec<u32> {
        vec![u32::try_from(self.unread(0).len()).unwrap_or(u32::MAX)]
    }

    fn unread(&self, _item: u32) -> Vec<String> {
        cells::unread(self.properties, &self.reads.properties)
    }

    fn event_json(&self, _item: u32) -> String {
        self.properties.to_string()
    }

    fn timestamps(&self) -> Vec<i64> {
        vec![self.timestamp.micros()]
    }

    fn report(&self, violations: &[Reported]) {
        self.reported.borrow_mut().extend_from_slice(violations);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::declaration::Refusal;
    use crate::validation::Event;

    /// Finds fault with events that happened an hour before they arrived, or earlier.
    struct Late;

    impl Validator for Late {
        type Config = Json;

        fn check(_: &Json) -> Result<Reads, Vec<Problem>> {
            Ok(Reads::new())
        }

        fn validate(
            _: &Json,
            event: &Event<'_>,
            found: &mut Vec<Violation>,
        ) -> Result<(), Refusal> {
            if event.now() >= event.timestamp() + Duration::from_hours(1) {
                found.push(Violation {
                    code: "late".to_owned(),
                    property: String::new(),
                    expected: event.now().to_string(),
                    actual: event.timestamp().to_string(),
                });
            }
            Ok(())
        }
    }

    #[test]
    fn events_happen_when_a_test_says() {
        let mut definition = ValidationTest::<Late>::new(&json!({})).unwrap();
        assert!(definition.violations(&json!({})).is_empty());
        let later = Instant::parse("2026-02-01").unwrap();
        definition.set_now(later);
        assert!(definition.violations(&json!({})).is_empty());
        let earlier = Instant::parse("2026-01-31").unwrap();
        definition.set_timestamp(earlier);
        let violations = definition.violations(&json!({}));
        assert_eq!(violations.len(), 1);
        assert_eq!(violations[0].expected, later.to_string());
        assert_eq!(violations[0].actual, earlier.to_string());
    }
}
