//! Asking the trigger plugin about a batch. Where it fails, the batch is taken apart until only what it
//! fails on is left: a poison event spoils no other.

mod conversion;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use nudge_apps::App;
use nudge_db::Timestamp;
use nudge_platform::event_names::SESSION_BEGAN;
use nudge_plugin_runtime::logs::Topics;
use nudge_plugin_runtime::statistics::CallOutcome;
use nudge_plugin_runtime::{Reading, RolloutPeriod};
use nudge_records::decisions::Recorded;
use nudge_records::decisions::transcript::Transcript;
use nudge_records::events::EventRef;
use nudge_records::events::store::Stored;
use nudge_records::scheduled_work::DueTimer;
use nudge_wasm::{Call, PastEvent, Plugin, trigger};
use parking_lot::Mutex;
use uuid::Uuid;

use super::calls::Calls;
use super::facts::{EarlierEvent, Ledger, View};
use super::groups::Group;

/// After so much time in failing calls, what is left of a batch counts as failed too.
const FAILING_TIME: Duration = Duration::from_secs(2);

/// An event or timer of a batch.
#[derive(Clone, Debug)]
pub(super) struct Item {
    /// The piece of work that it belongs to.
    pub work: usize,
    /// The event, or the event that set the timer.
    pub stored: Stored,
    /// Its subject's number in the batch.
    pub subject: usize,
    /// The session that it belongs to.
    pub session: i64,
    /// Whether it stands for the beginning of that session: the event once more, under the name for that.
    pub begins: bool,
    /// The timer, if it is one.
    pub timer: Option<DueTimer>,
    /// The alias that it came under.
    pub alias: i64,
    /// The occasion, if it is one.
    pub occasion_id: Option<Uuid>,
    /// The firing that waited for this, if it is one; no plugin is asked about it again.
    pub firing_id: Option<Uuid>,
    /// Whether it is of a dead letter that is replayed: it is decided about as of its own time.
    pub replays: bool,
}

impl Item {
    /// When it reached the server; of a timer, when that fell due.
    pub(super) fn at(&self) -> Timestamp {
        let due = self.timer.as_ref().map(|timer| timer.due_at);
        due.unwrap_or(self.stored.received_at)
    }

    /// The event, for what follows from the item.
    pub(super) fn event_ref(&self) -> EventRef {
        EventRef {
            alias: self.alias,
            seq: self.stored.seq,
            id: self.stored.event.id,
        }
    }

    /// Whether a version reads the item.
    pub(super) fn is_read(&self, reading: &Reading) -> bool {
        if self.begins {
            return reading.event_names.iter().any(|name| name == SESSION_BEGAN);
        }
        self.timer.is_some() || reading.has_event(&self.stored.event.name)
    }
}

/// A campaign and an item that it is decided for: their numbers in the app and in the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct CampaignItem {
    pub campaign: usize,
    pub item: usize,
}

/// Which items concern which campaign (by its number in the app).
pub(super) type Routes = BTreeMap<usize, Vec<usize>>;

/// What the plugin decided about a batch.
#[derive(Clone, Debug, Default)]
pub(super) struct Decisions {
    /// Campaigns and the items that fire them.
    pub fired: Vec<CampaignItem>,
    /// Plugin states by campaign and subject; none: removed.
    pub states: HashMap<(usize, u32), Option<Vec<u8>>>,
    /// Campaigns and subjects that a plugin keeps something of.
    pub kept: HashSet<(usize, u32)>,
    /// Changes of timers, in order.
    pub timers: Vec<Timer>,
    /// What the plugin failed on.
    pub failed: Vec<Failed>,
    /// The calls, so that they can be made again.
    pub recorded: Vec<Recorded>,
}

/// A change of a timer.
#[derive(Clone, Debug)]
pub(super) enum Timer {
    Set {
        campaign: usize,
        item: usize,
        key: String,
        at: i64,
        payload: Vec<u8>,
    },
    Cancel {
        campaign: usize,
        subject: u32,
        /// At which it was cancelled.
        item: usize,
        key: String,
    },
    CancelAll {
        campaign: usize,
        subject: u32,
        /// At which they were cancelled.
        item: usize,
    },
}

