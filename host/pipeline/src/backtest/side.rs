//! One version of a plugin with the states and timers that it would have.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use nudge_db::Timestamp;
use nudge_platform::event_names::SESSION_BEGAN;
use nudge_plugin_runtime::Reading;
use nudge_records::decisions::transcript::Transcript;
use nudge_records::events::store::Stored;
use nudge_wasm::limits::TIMERS_PER_SUBJECT;
use nudge_wasm::trigger::{self, TimerChange, TriggerOutcome};
use nudge_wasm::{Failed, Failure, Plugin};
use parking_lot::Mutex;
use uuid::Uuid;

use super::super::effects::timers::TURN;
use super::super::facts::{Ledger, Read, View};
use super::people::Scene;
use super::{Context, Target};

/// What a state or timer takes besides its bytes, about.
const ENTRY_BYTES: usize = 200;
/// The number of the only subject of a batch.
const SUBJECT: u32 = 0;

/// Which timer of a version it is. They are in order of their targets and subjects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BacktestTimerKey {
    pub target: usize,
    pub subject_id: Uuid,
    /// The plugin's key.
    pub key: String,
}

/// A timer that is not due yet.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    payload: Vec<u8>,
    pub event: Stored,
}

/// Events of one subject, or a timer of it, to be decided about together.
pub(super) struct Batch<'a> {
    pub now: i64,
    pub items: &'a [trigger::Item],
    /// For each item its event.
    pub events: &'a [Stored],
    pub scene: &'a Scene,
}

impl Batch<'_> {
    /// When a timer that is set at an item may be due. One that a timer sets waits for its turn.
    fn earliest(&self, item: u32) -> Option<i64> {
        let item = self.items.get(item as usize)?;
        let timer = item.timer.as_ref();
        timer.map(|_| Timestamp(item.received).plus(TURN).0)
    }
}

/// What a version made of a batch.
#[derive(Debug, Default)]
pub(super) struct Made {
    /// Items and the targets that they fired.
    pub fired: BTreeSet<(usize, usize)>,
    /// Items that it failed on.
    pub failed: BTreeSet<usize>,
    /// Whether it was told something that may have been otherwise then.
    pub approximate: bool,
}

impl Made {
    /// The targets that the items of one event fired, each of them once; none: it failed on one of the items.
    pub(super) fn of(&self, items: &Range<usize>) -> Option<BTreeSet<usize>> {
        if self.failed.iter().any(|item| items.contains(item)) {
            return None;
        }
        let fired = self.fired.iter().filter(|(item, _)| items.contains(item));
        Some(fired.map(|(_, target)| *target).collect())
    }
}

/// Targets and the items that concern them, ascending.
pub(super) type Concerned = BTreeMap<usize, Vec<u32>>;

/// For each event name the targets that read it, and those that read every event; no target is in both.
fn routes<'n>(
    read: impl Iterator<Item = &'n [String]>,
) -> (HashMap<String, Vec<usize>>, Vec<usize>) {
    let mut routes: HashMap<String, Vec<usize>> = HashMap::new();
    let mut everywhere = Vec::new();
    for (number, names) in read.enumerate() {
        let all = names.iter().any(|name| name == "*");
        everywhere.extend(all.then_some(number));
        // The beginning of a session is an item of its own.
        let named = names.iter().filter(|name| match name.as_str() {
            "*" => false,
            SESSION_BEGAN => true,
            _ => !all,
        });
        for name in named {
            let readers = routes.entry(name.clone()).or_default();
            if !readers.contains(&number) {
                readers.push(number);
            }
        }
    }
    (routes, everywhere)
}

/// One version and its world.
#[derive(Debug)]
pub(super) struct Side {
    plugin: Arc<Plugin>,
    seed: u64,
    targets: Vec<(Target, Arc<Reading>)>,
    routes: HashMap<String, Vec<usize>>,
    everywhere: Vec<usize>,
    states: HashMap<(usize, Uuid), Vec<u8>>,
    timers: BTreeMap<(i64, BacktestTimerKey), Pending>,
    due: BTreeMap<BacktestTimerKey, i64>,
    pub bytes: usize,
}

impl Side {
    pub(super) fn new(
        app_id: Uuid,
        plugin: &Arc<Plugin>,
        targets: Vec<(Target, Arc<Reading>)>,
    ) -> Self {
        let (routes, everywhere) = routes(targets.iter().map(|(_, reading)| &*reading.event_names));
        Self {
            plugin: Arc::clone(plugin),
            seed: super::super::groups::seed(app_id, plugin),
            targets,
            routes,
            everywhere,
            states: HashMap::new(),
            timers: BTreeMap::new(),
            due: BTreeMap::new(),
            bytes: 0,
        }
    }

    /// The targets that an event of this name concerns.
    pub(super) fn concerned(&self, name: &str) -> impl Iterator<Item = usize> {
        let named = self.routes.get(name).map_or(&[][..], Vec::as_slice);
        named.iter().chain(&self.everywhere).copied()
    }

