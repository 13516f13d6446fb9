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
    plugin: PhantomData<P>,
}

impl<P: Validator> ValidationTest<P> {
    /// A definition with this configuration, or what is wrong with it.
    pub fn new(config: &Json) -> Result<Self, Vec<Problem>> {
        let config = config.to_string();
        Ok(Self {
            reads: validation::check::<P>(&config)?,
            config,
            plugin: PhantomData,
        })
    }

    /// What `check` said that decisions read.
    pub fn reads(&self) -> &Reads {
        &self.reads
    }

    /// The violations of an event with these properties.
    #[expect(clippy::panic, reason = "a plugin that refuses has failed the test")]
    pub fn violations(&self, properties: &Json) -> Vec<Violation> {
        let host = Host {
            config: &self.config,
            reads: &self.reads,
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
    properties: &'t Json,
    reported: RefCell<Vec<Reported>>,
}

impl ValidationHost for Host<'_> {
    fn now(&self) -> i64 {
        Instant::parse("2026-01-01").unwrap_or_default().micros()
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
        vec![self.now()]
    }

    fn report(&self, violations: &[Reported]) {
        self.reported.borrow_mut().extend_from_slice(violations);
    }
}