/// An item that a campaign could not be decided for.
#[derive(Clone, Debug)]
pub(super) struct Failed {
    pub campaign: usize,
    pub item: usize,
    /// The failure's code.
    pub reason: &'static str,
    /// What happened, for people.
    pub detail: Arc<str>,
}

/// A batch that was decided.
#[derive(Debug)]
pub(super) struct Decided {
    pub decisions: Decisions,
    pub items: Vec<Item>,
    /// The calls that it took, to be settled once what follows is written.
    pub calls: Calls,
}

/// One batch, and the plugin that is asked about a part of it.
pub(super) struct Evaluation {
    pub(super) plugin: Arc<Plugin>,
    pub(super) app: Arc<App>,
    pub(super) items: Vec<Item>,
    pub(super) ledger: Arc<Mutex<Ledger>>,
    calls: Calls,
    period: Arc<RolloutPeriod>,
    pub(super) seed: u64,
    pub(super) decisions: Decisions,
    failing: Duration,
    /// Whether calls are kept.
    pub(super) recording: bool,
}

impl Evaluation {
    /// A batch of which nothing is decided yet, to be decided by some groups, `first` the first of them.
    pub(super) fn new(
        app: &Arc<App>,
        items: Vec<Item>,
        ledger: Ledger,
        first: &Group,
        calls: Calls,
        recording: bool,
    ) -> Self {
        Self {
            plugin: Arc::clone(&first.plugin),
            app: Arc::clone(app),
            items,
            ledger: Arc::new(Mutex::new(ledger)),
            calls,
            period: Arc::clone(&first.period),
            seed: first.seed,
            decisions: Decisions::default(),
            failing: Duration::ZERO,
            recording,
        }
    }

    /// Decides everything, plugin by plugin. Blocks. It fails where the host could not answer a plugin's question: the batch must
    /// be tried again.
    pub(super) fn run(mut self, groups: &[Group]) -> nudge_db::Result<Decided> {
        for group in groups {
            self.plugin = Arc::clone(&group.plugin);
            self.period = Arc::clone(&group.period);
            self.seed = group.seed;
            self.failing = Duration::ZERO;
            // What one plugin was told of the batch already, the next one is yet to see.
            let mut ledger = self.ledger.lock();
            ledger.earlier.clear();
            drop(ledger);
            let items = group.items(&self.app, &self.items);
            self.decide(&items, &group.routes)?;
        }
        if groups.len() > 1 {
            let order = |fired: &CampaignItem| (fired.item, fired.campaign);
            self.decisions.fired.sort_by_key(order);
        }
        let ledger = self.ledger.lock();
        self.decisions.kept = ledger.states.keys().copied().collect();
        drop(ledger);
        Ok(Decided {
            decisions: self.decisions,
            items: self.items,
            calls: self.calls,
        })
    }

    /// Decides some items under some campaigns.
    fn decide(&mut self, items: &[usize], routes: &Routes) -> nudge_db::Result<()> {
        let routes = restrict(routes, items);
        if routes.is_empty() {
            return Ok(());
        }
        let campaigns: Vec<usize> = routes.keys().copied().collect();
        let (outcome, transcript) = match self.ask(items, &routes, &campaigns) {
            (Err(failed), _) if failed.was_starved() => {
                self.failing += failed.call.elapsed;
                self.note((items, &routes), CallOutcome::Retried, *failed.call);
                self.ask(items, &routes, &campaigns)
            }
            asked => asked,
        };
        match outcome {
            Ok(outcome) => {
                self.record(items, &routes, &outcome, transcript);
                let call = self.accept(outcome, items, &campaigns);
                self.note((items, &routes), CallOutcome::Decided, call);
                Ok(())
            }
            Err(failed) if failed.is_the_hosts() => {
                self.note((items, &routes), CallOutcome::Unavailable, *failed.call);
                Err(self.ledger.lock().take_failure())
            }
            Err(failed) => {
                self.failing += failed.call.elapsed;
                if items.len() == 1 && routes.len() == 1 || self.failing >= FAILING_TIME {
                    self.give_up(&routes, &failed);
                    self.note(
                        (items, &routes),
                        CallOutcome::settled(&failed),
                        *failed.call,
                    );
                    return Ok(());
                }
                self.note((items, &routes), CallOutcome::TakenApart, *failed.call);
                self.take_apart(items, &routes)
            }
        }
    }