    /// The targets that hear of the beginning of sessions.
    pub(super) fn session_targets(&self) -> &[usize] {
        self.routes.get(SESSION_BEGAN).map_or(&[], Vec::as_slice)
    }

    /// The timer that is due next.
    pub(super) fn next(&self) -> Option<&(i64, BacktestTimerKey)> {
        self.timers.first_key_value().map(|(at, _)| at)
    }

    /// Takes a timer that is due; what it is called with.
    pub(super) fn take(
        &mut self,
        at: &(i64, BacktestTimerKey),
    ) -> Option<(Pending, trigger::Timer)> {
        let pending = self.timers.remove(at)?;
        let (_, timer_key) = at;
        self.due.remove(timer_key);
        self.bytes = self
            .bytes
            .saturating_sub(ENTRY_BYTES + pending.payload.len());
        let timer = trigger::Timer {
            key: timer_key.key.clone(),
            payload: pending.payload.clone(),
        };
        Some((pending, timer))
    }

    /// Decides about a batch; where that fails, about each item and target alone.
    pub(super) fn decide(
        &mut self,
        context: &Context,
        batch: &Batch<'_>,
        concerned: &Concerned,
    ) -> nudge_db::Result<Made> {
        let mut made = Made::default();
        if concerned.is_empty() || self.call(context, batch, concerned, &mut made)? {
            return Ok(made);
        }
        let items: BTreeSet<u32> = concerned.values().flatten().copied().collect();
        for item in items {
            for (target, routed) in concerned {
                if !routed.contains(&item) {
                    continue;
                }
                let alone = Concerned::from([(*target, vec![item])]);
                let is_all = alone == *concerned;
                if is_all || !self.call(context, batch, &alone, &mut made)? {
                    made.failed.insert(item as usize);
                }
            }
        }
        Ok(made)
    }

    /// Asks the version; answers whether that succeeded.
    fn call(
        &mut self,
        context: &Context,
        batch: &Batch<'_>,
        concerned: &Concerned,
        made: &mut Made,
    ) -> nudge_db::Result<bool> {
        let targets: Vec<usize> = concerned.keys().copied().collect();
        let outcome = super::call(
            || context.check(),
            || self.ask(context, batch, concerned, &targets),
        )?;
        match outcome {
            Ok((outcome, transcript)) => {
                let heard = transcript.finish();
                made.approximate |= batch.scene.is_approximate(heard.as_ref());
                self.accept(outcome, batch, &targets, made);
                Ok(true)
            }
            Err(failed) if failed.failure == Failure::Unavailable => Err(
                nudge_db::Error::unavailable(std::io::Error::other("facts unavailable")),
            ),
            Err(_) => Ok(false),
        }
    }

    /// Makes one call, and notes what the version is told.
    fn ask(
        &self,
        context: &Context,
        batch: &Batch<'_>,
        concerned: &Concerned,
        targets: &[usize],
    ) -> Result<(TriggerOutcome, Transcript), Failed> {
        let transcript = Transcript::default();
        let ledger = self.ledger(context, batch.scene, targets, batch.now);
        let view = View {
            ledger: Arc::new(Mutex::new(ledger)),
            campaigns: targets.to_vec(),
            transcript: Some(transcript.clone()),
        };
        let batch = self.batch(batch, concerned);
        let outcome = self.plugin.evaluate(batch, Box::new(view))?;
        Ok((outcome, transcript))
    }

    fn ledger(&self, context: &Context, scene: &Scene, targets: &[usize], now: i64) -> Ledger {
        let id = scene.subject.id;
        let state = |target: &usize| {
            let state = self.states.get(&(*target, id))?.clone();
            Some(((*target, SUBJECT), state))
        };
        Ledger {
            app_id: context.app_id,
            db: context.db.clone(),
            runtime: context.runtime.clone(),
            subjects: vec![scene.subject.clone()],
            properties: scene.properties.clone(),
            states: targets.iter().filter_map(state).collect(),
            earlier: Vec::new(),
            aliases: HashMap::from([(id, scene.aliases.clone())]),
            until: Timestamp(now),
            read: Read::default(),
        }
    }

    fn batch(&self, batch: &Batch<'_>, concerned: &Concerned) -> trigger::Batch {
        let campaign = |(number, items): (&usize, &Vec<u32>)| {
            let (target, reading) = self.targets.get(*number)?;
            Some(trigger::Campaign {
                id: target.id.unwrap_or_default(),
                config: Arc::clone(&target.config),
                properties: Arc::clone(&reading.properties),
                items: items.clone(),
            })
        };
        trigger::Batch {
            now: batch.now,
            items: batch.items.to_vec(),
            campaigns: concerned.iter().filter_map(campaign).collect(),
            explaining: false,
            seed: self.seed,
        }
    }

