//! What shadow candidates would have decided about a batch. They are asked once its effects are written, with the
//! facts that the active version had, and nothing of what they answer takes effect.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use nudge_apps::App;
use nudge_db::Timestamp;
use nudge_platform::clock;
use nudge_plugin_runtime::shadow::{Comparison, Difference, MOST_WAITING, Sample};
use nudge_plugin_runtime::store::plugin_state;
use nudge_plugin_runtime::{Recorder, RolloutPeriod, logs};
use serde_json::{Value, json};
use uuid::Uuid;

use super::Inner;
use super::calls::Calls;
use super::evaluate::{CampaignItem, Decisions, Evaluation, Item, Routes, Timer};
use super::facts::Ledger;
use super::groups::{self, Group};

/// The candidates of a batch and what they are shown.
#[derive(Debug)]
pub(super) struct ShadowRuns {
    groups: Vec<Group>,
    /// The batch under the campaigns that have a candidate, as the active versions were shown it.
    routes: Routes,
    /// As it was before the active versions decided.
    ledger: Ledger,
    /// What the active versions decided.
    decided: Decisions,
}

impl ShadowRuns {
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
            .filter(|fired| tried(&fired.campaign));
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
        let periods: Vec<Arc<RolloutPeriod>> = self
            .groups
            .iter()
            .map(|group| Arc::clone(&group.period))
            .collect();
        let (app_id, app) = (app.id, Arc::clone(app));
        let run = move || self.run(&app, items, &recorder);
        if !inner.plugins.shadows.offer(app_id, MOST_WAITING, run) {
            for period in periods {
                inner
                    .plugins
                    .recorder
                    .compared(app_id, &period, Comparison::skipped());
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
            recorder.compared(app.id, &group.period, comparison);
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

/// When a timer is due, and its payload.
type Set = (i64, Vec<u8>);

/// What is left of a pair's timers: whether all older ones are cancelled, and each change by key.
type Timers = (bool, BTreeMap<String, Option<Set>>);

/// What differs of what is left of a person, and what either version leaves.
type Left = (Difference, Option<Value>, Option<Value>);

impl Compared<'_> {
    /// Compares what was decided with what would have been. `shown` is what the active version was shown under
    /// all campaigns that are tried, `routes` what the candidate was shown under its own. Each decision counts once;
    /// what is left of a person counts with the person's last.
    fn compare(
        &self,
        shown: &Routes,
        routes: &Routes,
        did: &Decisions,
        would: &Decisions,
    ) -> Comparison {
        let mut comparison = Comparison::default();
        comparison.counts.calls = 1;
        let (did, would) = (VersionDecisions::of(did), VersionDecisions::of(would));
        for campaign in routes.keys() {
            let decision = |item: usize| CampaignItem {
                campaign: *campaign,
                item,
            };
            let both = [shown, routes].map(|routes| routes.get(campaign));
            let items: BTreeSet<usize> = both.into_iter().flatten().flatten().copied().collect();
            let unknown: HashSet<u32> = items
                .iter()
                .filter(|item| {
                    let decision = decision(**item);
                    did.failed.contains(&decision) || would.failed.contains(&decision)
                })
                .filter_map(|item| self.subject(*item))
                .collect();
            let mut last: BTreeMap<u32, usize> = BTreeMap::new();
            for item in &items {
                last.extend(self.subject(*item).map(|subject| (subject, *item)));
            }
            for item in items {
                let pair = self.subject(item).filter(|subject| {
                    last.get(subject) == Some(&item) && !unknown.contains(subject)
                });
                let left = pair.map(|subject| self.left((*campaign, subject), &did, &would));
                let decision = decision(item);
                let decided = difference(decision, &did, &would);
                self.note(&mut comparison, decision, decided, left.unwrap_or_default());
            }
        }
        comparison
    }

    /// How what is left of a person differs: the state, and timers.
    fn left(
        &self,
        pair: Pair,
        did: &VersionDecisions<'_>,
        would: &VersionDecisions<'_>,
    ) -> Vec<Left> {
        let mut left = Vec::new();
        let (old, new) = (did.states.get(&pair), would.states.get(&pair));
        if old != new {
            let shown =
                |state: Option<&Option<Vec<u8>>>| Some(plugin_state::shown(state?.as_ref()?));
            left.push((Difference::State, shown(old), shown(new)));
        }
        let (did, would) = (
            self.timers(pair, did.timers),
            self.timers(pair, would.timers),
        );
        if did.0 != would.0 {
            let all = |cancelled: bool| cancelled.then(|| json!({"cancelled": "all"}));
            left.push((Difference::Timer, all(did.0), all(would.0)));
        }
        for key in did.1.keys().chain(would.1.keys()).collect::<BTreeSet<_>>() {
            let (old, new) = (did.1.get(key), would.1.get(key));
            if old == new {
                continue;
            }
            let sets = |timer: Option<&Option<Set>>| timer.is_some_and(Option::is_some);
            let difference = match (sets(old), sets(new)) {
                (false, true) => Difference::TimerAdded,
                (true, false) => Difference::TimerRemoved,
                _ => Difference::Timer,
            };
            let shown =
                |timer: Option<&Option<Set>>| timer.map(|timer| shown_timer(key, timer.as_ref()));
            left.push((difference, shown(old), shown(new)));
        }
        left
    }

    /// What changes of a pair's timers come to.
    fn timers(&self, pair: Pair, changes: &[Timer]) -> Timers {
        let mut timers = Timers::default();
        for change in changes {
            match change {
                Timer::Set {
                    campaign,
                    item,
                    key,
                    at,
                    payload,
                } if self.subject(*item).map(|subject| (*campaign, subject)) == Some(pair) => {
                    timers.1.insert(key.clone(), Some((*at, payload.clone())));
                }
                Timer::Cancel {
                    campaign,
                    subject,
                    key,
                    ..
                } if (*campaign, *subject) == pair => {
                    timers.1.insert(key.clone(), None);
                }
                Timer::CancelAll {
                    campaign, subject, ..
                } if (*campaign, *subject) == pair => timers = (true, BTreeMap::new()),
                _ => {}
            }
        }
        timers
    }

    fn subject(&self, item: usize) -> Option<u32> {
        u32::try_from(self.items.get(item)?.subject).ok()
    }

    /// Counts a decision, and keeps what differs.
    fn note(
        &self,
        comparison: &mut Comparison,
        decision: CampaignItem,
        decided: Option<Difference>,
        left: Vec<Left>,
    ) {
        let counted = decided.or_else(|| {
            left.iter()
                .map(|left| left.0)
                .max_by_key(|difference| weight(*difference))
        });
        let Some(counted) = counted else {
            comparison.same();
            return;
        };
        comparison.counts(counted);
        let Some(item) = self.items.get(decision.item) else {
            return;
        };
        let Some(subject_id) = self.subjects.get(item.subject) else {
            return;
        };
        let running = self.app.campaigns.get(decision.campaign);
        let decided = decided.map(|difference| (difference, None, None));
        for (difference, old, new) in decided.into_iter().chain(left) {
            comparison.keep(Sample {
                subject_id: *subject_id,
                event_id: item.stored.event.id,
                campaign_id: running.map(|running| running.id),
                difference,
                old,
                new,
            });
        }
    }
}

/// What a version decided about a batch.
struct VersionDecisions<'a> {
    failed: HashSet<CampaignItem>,
    fired: HashSet<CampaignItem>,
    states: &'a HashMap<Pair, Option<Vec<u8>>>,
    timers: &'a [Timer],
}

impl<'a> VersionDecisions<'a> {
    fn of(decisions: &'a Decisions) -> Self {
        let failed = decisions.failed.iter();
        Self {
            failed: failed
                .map(|failed| CampaignItem {
                    campaign: failed.campaign,
                    item: failed.item,
                })
                .collect(),
            fired: decisions.fired.iter().copied().collect(),
            states: &decisions.states,
            timers: &decisions.timers,
        }
    }
}

/// How a decision differs by itself, without what it leaves.
fn difference(
    decision: CampaignItem,
    did: &VersionDecisions<'_>,
    would: &VersionDecisions<'_>,
) -> Option<Difference> {
    if would.failed.contains(&decision) {
        return Some(Difference::Failed);
    }
    let fired = [did, would].map(|decisions| decisions.fired.contains(&decision));
    match fired.into() {
        (false, true) => Some(Difference::Added),
        (true, false) => Some(Difference::Removed),
        _ if did.failed.contains(&decision) => Some(Difference::Recovered),
        _ => None,
    }
}

/// Which of several differences a decision counts as: what would fire later before what is merely kept.
fn weight(difference: Difference) -> u8 {
    match difference {
        Difference::TimerAdded => 2,
        Difference::TimerRemoved => 1,
        _ => 0,
    }
}

fn shown_timer(key: &str, timer: Option<&Set>) -> Value {
    match timer {
        Some((at, payload)) => json!({
            "key": key,
            "at": clock::to_text(Timestamp(*at)),
            "payload": plugin_state::shown(payload),
        }),
        None => json!({"key": key, "cancelled": true}),
    }
}
