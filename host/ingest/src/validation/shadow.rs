//! What shadow candidates of validation plugins would have found. Nobody's request waits for it.

use std::collections::HashMap;
use std::sync::Arc;

use nudge_plugin_runtime::shadow::{Comparison, Difference, MOST_WAITING, Sample};
use nudge_plugin_runtime::{Plugins, RolloutPeriod, halving, logs};
use serde_json::Value;

use crate::validation::{Context, Declared, PlacedVerdicts, Verdict, Version, VersionChecks};

/// Shadow candidates and the events that they are shown.
pub(super) struct ShadowRuns(Vec<(Version, Vec<Declared>)>);

impl ShadowRuns {
    /// The candidates of some events' definitions; none: there are none, as nearly always.
    pub(super) fn of(declared: &[Declared]) -> Option<Self> {
        let mut shadow_runs: Vec<(Version, Vec<Declared>)> = Vec::new();
        for event in declared {
            let Some((candidate, _)) = event.enforced.accepted.shadow() else {
                continue;
            };
            let same =
                |(version, _): &&mut (Version, _)| Arc::ptr_eq(&version.plugin, &candidate.plugin);
            if let Some((_, events)) = shadow_runs.iter_mut().find(same) {
                events.push(event.clone());
            } else {
                let (plugin, period) =
                    (Arc::clone(&candidate.plugin), Arc::clone(&candidate.period));
                shadow_runs.push((Version { plugin, period }, vec![event.clone()]));
            }
        }
        (!shadow_runs.is_empty()).then_some(Self(shadow_runs))
    }

    /// Has the candidates asked when there is time, or counts that there was none.
    pub(super) fn offer(self, plugins: &Plugins, context: Context, did: PlacedVerdicts) {
        let periods: Vec<Arc<RolloutPeriod>> = self
            .0
            .iter()
            .map(|(version, _)| Arc::clone(&version.period))
            .collect();
        let app_id = context.app_id;
        let run = move || {
            for (version, declared) in self.0 {
                let period = Arc::clone(&version.period);
                let shown: Vec<&Declared> = declared.iter().collect();
                let checks = VersionChecks::new(&context, version, logs::Kind::Shadow);
                let would = halving::ask(&checks, &shown);
                let comparison = compare(&declared, &did, &would);
                if let Some(recorder) = &context.recorder {
                    recorder.compared(app_id, &period, comparison);
                }
            }
        };
        if !plugins.shadows.offer(app_id, MOST_WAITING, run) {
            for period in periods {
                plugins
                    .recorder
                    .compared(app_id, &period, Comparison::skipped());
            }
        }
    }
}

/// The violations of a verdict, for a sample.
fn shown(verdict: &Verdict) -> Option<Value> {
    match verdict {
        Verdict::Broken(violations) => serde_json::to_value(violations).ok(),
        Verdict::Pass | Verdict::Observed | Verdict::Unchecked => None,
    }
}

/// Compares verdicts.
fn compare(declared: &[Declared], did: &PlacedVerdicts, would: &PlacedVerdicts) -> Comparison {
    let mut comparison = Comparison::default();
    comparison.counts.calls = 1;
    let by_place =
        |found: &PlacedVerdicts| -> HashMap<usize, Verdict> { found.iter().cloned().collect() };
    let (mut did, mut would) = (by_place(did), by_place(would));
    for event in declared {
        let did = did.remove(&event.place).unwrap_or(Verdict::Pass);
        let would = would.remove(&event.place).unwrap_or(Verdict::Pass);
        let difference = match (&did, &would) {
            (_, Verdict::Unchecked) => Difference::Failed,
            (Verdict::Unchecked, _) => Difference::Recovered,
            (did, would) if did == would => {
                comparison.same();
                continue;
            }
            (Verdict::Pass, _) => Difference::Added,
            (_, Verdict::Pass) => Difference::Removed,
            _ => Difference::Violations,
        };
        comparison.differs(Sample {
            subject_id: event.subject,
            event_id: event.event.id,
            campaign_id: None,
            difference,
            old: shown(&did),
            new: shown(&would),
        });
    }
    comparison
}
