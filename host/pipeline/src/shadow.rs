//! What shadow candidates would have decided about a batch. They are asked once its effects are written, with the
//! facts that the active version had, and nothing of what they answer takes effect.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use nudge_apps::App;
use nudge_plugin_runtime::shadow::{Comparison, Difference, MOST_WAITING, Sample};
use nudge_plugin_runtime::{Recorder, RolloutPeriod, logs};
use uuid::Uuid;

use super::Inner;
use super::calls::Calls;
use super::evaluate::{Decisions, Evaluation, Item, Routes, Timer};
use super::facts::Ledger;
use super::groups::{self, Group};

/// The candidates of a batch and what they are shown.
#[derive(Debug)]
pub(super) struct Trials {
    groups: Vec<Group>,
    /// The batch under the campaigns that have a candidate, as the active versions were shown it.
    routes: Routes,
    /// As it was before the active versions decided.
    ledger: Ledger,
    /// What the active versions decided.
    decided: Decisions,
}

impl Trials {
    /// The candidates that a batch concerns; none: there are no candidates, as nearly always.
    pub(super) fn of(app: &App, items: &[Item], routes: &Routes, ledger: &Ledger) -> Option<Self> {
        let groups = groups::shadows(app, items, routes);
        if groups.is_empty() {
            return None;
        }
        let tried = |campaign: &usize| {
            let running = app.campaigns.get(*campaign);
            running.is_some_and(|running| running.accepted.shadow().is_some())
        };
        let routes = routes.iter().filter(|(campaign, _)| tried(campaign));
        Some(Self {
            routes: routes
                .map(|(campaign, items)| (*campaign, items.clone()))
                .collect(),
            groups,
            ledger: ledger.clone(),
            decided: Decisions::default(),
        })
    }

    /// The same, to be compared with what the active versions decided.
    pub(super) fn against(self, decisions: &Decisions) -> Self {
        let tried = |campaign: &usize| self.routes.contains_key(campaign);
        let fired = decisions
            .fired
            .iter()
            .filter(|(campaign, _)| tried(campaign));
        let states = decisions
            .states
            .iter()
            .filter(|((campaign, _), _)| tried(campaign));
        let timers = decisions
            .timers
            .iter()
            .filter(|timer| tried(&timer.campaign()));
        let failed = decisions
            .failed
            .iter()
            .filter(|failed| tried(&failed.campaign));
        let decided = Decisions {
            fired: fired.copied().collect(),
            states: states.map(|(key, state)| (*key, state.clone())).collect(),
            timers: timers.cloned().collect(),
            failed: failed.cloned().collect(),
            ..Decisions::default()
        };
        Self { decided, ..self }
    }

    /// Has the candidates asked when there is time, or counts that there was none.
    pub(super) fn offer(self, inner: &Inner, app: &Arc<App>, items: Vec<Item>) {
        let recorder = Arc::clone(&inner.plugins.recorder);
        let terms: Vec<Arc<RolloutPeriod>> = self
            .groups
            .iter()
            .map(|group| Arc::clone(&group.term))
            .collect();
        let (app_id, app) = (app.id, Arc::clone(app));
        let run = move || self.run(&app, items, &recorder);
        if !inner.plugins.shadows.offer(app_id, MOST_WAITING, run) {
            for term in terms {
                inner
                    .plugins
                    .recorder
                    .compared(app_id, &term, Comparison::skipped());
            }
        }
    }

    /// Asks the candidates. Blocks.
    fn run(self, app: &Arc<App>, mut items: Vec<Item>, recorder: &Arc<Recorder>) {
        let subjects: Vec<Uuid> = self
            .ledger
            .subjects
            .iter()
            .map(|subject| subject.id)
            .collect();
        for group in self.groups {
            let ledger = self.ledger.clone();
            let evaluation = Evaluation::new(
                app,
                items.clone(),
                ledger,
                &group,
                Calls::new(recorder, app.id, logs::Kind::Shadow),
                false,
            );
            let comparison = match evaluation.run(std::slice::from_ref(&group)) {
                Ok(asked) => {
                    asked.calls.settle();
                    items = asked.items;
                    let compared = Compared {
                        app,
                        items: &items,
                        subjects: &subjects,
                    };
                    compared.compare(&self.routes, &group.routes, &self.decided, &asked.decisions)
                }
                // The database does not answer: nothing is known of the candidate.
                Err(_) => Comparison::skipped(),
            };
            recorder.compared(app.id, &group.term, comparison);
        }
    }
}

impl Timer {
    fn campaign(&self) -> usize {
        match self {
            Self::Set { campaign, .. }
            | Self::Cancel { campaign, .. }
            | Self::CancelAll { campaign, .. } => *campaign,
        }
    }
}

/// The batch that both decided about.
struct Compared<'a> {
    app: &'a App,
    items: &'a [Item],
    /// Ids by number.
    subjects: &'a [Uuid],
}

/// A campaign and a subject.
type Pair = (usize, u32);