    /// Lets what the version asked for take effect, in its own world.
    fn accept(
        &mut self,
        outcome: TriggerOutcome,
        batch: &Batch<'_>,
        targets: &[usize],
        made: &mut Made,
    ) {
        let subject_id = batch.scene.subject.id;
        let target = |number: u32| targets.get(number as usize).copied();
        let timer_key = |target: usize, key: String| BacktestTimerKey {
            target,
            subject_id,
            key,
        };
        for firing in &outcome.fired {
            let fired = target(firing.campaign).map(|target| (firing.item as usize, target));
            made.fired.extend(fired);
        }
        for write in outcome.states {
            if let Some(target) = target(write.campaign) {
                self.set_state((target, subject_id), write.state);
            }
        }
        for change in outcome.timers {
            match change {
                TimerChange::Set {
                    campaign,
                    item,
                    key,
                    at,
                    payload,
                } => {
                    let event = batch.events.get(item as usize).cloned();
                    if let (Some(target), Some(event)) = (target(campaign), event) {
                        let at = batch.earliest(item).map_or(at, |earliest| earliest.max(at));
                        let pending = Pending { payload, event };
                        self.set_timer(timer_key(target, key), at, pending);
                    }
                }
                TimerChange::Cancel { campaign, key, .. } => {
                    if let Some(target) = target(campaign) {
                        self.cancel(&timer_key(target, key));
                    }
                }
                TimerChange::CancelAll { campaign, .. } => {
                    if let Some(target) = target(campaign) {
                        self.cancel_all(target, subject_id);
                    }
                }
            }
        }
        if !self.plugin.has_unlimited_timers() {
            for target in targets {
                self.cancel_surplus(*target, subject_id);
            }
        }
    }

    /// When the timers of a target and subject are due, and their keys.
    fn pending(
        &self,
        target: usize,
        subject_id: Uuid,
    ) -> impl Iterator<Item = (i64, &BacktestTimerKey)> {
        let from = BacktestTimerKey {
            target,
            subject_id,
            key: String::new(),
        };
        let later = self.due.range(from..).map(|(key, at)| (*at, key));
        later.take_while(move |(_, key)| (key.target, key.subject_id) == (target, subject_id))
    }

    fn cancel_all(&mut self, target: usize, subject_id: Uuid) {
        let pending = self.pending(target, subject_id);
        let keys: Vec<BacktestTimerKey> = pending.map(|(_, key)| key.clone()).collect();
        for key in &keys {
            self.cancel(key);
        }
    }

    /// Removes the timers that a target and subject have too many of, those that are due last.
    fn cancel_surplus(&mut self, target: usize, subject_id: Uuid) {
        let mut pending: Vec<(i64, &BacktestTimerKey)> = self.pending(target, subject_id).collect();
        pending.sort_unstable();
        let surplus = pending.into_iter().skip(TIMERS_PER_SUBJECT);
        let keys: Vec<BacktestTimerKey> = surplus.map(|(_, key)| key.clone()).collect();
        for key in &keys {
            self.cancel(key);
        }
    }

    fn set_state(&mut self, place: (usize, Uuid), state: Option<Vec<u8>>) {
        let after = state.as_ref().map_or(0, |state| ENTRY_BYTES + state.len());
        let before = match state {
            Some(state) => self.states.insert(place, state),
            None => self.states.remove(&place),
        };
        let before = before.map_or(0, |state| ENTRY_BYTES + state.len());
        self.bytes = (self.bytes + after).saturating_sub(before);
    }

    fn set_timer(&mut self, key: BacktestTimerKey, at: i64, pending: Pending) {
        self.cancel(&key);
        self.bytes += ENTRY_BYTES + pending.payload.len();
        self.due.insert(key.clone(), at);
        self.timers.insert((at, key), pending);
    }

    fn cancel(&mut self, key: &BacktestTimerKey) {
        if let Some(at) = self.due.get(key).copied() {
            drop(self.take(&(at, key.clone())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_of_two_items_fires_a_target_once() {
        let made = Made {
            fired: BTreeSet::from([(0, 7), (1, 7), (1, 8), (2, 9)]),
            failed: BTreeSet::from([3]),
            approximate: false,
        };
        assert_eq!(made.of(&(0..2)), Some(BTreeSet::from([7, 8])));
        assert_eq!(made.of(&(2..3)), Some(BTreeSet::from([9])));
        assert_eq!(made.of(&(2..4)), None);
    }

    #[test]
    fn whatever_a_target_names_it_hears_of_each_event_once() {
        let names = |names: &[&str]| -> Vec<String> {
            names.iter().map(|name| (*name).to_owned()).collect()
        };
        let read = [
            names(&["*", "bought", SESSION_BEGAN]),
            names(&["bought", "bought"]),
            names(&[SESSION_BEGAN]),
        ];
        let (routes, everywhere) = routes(read.iter().map(Vec::as_slice));
        assert_eq!(everywhere, [0]);
        assert_eq!(routes.get("bought"), Some(&vec![1]));
        assert_eq!(routes.get(SESSION_BEGAN), Some(&vec![0, 2]));
    }
}
