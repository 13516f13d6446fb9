//! Somebody innocent, to see whether others feel what a hostile plugin does.

use std::thread;

use nudge_wasm::{Engine, Failure, Plugin, trigger, validation};

use crate::support::{NOW, OneOrder, batch};

/// A plugin that minds its own business. It is of another kind than those that are watched, so that it
/// has a deadline of its own.
pub(crate) struct Witness {
    plugin: Plugin,
}

impl Witness {
    pub(crate) fn new(engine: &Engine) -> Self {
        Self {
            plugin: engine.load(nudge_plugins::DEFAULT_VALIDATION).unwrap(),
        }
    }

    /// Does something, while the witness works at the same time and once more afterwards.
    #[track_caller]
    pub(crate) fn watch<T: Send>(&self, what: &str, act: impl FnOnce() -> T + Send) -> T {
        let result = thread::scope(|scope| {
            let acting = scope.spawn(act);
            self.work(what);
            acting.join()
        });
        self.work(what);
        result.unwrap_or_else(|_| panic!("{what}: the host panicked"))
    }

    /// Evaluates the usual batch in this mode, and says the failure.
    #[track_caller]
    pub(crate) fn evaluate(
        &self,
        plugin: &Plugin,
        mode: &str,
    ) -> Result<trigger::TriggerOutcome, Failure> {
        self.watch(mode, || {
            let outcome = plugin.evaluate(batch(mode), Box::new(OneOrder));
            outcome.map_err(|failed| failed.failure)
        })
    }

    fn work(&self, what: &str) {
        let config = r#"{"properties":[{"name":"amount","type":"number","required":true}]}"#;
        let events = ["{}", r#"{"amount":1}"#, r#"{"amount":"1"}"#];
        let outcome = self
            .plugin
            .validate(validation_batch(config, &["amount"], &events));
        let found: Vec<_> = outcome
            .unwrap_or_else(|failed| panic!("beside {what}: {failed}"))
            .violations
            .into_iter()
            .map(|violation| (violation.item, violation.code))
            .collect();
        let expected = [
            (0, "missing_required_property".to_owned()),
            (2, "type_mismatch".to_owned()),
        ];
        assert_eq!(found, expected, "beside {what}");
    }
}

/// What a call was expected to come to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    /// It is none of the host's business.
    Fine,
    Deadline,
    Memory,
    OutputTooLarge,
    /// A trap with these words.
    Trap(&'static str),
}

impl End {
    #[track_caller]
    pub(crate) fn assert<T: std::fmt::Debug>(self, what: &str, result: &Result<T, Failure>) {
        match (self, result) {
            (Self::Fine, Ok(_))
            | (Self::Deadline, Err(Failure::Deadline))
            | (Self::Memory, Err(Failure::Memory))
            | (Self::OutputTooLarge, Err(Failure::OutputTooLarge)) => {}
            (Self::Trap(words), Err(Failure::Trap(reason))) => {
                assert!(reason.contains(words), "{what}: {reason}");
            }
            (expected, found) => panic!("{what}: {expected:?} was expected, and it was {found:?}"),
        }
    }
}

/// A batch of events that have one definition.
pub(crate) fn validation_batch(
    config: &str,
    properties: &[&str],
    events: &[&str],
) -> validation::Batch {
    let item = |properties: &&str| validation::Item {
        timestamp: NOW,
        properties: (*properties).into(),
    };
    validation::Batch {
        now: NOW,
        items: events.iter().map(item).collect(),
        definitions: vec![validation::Definition {
            config: config.into(),
            properties: properties.iter().map(|path| (*path).to_owned()).collect(),
            items: (0..).zip(events).map(|(item, _)| item).collect(),
        }],
    }
}