/// What is left of a pair's timers: whether all older ones are cancelled, and each change by key.
type Timers = BTreeMap<Pair, (bool, BTreeMap<String, Option<(i64, Vec<u8>)>>)>;

impl Compared<'_> {
    /// Compares what was decided with what would have been. `shown` is what the active version was shown under
    /// all campaigns that are tried, `routes` what the candidate was shown under its own.
    fn compare(
        &self,
        shown: &Routes,
        routes: &Routes,
        did: &Decisions,
        would: &Decisions,
    ) -> Comparison {
        let mut comparison = Comparison::default();
        comparison.counts.calls = 1;
        let failed = |decisions: &Decisions| -> HashSet<(usize, usize)> {
            let failed = decisions.failed.iter();
            failed
                .map(|failed| (failed.campaign, failed.item))
                .collect()
        };
        let (did_fail, would_fail) = (failed(did), failed(would));
        let did_fire: HashSet<(usize, usize)> = did.fired.iter().copied().collect();
        let would_fire: HashSet<(usize, usize)> = would.fired.iter().copied().collect();
        let mut unknown: HashSet<Pair> = HashSet::new();
        for campaign in routes.keys() {
            let both = [shown, routes].map(|routes| routes.get(campaign));
            let items: BTreeSet<usize> = both.into_iter().flatten().flatten().copied().collect();
            for item in items {
                let decision = (*campaign, item);
                let difference = if would_fail.contains(&decision) {
                    Some(Difference::Failed)
                } else if did_fail.contains(&decision) {
                    None
                } else {
                    match (did_fire.contains(&decision), would_fire.contains(&decision)) {
                        (false, true) => Some(Difference::Added),
                        (true, false) => Some(Difference::Removed),
                        _ => {
                            comparison.same();
                            continue;
                        }
                    }
                };
                if matches!(difference, None | Some(Difference::Failed)) {
                    unknown.extend(self.subject(item).map(|subject| (*campaign, subject)));
                }
                if let Some(difference) = difference {
                    self.note(&mut comparison, *campaign, item, difference);
                }
            }
        }
        let known = |pair: &Pair| routes.contains_key(&pair.0) && !unknown.contains(pair);
        self.compare_states(&mut comparison, &did.states, &would.states, known);
        let (did, would) = (self.timers(&did.timers), self.timers(&would.timers));
        for pair in did.keys().chain(would.keys()).collect::<BTreeSet<_>>() {
            if known(pair) && did.get(pair) != would.get(pair) {
                self.note_pair(&mut comparison, *pair, Difference::Timer);
            }
        }
        comparison
    }

    fn compare_states(
        &self,
        comparison: &mut Comparison,
        did: &HashMap<Pair, Option<Vec<u8>>>,
        would: &HashMap<Pair, Option<Vec<u8>>>,
        known: impl Fn(&Pair) -> bool,
    ) {
        for pair in did.keys().chain(would.keys()).collect::<BTreeSet<_>>() {
            if known(pair) && did.get(pair) != would.get(pair) {
                self.note_pair(comparison, *pair, Difference::State);
            }
        }
    }

    /// What changes of timers come to.
    fn timers(&self, changes: &[Timer]) -> Timers {
        let mut timers = Timers::new();
        for change in changes {
            match change {
                Timer::Set {
                    campaign,
                    item,
                    key,
                    at,
                    payload,
                } => {
                    let Some(subject) = self.subject(*item) else {
                        continue;
                    };
                    let (_, keys) = timers.entry((*campaign, subject)).or_default();
                    keys.insert(key.clone(), Some((*at, payload.clone())));
                }
                Timer::Cancel {
                    campaign,
                    subject,
                    key,
                    ..
                } => {
                    let (_, keys) = timers.entry((*campaign, *subject)).or_default();
                    keys.insert(key.clone(), None);
                }
                Timer::CancelAll {
                    campaign, subject, ..
                } => {
                    timers.insert((*campaign, *subject), (true, BTreeMap::new()));
                }
            }
        }
        timers
    }

    fn subject(&self, item: usize) -> Option<u32> {
        u32::try_from(self.items.get(item)?.subject).ok()
    }

    /// Notes what differs about a subject, with its last event.
    fn note_pair(&self, comparison: &mut Comparison, pair: Pair, difference: Difference) {
        let (campaign, subject) = pair;
        let of_subject = |item: &Item| item.subject == subject as usize;
        if let Some(item) = self.items.iter().rposition(of_subject) {
            self.note(comparison, campaign, item, difference);
        }
    }

    fn note(
        &self,
        comparison: &mut Comparison,
        campaign: usize,
        item: usize,
        difference: Difference,
    ) {
        let Some(item) = self.items.get(item) else {
            return;
        };
        let Some(subject_id) = self.subjects.get(item.subject) else {
            return;
        };
        let running = self.app.campaigns.get(campaign);
        comparison.differs(Sample {
            subject_id: *subject_id,
            event_id: item.stored.event.id,
            campaign_id: running.map(|running| running.id),
            difference,
        });
    }
}
