//! Nudge's own: its default trigger, which reads the conditions from a campaign's configuration, and a plugin that has
//! them in its code. Limits are Nudge's defaults; the deadline is kept by epochs.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{anyhow, ensure};
use nudge_wasm::trigger::{Batch, Campaign, Item, Nobody, TriggerOutcome};
use nudge_wasm::{Compiler, Engine, EngineConfig, Limits, Plugin, Session};
use tempfile::TempDir;
use uuid::Uuid;

use super::Round;
use super::events::Events;

const CONFIGURATION: &str = r#"{"trigger":{"kind":"event","eventName":"order_completed","filters":{"all":[
    {"property":"amount","type":"number","operator":"gte","value":10},
    {"property":"plan","type":"string","operator":"equals","value":"pro"},
    {"property":"country","type":"string","operator":"in","value":["DE","FR"]}
]}}}"#;

pub(super) struct Plugins {
    default: Plugin,
    in_code: Plugin,
    _engine: Engine,
    _cache: TempDir,
}

/// A plugin with the batch that it is called with.
pub(super) struct Subject<'a> {
    plugin: &'a Plugin,
    batch: Batch,
}

impl Plugins {
    pub(super) fn load() -> anyhow::Result<Self> {
        let cache = tempfile::tempdir()?;
        let engine = Engine::new(EngineConfig {
            cache_dir: cache.path().to_owned(),
            cache_key: [0; 32],
            compiler: Compiler::InProcess,
            limits: Limits::default(),
            pool_slots: 8,
            made_ahead: 0,
        })?;
        Ok(Self {
            default: engine.load(nudge_plugins::DEFAULT_TRIGGER)?,
            in_code: engine.load(test_guests::MISBEHAVING)?,
            _engine: engine,
            _cache: cache,
        })
    }

    /// The default trigger, and the one with the conditions in its code.
    pub(super) fn batches(&self, events: &Events) -> [Subject<'_>; 2] {
        let subject = |plugin, configuration| Subject {
            plugin,
            batch: batch(configuration, events),
        };
        [
            subject(&self.default, CONFIGURATION),
            subject(&self.in_code, r#"{"mode":"conditions"}"#),
        ]
    }
}

impl<'a> Subject<'a> {
    /// One instance for all calls, which keeps what they leave in its memory.
    pub(super) fn reused(&self, events: &'a Events) -> anyhow::Result<Round<'a>> {
        let mut session = Session::new(self.plugin).map_err(failed)?;
        let batch = self.batch.clone();
        Ok(Box::new(move |calls| {
            timed(&batch, events, calls, |batch| {
                session.evaluate(batch, Box::new(Nobody)).map_err(failed)
            })
        }))
    }

    /// An instance for each call, as in the server.
    pub(super) fn fresh(self, events: &'a Events) -> Round<'a> {
        Box::new(move |calls| {
            timed(&self.batch, events, calls, |batch| {
                self.plugin
                    .evaluate(batch, Box::new(Nobody))
                    .map_err(failed)
            })
        })
    }
}

/// A call takes its batch: those of a round are made before.
fn timed(
    batch: &Batch,
    events: &Events,
    calls: u32,
    mut call: impl FnMut(Batch) -> anyhow::Result<TriggerOutcome>,
) -> anyhow::Result<Duration> {
    let batches: Vec<Batch> = (0..calls).map(|_| batch.clone()).collect();
    let started = Instant::now();
    for batch in batches {
        let outcome = call(batch)?;
        let fired = outcome.fired.iter().map(|firing| firing.item);
        ensure!(fired.eq(events.fire.iter().copied()), "{outcome:?}");
    }
    Ok(started.elapsed())
}

fn failed(failure: impl Debug) -> anyhow::Error {
    anyhow!("{failure:?}")
}

fn batch(configuration: &str, events: &Events) -> Batch {
    let item = |(number, text): (u32, &String)| Item {
        subject: number % 10,
        event_id: Uuid::from_u128(u128::from(number)),
        name: "order_completed".into(),
        timestamp: 1_769_851_800_000_000 + i64::from(number),
        received: 1_769_851_800_000_000,
        session: 1,
        properties: text.as_str().into(),
        timer: None,
    };
    let items: Vec<Item> = (0..).zip(&events.texts).map(item).collect();
    let campaign = Campaign {
        id: Uuid::from_u128(1),
        config: configuration.into(),
        properties: Arc::from(["amount".to_owned(), "plan".to_owned(), "country".to_owned()]),
        items: (0..).take(items.len()).collect(),
    };
    Batch {
        now: 1_769_851_900_000_000,
        items,
        campaigns: vec![campaign],
        explaining: false,
        seed: 1,
    }
}