    /// Calls the plugin, and notes what it asks for and is told if that is to be kept.
    fn ask(
        &self,
        items: &[usize],
        routes: &Routes,
        campaigns: &[usize],
    ) -> (
        Result<trigger::TriggerOutcome, nudge_wasm::Failed>,
        Transcript,
    ) {
        let transcript = Transcript::default();
        let view = View {
            ledger: Arc::clone(&self.ledger),
            campaigns: campaigns.to_vec(),
            transcript: self.recording.then(|| transcript.clone()),
        };
        let batch = self.batch(items, routes);
        (self.plugin.evaluate(batch, Box::new(view)), transcript)
    }

    fn note(&mut self, (items, routes): (&[usize], &Routes), outcome: CallOutcome, call: Call) {
        let (ledger, all, app) = (&self.ledger, &self.items, &self.app);
        let topics = || Topics {
            subjects: subjects(ledger, all, items),
            campaigns: routes
                .keys()
                .filter_map(|campaign| Some(app.campaigns.get(*campaign)?.id))
                .collect(),
            events: items
                .iter()
                .filter_map(|item| Some(all.get(*item)?.stored.event.id))
                .collect(),
        };
        self.calls
            .add(&self.period, items.len(), outcome, call, topics);
    }

    /// Notes what the plugin fails on.
    fn give_up(&mut self, routes: &Routes, failure: &nudge_wasm::Failed) {
        let plugin = self.plugin.description();
        tracing::warn!(
            app.id = %self.app.id,
            plugin.name = plugin.name,
            plugin.version = plugin.version,
            error = %failure,
            "a trigger failed"
        );
        let detail: Arc<str> = failure.detail().into();
        for (campaign, items) in routes {
            let reason = failure.failure.code();
            let failed = items.iter().map(|item| Failed {
                campaign: *campaign,
                item: *item,
                reason,
                detail: Arc::clone(&detail),
            });
            self.decisions.failed.extend(failed);
        }
    }

    /// Halves the items, and when one is left, the campaigns, until what fails is one of each.
    fn take_apart(&mut self, items: &[usize], routes: &Routes) -> nudge_db::Result<()> {
        if items.len() > 1 {
            let (first, second) = items.split_at(items.len() / 2);
            let before = self.ledger.lock().earlier.len();
            self.decide(first, routes)?;
            self.remember(before, first);
            return self.decide(second, routes);
        }
        for (campaign, items) in routes {
            self.decide(items, &Routes::from([(*campaign, items.clone())]))?;
        }
        Ok(())
    }

    /// Later parts of the batch count these items as earlier events, each of them once: some were noted already where a part
    /// of them was taken apart. `before` is how many there were before all of them.
    fn remember(&self, before: usize, items: &[usize]) {
        let mut ledger = self.ledger.lock();
        ledger.earlier.truncate(before);
        for item in items
            .iter()
            .filter_map(|item| self.items.get(*item))
            .filter(|item| item.timer.is_none() && !item.begins && item.stored.seq >= 0)
        {
            let event = &item.stored.event;
            ledger.earlier.push(EarlierEvent {
                subject: u32::try_from(item.subject).unwrap_or(u32::MAX),
                name: Arc::clone(&event.name),
                seq: item.stored.seq,
                event: PastEvent {
                    id: event.id,
                    timestamp: event.timestamp.0,
                    properties: Arc::clone(&event.properties),
                },
            });
        }
    }
}

/// Whose events some items are.
fn subjects(ledger: &Mutex<Ledger>, all: &[Item], items: &[usize]) -> Vec<Uuid> {
    let ledger = ledger.lock();
    let ids = items.iter().filter_map(|item| {
        let item = all.get(*item)?;
        Some(ledger.subjects.get(item.subject)?.id)
    });
    let mut ids: Vec<Uuid> = ids.collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// The routes of some items only. `items` ascend.
fn restrict(routes: &Routes, items: &[usize]) -> Routes {
    let mut restricted = Routes::new();
    for (campaign, routed) in routes {
        let kept: Vec<usize> = routed
            .iter()
            .filter(|item| items.binary_search(item).is_ok())
            .copied()
            .collect();
        if !kept.is_empty() {
            restricted.insert(*campaign, kept);
        }
    }
    restricted
}
