//! The calls of a batch, which count once it is known what became of the batch.

use std::sync::Arc;

use nudge_plugin_runtime::logs::Topics;
use nudge_plugin_runtime::statistics::{CallOutcome, Made};
use nudge_plugin_runtime::{Recorder, RolloutPeriod, logs};
use nudge_wasm::Call;
use uuid::Uuid;

/// Calls that were made for a batch. Where they are dropped unsettled nothing of the batch took effect, it is
/// decided again, and none of them is held against its plugin: an event that a plugin can't stand is one failure,
/// however long the database has no room for what followed from it.
#[derive(Debug)]
pub(super) struct Calls {
    recorder: Arc<Recorder>,
    app_id: Uuid,
    kind: logs::Kind,
    all: Vec<UnsettledCall>,
    settled: bool,
}

#[derive(Debug)]
struct UnsettledCall {
    period: Arc<RolloutPeriod>,
    items: usize,
    outcome: CallOutcome,
    call: Call,
    topics: Topics,
}

impl Calls {
    /// None yet. `kind`: whether they decide, or are a candidate's that only would.
    pub(super) fn new(recorder: &Arc<Recorder>, app_id: Uuid, kind: logs::Kind) -> Self {
        Self {
            recorder: Arc::clone(recorder),
            app_id,
            kind,
            all: Vec::new(),
            settled: false,
        }
    }

    /// Keeps a call about some items. `topics` answers what it was about; it is asked only where the plugin logged.
    pub(super) fn add(
        &mut self,
        period: &Arc<RolloutPeriod>,
        items: usize,
        outcome: CallOutcome,
        call: Call,
        topics: impl FnOnce() -> Topics,
    ) {
        let logged = !call.logs.is_empty();
        self.all.push(UnsettledCall {
            period: Arc::clone(period),
            items,
            outcome,
            call,
            topics: if logged { topics() } else { Topics::default() },
        });
    }

    /// What the calls decided holds: they count as what they were.
    pub(super) fn settle(mut self) {
        self.settled = true;
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        for call in self.all.drain(..) {
            let made = Made {
                app_id: self.app_id,
                period: &call.period,
                items: call.items,
                outcome: if self.settled {
                    call.outcome
                } else {
                    call.outcome.unsettled()
                },
                call: &call.call,
            };
            self.recorder.made(&made, self.kind, || call.topics);
        }
    }
}
